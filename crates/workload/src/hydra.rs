//! DLIO's command line: Hydra's flags and overrides, in any order.
//!
//! Supports what DLIO's users pass in practice; a flag that cannot work is refused with a hint instead
//! of being ignored.

use crate::error::{Result, WorkloadError};
use crate::nearest::nearest;
use crate::overrides::Override;

/// The workload that DLIO runs by default.
pub const DEFAULT_WORKLOAD: &str = "default";

/// A parsed command line of DLIO.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DlioCommandLine {
    /// `--config-dir`: a folder with a `workload/` folder, searched after the built-in workloads.
    pub config_dir: Option<String>,
    /// `--config-path`: replaces the folder of the built-in workloads.
    pub config_path: Option<String>,
    /// `--config-name`: another primary file in that folder.
    pub config_name: Option<String>,
    /// `--cfg`: print the configuration and run nothing.
    pub cfg: Option<Cfg>,
    /// `--resolve`: with `--cfg`, replace references first.
    pub resolve: bool,
    /// `--package`: with `--cfg`, print one part only.
    pub package: Option<String>,
    /// `--help`.
    pub help: bool,
    /// `--hydra-help`.
    pub hydra_help: bool,
    /// `--version`.
    pub version: bool,
    /// The overrides, in the order given.
    pub overrides: Vec<Override>,
}

/// What `--cfg` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cfg {
    /// The composed workload.
    Job,
    /// Hydra's own settings.
    Hydra,
    /// Both.
    All,
}

/// A flag of Hydra's command line; `short` may be empty.
struct Flag {
    long: &'static str,
    short: &'static str,
    takes: Takes,
}

/// Whether a flag takes a value, and what it sets.
enum Takes {
    Nothing(fn(&mut DlioCommandLine)),
    Value(&'static str, fn(&mut DlioCommandLine, &str) -> bool),
    Unsupported(&'static str),
}

const FLAGS: &[Flag] = &[
    Flag {
        long: "--config-dir",
        short: "-cd",
        takes: Takes::Value("a folder", |line, value| fill(&mut line.config_dir, value)),
    },
    Flag {
        long: "--config-path",
        short: "-cp",
        takes: Takes::Value("a folder", |line, value| fill(&mut line.config_path, value)),
    },
    Flag {
        long: "--config-name",
        short: "-cn",
        takes: Takes::Value("a name", |line, value| fill(&mut line.config_name, value)),
    },
    Flag {
        long: "--cfg",
        short: "-c",
        takes: Takes::Value("`job`, `hydra` or `all`", |line, value| {
            line.cfg = match value {
                "job" => Some(Cfg::Job),
                "hydra" => Some(Cfg::Hydra),
                "all" => Some(Cfg::All),
                _ => return false,
            };
            true
        }),
    },
    Flag { long: "--resolve", short: "", takes: Takes::Nothing(|line| line.resolve = true) },
    Flag {
        long: "--package",
        short: "-p",
        takes: Takes::Value("a path of keys", |line, value| fill(&mut line.package, value)),
    },
    Flag { long: "--help", short: "-h", takes: Takes::Nothing(|line| line.help = true) },
    Flag { long: "--hydra-help", short: "", takes: Takes::Nothing(|line| line.hydra_help = true) },
    Flag { long: "--version", short: "", takes: Takes::Nothing(|line| line.version = true) },
    // Running is the default.
    Flag { long: "--run", short: "-r", takes: Takes::Nothing(|_| {}) },
    Flag {
        long: "--multirun",
        short: "-m",
        takes: Takes::Unsupported("start several runs, each with its own overrides"),
    },
    Flag {
        long: "--info",
        short: "-i",
        takes: Takes::Unsupported("print the composed workload with `--cfg job`"),
    },
    Flag {
        long: "--shell-completion",
        short: "-sc",
        takes: Takes::Unsupported("shell completion is not available"),
    },
    Flag {
        long: "--experimental-rerun",
        short: "",
        takes: Takes::Unsupported("pass the overrides listed in `overrides.yaml` of the run"),
    },
];

impl DlioCommandLine {
    /// Parses the arguments after the program name.
    ///
    /// # Errors
    /// An unknown or unsupported flag, a flag without its value, an invalid override.
    pub fn parse(args: &[String]) -> Result<Self> {
        let mut line = Self::default();
        let mut args = args.iter();
        let mut only_overrides = false;
        while let Some(arg) = args.next() {
            if only_overrides || !arg.starts_with('-') {
                line.overrides.push(Override::parse(arg)?);
            } else if arg == "--" {
                only_overrides = true;
            } else {
                line.flag(arg, &mut args)?;
            }
        }
        Ok(line)
    }

    /// The workload to run: the last `workload=NAME`, or DLIO's default.
    pub fn workload(&self) -> &str {
        let mut choices = self.overrides.iter().filter_map(Override::workload_choice);
        choices.next_back().unwrap_or(DEFAULT_WORKLOAD)
    }

    fn flag<'a>(
        &mut self,
        arg: &'a str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<()> {
        let (name, inline) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg, None),
        };
        let Some(flag) = find(name) else {
            return Err(unknown(arg, name));
        };
        match flag.takes {
            Takes::Unsupported(hint) => {
                Err(WorkloadError::UnsupportedFlag { flag: name.to_owned(), hint })
            }
            Takes::Nothing(set) if inline.is_none() => {
                set(self);
                Ok(())
            }
            Takes::Nothing(_) => {
                Err(WorkloadError::FlagValue { flag: name.to_owned(), expected: "no value" })
            }
            Takes::Value(expected, set) => {
                let value = inline.or_else(|| rest.next().map(String::as_str));
                match value {
                    Some(value) if set(self, value) => Ok(()),
                    _ => Err(WorkloadError::FlagValue { flag: name.to_owned(), expected }),
                }
            }
        }
    }
}

fn find(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.long == name || (!flag.short.is_empty() && flag.short == name))
}

/// The error for an unknown flag. DLIO's documentation shows overrides with leading dashes.
fn unknown(arg: &str, name: &str) -> WorkloadError {
    if name.starts_with("--hydra.") || name.starts_with("--workload") {
        let hint = "write overrides without dashes: `hydra.run.dir=DIR`";
        return WorkloadError::UnsupportedFlag { flag: arg.to_owned(), hint };
    }
    let nearest = nearest(name, FLAGS.iter().map(|flag| flag.long));
    WorkloadError::UnknownFlag { flag: arg.to_owned(), nearest }
}

fn fill(slot: &mut Option<String>, value: &str) -> bool {
    *slot = Some(value.to_owned());
    !value.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<DlioCommandLine> {
        DlioCommandLine::parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn flags_and_overrides_come_in_any_order() {
        let line = parse(&[
            "workload=unet3d_h100",
            "++hydra.run.dir=out",
            "--config-dir=/etc/dlio",
            "++workload.train.epochs=2",
            "-c",
            "job",
            "--resolve",
            "-p",
            "workload.train",
            "-r",
        ])
        .expect("the line is valid");
        let texts: Vec<&str> = line.overrides.iter().map(|item| item.text.as_str()).collect();
        assert_eq!(
            texts,
            ["workload=unet3d_h100", "++hydra.run.dir=out", "++workload.train.epochs=2"]
        );
        assert_eq!(line.workload(), "unet3d_h100");
        let expected = DlioCommandLine {
            config_dir: Some("/etc/dlio".to_owned()),
            cfg: Some(Cfg::Job),
            resolve: true,
            package: Some("workload.train".to_owned()),
            overrides: line.overrides.clone(),
            ..DlioCommandLine::default()
        };
        assert_eq!(line, expected);
    }

    #[test]
    fn long_and_short_flags_mean_the_same() {
        #[track_caller]
        fn check(left: &[&str], right: &[&str]) {
            assert_eq!(parse(left), parse(right));
        }
        check(&["--config-dir", "d"], &["-cd", "d"]);
        check(&["--config-path", "d"], &["-cp=d"]);
        check(&["--config-name", "n"], &["-cn", "n"]);
        check(&["--cfg", "all"], &["-c", "all"]);
        check(&["--help"], &["-h"]);
        check(&["--", "workload=a"], &["workload=a"]);
        assert_eq!(parse(&[]).map(|line| line.workload().to_owned()), Ok("default".to_owned()));
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_a_hint() {
        #[track_caller]
        fn check(args: &[&str], message: &str, hint: Option<&str>) {
            let err = parse(args).expect_err("the line is wrong");
            assert_eq!(err.to_string(), message);
            assert_eq!(err.hint().as_deref(), hint);
        }
        check(
            &["--multirun"],
            "flag `--multirun` is not supported",
            Some("start several runs, each with its own overrides"),
        );
        check(
            &["--info=all"],
            "flag `--info` is not supported",
            Some("print the composed workload with `--cfg job`"),
        );
        check(
            &["--hydra.run.dir=x"],
            "flag `--hydra.run.dir=x` is not supported",
            Some("write overrides without dashes: `hydra.run.dir=DIR`"),
        );
        check(
            &["--confg-dir", "x"],
            "unknown flag `--confg-dir`",
            Some("did you mean `--config-dir`?"),
        );
        check(&["-x"], "unknown flag `-x`", None);
        check(&["--config-dir"], "flag `--config-dir` expects a folder", None);
        check(&["--cfg", "jobs"], "flag `--cfg` expects `job`, `hydra` or `all`", None);
        check(&["--help=1"], "flag `--help` expects no value", None);
    }
}

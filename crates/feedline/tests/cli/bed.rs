//! An empty folder with one small workload in it, and the command to run there.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// What a run of one rank leaves in the folder `out`.
pub(crate) const RESULT_FILES: [&str; 10] = [
    "out/",
    "out/.hydra/",
    "out/.hydra/config.yaml",
    "out/.hydra/hydra.yaml",
    "out/.hydra/overrides.yaml",
    "out/0_output.json",
    "out/0_per_epoch_stats.json",
    "out/0_steps.csv",
    "out/dlio.log",
    "out/summary.json",
];

/// Eight files of one 4 KiB sample, four steps of 10 ms.
pub(crate) const SMALL: &str = "\
model:
  name: small
framework: pytorch
workflow:
  generate_data: False
  train: True
dataset:
  data_folder: data
  format: npz
  num_files_train: 8
  num_samples_per_file: 1
  record_length_bytes: 4096
reader:
  data_loader: pytorch
  batch_size: 2
  read_threads: 1
train:
  epochs: 1
  computation_time: 0.01
";
/// Bytes of one npz file of that workload.
pub(crate) const FILE_BYTES: u64 = 4594;
/// What a process under test may take before the test gives up on it.
const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct Bed {
    dir: tempfile::TempDir,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let bed = Self { dir: tempfile::tempdir().expect("a temporary folder") };
        bed.write("small.yaml", SMALL);
        bed
    }

    /// A bed whose data set is there already.
    pub(crate) fn with_data() -> Self {
        let bed = Self::new();
        let ran = bed.run(&["small.yaml", "--generate-only", "--out", "made"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        fs::remove_dir_all(bed.path("made")).expect("the log of the generation");
        bed
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("its folder");
        fs::write(path, content).expect("a file of the test");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// `program` in this folder, with nothing in its environment but where programs are.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.dir.path()).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("FEEDLINE", env!("CARGO_BIN_EXE_feedline"));
        // A calibration of this machine would change what runs burn.
        command.env("XDG_DATA_HOME", self.dir.path().join("home"));
        command
    }

    pub(crate) fn feedline(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_feedline"));
        command.args(args);
        command
    }

    /// `feedline run`.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran(self.feedline(&["run"]).args(args))
    }

    /// `feedline run` that must end well.
    pub(crate) fn runs(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran
    }

    /// A shell line in which `$FEEDLINE` is the command.
    pub(crate) fn shell(&self, line: &str) -> Ran {
        ran(self.command("sh").args(["-c", line]))
    }

    /// A shell line in a mount namespace of its own, where it may mount file systems.
    pub(crate) fn unshared(&self, line: &str) -> Ran {
        ran(self.command("unshare").args(["-rm", "sh", "-c", line]))
    }

    /// `feedline run` must end with exit code 2 and this text, and leave the folder as it was.
    #[track_caller]
    pub(crate) fn refuses(&self, args: &[&str], stderr: &str) {
        let before = self.tree();
        let ran = self.run(args);
        assert_eq!(ran.stderr, stderr);
        assert_eq!(ran.stdout, "");
        assert_eq!(ran.code, Some(2));
        assert_eq!(self.tree(), before, "something was left behind");
    }

    /// `feedline run` in the background.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut command = self.feedline(&["run"]);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::new(command.spawn().expect("the command starts"))
    }

    /// Every path below the folder, folders with a slash, without the workload file.
    pub(crate) fn tree(&self) -> Vec<String> {
        let mut paths = Vec::new();
        walk(self.dir.path(), "", &mut paths);
        paths.retain(|path| path != "small.yaml");
        paths.sort();
        paths
    }

    /// Waits until `done` holds.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !done(self) {
            assert!(begin.elapsed() < DEADLINE, "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until a line of the log has this text.
    #[track_caller]
    pub(crate) fn wait_for_log(&self, log: &str, text: &str) {
        self.wait_until(text, |bed| {
            fs::read_to_string(bed.path(log)).is_ok_and(|log| log.contains(text))
        });
    }
}

fn walk(folder: &Path, prefix: &str, paths: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the test") {
        let entry = entry.expect("an entry");
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("a kind").is_dir() {
            paths.push(format!("{name}/"));
            walk(&entry.path(), &format!("{name}/"), paths);
        } else {
            paths.push(name);
        }
    }
}

/// Runs to the end.
pub(crate) fn ran(command: &mut Command) -> Ran {
    Ran::from(command.output().expect("the command starts"))
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("output in UTF-8");
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        Self { code: output.status.code(), stdout, stderr }
    }
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("stdout is one JSON object")
    }
}

/// A process that is ended with the test.
pub(crate) struct Running {
    child: Option<Child>,
}

impl Running {
    pub(crate) fn new(child: Child) -> Self {
        Self { child: Some(child) }
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.as_ref().expect("not waited for yet").id();
        let line = format!("kill -{name} {id}");
        assert!(Command::new("sh").args(["-c", &line]).status().expect("a shell").success());
    }

    pub(crate) fn wait(mut self) -> Ran {
        let child = self.child.take().expect("waited for once");
        Ran::from(child.wait_with_output().expect("the process can be waited for"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What the machine decides, by the unit behind the number.
const UNITS: &[(&str, &str)] = &[
    ("samples/s", "[rate]"),
    ("MiB/s", "[rate]"),
    ("GB/s", "[rate]"),
    ("MB/s", "[rate]"),
    ("kB/s", "[rate]"),
    ("B/s", "[rate]"),
    ("GB", "[size]"),
    ("MB", "[size]"),
    ("kB", "[size]"),
    ("ms", "[time]"),
    ("us", "[time]"),
    ("ns", "[time]"),
    ("s", "[time]"),
    ("%", "[share]"),
];

/// Blurs numbers with a unit, four decimals and dates; joins wrapped lines; drops bars and padding.
pub(crate) fn blurred(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let wrapped = line.starts_with("            ") && words.first() != Some(&"-");
        let line = words.join(" ");
        match lines.last_mut() {
            Some(last) if wrapped => *last = format!("{last} {line}"),
            _ => lines.push(line),
        }
    }
    lines.iter().map(|line| blurred_line(line) + "\n").collect()
}

fn blurred_line(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        if ('\u{2580}'..='\u{259f}').contains(&first) {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let inside_word = out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if first.is_ascii_digit() && !inside_word {
            let date = rest
                .get(..26)
                .filter(|text| (text.as_bytes()[4], text.as_bytes()[10]) == (b'-', b'T'));
            let (shown, len) = match date {
                Some(_) => ("[date]".to_owned(), 26),
                None => blurred_number(rest),
            };
            out.push_str(&shown);
            rest = &rest[len..];
            continue;
        }
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out.trim_end().to_owned()
}

/// What stands for the number that `text` begins with, and how much of the text that was.
fn blurred_number(text: &str) -> (String, usize) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    let behind = &text[number.len()..];
    let spaced = behind.strip_prefix(' ').unwrap_or(behind);
    let unit = UNITS.iter().find(|(unit, _)| {
        let after = spaced.strip_prefix(unit).map(|after| after.chars().next());
        after.is_some_and(|next| next.is_none_or(|c| !c.is_alphanumeric() && c != '/'))
    });
    if let Some((unit, word)) = unit {
        return ((*word).to_owned(), text.len() - spaced.len() + unit.len());
    }
    let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let shown = if decimals >= 4 { "[number]" } else { number };
    (shown.to_owned(), number.len())
}

#[test]
fn blurring_keeps_words_and_counts() {
    let line = "epoch 1/1: step 4/4, AU so far 98.3 %, 195.1 samples/s, 799 kB/s, 30.8 ms left";
    let expected = "epoch 1/1: step 4/4, AU so far [share], [rate], [rate], [time] left\n";
    assert_eq!(blurred(line), expected);
    assert_eq!(blurred("  peers  0.1 %  25.6 us  ▏"), "peers [share] [time]\n");
    assert_eq!(blurred("next  a\n            b"), "next a b\n");
    assert_eq!(blurred("[OUTPUT] 2026-11-15T22:33:44.150178 of 8"), "[OUTPUT] [date] of 8\n");
}

//! What `feedline ceiling` found, on one screen.

use feedline_bench::{ACCELERATORS_MAX, Bound, Ceiling, FrameworkCeiling, Probe, Rate};
use feedline_numbers::units;
use feedline_workload::Workload;

use crate::screen::reader_name;
use crate::style::{Ink, Style};
use crate::wrap::{self, all_labeled, joined};

/// The answer first, then what it rests on.
pub fn ceiling(name: &str, workload: &Workload, found: &Ceiling, style: Style) -> String {
    let columns = style.columns();
    let reader = reader_name(workload.reader.data_loader);
    let (word, text) = match &found.framework {
        Some(framework) => framework_headline(name, found, framework, reader),
        None => headline(name, found),
    };
    let mut lines = wrap::headline(&text, (&word, Ink::Bold), style);
    lines.push(String::new());
    let mut rows = vec![
        ("workload", described(workload)),
        (
            "native",
            format!(
                "{} with Feedline's own reader on {}",
                rate(found.client),
                units::counted(u64::from(found.cpus), "processor")
            ),
        ),
        ("one alone", alone(found)),
        ("tried", found.probes.iter().map(probe).collect::<Vec<_>>().join("; ")),
        ("meaning", meaning(found, reader)),
    ];
    if let Some(framework) = &found.framework {
        rows.insert(1, ("framework", framework_row(framework)));
    }
    let asked = workload.dataset.num_samples_per_file;
    if found.samples_per_file < asked {
        let (used, asked) = (units::count(found.samples_per_file), units::count(asked));
        let note = format!("files had {used} samples instead of {asked}, to fit into memory");
        rows.insert(1, ("", note));
    }
    lines.extend(all_labeled(&rows, columns));
    joined(&lines)
}

/// The same for a workload whose framework costs something: its reader first, then our own.
fn framework_headline(
    name: &str,
    found: &Ceiling,
    framework: &FrameworkCeiling,
    reader: &str,
) -> (String, String) {
    let word = match framework.accelerators {
        0 => "NO accelerator".to_owned(),
        count => units::counted(u64::from(count), "accelerator"),
    };
    let more = if framework.accelerators >= ACCELERATORS_MAX { " and more" } else { "" };
    let target = units::round_percent(found.target_percent);
    let estimate = match framework.is_estimate() {
        true => " by an estimate; measure it: feedline calibrate",
        false => ", however fast its storage is",
    };
    let native = match (found.accelerators, found.bound) {
        (0, _) => "Feedline's own reader feeds none".to_owned(),
        (count, Bound::NotReached) => format!("Feedline's own reader feeds {count} and more"),
        (count, _) => format!("Feedline's own reader feeds {count}"),
    };
    let text = format!(
        "{word} of {name}{more} can be fed with {reader} by this client ({target} busy){estimate}. \
         {native}"
    );
    (word, text)
}

fn framework_row(framework: &FrameworkCeiling) -> String {
    let rate = match framework.samples_per_s.is_finite() {
        true => format!("{} samples/s", units::number(framework.samples_per_s)),
        false => "no time at all".to_owned(),
    };
    let tried = match framework.probes.as_slice() {
        [] => "estimated by figures of another machine".to_owned(),
        probes => {
            format!("tried {}", probes.iter().map(probe).collect::<Vec<_>>().join("; "))
        }
    };
    format!(
        "{rate}, {} of CPU time per sample ({}); {tried}",
        units::duration(framework.per_sample_ns as f64 / 1e9),
        framework.source
    )
}

/// What may be concluded for a run, and what may not.
fn meaning(found: &Ceiling, reader: &str) -> String {
    let done = "files came out of memory, nothing was read: finding, copying, checking and decoding \
                samples is all that was done";
    match &found.framework {
        Some(framework) => format!(
            "{done}. A training with {reader} that feeds {} is held back by Python and not by its \
             storage; only one that feeds fewer is held back by storage. The same holds for a run \
             with Feedline's own reader and {}",
            framework.accelerators, found.accelerators
        ),
        None => format!(
            "{done}. A run with this reader that feeds fewer accelerators is held back by its \
             storage, one that feeds as many by this client. What a framework in Python would \
             cost is not in it"
        ),
    }
}

/// The word in bold and the whole sentence.
fn headline(name: &str, found: &Ceiling) -> (String, String) {
    let count = units::counted(u64::from(found.accelerators), "accelerator");
    let target = units::round_percent(found.target_percent);
    match found.bound {
        Bound::Client | Bound::Framework if found.accelerators > 0 => {
            let text = format!("{count} of {name} can be fed by this client ({target} busy)");
            (count, text)
        }
        Bound::Client | Bound::Framework => {
            let word = "NO accelerator".to_owned();
            let text = format!(
                "{word} of {name} can be fed by this client ({target} busy), however fast its \
                 storage is"
            );
            (word, text)
        }
        Bound::Readers => {
            let word = "NO accelerator".to_owned();
            let text = format!(
                "{word} of {name} can be fed with these readers ({target} busy): its own cannot \
                 keep up; raise `reader.read_threads`"
            );
            (word, text)
        }
        Bound::NotReached => {
            let text = format!(
                "{count} of {name} and more can be fed by this client ({target} busy); no more \
                 than {ACCELERATORS_MAX} are tried"
            );
            (count, text)
        }
    }
}

fn described(workload: &Workload) -> String {
    let (dataset, reader) = (&workload.dataset, &workload.reader);
    let seconds = units::duration(workload.train.computation_time.mean_seconds());
    format!(
        "{} samples, batch {}, {} of compute per batch, loader {}, {}",
        dataset.format,
        units::count(reader.batch_size),
        seconds,
        reader.data_loader,
        units::counted(u64::from(reader.read_threads), "reader"),
    )
}

fn alone(found: &Ceiling) -> String {
    let share = found.alone.samples_per_s / found.demand_samples_per_s;
    let times =
        if share.is_finite() { format!("{share:.1} times") } else { "far more than".into() };
    format!(
        "{}: {times} the {} samples/s that an accelerator takes",
        rate(found.alone),
        units::number(found.demand_samples_per_s),
    )
}

fn rate(rate: Rate) -> String {
    if !rate.samples_per_s.is_finite() {
        return "no time at all".to_owned();
    }
    format!("{} samples/s, {}/s", units::number(rate.samples_per_s), units::bytes(rate.bytes_per_s))
}

/// One paced run.
pub fn probe(probe: &Probe) -> String {
    format!("{} busy {}", probe.accelerators, units::percent(probe.au_percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Ceiling {
        Ceiling {
            accelerators: 7,
            bound: Bound::Client,
            target_percent: 90.0,
            demand_samples_per_s: 20.0,
            alone: Rate { samples_per_s: 50.0, bytes_per_s: 7.3e9 },
            client: Rate { samples_per_s: 150.0, bytes_per_s: 2.2e10 },
            probes: vec![
                Probe { accelerators: 7, au_percent: 96.04 },
                Probe { accelerators: 8, au_percent: 85.5 },
            ],
            cpus: 2,
            framework: None,
            samples_per_file: 1,
        }
    }

    const PLAIN: Style = Style { width: 100, color: false };

    #[test]
    fn the_answer_comes_first_and_its_reasons_follow() {
        let mut workload = Workload::default();
        workload.reader.read_threads = 4;
        workload.train.computation_time = feedline_workload::TimeSpec::Constant { mean: 0.35 };
        let text = ceiling("unet3d_h100", &workload, &found(), PLAIN);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "7 accelerators of unet3d_h100 can be fed by this client (90 % busy)");
        assert_eq!(
            lines[2],
            "workload    tfrecord samples, batch 1, 350 ms of compute per batch, loader tensorflow, \
             4 readers"
        );
        assert_eq!(
            lines[3],
            "native      150 samples/s, 22.0 GB/s with Feedline's own reader on 2 processors"
        );
        assert_eq!(
            lines[4],
            "one alone   50.0 samples/s, 7.30 GB/s: 2.5 times the 20.0 samples/s that an \
             accelerator takes"
        );
        assert!(text.contains("tried       7 busy 96.0 %; 8 busy 85.5 %"), "{text}");
    }

    #[test]
    fn what_holds_it_back_is_said() {
        let none = |bound| Ceiling { accelerators: 0, bound, ..found() };
        let first = |found: &Ceiling| {
            ceiling("x", &Workload::default(), found, PLAIN).lines().next().unwrap().to_owned()
        };
        assert_eq!(
            first(&none(Bound::Client)),
            "NO accelerator of x can be fed by this client (90 % busy), however fast its storage is"
        );
        assert_eq!(
            first(&none(Bound::Readers)),
            "NO accelerator of x can be fed with these readers (90 % busy): its own cannot keep \
             up; raise"
        );
        let many = Ceiling { accelerators: 256, bound: Bound::NotReached, ..found() };
        assert!(first(&many).starts_with("256 accelerators of x and more can be fed"));
    }

    #[test]
    fn storage_is_not_blamed_for_what_python_cannot_do() {
        let mut framework = FrameworkCeiling {
            accelerators: 0,
            samples_per_s: 7.9,
            per_sample_ns: 230_000_000,
            source: "Python 3.11.7".into(),
            probes: vec![Probe { accelerators: 1, au_percent: 35.8 }],
        };
        let text = |framework: &FrameworkCeiling| {
            let bound = Bound::Framework;
            let found = Ceiling { bound, framework: Some(framework.clone()), ..found() };
            let mut workload = Workload::default();
            workload.reader.data_loader = feedline_workload::DataLoader::Pytorch;
            ceiling("unet3d", &workload, &found, Style { width: 200, color: false })
        };
        let measured = text(&framework);
        let lines: Vec<&str> = measured.lines().collect();
        assert_eq!(
            lines[..2].join(" ").split_whitespace().collect::<Vec<_>>().join(" "),
            "NO accelerator of unet3d can be fed with PyTorch's reader by this client (90 % busy), \
             however fast its storage is. Feedline's own reader feeds 7"
        );
        let flat = measured.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.contains(
                "framework 7.90 samples/s, 230 ms of CPU time per sample (Python 3.11.7); tried 1 \
                 busy 35.8 %"
            ),
            "{flat}"
        );
        assert!(flat.contains("is held back by Python and not by its storage"), "{flat}");
        framework.probes.clear();
        framework.accelerators = 1;
        let flat = text(&framework).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.starts_with(
                "1 accelerator of unet3d can be fed with PyTorch's reader by this client (90 % \
                 busy) by an estimate; measure it: feedline calibrate. Feedline's own reader feeds 7"
            ),
            "{flat}"
        );
    }
}

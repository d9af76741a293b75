//! What `feedline ceiling` found, on one screen.

use feedline_bench::{ACCELERATORS_MAX, Bound, Ceiling, Probe, Rate};
use feedline_workload::Workload;

use crate::style::{Ink, Style};
use crate::units;
use crate::wrap::{hanging, joined, labelled};

/// The answer first, then what it rests on.
pub fn ceiling(name: &str, workload: &Workload, found: &Ceiling, style: Style) -> String {
    let columns = style.columns();
    let (word, text) = headline(name, found);
    let mut lines = hanging("", "  ", &text, columns);
    lines[0] = lines[0].replacen(&word, &style.paint(Ink::Bold, &word), 1);
    lines.push(String::new());
    let mut rows = vec![
        ("workload", described(workload)),
        (
            "client",
            format!(
                "{} on {}",
                rate(found.client),
                units::counted(u64::from(found.cpus), "processor")
            ),
        ),
        ("one alone", alone(found)),
        ("tried", found.probes.iter().map(probe).collect::<Vec<_>>().join("; ")),
        (
            "meaning",
            "files came out of memory, nothing was read: finding, copying, checking and decoding \
             samples is all that was done. A run that feeds fewer accelerators is held back by its \
             storage, one that feeds as many by this client"
                .to_owned(),
        ),
    ];
    let asked = workload.dataset.num_samples_per_file;
    if found.samples_per_file < asked {
        let (used, asked) = (units::count(found.samples_per_file), units::count(asked));
        let note = format!("files had {used} samples instead of {asked}, to fit into memory");
        rows.insert(1, ("", note));
    }
    lines.extend(rows.iter().flat_map(|(label, text)| labelled(label, text, columns)));
    joined(&lines)
}

/// The word in bold and the whole sentence.
fn headline(name: &str, found: &Ceiling) -> (String, String) {
    let count = units::counted(u64::from(found.accelerators), "accelerator");
    let target = units::round_percent(found.target_percent);
    match found.bound {
        Bound::Client if found.accelerators > 0 => {
            let text = format!("{count} of {name} can be fed by this client ({target} busy)");
            (count, text)
        }
        Bound::Client => {
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
        "{} samples, batch {}, {} computed a batch, loader {}, {}",
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
            "workload    tfrecord samples, batch 1, 350 ms computed a batch, loader tensorflow, \
             4 readers"
        );
        assert_eq!(lines[3], "client      150 samples/s, 22.0 GB/s on 2 processors");
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
}

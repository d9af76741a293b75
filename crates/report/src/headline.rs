//! The first line of the last screen: the verdict.

use feedline_bench::{Cause, Transfers, Verdict};
use feedline_dataset::Generated;
use feedline_numbers::units;

use crate::shown::Shown;
use crate::style::{Ink, Style};
use crate::wrap;

/// A verdict in words. Its colored words are at the beginning.
struct Headline {
    text: String,
    marked: Vec<(&'static str, Ink)>,
}

/// The verdict, wrapped, with its word in color.
pub(crate) fn lines(shown: &Shown<'_>, style: Style) -> Vec<String> {
    let headline = headline(shown);
    let mut lines = wrap::hanging("", "  ", &headline.text, style.columns());
    for (word, ink) in headline.marked {
        lines[0] = lines[0].replacen(word, &style.paint(ink, word), 1);
    }
    lines
}

fn headline(shown: &Shown<'_>) -> Headline {
    let (word, ink, rest) = match shown.assessment.verdict {
        Verdict::NotTrained => return not_trained(shown),
        Verdict::Fed { au_percent, target_percent } => {
            ("FED", Ink::BoldGreen, busy(units::percent(au_percent), target_percent))
        }
        Verdict::Starved { au_percent, target_percent, by, .. } => {
            let au = units::percent_below(au_percent, target_percent);
            let rest = match (by, shown.assessment.per_sample) {
                (Cause::Framework, Some(each)) => format!(
                    " by the framework: Python takes {} per sample, storage {}; accelerators were \
                     busy {au} of the time, target {}",
                    units::duration(each.framework_s),
                    units::duration(each.storage_s),
                    units::round_percent(target_percent)
                ),
                _ => format!(" by {}{}", by.as_str(), busy(au, target_percent)),
            };
            ("STARVED", Ink::BoldRed, rest)
        }
        Verdict::Unpaced => {
            let rest = ": the workload computes nothing, so the data was read as fast as it came";
            ("UNPACED", Ink::BoldYellow, rest.to_owned())
        }
        Verdict::TooShort => {
            let rest = match shown.summary.strict.steps {
                0 => " to judge: no step was made".to_owned(),
                steps => format!(
                    " to judge: {} made, none left after those that do not count",
                    units::counted(steps, "step")
                ),
            };
            ("TOO SHORT", Ink::BoldYellow, rest)
        }
    };
    if shown.interrupted {
        let marked = vec![("INTERRUPTED", Ink::BoldYellow), (word, ink)];
        return Headline { text: format!("INTERRUPTED, {word}{rest}"), marked };
    }
    Headline { text: format!("{word}{rest}"), marked: vec![(word, ink)] }
}

fn busy(au: String, target_percent: f64) -> String {
    let target = units::round_percent(target_percent);
    format!(": accelerators were busy {au} of the time, target {target}")
}

/// What a run that only checkpoints has come to.
fn checkpointed(shown: &Shown<'_>) -> Option<Headline> {
    let rate = |verb: &str, all: &Option<Transfers>| {
        let all = all.as_ref()?;
        let gb = units::number(all.bytes_per_s().map(|rate| rate / 1e9));
        Some(format!("{verb} at {gb} GB/s"))
    };
    let (saves, loads) = (&shown.summary.saves, &shown.summary.loads);
    let parts: Vec<_> =
        [rate("saved", saves), rate("loaded", loads)].into_iter().flatten().collect();
    if parts.is_empty() {
        return None;
    }
    let (word, ink) = match shown.interrupted {
        true => ("INTERRUPTED", Ink::BoldYellow),
        false => ("CHECKPOINTED", Ink::BoldGreen),
    };
    let size = units::bytes(saves.as_ref().or(loads.as_ref())?.size_gib() * (1u64 << 30) as f64);
    let text = format!("{word}: {size} {}", parts.join(", "));
    Some(Headline { text, marked: vec![(word, ink)] })
}

fn not_trained(shown: &Shown<'_>) -> Headline {
    if let Some(headline) = checkpointed(shown) {
        return headline;
    }
    let total = shown.plan.train_files.total + shown.plan.eval_files.total;
    let (word, ink, rest) = match shown.generated {
        Some(made) if shown.interrupted => {
            let files = units::counted(total, "file");
            let text = format!(": {} of {files} made{}", units::count(made.files), kept(made));
            ("INTERRUPTED", Ink::BoldYellow, format!("{text}, nothing trained"))
        }
        None if shown.interrupted => {
            let what = if shown.worked { "the first checkpoint was done" } else { "training" };
            ("INTERRUPTED", Ink::BoldYellow, format!(" before {what}"))
        }
        Some(made) => {
            let text = match made.files {
                0 if made.kept_files > 0 => ": all files already existed".to_owned(),
                files => format!(": {} made{}", units::counted(files, "file"), kept(made)),
            };
            ("DATA READY", Ink::BoldGreen, format!("{text}, nothing trained"))
        }
        None => ("NOTHING DONE", Ink::BoldYellow, ": no data made, nothing trained".to_owned()),
    };
    Headline { text: format!("{word}{rest}"), marked: vec![(word, ink)] }
}

/// Files that did not have to be made.
fn kept(made: Generated) -> String {
    match made.kept_files {
        0 => String::new(),
        1 => ", 1 already existed".to_owned(),
        files => format!(", {} already existed", units::count(files)),
    }
}

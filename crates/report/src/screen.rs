//! The one screen at the end of a run: the answer first, then why, then what to try next.
//!
//! At most 30 lines of at most 100 columns. If there is more to say, blank lines go first and then
//! warnings, which are all in `summary.json`.

use feedline_bench::{
    Assessment, DLIO_MAIN, FrameworkPlan, Outcome, Semantics, Series, Summary, Transfer, Transfers,
    Verdict,
};
use feedline_dataset::MANIFEST_NAME;
use feedline_numbers::units;
use feedline_workload::DataLoader;

use crate::shown::Shown;
use crate::style::Style;
use crate::wrap::{item, joined, labeled};
use crate::{bars, headline, plan, samples};

#[cfg(test)]
mod tests;

const MOST_LINES: usize = 30;
const GIB: f64 = (1u64 << 30) as f64;
const MIB: f64 = (1u64 << 20) as f64;

/// The screen of a run whose result files are in `out_folder`.
pub fn screen(
    outcome: &Outcome,
    summary: &Summary,
    assessment: &Assessment,
    out_folder: &str,
    style: Style,
) -> String {
    render(&Shown::new(outcome, summary, assessment, out_folder), style)
}

/// The screen of these values.
pub fn render(shown: &Shown<'_>, style: Style) -> String {
    let columns = style.columns();
    let label = |(label, text): (&str, String)| labeled(label, &text, columns);
    let block = |lines: Vec<Option<(&'static str, String)>>| -> Vec<String> {
        lines.into_iter().flatten().flat_map(label).collect()
    };
    let before = vec![
        headline::lines(shown, style),
        block(vec![
            Some(("workload", workload(shown))),
            uneven(shown),
            utilization(shown),
            throughput(shown),
            evaluation(shown),
            ranks_done(shown),
        ]),
        time_split(shown, style),
        block(vec![
            storage(shown),
            reading(shown),
            framework(shown),
            emulation(shown),
            page_cache(shown),
            generated(shown),
            transfers("save", "saved", &shown.summary.saves),
            saving(shown),
            transfers("load", "loaded", &shown.summary.loads),
        ]),
    ];
    let after = block(vec![
        Some(("next", shown.assessment.next_step.clone())),
        Some(("results", results(shown))),
    ]);
    joined(&fitted(before, warnings(shown, columns), after, shown))
}

/// Name, size and rules of the run.
fn workload(shown: &Shown<'_>) -> String {
    let (plan, assessment) = (shown.plan, shown.assessment);
    let mut parts = Vec::new();
    if let (Some(phase), Some(train)) = (&plan.train, &shown.summary.train) {
        parts.push(units::counted(u64::from(plan.ranks), "accelerator"));
        let (epochs, steps) = (train.au_percent.len() as u64, shown.summary.strict.steps);
        let done = units::counted(epochs, "epoch");
        parts.push(if epochs * phase.steps == steps {
            format!("{done} × {}", units::counted(phase.steps, "step"))
        } else {
            // The last epoch was cut short, by a stop or by `train.max_steps`.
            format!("{} in {done}", units::counted(steps, "step"))
        });
        parts.push(format!("batch {}", units::count(phase.dealing.batch)));
    }
    if shown.trained() || shown.generated.is_some() {
        let noun = format!("{} file", plan.train_files.extension);
        parts.push(units::counted(plan.train_files.total, &noun));
    } else {
        parts.push(units::counted(u64::from(plan.ranks), "rank"));
    }
    if plan.eval_files.total > 0 && (plan.eval.is_some() || shown.generated.is_some()) {
        parts.push(format!("{} for evaluation", units::count(plan.eval_files.total)));
    }
    if plan.semantics == Semantics::Dlio {
        parts.push(format!("semantics of DLIO {DLIO_MAIN}"));
    }
    let quick = if assessment.quick { "; --quick: not comparable with other results" } else { "" };
    format!("{}: {}{quick}", assessment.workload, parts.join(", "))
}

/// Which samples an epoch leaves out or reads twice, if it does.
fn uneven(shown: &Shown<'_>) -> Option<(&'static str, String)> {
    shown.summary.train.as_ref()?;
    Some(("samples", samples::uneven(shown.plan.train.as_ref()?)?))
}

fn utilization(shown: &Shown<'_>) -> Option<(&'static str, String)> {
    let (train, strict) = (shown.summary.train.as_ref()?, &shown.summary.strict);
    let target_percent = 100.0 * shown.assessment.target;
    let target = units::round_percent(target_percent);
    let text = match shown.assessment.verdict {
        Verdict::Unpaced => "n/a: nothing is computed".to_owned(),
        Verdict::TooShort => format!("n/a: too few steps count; target {target}"),
        _ => {
            let (mean, stdev) = train.au().unzip();
            let mean = match mean {
                Some(mean) if mean < target_percent => units::percent_below(mean, target_percent),
                mean => units::percent(mean),
            };
            let (strict_au, worst) = (strict.au_percent, strict.au_worst_rank_percent);
            let epochs = units::counted(train.au_percent.len() as u64, "epoch");
            format!(
                "{mean} (stdev {} over {epochs}), target {target}; strict {}, worst rank {}",
                decimal(stdev),
                units::percent(strict_au),
                units::percent(worst)
            )
        }
    };
    Some(("AU", text))
}

fn throughput(shown: &Shown<'_>) -> Option<(&'static str, String)> {
    let (train, strict) = (shown.summary.train.as_ref()?, &shown.summary.strict);
    if strict.counted_steps == 0 {
        return Some(("throughput", "n/a: no step counts".into()));
    }
    let text = format!(
        "{} samples/s, {} MB/s of samples; DLIO counts {}",
        units::number(strict.samples_per_s),
        units::number(strict.sample_bytes_per_s.map(|rate| rate / 1e6)),
        dlio_rates(train, shown)
    );
    Some(("throughput", text))
}

fn evaluation(shown: &Shown<'_>) -> Option<(&'static str, String)> {
    let eval = shown.summary.eval.as_ref().filter(|eval| !eval.au_percent.is_empty())?;
    let (mean, stdev) = eval.au().unzip();
    let (au, spread) = (units::percent(mean), decimal(stdev));
    let times = units::counted(eval.au_percent.len() as u64, "value");
    let rates = dlio_rates(eval, shown);
    Some(("evaluation", format!("AU {au} (stdev {spread} over {times}), {rates}")))
}

/// DLIO's mean samples/s and MiB/s.
fn dlio_rates(series: &Series, shown: &Shown<'_>) -> String {
    let rate = series.samples_per_s().map(|(mean, _)| mean);
    let mib = rate.map(|rate| rate * shown.plan.nominal_sample_bytes / MIB);
    format!("{} samples/s, {} MiB/s", units::number(rate), units::number(mib))
}

fn ranks_done(shown: &Shown<'_>) -> Option<(&'static str, String)> {
    let (first, last) = shown.summary.rank_done_s.filter(|_| shown.trained())?;
    let text = if shown.interrupted {
        "n/a: stopped before the end".to_owned()
    } else {
        format!("first after {}, last after {}", units::duration(first), units::duration(last))
    };
    Some(("ranks done", text))
}

fn time_split(shown: &Shown<'_>, style: Style) -> Vec<String> {
    let split = &shown.summary.strict.split;
    if !shown.trained() || split.total_ns() == 0 {
        return Vec::new();
    }
    let mut lines = vec!["where step time went, per rank".to_owned()];
    lines.extend(bars::lines(split, shown.plan.ranks, style));
    lines
}

fn storage(shown: &Shown<'_>) -> Option<(&'static str, String)> {
    let counts = shown.storage;
    let reads = match counts.reads {
        0 => "no reads".to_owned(),
        reads => format!(
            "{} of {} in all, p50 {}, p99 {}",
            units::counted(reads, "read"),
            units::bytes(counts.read_bytes as f64),
            units::duration(counts.p50_s),
            units::duration(counts.p99_s)
        ),
    };
    let opens = units::counted(counts.opens, "open");
    // Over a network it is the opening that asks, and reads take what comes.
    let asked = match counts.requests {
        0 => String::new(),
        _ => format!(
            ", p50 {}, p99 {}; {}, {} of them repeated",
            units::duration(counts.open_p50_s),
            units::duration(counts.open_p99_s),
            units::counted(counts.requests, "request"),
            units::count(counts.retries)
        ),
    };
    shown.trained().then(|| ("storage", format!("{reads}; {opens}{asked}")))
}

/// The read model, and the sizes that its reads asked for.
fn reading(shown: &Shown<'_>) -> Option<(&'static str, String)> {
    let asked = shown.storage.asked.map_or(String::new(), |asked| {
        let [least, median, most] = [asked.least, asked.median, asked.most].map(units::count);
        match asked.least == asked.most {
            true => format!(": {most} bytes asked per read"),
            false => format!(": {least} to {most} bytes asked per read, median {median}"),
        }
    });
    let model = plan::read_model(&shown.plan.reading);
    shown.trained().then(|| ("reading", format!("{model}{asked}")))
}

/// What was done about the framework's own cost.
fn framework(shown: &Shown<'_>) -> Option<(&'static str, String)> {
    let text = match &shown.plan.framework {
        _ if !shown.trained() => return None,
        FrameworkPlan::Ignored => return None,
        FrameworkPlan::Burnt(burnt) => format!(
            "{} of CPU time per sample burnt in its place ({}){}",
            units::duration(burnt.per_sample_ns as f64 / 1e9),
            burnt.source,
            held(burnt.held_bytes)
        ),
        FrameworkPlan::LeftOut(left_out) => {
            let expected = shown.assessment.forecast_au_percent.map(|au| {
                let reader = reader_name(shown.plan.reading.loader);
                format!("with {reader} this client would reach about {au:.0} %; ")
            });
            let (why, expected) = (&left_out.why, expected.unwrap_or_default());
            format!("not in these numbers, {why}; {expected}measure it: feedline calibrate")
        }
    };
    Some(("framework", text))
}

/// Memory of batches that are read ahead.
pub(crate) fn held(bytes: u64) -> String {
    match bytes {
        0 => String::new(),
        bytes => format!("; batches hold up to {} per rank", units::bytes(bytes as f64)),
    }
}

/// The framework's reader, by its loader.
pub(crate) fn reader_name(loader: DataLoader) -> &'static str {
    match loader {
        DataLoader::Tensorflow => "TensorFlow's reader",
        _ => "PyTorch's reader",
    }
}

fn emulation(shown: &Shown<'_>) -> Option<(&'static str, String)> {
    let emulation = &shown.assessment.storage;
    let text = || format!("storage {}: not comparable with other results", emulation.described());
    (!emulation.is_none()).then(|| ("what if", text()))
}

fn page_cache(shown: &Shown<'_>) -> Option<(&'static str, String)> {
    let shares = &shown.summary.cached_share;
    let percent = |share: &Option<f64>| units::percent(share.map(|share| 100.0 * share));
    let text = match shares.as_slice() {
        [] => return None,
        // An object store is asked past every page cache of this machine.
        _ if shown.storage.requests > 0 => return None,
        shares if shares.iter().all(Option::is_none) => {
            "n/a: the system does not tell what it holds".to_owned()
        }
        [only] => format!("held {} of what the epoch opened", percent(only)),
        [first, .., last] => format!(
            "held {} of what epoch 1 opened, {} of what epoch {} opened",
            percent(first),
            percent(last),
            units::count(shares.len() as u64)
        ),
    };
    shown.trained().then_some(("page cache", text))
}

fn generated(shown: &Shown<'_>) -> Option<(&'static str, String)> {
    let made = shown.generated?;
    let (bytes, seconds) = (made.bytes as f64, made.wall_ns as f64 / 1e9);
    let mut text = match made.bytes {
        0 if made.kept_files > 0 => "nothing".to_owned(),
        _ => format!(
            "{}, {} in {}: {} MB/s",
            units::counted(made.files, "file"),
            units::bytes(bytes),
            units::duration(seconds),
            units::number(bytes / 1e6 / seconds)
        ),
    };
    if made.kept_files > 0 {
        let (kept, all) =
            (made.kept_files, shown.plan.train_files.total + shown.plan.eval_files.total);
        text += &format!(
            "; {} of {} already existed (to make all of them again, remove {MANIFEST_NAME} from the data \
             folder)",
            units::count(kept),
            units::counted(all, "file")
        );
    }
    Some(("generated", text))
}

fn transfers(
    noun: &str,
    label: &'static str,
    all: &Option<Transfers>,
) -> Option<(&'static str, String)> {
    let all = all.as_ref()?;
    let longest = all.each.iter().map(|one| one.seconds).fold(0.0, f64::max);
    let mut text = format!(
        "{} of {}, {} each on average, {} at most, {} GB/s",
        units::counted(all.each.len() as u64, noun),
        units::bytes(all.size_gib() * GIB),
        units::duration(all.seconds().0),
        units::duration(longest),
        units::number(all.bytes_per_s().map(|rate| rate / 1e9)),
    );
    if let (Some(slow), Some(fast)) = (all.file_rate(0.1), all.file_rate(0.9)) {
        let [slow, fast] = [slow, fast].map(|rate| units::number(rate / 1e6));
        text += &format!("; files p10 {slow}, p90 {fast} MB/s");
    }
    if let Some(share) = all.publish_share.filter(|share| *share > 0.0) {
        text += &format!("; {} of their time until safe", units::percent(100.0 * share));
    }
    Some((label, text))
}

/// What saves cost the training, if they went on beside it.
fn saving(shown: &Shown<'_>) -> Option<(&'static str, String)> {
    let saves = shown.summary.saves.as_ref()?;
    let most = |value: fn(&Transfer) -> f64| saves.each.iter().map(value).fold(0.0, f64::max);
    if most(|one| one.background_seconds) == 0.0 {
        return None;
    }
    let text = format!(
        "{} paused for at most {}, {} continued in the background",
        if shown.trained() { "training" } else { "the job" },
        units::duration(most(|one| one.pause_seconds)),
        units::duration(most(|one| one.background_seconds)),
    );
    Some(("async", text))
}

fn results(shown: &Shown<'_>) -> String {
    let folder = match shown.out_folder.trim_end_matches('/') {
        "" => shown.out_folder,
        folder => folder,
    };
    match shown.worked {
        true => format!("{folder}/summary.json and the files of each rank next to it"),
        false => format!("{folder} (log only: without training, no summary is written)"),
    }
}

/// Every warning's lines; the label is before the first one.
fn warnings(shown: &Shown<'_>, columns: usize) -> Vec<Vec<String>> {
    let texts = shown.warnings.iter().chain(&shown.assessment.cautions);
    let label = |place| if place == 0 { "warnings" } else { "" };
    texts.enumerate().map(|(place, text)| item(label(place), text, columns)).collect()
}

/// All blocks in at most [`MOST_LINES`] lines.
fn fitted(
    before: Vec<Vec<String>>,
    warnings: Vec<Vec<String>>,
    after: Vec<String>,
    shown: &Shown<'_>,
) -> Vec<String> {
    let before: Vec<_> = before.into_iter().filter(|block| !block.is_empty()).collect();
    let needed: usize = before.iter().map(Vec::len).sum::<usize>() + after.len();
    let asked: usize = warnings.iter().map(Vec::len).sum();
    let roomy = needed + asked + before.len() <= MOST_LINES;
    let mut lines = Vec::new();
    for block in before {
        lines.extend(block);
        if roomy {
            lines.push(String::new());
        }
    }
    lines.extend(cut(warnings, MOST_LINES.saturating_sub(needed).max(1), shown));
    lines.extend(after);
    lines
}

/// The warnings that fit into `room` lines, and how many do not.
fn cut(warnings: Vec<Vec<String>>, room: usize, shown: &Shown<'_>) -> Vec<String> {
    if warnings.iter().map(Vec::len).sum::<usize>() <= room {
        return warnings.into_iter().flatten().collect();
    }
    let (count, mut taken, mut lines) = (warnings.len(), 0, Vec::new());
    for warning in warnings {
        if lines.len() + warning.len() >= room {
            break;
        }
        lines.extend(warning);
        taken += 1;
    }
    let place = if shown.worked { "summary.json" } else { "the log" };
    let more = units::count((count - taken) as u64);
    lines.extend(match taken {
        0 => item("warnings", &format!("{more}, in {place}"), usize::MAX),
        _ => item("", &format!("{more} more in {place}"), usize::MAX),
    });
    lines
}

/// A spread in percent points, with one decimal.
fn decimal(value: Option<f64>) -> String {
    units::percent(value).trim_end_matches(" %").to_owned()
}

//! One finding for every cause that stalled steps for long enough.

use super::{Case, row, time_row};
use crate::analysis::{CauseTime, FileUse, Finding, Function};
use crate::layer::{Cause, Layer};
use crate::wording::{bytes, percent, rate, seconds};

/// What is said about a cause.
struct Text {
    code: &'static str,
    title: &'static str,
    actions: [&'static str; 2],
}

fn text(cause: Cause) -> Option<Text> {
    let (code, title, actions) = match cause {
        Cause::Open => (
            "slow-open",
            "opening, closing and looking up files holds up the workers",
            [
                "keep files open between samples, or pack samples into fewer, larger files",
                "compare `packed files` in the what-if table; look at the metadata server's load",
            ],
        ),
        Cause::Read => (
            "slow-read",
            "reading files holds up the workers",
            [
                "more reads in flight (workers, or a reader that queues) until bandwidth stops growing",
                "faster or nearer storage: `storage 2x` in the what-if table says what it is worth",
            ],
        ),
        Cause::Write => (
            "slow-write",
            "writing files holds up the workers",
            [
                "let workers not write while they make batches, or write to memory and flush later",
                "look which files they write: caches and logs belong on a local disk",
            ],
        ),
        Cause::ObjectStore => (
            "object-store",
            "requests to the object store hold up the workers",
            [
                "more requests in flight, or larger ones: latency is paid for each",
                "stage the data set on a file system near the accelerators, or cache it there",
            ],
        ),
        Cause::Decode => (
            "slow-decode",
            "decoding samples holds up the workers",
            [
                "more workers, as long as cores are free: see the what-if table",
                "store samples in a form that is cheaper to decode, or decode on the accelerator",
            ],
        ),
        Cause::Transform => (
            "slow-transform",
            "preprocessing samples holds up the workers",
            [
                "more workers, as long as cores are free: see the what-if table",
                "do it once before training, or on the accelerator",
            ],
        ),
        Cause::Python => (
            "python-bound",
            "the workers' own code, outside of reading and decoding, holds them up",
            [
                "profile the data set's `__getitem__`; move loops into libraries that leave the interpreter",
                "annotate it, so that the trace can tell what it does (docs/annotations.md)",
            ],
        ),
        Cause::Collate => (
            "slow-collate",
            "putting samples together into batches holds up the workers",
            [
                "write samples straight into the batch's memory instead of stacking copies",
                "smaller batches a worker, or collating in another thread",
            ],
        ),
        Cause::HandOff => (
            "hand-off",
            "finished batches come late: the hand-over from workers is slow",
            [
                "shared memory instead of pickling, pinned-memory thread on, fewer and larger tensors a batch",
                "threads instead of processes, if the work leaves the interpreter",
            ],
        ),
        Cause::Workers => (
            "too-few-workers",
            "every worker is busy when a batch is due: there are too few",
            [
                "more workers: the what-if table says how many",
                "make their work cheaper: see the other findings",
            ],
        ),
        Cause::Prefetch => (
            "small-prefetch",
            "workers sit idle while a batch is due: too few batches may be under way",
            [
                "raise the prefetch factor, so that bursts are covered",
                "let batches out of order, where training allows it",
            ],
        ),
        Cause::StartUp => (
            "worker-start-up",
            "training waits for workers to start",
            [
                "keep workers alive between epochs (`persistent_workers=True`)",
                "import less in them, and open files when they are first needed",
            ],
        ),
        Cause::Unknown => (
            "unexplained-stall",
            "steps stall, and the trace does not say for what",
            [
                "trace the loader's workers too: `feedline trace -- CMD` follows them",
                "annotate batches and samples (docs/annotations.md)",
            ],
        ),
        // Told by the ledger of ranks.
        Cause::Peer => return None,
    };
    Some(Text { code, title, actions })
}

pub(super) fn findings(case: &Case) -> Vec<Finding> {
    let long = |time: &&CauseTime| case.severity(time.ns) >= case.thresholds.cause_share;
    case.analysis.stall.iter().filter(long).filter_map(|time| finding(case, time)).collect()
}

fn finding(case: &Case, time: &CauseTime) -> Option<Finding> {
    let text = text(time.cause)?;
    let mut finding = case.finding(text.code, text.title.to_owned(), time.ns);
    finding.evidence.push(time_row("stalled for it", time.ns, time.share));
    finding.evidence.push(row("of all step time", percent(finding.severity)));
    evidence(case, time.cause, &mut finding);
    finding.actions = text.actions.map(str::to_owned).to_vec();
    finding.threshold = format!(
        "cause-share: {} of the step time of all ranks",
        percent(case.thresholds.cause_share)
    );
    let name = time.cause.name();
    finding.sql = format!(
        "SELECT rank, epoch, step, ns FROM stalls WHERE cause = '{name}' ORDER BY ns DESC LIMIT 20"
    );
    Some(finding)
}

/// What of the summary belongs to a cause.
fn evidence(case: &Case, cause: Cause, finding: &mut Finding) {
    match cause {
        Cause::Open => {
            functions(case, &["open", "stat", "close"], Layer::Storage, finding);
            files(case, |file| file.metadata_ns, finding);
        }
        Cause::Read => {
            functions(case, &["read"], Layer::Storage, finding);
            files(case, |file| file.ns - file.metadata_ns, finding);
        }
        Cause::Write => functions(case, &["write", "sync"], Layer::Storage, finding),
        Cause::ObjectStore => {
            functions(case, &["read", "get", "open", "stat"], Layer::ObjectStore, finding);
            files(case, |file| file.ns, finding);
        }
        Cause::Decode => functions(case, &[""], Layer::Decode, finding),
        Cause::Transform => functions(case, &[""], Layer::Transform, finding),
        Cause::Collate => functions(case, &[""], Layer::Collate, finding),
        Cause::Python => functions(case, &[""], Layer::Sample, finding),
        Cause::Workers | Cause::Prefetch | Cause::HandOff | Cause::StartUp => {
            let what_if = &case.analysis.what_if;
            finding.evidence.push(row("workers a rank", what_if.workers.to_string()));
            if what_if.outstanding > 0 {
                let most = what_if.outstanding.to_string();
                finding.evidence.push(row("batches under way per rank, at most", most));
            }
            let ranks = &case.analysis.ranks;
            let busy: f64 = ranks.iter().map(|rank| rank.workers_busy_share).sum();
            if !ranks.is_empty() {
                let share = percent(busy / ranks.len() as f64);
                finding.evidence.push(row("workers were busy", share));
            }
        }
        Cause::Peer | Cause::Unknown => {}
    }
}

fn functions(case: &Case, words: &[&str], layer: Layer, finding: &mut Finding) {
    let is_one = |function: &&Function| {
        function.layer == layer && words.iter().any(|word| function.name.contains(word))
    };
    for function in case.analysis.functions.iter().filter(is_one).take(2) {
        let latency = function.latency;
        let mut text = format!(
            "{} calls, half within {}, 99 % within {}",
            function.count,
            seconds(latency.p50),
            seconds(latency.p99)
        );
        if let (Some(size), Some(speed)) = (function.size, function.bytes_per_second) {
            text += &format!(", {} each, {} a thread", bytes(size.mean), rate(speed));
        }
        finding.evidence.push(row(&function.name, text));
    }
}

fn files(case: &Case, time_ns: impl Fn(&FileUse) -> u64, finding: &mut Finding) {
    let mut files: Vec<&FileUse> = case.analysis.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(time_ns(file)));
    let worst = files.iter().take(5).filter(|file| time_ns(file) > 0);
    finding.objects = worst.map(|file| file.path.clone()).collect();
}

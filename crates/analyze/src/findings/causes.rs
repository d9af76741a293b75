//! One finding per cause that stalled steps for long enough.

use super::{RuleContext, row, time_row};
use crate::analysis::{CauseTime, FileUse, Finding, Function};
use crate::layer::{StackLayer, StallCause};
use crate::wording::{bytes, percent, rate, seconds};

/// What a finding says about a cause.
struct Text {
    cause: StallCause,
    code: &'static str,
    title: &'static str,
    actions: [&'static str; 2],
}

/// Every cause but three: too few workers and too small a prefetch are [`super::loader`]'s, waiting for
/// peers is [`super::job`]'s.
const TEXTS: [Text; 11] = [
    Text {
        cause: StallCause::Open,
        code: "slow-open",
        title: "workers wait for files to be opened, closed or looked up",
        actions: [
            "keep files open between samples, or pack samples into fewer, larger files",
            "see `packed files` in the what-if table; check the load of the metadata server",
        ],
    },
    Text {
        cause: StallCause::Read,
        code: "slow-read",
        title: "workers wait for reads",
        actions: [
            "keep more reads in flight (more workers, or a reader with a queue) until bandwidth stops growing",
            "use faster or closer storage: `storage 2x` in the what-if table shows the gain",
        ],
    },
    Text {
        cause: StallCause::Write,
        code: "slow-write",
        title: "workers wait for writes",
        actions: [
            "do not write while making batches, or write to memory and flush later",
            "check which files the workers write: caches and logs belong on a local disk",
        ],
    },
    Text {
        cause: StallCause::ObjectStore,
        code: "object-store",
        title: "workers wait for the object store",
        actions: [
            "send more requests at a time, or larger ones: each pays the latency once",
            "stage or cache the data set on a file system close to the accelerators",
        ],
    },
    Text {
        cause: StallCause::Decode,
        code: "slow-decode",
        title: "workers spend their time decoding samples",
        actions: [
            "add workers while cores are free: see the what-if table",
            "store samples in a format that is cheaper to decode, or decode on the accelerator",
        ],
    },
    Text {
        cause: StallCause::Transform,
        code: "slow-transform",
        title: "workers spend their time preprocessing samples",
        actions: [
            "add workers while cores are free: see the what-if table",
            "preprocess once before training, or on the accelerator",
        ],
    },
    Text {
        cause: StallCause::Python,
        code: "python-bound",
        title: "workers spend their time in their own code, neither reading nor decoding",
        actions: [
            "profile the data set's `__getitem__`; move loops into libraries that release the interpreter lock",
            "annotate it, so that the trace shows what it does (docs/annotations.md)",
        ],
    },
    Text {
        cause: StallCause::Collate,
        code: "slow-collate",
        title: "workers spend their time collating samples into batches",
        actions: [
            "write samples directly into the batch's memory instead of stacking copies",
            "make smaller batches per worker, or collate in another thread",
        ],
    },
    Text {
        cause: StallCause::HandOff,
        code: "hand-off",
        title: "finished batches arrive late: the hand-off from the workers is slow",
        actions: [
            "use shared memory instead of pickling, a pinned-memory thread, fewer and larger tensors per batch",
            "use threads instead of processes if the work releases the interpreter lock",
        ],
    },
    Text {
        cause: StallCause::StartUp,
        code: "worker-start-up",
        title: "training waits for workers to start",
        actions: [
            "keep workers alive between epochs (`persistent_workers=True`)",
            "import less in the workers, and open files when they are first needed",
        ],
    },
    Text {
        cause: StallCause::Unknown,
        code: "unexplained-stall",
        title: "steps stall, and the trace does not show why",
        actions: [
            "trace the loader's workers too: `feedline trace -- CMD` follows child processes",
            "annotate batches and samples (docs/annotations.md)",
        ],
    },
];

pub(super) fn findings(context: &RuleContext) -> Vec<Finding> {
    let long = |time: &&CauseTime| context.severity(time.ns) >= context.thresholds.cause_share;
    let stall = context.analysis.stall.iter();
    stall.filter(long).filter_map(|time| finding(context, time)).collect()
}

fn finding(context: &RuleContext, time: &CauseTime) -> Option<Finding> {
    let text = TEXTS.iter().find(|text| text.cause == time.cause)?;
    let mut finding = context.finding(text.code, text.title.to_owned(), time.ns);
    finding.evidence.push(time_row("stalled, of all stalls", time.ns, time.share));
    finding.evidence.push(row("share of step time", percent(finding.severity)));
    evidence(context, time.cause, &mut finding);
    finding.actions = text.actions.map(str::to_owned).to_vec();
    finding.threshold = format!(
        "cause-share: {} of the step time of all ranks",
        percent(context.thresholds.cause_share)
    );
    let name = time.cause.name();
    finding.sql = format!(
        "SELECT rank, epoch, step, ns FROM stalls WHERE cause = '{name}' ORDER BY ns DESC LIMIT 20"
    );
    Some(finding)
}

/// Adds the calls, spans and files that make up a cause.
fn evidence(context: &RuleContext, cause: StallCause, finding: &mut Finding) {
    match cause {
        StallCause::Open => {
            functions(context, &["open", "stat", "close"], StackLayer::Storage, finding);
            files(context, |file| file.metadata_ns, finding);
        }
        StallCause::Read => {
            functions(context, &["read"], StackLayer::Storage, finding);
            files(context, |file| file.ns - file.metadata_ns, finding);
        }
        StallCause::Write => functions(context, &["write", "sync"], StackLayer::Storage, finding),
        StallCause::ObjectStore => {
            functions(context, &["read", "get", "open", "stat"], StackLayer::ObjectStore, finding);
            files(context, |file| file.ns, finding);
        }
        StallCause::Decode => functions(context, &[""], StackLayer::Decode, finding),
        StallCause::Transform => functions(context, &[""], StackLayer::Transform, finding),
        StallCause::Collate => functions(context, &[""], StackLayer::Collate, finding),
        StallCause::Python => functions(context, &[""], StackLayer::Sample, finding),
        StallCause::HandOff | StallCause::StartUp => {
            finding.evidence.extend(context.worker_rows());
        }
        StallCause::Workers | StallCause::Prefetch | StallCause::Peer | StallCause::Unknown => {}
    }
}

fn functions(context: &RuleContext, words: &[&str], layer: StackLayer, finding: &mut Finding) {
    let is_one = |function: &&Function| {
        function.layer == layer && words.iter().any(|word| function.name.contains(word))
    };
    for function in context.analysis.functions.iter().filter(is_one).take(2) {
        let latency = function.latency;
        let mut text = format!(
            "{} calls, p50 {}, p99 {}",
            function.count,
            seconds(latency.p50),
            seconds(latency.p99)
        );
        if let (Some(size), Some(speed)) = (function.size, function.bytes_per_second) {
            text += &format!(", {} each, {} per thread", bytes(size.mean), rate(speed));
        }
        finding.evidence.push(row(&function.name, text));
    }
}

fn files(context: &RuleContext, time_ns: impl Fn(&FileUse) -> u64, finding: &mut Finding) {
    let mut files: Vec<&FileUse> = context.analysis.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(time_ns(file)));
    let worst = files.iter().take(5).filter(|file| time_ns(file) > 0);
    finding.objects = worst.map(|file| file.path.clone()).collect();
}

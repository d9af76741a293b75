//! What `feedline plan-checkpoint` found, on one screen.

use feedline_bench::{CheckpointPlan, RankGroup};
use feedline_numbers::units;
use feedline_workload::Workload;

use crate::style::{Ink, Style};
use crate::wrap::{aligned, all_labeled, headline, joined};

/// Rates at which the time of a save is worked out.
const RATES_GIB: [f64; 3] = [1.0, 10.0, 100.0];
const GIB: f64 = (1u64 << 30) as f64;

const COLUMNS: usize = 6;
const HEADER: [&str; COLUMNS] = ["RANKS", "FILES", "BLOB", "LAYERS", "OPTIMIZER", "A RANK"];

/// The size first, then what it consists of.
pub fn checkpoint_plan(
    name: &str,
    plan: &CheckpointPlan,
    workload: &Workload,
    style: Style,
) -> String {
    let layout = plan.layout();
    let total = layout.total();
    let size = gib(total.bytes.total());
    let text = format!(
        "A checkpoint of {name} is {size} in {}, saved by {}",
        units::counted(total.files, "file"),
        units::counted(plan.writers(), "rank"),
    );
    let mut lines = headline(&text, (&size, Ink::Bold), style);
    lines.push(String::new());
    let rows = [
        ("model", model(plan)),
        ("ranks", ranks(plan)),
        ("a rank", extremes(&layout.groups())),
        ("files", files(plan, workload)),
        ("memory", memory(plan, workload)),
        ("time", time(total.bytes.total())),
    ];
    lines.extend(all_labeled(&rows, style.columns()));
    lines.push(String::new());
    // The ranks by what they save, those that save equally much in one line. That makes five lines at most:
    // the first stage, two kinds in the middle, the last stage, and further copies of the model.
    let groups = layout.groups();
    let table: Vec<_> =
        [HEADER.map(str::to_owned)].into_iter().chain(groups.iter().map(row)).collect();
    lines.extend(aligned(&table, 1, usize::MAX));
    joined(&lines)
}

/// Tensor bytes as DLIO and MLPerf Storage count them.
fn gib(bytes: u64) -> String {
    format!("{:.2} GiB ({})", bytes as f64 / GIB, units::bytes(bytes as f64))
}

fn model(plan: &CheckpointPlan) -> String {
    let bytes = plan.layout().total().bytes;
    let kinds = [("blob", bytes.blob), ("layers", bytes.layers), ("optimizer", bytes.optimizer)];
    let kinds = kinds.iter().filter(|(_, bytes)| *bytes > 0);
    let kinds = kinds.map(|(kind, bytes)| format!("{kind} {}", gib(*bytes)));
    let parameters = plan.layout().parameters().and_then(|count| u64::try_from(count).ok());
    let parameters = parameters.map(|count| units::counted(count, "parameter"));
    let parts: Vec<String> = parameters.into_iter().chain(kinds).collect();
    format!("{}; bytes of tensors, without what a container adds", parts.join(", "))
}

fn ranks(plan: &CheckpointPlan) -> String {
    let geometry = plan.layout().geometry();
    let parallelism = geometry.parallelism();
    let of_world = match geometry.world() {
        world if world == u64::from(geometry.ranks()) => String::new(),
        world => format!(", the first of {}", units::count(world)),
    };
    format!(
        "{}{of_world}: tensor {} x pipeline {} x data {}, ZeRO stage {}",
        units::count(u64::from(geometry.ranks())),
        units::count(u64::from(parallelism.tensor)),
        units::count(u64::from(parallelism.pipeline)),
        units::count(u64::from(geometry.copies())),
        parallelism.zero_stage,
    )
}

/// The ranks that save least and most.
fn extremes(groups: &[RankGroup]) -> String {
    let bytes = |group: &&RankGroup| group.each.bytes.total();
    let least = groups.iter().min_by_key(bytes).expect("a layout has ranks");
    let most = groups.iter().rev().max_by_key(bytes).expect("a layout has ranks");
    if bytes(&least) == bytes(&most) {
        return format!("saves {}", gib(bytes(&most)));
    }
    let whose = |group: &RankGroup| match group.ranks {
        1 => format!("rank {}", units::count(u64::from(group.first))),
        many => format!(
            "rank {} and {}",
            units::count(u64::from(group.first)),
            units::counted(u64::from(many) - 1, "other")
        ),
    };
    let (least_bytes, most_bytes) = (gib(bytes(&least)), gib(bytes(&most)));
    format!(
        "saves {most_bytes} at most ({}), {least_bytes} at least ({})",
        whose(most),
        whose(least)
    )
}

fn files(plan: &CheckpointPlan, workload: &Workload) -> String {
    let (names, all) = plan.names();
    let more = match all - names.len() as u64 {
        0 => String::new(),
        more => format!(" and {} more", units::count(more)),
    };
    let container = workload.checkpoint.container;
    format!(
        "{}{more} of rank 0, as {container} files in {}",
        names.join(", "),
        workload.checkpoint_root()
    )
}

fn memory(plan: &CheckpointPlan, workload: &Workload) -> String {
    let found = plan.memory();
    let each = |bytes: u64| units::bytes(bytes as f64);
    let state = match found.rank_state_bytes {
        0 => String::new(),
        bytes => format!(" and {} of tensors", each(bytes)),
    };
    format!(
        "up to {} of buffers{state} a rank, {} in all (`checkpoint.save_mode: {}`, `checkpoint.state: \
         {}`)",
        each(found.rank_buffer_bytes),
        units::bytes(found.all_bytes as f64),
        workload.checkpoint.save_mode,
        workload.checkpoint.state,
    )
}

fn time(bytes: u64) -> String {
    let at =
        |rate: f64| format!("{} at {rate} GiB/s", units::duration(bytes as f64 / (rate * GIB)));
    format!("{} of all ranks together", RATES_GIB.map(at).join(", "))
}

fn row(group: &RankGroup) -> [String; COLUMNS] {
    let first = units::count(u64::from(group.first));
    let bytes = |bytes: u64| match bytes {
        0 => "-".to_owned(),
        bytes => units::bytes(bytes as f64),
    };
    let each = group.each;
    [
        match group.ranks {
            1 => first,
            many => format!("{} like {first}", units::count(u64::from(many))),
        },
        units::count(each.files),
        bytes(each.bytes.blob),
        bytes(each.bytes.layers),
        bytes(each.bytes.optimizer),
        bytes(each.bytes.total()),
    ]
}

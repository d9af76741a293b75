//! Findings about the whole job: stragglers, checkpoints, imbalance, cold caches, and nothing wrong.

use super::{RuleContext, row, time_row};
use crate::analysis::{Finding, LayerTime, Phase, Straggler};
use crate::layer::{StackLayer, StallCause};
use crate::saturating::Total;
use crate::wording::{percent, seconds};

/// A rank is named if it is late this many times as often as an even split would make it.
const ONE_RANK: f64 = 1.5;
/// Fewer samples per rank than this are too few to call them imbalanced.
const FEW_SAMPLES: f64 = 100.0;

pub(super) fn findings(context: &RuleContext) -> Vec<Finding> {
    let rules = [straggler(context), checkpoint(context), imbalance(context), cold(context)];
    rules.into_iter().flatten().collect()
}

/// Input keeps up: says where the time goes instead.
pub(super) fn not_input_bound(context: &RuleContext) -> Finding {
    let verdict = &context.analysis.verdict;
    let mut finding = context.finding(
        "not-input-bound",
        "training is not input-bound: storage and loader keep up".to_owned(),
        0,
    );
    finding.evidence.push(time_row("stalled", verdict.stall_ns, verdict.stall_share));
    finding.evidence.push(row("workers busy", percent(context.busy_share())));
    let candidates = [
        StackLayer::Compute,
        StackLayer::Communication,
        StackLayer::Checkpoint,
        StackLayer::Device,
    ];
    let layers = context.analysis.layers.iter().filter(|time| candidates.contains(&time.layer));
    if let Some(LayerTime { layer, mean_ns, .. }) = layers.max_by_key(|time| time.mean_ns) {
        let share = *mean_ns as f64 / context.analysis.trace.run_ns.max(1) as f64;
        finding.evidence.push(time_row(&format!("most time: {}", layer.name()), *mean_ns, share));
        finding
            .actions
            .push(format!("optimize {} first: faster input would not help", layer.name()));
    }
    finding.threshold = "stalls below 5 % of step time".to_owned();
    finding.sql = "SELECT layer, mean_ns, exposed_mean_ns FROM layers ORDER BY mean_ns DESC".into();
    finding
}

fn straggler(context: &RuleContext) -> Option<Finding> {
    let waited_ns = context.stalled_ns(&[StallCause::Peer]);
    if context.severity(waited_ns) < context.thresholds.straggler_share || waited_ns == 0 {
        return None;
    }
    let ledger = &context.analysis.stragglers;
    let mut late: Vec<&Straggler> = ledger.ranks.iter().filter(|one| one.charged_ns > 0).collect();
    late.sort_by_key(|one| std::cmp::Reverse(one.charged_ns));
    let worst = *late.first()?;
    // Some rank is always last; one is to blame only if it is last clearly more often than its share.
    let turn = 1.0 / context.analysis.ranks.len().max(1) as f64;
    let is_one = worst.charged_ns as f64 >= ONE_RANK * turn * waited_ns as f64;
    let (rank, cause) = (worst.rank, &worst.charged_for);
    let title = if is_one {
        format!("other ranks wait for rank {rank}, which stalls on {cause}")
    } else {
        "ranks wait for each other, each time for a different one".to_owned()
    };
    let mut finding = context.finding("straggler-rank", title, waited_ns);
    let share = waited_ns as f64 / context.analysis.verdict.stall_ns.max(1) as f64;
    finding.evidence.push(time_row("stalled waiting for other ranks", waited_ns, share));
    finding
        .evidence
        .push(row("slowest minus median rank, over all steps", seconds(ledger.lost_ns)));
    for one in late.iter().take(3) {
        let text = format!(
            "others waited {} for it, because of {}; slowest in {} of steps",
            seconds(one.charged_ns),
            one.charged_for,
            percent(one.slowest_share)
        );
        finding.evidence.push(row(&format!("rank {} on {}", one.rank, one.host), text));
        finding.objects.push(format!("rank {} on {}", one.rank, one.host));
    }
    finding.actions = vec![if is_one {
        format!("check rank {rank} on {}: all ranks wait for its {cause}", worst.host)
    } else {
        "distribute the data more evenly, or prefetch more batches: no single rank is to blame"
            .to_owned()
    }];
    finding.threshold = format!(
        "straggler-share: {} of the step time of all ranks",
        percent(context.thresholds.straggler_share)
    );
    finding.sql = format!(
        "SELECT epoch, step, duration_ns, stall_ns FROM steps WHERE rank = {rank} ORDER BY stall_ns DESC LIMIT 20"
    );
    Some(finding)
}

fn checkpoint(context: &RuleContext) -> Option<Finding> {
    let checkpoints = &context.analysis.checkpoints;
    if checkpoints.stall_share < context.thresholds.checkpoint_share || checkpoints.stall_ns == 0 {
        return None;
    }
    let title = format!("ranks wait for {} checkpoints", checkpoints.transfers.len());
    let mut finding = context.finding("checkpoint-stall", title, checkpoints.stall_ns);
    finding.evidence.push(time_row(
        "waiting, of run time",
        checkpoints.stall_ns,
        checkpoints.stall_share,
    ));
    if let Some(slowest) = checkpoints.transfers.iter().max_by_key(|one| one.stall_ns) {
        let sync = slowest.sync_ns as f64 / slowest.stall_ns.max(1) as f64;
        finding.evidence.push(row("longest", seconds(slowest.duration_ns)));
        finding.evidence.push(row("of that, flushing to the device", percent(sync.min(1.0))));
        finding.objects.push(format!("rank {}", slowest.slowest_rank));
    }
    if let Some(interval) = checkpoints.interval_ns {
        finding.evidence.push(row("interval between saves", seconds(interval)));
    }
    finding.actions = vec![
        "save asynchronously: ranks then wait only while the state is copied".into(),
        "let each rank write its own part, or save less often".into(),
    ];
    finding.threshold = format!(
        "checkpoint-share: {} of the run time of all ranks",
        percent(context.thresholds.checkpoint_share)
    );
    finding.sql = "SELECT name, count, total_ns, bytes FROM functions WHERE layer = 'checkpoint' ORDER BY total_ns DESC".into();
    Some(finding)
}

/// The coefficient of variation: standard deviation divided by mean.
fn variation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    if mean > 0.0 { (square / values.len() as f64).sqrt() / mean } else { 0.0 }
}

fn imbalance(context: &RuleContext) -> Option<Finding> {
    let ranks = &context.analysis.ranks;
    if ranks.len() < 2 {
        return None;
    }
    let samples: Vec<f64> = ranks.iter().map(|rank| rank.samples as f64).collect();
    let read: Vec<f64> = ranks.iter().map(|rank| rank.bytes_read as f64).collect();
    let (by_samples, by_bytes) = (variation(&samples), variation(&read));
    let (what, found) =
        if by_samples >= by_bytes { ("samples", by_samples) } else { ("bytes", by_bytes) };
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    if found < context.thresholds.imbalance || mean < FEW_SAMPLES {
        return None;
    }
    let title = format!("ranks get unequal shares: {what} vary by {}", percent(found));
    let mut finding = context.finding("imbalance", title, 0);
    finding.evidence.push(row("samples, coefficient of variation", percent(by_samples)));
    finding.evidence.push(row("bytes read, coefficient of variation", percent(by_bytes)));
    finding.actions =
        vec!["give each rank an equal share, counted in bytes where sample sizes differ".into()];
    finding.threshold = format!("imbalance: {}", percent(context.thresholds.imbalance));
    finding.sql = "SELECT rank, samples, bytes_read FROM ranks ORDER BY bytes_read DESC".into();
    Some(finding)
}

/// The first epoch stalls and later ones do not: by then the page cache holds the data.
fn cold(context: &RuleContext) -> Option<Finding> {
    // Only what a cache can hide.
    let reading = |epoch: &crate::analysis::Epoch| -> u64 {
        let causes = [StallCause::Open, StallCause::Read, StallCause::ObjectStore];
        causes.iter().filter_map(|cause| epoch.parts_ns.get(*cause as usize)).copied().total()
    };
    let mut epochs = context.analysis.epochs.iter().filter(|it| it.phase == Phase::Train);
    let first = epochs.next().filter(|epoch| epoch.steps > 0)?;
    let (steps, stall_ns) = epochs
        .fold((0, 0_u64), |(steps, ns), it| (steps + it.steps, ns.saturating_add(reading(it))));
    let first_ns = reading(first);
    if steps == 0 {
        return None;
    }
    let later = u128::from(stall_ns) * u128::from(first.steps) / u128::from(steps);
    let later_ns = u64::try_from(later).unwrap_or(u64::MAX);
    let more_ns = first_ns.saturating_sub(later_ns);
    let is_colder = first_ns as f64 >= context.thresholds.cold_factor * later_ns as f64;
    if !is_colder || context.severity(more_ns) < context.thresholds.cause_share {
        return None;
    }
    let title = "the first epoch stalls longer on reads than later epochs".to_owned();
    let mut finding = context.finding("cold-then-warm", title, more_ns);
    finding.evidence.push(row("first epoch stalled on reads", seconds(first_ns)));
    finding.evidence.push(row("later epochs, for as many steps", seconds(later_ns)));
    if let Some(factor) = context.analysis.data.reread_factor {
        finding.evidence.push(row("data read", format!("{factor:.2} times")));
    }
    finding.actions = vec![
        "a cache seems to hide the storage after the first epoch; with a larger data set it would not".into(),
        "stage the data before training if the first epoch matters".into(),
    ];
    finding.threshold =
        format!("cold-factor: {} times the stall of later epochs", context.thresholds.cold_factor);
    finding.sql = "SELECT epoch, steps, stall_ns, bytes_read FROM epochs ORDER BY epoch".into();
    Some(finding)
}

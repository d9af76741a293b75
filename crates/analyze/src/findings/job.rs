//! What is between ranks, and around steps: stragglers, checkpoints, and that nothing is wrong.

use super::{Case, row, time_row};
use crate::analysis::{Finding, LayerTime, Phase, Straggler};
use crate::layer::{Cause, Layer};
use crate::saturating::Total;
use crate::wording::{percent, seconds};

/// How many times its turn a rank must be late to be named.
const ONE_RANK: f64 = 1.5;
/// Fewer samples a rank are no pattern.
const FEW_SAMPLES: f64 = 100.0;

pub(super) fn findings(case: &Case) -> Vec<Finding> {
    let rules = [straggler(case), checkpoint(case), imbalance(case), cold(case)];
    rules.into_iter().flatten().collect()
}

/// Steps are fed: where the time goes instead.
pub(super) fn not_input_bound(case: &Case) -> Finding {
    let verdict = &case.analysis.verdict;
    let mut finding = case.finding(
        "not-input-bound",
        "training is not held up by its input: storage and loader keep up".to_owned(),
        0,
    );
    finding.evidence.push(time_row("stalled", verdict.stall_ns, verdict.stall_share));
    let ranks = &case.analysis.ranks;
    if !ranks.is_empty() {
        let busy: f64 = ranks.iter().map(|rank| rank.workers_busy_share).sum();
        finding.evidence.push(row("workers were busy", percent(busy / ranks.len() as f64)));
    }
    let candidates = [Layer::Compute, Layer::Communication, Layer::Checkpoint, Layer::Device];
    let layers = case.analysis.layers.iter().filter(|time| candidates.contains(&time.layer));
    if let Some(LayerTime { layer, mean_ns, .. }) = layers.max_by_key(|time| time.mean_ns) {
        let share = *mean_ns as f64 / case.analysis.trace.run_ns.max(1) as f64;
        finding.evidence.push(time_row(&format!("most time: {}", layer.name()), *mean_ns, share));
        finding
            .actions
            .push(format!("look at {} first: faster input would not help", layer.name()));
    }
    finding.threshold = "stalls below 5 % of step time".to_owned();
    finding.sql = "SELECT layer, mean_ns, exposed_mean_ns FROM layers ORDER BY mean_ns DESC".into();
    finding
}

fn straggler(case: &Case) -> Option<Finding> {
    let waited_ns = case.stalled_ns(&[Cause::Peer]);
    if case.severity(waited_ns) < case.thresholds.straggler_share || waited_ns == 0 {
        return None;
    }
    let ledger = &case.analysis.stragglers;
    let mut late: Vec<&Straggler> = ledger.ranks.iter().filter(|one| one.charged_ns > 0).collect();
    late.sort_by_key(|one| std::cmp::Reverse(one.charged_ns));
    let worst = *late.first()?;
    // Somebody is always last; a rank is to blame if it is so clearly more often than its turn.
    let turn = 1.0 / case.analysis.ranks.len().max(1) as f64;
    let is_one = worst.charged_ns as f64 >= ONE_RANK * turn * waited_ns as f64;
    let (rank, cause) = (worst.rank, &worst.charged_for);
    let title = if is_one {
        format!("ranks wait for rank {rank}, whose steps are held up by {cause}")
    } else {
        "ranks wait for each other: now one is late, now another".to_owned()
    };
    let mut finding = case.finding("straggler-rank", title, waited_ns);
    let share = waited_ns as f64 / case.analysis.verdict.stall_ns.max(1) as f64;
    finding.evidence.push(time_row("stalled for peers", waited_ns, share));
    finding.evidence.push(row("slowest minus median, all steps", seconds(ledger.lost_ns)));
    for one in late.iter().take(3) {
        let text = format!(
            "others waited {} for it, because of its {}; slowest in {} of steps",
            seconds(one.charged_ns),
            one.charged_for,
            percent(one.slowest_share)
        );
        finding.evidence.push(row(&format!("rank {} on {}", one.rank, one.host), text));
        finding.objects.push(format!("rank {} on {}", one.rank, one.host));
    }
    finding.actions = vec![if is_one {
        format!("look at rank {rank} on {}: its {cause} is what all wait for", worst.host)
    } else {
        "spread the data more evenly, or let more batches lie ready: no single rank is to blame"
            .to_owned()
    }];
    finding.threshold = format!(
        "straggler-share: {} of the step time of all ranks",
        percent(case.thresholds.straggler_share)
    );
    finding.sql = format!(
        "SELECT epoch, step, duration_ns, stall_ns FROM steps WHERE rank = {rank} ORDER BY stall_ns DESC LIMIT 20"
    );
    Some(finding)
}

fn checkpoint(case: &Case) -> Option<Finding> {
    let checkpoints = &case.analysis.checkpoints;
    if checkpoints.stall_share < case.thresholds.checkpoint_share || checkpoints.stall_ns == 0 {
        return None;
    }
    let title = format!("ranks stand still for {} checkpoints", checkpoints.transfers.len());
    let mut finding = case.finding("checkpoint-stall", title, checkpoints.stall_ns);
    finding.evidence.push(time_row(
        "standing still, of run time",
        checkpoints.stall_ns,
        checkpoints.stall_share,
    ));
    if let Some(slowest) = checkpoints.transfers.iter().max_by_key(|one| one.stall_ns) {
        let sync = slowest.sync_ns as f64 / slowest.stall_ns.max(1) as f64;
        finding.evidence.push(row("longest", seconds(slowest.duration_ns)));
        finding.evidence.push(row("of it waiting for the device", percent(sync.min(1.0))));
        finding.objects.push(format!("rank {}", slowest.slowest_rank));
    }
    if let Some(interval) = checkpoints.interval_ns {
        finding.evidence.push(row("between two saves", seconds(interval)));
    }
    finding.actions = vec![
        "save asynchronously: ranks then stand still only while the state is copied".into(),
        "let every rank write its own part, or save less often".into(),
    ];
    finding.threshold = format!(
        "checkpoint-share: {} of the run time of all ranks",
        percent(case.thresholds.checkpoint_share)
    );
    finding.sql = "SELECT name, count, total_ns, bytes FROM functions WHERE layer = 'checkpoint' ORDER BY total_ns DESC".into();
    Some(finding)
}

/// Standard deviation by mean.
fn variation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    if mean > 0.0 { (square / values.len() as f64).sqrt() / mean } else { 0.0 }
}

fn imbalance(case: &Case) -> Option<Finding> {
    let ranks = &case.analysis.ranks;
    if ranks.len() < 2 {
        return None;
    }
    let samples: Vec<f64> = ranks.iter().map(|rank| rank.samples as f64).collect();
    let read: Vec<f64> = ranks.iter().map(|rank| rank.bytes_read as f64).collect();
    let (by_samples, by_bytes) = (variation(&samples), variation(&read));
    let (what, found) =
        if by_samples >= by_bytes { ("samples", by_samples) } else { ("bytes", by_bytes) };
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    if found < case.thresholds.imbalance || mean < FEW_SAMPLES {
        return None;
    }
    let title = format!("ranks do not get the same: {what} vary by {}", percent(found));
    let mut finding = case.finding("imbalance", title, 0);
    finding.evidence.push(row("samples, deviation by mean", percent(by_samples)));
    finding.evidence.push(row("bytes read, deviation by mean", percent(by_bytes)));
    finding.actions = vec!["let the sampler deal equal shares, by bytes where sizes differ".into()];
    finding.threshold = format!("imbalance: {}", percent(case.thresholds.imbalance));
    finding.sql = "SELECT rank, samples, bytes_read FROM ranks ORDER BY bytes_read DESC".into();
    Some(finding)
}

/// The first epoch stalls, the later ones do not: the page cache has the data by then.
fn cold(case: &Case) -> Option<Finding> {
    // What a cache can hide.
    let reading = |epoch: &crate::analysis::Epoch| -> u64 {
        let causes = [Cause::Open, Cause::Read, Cause::ObjectStore];
        causes.iter().filter_map(|cause| epoch.parts_ns.get(*cause as usize)).copied().total()
    };
    let mut epochs = case.analysis.epochs.iter().filter(|it| it.phase == Phase::Train);
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
    let is_colder = first_ns as f64 >= case.thresholds.cold_factor * later_ns as f64;
    if !is_colder || case.severity(more_ns) < case.thresholds.cause_share {
        return None;
    }
    let title = "the first epoch stalls longer for reading than the later ones".to_owned();
    let mut finding = case.finding("cold-then-warm", title, more_ns);
    finding.evidence.push(row("first epoch stalled for reading", seconds(first_ns)));
    finding.evidence.push(row("a later one of as many steps", seconds(later_ns)));
    if let Some(factor) = case.analysis.data.reread_factor {
        finding.evidence.push(row("data was read", format!("{factor:.2} times")));
    }
    finding.actions = vec![
        "a cache seems to hide the storage after the first epoch: a larger data set would not be hidden".into(),
        "stage the data in before training, if the first epoch matters".into(),
    ];
    finding.threshold =
        format!("cold-factor: {} times the stall of later epochs", case.thresholds.cold_factor);
    finding.sql = "SELECT epoch, steps, stall_ns, bytes_read FROM epochs ORDER BY epoch".into();
    Some(finding)
}

//! What is below `feedline.storage`: the calls of the training readers, by operation.
#![expect(missing_docs, reason = "each field is a key; `feedline explain` has the text")]

use std::cmp::Reverse;

use feedline_store::{Op, OpMeter};
use serde::{Deserialize, Serialize};

use super::ordered_map::OrderedMap;
use crate::results::outcome::Outcome;

/// Sizes that are listed, those of most calls first.
const SIZES_MAX: usize = 16;

/// One operation of the store, all readers together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationSummary {
    pub calls: u64,
    pub calls_per_second: Option<f64>,
    pub errors: u64,
    pub bytes: u64,
    pub requests: u64,
    pub requests_per_second: Option<f64>,
    pub retries: u64,
    pub asked_bytes: Option<RequestSizes>,
    pub busy_seconds: f64,
    pub latency_us: LatencySummary,
}

/// How long calls took, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

/// Bytes that calls asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestSizes {
    pub min: u64,
    pub p50: Option<u64>,
    pub max: Option<u64>,
    pub sizes: Vec<RequestSize>,
}

/// A size, and the calls that asked for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestSize {
    pub bytes: u64,
    pub calls: u64,
}

/// Every operation that was used, by its name.
pub(super) fn operations(outcome: &Outcome) -> OrderedMap<OperationSummary> {
    let total = outcome.meter();
    let used = Op::ALL.into_iter().filter(|&op| total.op(op).calls > 0);
    used.map(|op| (op.name().to_owned(), OperationSummary::new(outcome, total.op(op)))).collect()
}

impl OperationSummary {
    fn new(outcome: &Outcome, meter: &OpMeter) -> Self {
        let latency = &meter.latency_ns;
        let quantile = |q| latency.value_at_quantile(q) as f64 / 1e3;
        Self {
            calls: meter.calls,
            calls_per_second: outcome.per_second(meter.calls),
            errors: meter.errors,
            bytes: meter.bytes,
            requests: meter.requests,
            requests_per_second: outcome.per_second(meter.requests),
            retries: meter.retries,
            asked_bytes: RequestSizes::new(meter),
            busy_seconds: meter.busy_ns as f64 / 1e9,
            latency_us: LatencySummary {
                mean: latency.mean() / 1e3,
                p50: quantile(0.5),
                p90: quantile(0.9),
                p99: quantile(0.99),
                p99_9: quantile(0.999),
                max: latency.max() as f64 / 1e3,
            },
        }
    }
}

impl RequestSizes {
    fn new(meter: &OpMeter) -> Option<Self> {
        let mut sizes: Vec<_> =
            meter.asked.iter().map(|(bytes, calls)| RequestSize { bytes, calls }).collect();
        sizes.sort_by_key(|size| (Reverse(size.calls), size.bytes));
        sizes.truncate(SIZES_MAX);
        Some(Self {
            min: meter.asked.quantile(0.0)?,
            p50: meter.asked.quantile(0.5),
            max: meter.asked.quantile(1.0),
            sizes,
        })
    }
}

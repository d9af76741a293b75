//! What the framework itself costs, besides the calls that are made in its place: the interpreter,
//! the way of a batch from its worker to the consumer, the start of workers. Plain data and
//! arithmetic; the loaders burn it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes between two touches of held memory: no page is larger for less than it takes.
const PAGE_BYTES: usize = 4096;

/// CPU time by size: measured points, joined by straight lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    points: Vec<(u64, f64)>,
}

impl Curve {
    /// A curve through points of bytes and nanoseconds, in any order; of points with the same
    /// size the last one counts. No points cost nothing.
    pub fn new(points: impl IntoIterator<Item = (u64, f64)>) -> Self {
        let mut sorted: Vec<(u64, f64)> = Vec::new();
        for (bytes, ns) in points {
            match sorted.binary_search_by_key(&bytes, |point| point.0) {
                Ok(place) => sorted[place].1 = ns,
                Err(place) => sorted.insert(place, (bytes, ns)),
            }
        }
        Self { points: sorted }
    }

    /// The same cost for any size.
    pub fn constant(ns: f64) -> Self {
        Self::new([(0, ns)])
    }

    /// The measured points, by size.
    pub fn points(&self) -> &[(u64, f64)] {
        &self.points
    }

    /// Nanoseconds for `bytes`. Outside of the points the outermost lines go on; never below zero.
    pub fn at(&self, bytes: u64) -> u64 {
        let ns = match self.points.as_slice() {
            [] => 0.0,
            [(_, ns)] => *ns,
            points => {
                let above = points.partition_point(|point| point.0 < bytes);
                let right = above.clamp(1, points.len() - 1);
                let ((x0, y0), (x1, y1)) = (points[right - 1], points[right]);
                y0 + (y1 - y0) * (bytes as f64 - x0 as f64) / (x1 - x0) as f64
            }
        };
        ns.max(0.0).round() as u64
    }

    /// True if it costs nothing at any size.
    pub fn is_nothing(&self) -> bool {
        self.points.iter().all(|point| point.1 <= 0.0)
    }
}

/// What the framework costs, in CPU time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrameworkCost {
    /// Of the real reader per sample, by its bytes, beyond the reader that replaces it.
    pub sample: Curve,
    /// Of the way from the worker to the consumer.
    pub hand_over: HandOver,
    /// Of starting the workers.
    pub start: WorkerStart,
    /// Bytes of a sample's tensor, where they are not those of the sample.
    pub tensor_bytes: Option<u64>,
}

/// What handing over a batch costs, by the bytes of its tensors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandOver {
    /// Putting the batch together where there are no workers.
    pub collate: Curve,
    /// In a worker: putting together, copying into shared memory, pickling, sending.
    pub worker: Curve,
    /// In the consumer: receiving, unpickling, mapping, freeing.
    pub consumer: Curve,
}

impl HandOver {
    /// True if nothing is handed over: everything happens in one process.
    pub fn is_nothing(&self) -> bool {
        self.worker.is_nothing() && self.consumer.is_nothing()
    }
}

/// What starting a worker costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerStart {
    /// In the consumer, one worker after the other, before the first is told what to read.
    pub consumer_ns: u64,
    /// In each worker, before its first batch.
    pub worker_ns: u64,
    /// Whether workers are started for every epoch or once.
    pub often: Often,
}

impl WorkerStart {
    /// True if starting workers takes no time.
    pub fn is_nothing(&self) -> bool {
        self.consumer_ns == 0 && self.worker_ns == 0
    }
}

/// How often workers are started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Often {
    /// For every epoch: torch's default.
    #[default]
    EachEpoch,
    /// Once: persistent workers.
    Once,
}

impl FrameworkCost {
    /// Bytes of the tensors of a batch that was read from samples of `sample_bytes` in all.
    pub fn batch_bytes(&self, samples: u64, sample_bytes: u64) -> u64 {
        self.tensor_bytes.map_or(sample_bytes, |bytes| samples.saturating_mul(bytes))
    }
}

/// Bytes that finished batches of a loader hold in memory.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    now: AtomicU64,
    most: AtomicU64,
}

impl Gauge {
    /// The most that were held at a time.
    pub(crate) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

/// Memory of a finished batch: touched, so that it takes the place of cached pages, as the shared
/// memory of a real batch does.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: Vec<u8>,
    gauge: Arc<Gauge>,
}

impl Held {
    pub(crate) fn new(bytes: u64, gauge: &Arc<Gauge>) -> Self {
        let mut memory = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        for first in memory.iter_mut().step_by(PAGE_BYTES) {
            *first = 1;
        }
        let now = gauge.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        gauge.most.fetch_max(now, Ordering::Relaxed);
        Self { bytes: std::hint::black_box(memory), gauge: Arc::clone(gauge) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.gauge.now.fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_between_and_beyond_the_points_lie_on_their_lines() {
        // 100 ns at 1000 bytes, 300 at 2000, 400 at 4000: slopes 0.2 and 0.05.
        let curve = Curve::new([(4000, 400.0), (1000, 100.0), (2000, 300.0)]);
        for (bytes, ns) in [
            (1000, 100),
            (1500, 200),
            (2000, 300),
            (3000, 350),
            (4000, 400),
            (8000, 600),
            (750, 50),
            // The first line reaches zero at 500 bytes.
            (500, 0),
            (0, 0),
        ] {
            assert_eq!(curve.at(bytes), ns, "{bytes} bytes");
        }
    }

    #[test]
    fn few_points_are_enough() {
        assert_eq!(Curve::default().at(77), 0);
        assert!(Curve::default().is_nothing());
        let one = Curve::new([(1000, 25.0)]);
        assert_eq!((one.at(0), one.at(1_000_000)), (25, 25));
        assert_eq!(one, Curve::new([(1000, 3.0), (1000, 25.0)]));
        assert!(Curve::new([(1, 0.0), (2, 0.0)]).is_nothing());
    }

    #[test]
    fn a_batch_hands_over_tensors_and_not_files() {
        let mut cost = FrameworkCost::default();
        assert_eq!(cost.batch_bytes(4, 1000), 1000);
        cost.tensor_bytes = Some(7);
        assert_eq!(cost.batch_bytes(4, 1000), 28);
    }

    #[test]
    fn held_bytes_are_counted_while_they_are_held() {
        let gauge = Arc::<Gauge>::default();
        let first = Held::new(10_000, &gauge);
        let second = Held::new(5, &gauge);
        drop(first);
        let _third = Held::new(6_000, &gauge);
        assert_eq!(gauge.most(), 10_005);
        drop(second);
        assert_eq!(gauge.now.load(Ordering::Relaxed), 6_000);
    }
}

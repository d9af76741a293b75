//! Arrows between slices that belong together: what a step is made of, and requests with their answers.

use std::hash::Hasher as _;

use rustc_hash::{FxHashMap, FxHasher};

use crate::event::{Event, EventKind};
use crate::perfetto::scan::{ThreadKey, TraceScan, rank_in};
use crate::perfetto::slices::Slices;

/// A request of io_uring, or its completion.
#[derive(Clone, Copy, Debug)]
struct Request {
    start_ns: i64,
    slice: usize,
    process: u32,
    user_data: i64,
    is_completed: bool,
}

/// Collects what flows.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    requests: Vec<Request>,
}

impl Flows {
    /// Looks at an event that has become a slice.
    pub(crate) fn add(
        &mut self,
        scan: &TraceScan,
        slices: &mut Slices,
        slice: usize,
        event: &Event,
        name: &str,
    ) {
        if let (EventKind::Span, Some(step)) = (event.kind, event.step) {
            let thread = (event.process, event.thread);
            slices.kept[slice].flow = step_flow(scan, thread, event.epoch.unwrap_or(-1), step);
        }
        let is_completed = name == "io_uring.completed";
        if let Some(user_data) = event.arg.filter(|_| is_completed || name == "io_uring.submitted")
        {
            let process = event.process;
            let start_ns = event.start_ns;
            self.requests.push(Request { start_ns, slice, process, user_data, is_completed });
        }
    }

    /// Pairs requests and ends flows. One event alone is not a flow.
    pub(crate) fn settle(&mut self, slices: &mut Slices) {
        self.pair(slices);
        let mut chains: FxHashMap<u64, (u64, usize)> = FxHashMap::default();
        for (number, slice) in slices.kept.iter().enumerate().filter(|(_, slice)| slice.flow != 0) {
            let chain = chains.entry(slice.flow).or_insert((0, number));
            chain.0 += 1;
            if slice.start_ns >= slices.kept[chain.1].start_ns {
                chain.1 = number;
            }
        }
        for (flow, (length, last)) in chains {
            slices.kept[last].ends_flow = true;
            if length < 2 && slices.kept[last].flow == flow {
                slices.kept[last].flow = 0;
            }
        }
    }

    fn pair(&mut self, slices: &mut Slices) {
        let mut requests = std::mem::take(&mut self.requests);
        requests.sort_by_key(|request| (request.start_ns, request.is_completed));
        let mut submitted: FxHashMap<(u32, u64), usize> = FxHashMap::default();
        for (number, request) in requests.iter().enumerate() {
            let key = (request.process, request.user_data.cast_unsigned());
            if !request.is_completed {
                submitted.insert(key, request.slice);
            } else if let Some(slice) = submitted.remove(&key) {
                let flow = mixed(&[2, number as u64]);
                slices.kept[slice].flow = flow;
                slices.kept[request.slice].flow = flow;
            }
        }
    }
}

/// The flow of a step of one rank: workers are children of the process that has the rank, or threads
/// whose name says it.
fn step_flow(scan: &TraceScan, thread: ThreadKey, epoch: i64, step: i64) -> u64 {
    let name = scan.threads.get(&thread).and_then(|thread| thread.name.as_deref());
    let own_rank = name.and_then(rank_in).map_or(u64::MAX, u64::from);
    let process = scan.process_rank(thread.0).map_or(thread.0, |(row, _)| row);
    mixed(&[1, u64::from(process), own_rank, epoch.cast_unsigned(), step.cast_unsigned()])
}

fn mixed(words: &[u64]) -> u64 {
    let mut hash = FxHasher::default();
    words.iter().for_each(|word| hash.write_u64(*word));
    // 0 means no flow.
    hash.finish().max(1)
}

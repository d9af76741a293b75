//! Random traces, and the same numbers counted by brute force: slow, and too simple to be wrong.

mod draft;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use draft::brute::{Interval, both_ns, cut_ns, exposed_ns, is_about, percentile, union_ns};
use draft::{At, BASE_NS, analysis_of, analysis_with};
use feedline_analyze::analysis::{AccessPatterns, Analysis, Distribution, FileUse};
use feedline_analyze::load::NoProgress;
use feedline_analyze::partial::{PartialAnalysis, Shard};
use feedline_analyze::{Settings, StackLayer, partial_of};
use feedline_trace::dftracer::TimeUnit;
use world::{FileOp, Known, RANKS, World};

const SEEDS: u64 = 4;

/// Least, mean and largest of a value of each rank.
fn over_ranks(value: impl Fn(usize) -> u64) -> (u64, u64, u64) {
    let values: Vec<u64> = (0..RANKS).map(value).collect();
    let mean = values.iter().sum::<u64>() / RANKS as u64;
    (*values.iter().min().unwrap(), mean, *values.iter().max().unwrap())
}

fn check_all(check: impl Fn(&World, &Analysis)) {
    for seed in 0..SEEDS {
        let world = World::new(seed);
        check(&world, &world.draft.analysis());
    }
}

#[test]
fn brute_force_counts_right() {
    // 0123456789
    // AAAA..CC    and  .BBB......
    let (one, other) = ([(0, 4), (2, 5), (6, 8), (7, 7)], [(1, 4), (7, 12)]);
    assert_eq!((union_ns(&one), union_ns(&other)), (7, 8));
    assert_eq!((both_ns(&one, &other), exposed_ns(&one, &other)), (4, 3));
    assert_eq!(exposed_ns(&other, &one), 4);
    assert_eq!((cut_ns((0, 4), (2, 9)), cut_ns((0, 4), (4, 9))), (2, 0));
    assert_eq!(draft::brute::self_ns(&[(0, 10), (1, 4), (2, 3), (6, 9), (6, 6)]), [4, 2, 1, 3, 0]);
    let mut values: Vec<u64> = (1..=20).rev().collect();
    assert_eq!([5, 50, 99].map(|percent| percentile(&mut values, percent)), [1, 10, 20]);
    assert!(is_about(1016, 1024) && !is_about(1014, 1024) && is_about(0, 1));
}

#[test]
fn random_threads_do_one_thing_at_a_time() {
    for seed in 0..SEEDS {
        let world = World::new(seed);
        let lanes: BTreeSet<At> = world.events.iter().map(|event| event.lane).collect();
        let own_ns = world.self_ns();
        assert_eq!(lanes.len(), 16);
        for lane in lanes {
            let its = world.events.iter().zip(&own_ns).filter(|(event, _)| event.lane == lane);
            let sum: u64 = its.map(|(_, ns)| ns).sum();
            assert_eq!(union_ns(&world.times(|event| event.lane == lane)), sum);
        }
    }
}

#[test]
fn facts_and_people() {
    check_all(|world, analysis| {
        let facts = &analysis.trace;
        assert_eq!(facts.events, (world.events.len() + world.counters.len()) as u64);
        assert_eq!(facts.start_ns, BASE_NS + world.first_ns());
        assert_eq!(facts.run_ns, world.last_ns().abs_diff(world.first_ns()));
        assert!(facts.run_ns > 195_000_000_000, "longer than 65.5 s");
        let people = &analysis.allocation;
        assert_eq!((people.ranks, &people.hosts[..]), (4, &["node0".into(), "node1".into()][..]));
        let lanes = |is_meant: &dyn Fn(&Known) -> bool| {
            let lanes: BTreeSet<At> = world.of(is_meant).iter().map(|event| event.lane).collect();
            lanes.len() as u64
        };
        assert_eq!(people.compute_threads, lanes(&|event| event.layer == StackLayer::Compute));
        assert_eq!(people.io_threads, lanes(&Known::is_io));
        let processes: u64 = people.processes.iter().map(|role| role.count).sum();
        assert_eq!(processes, 12, "equal numbers on two machines are two processes");
        assert_eq!(people.threads.iter().map(|role| role.count).sum::<u64>(), 16);
    });
}

#[test]
fn layers() {
    check_all(|world, analysis| {
        let own_ns = world.self_ns();
        for layer in StackLayer::ALL {
            let events = world.of(|event| event.layer == layer);
            let Some(found) = analysis.layers.iter().find(|found| found.layer == layer) else {
                assert!(events.is_empty(), "{} is missing", layer.name());
                continue;
            };
            let times = |rank| world.times(|event| event.layer == layer && event.rank == rank);
            let compute = |rank| {
                world.times(|event| event.layer == StackLayer::Compute && event.rank == rank)
            };
            let (least_ns, mean_ns, most_ns) = over_ranks(|rank| union_ns(&times(rank)));
            let name = layer.name();
            assert_eq!(found.events, events.len() as u64, "{name}");
            assert_eq!(found.bytes, events.iter().map(|event| event.bytes).sum::<u64>(), "{name}");
            assert_eq!(
                (found.least_ns, found.mean_ns, found.most_ns),
                (least_ns, mean_ns, most_ns)
            );
            assert_eq!(found.summed_ns, events.iter().map(|event| event.ns()).sum::<u64>());
            let selves = world.events.iter().zip(&own_ns);
            let sum: u64 = selves.filter(|(event, _)| event.layer == layer).map(|(_, ns)| ns).sum();
            assert_eq!(found.self_ns, sum, "self time of {name}");
            let (_, exposed, _) = over_ranks(|rank| exposed_ns(&times(rank), &compute(rank)));
            assert_eq!(found.exposed_mean_ns, exposed, "{name}");
        }
    });
}

#[test]
fn overlaps() {
    const LOADER: [StackLayer; 5] = [
        StackLayer::Batch,
        StackLayer::Sample,
        StackLayer::Decode,
        StackLayer::Transform,
        StackLayer::Collate,
    ];
    check_all(|world, analysis| {
        type Is = fn(&Known) -> bool;
        let what: [(&str, Is); 4] = [
            ("io", Known::is_io),
            ("app-io", |event| event.layer == StackLayer::Sample),
            ("loader", |event| LOADER.contains(&event.layer)),
            ("checkpoint", |event| event.layer == StackLayer::Checkpoint),
        ];
        for (name, is_meant) in what {
            let found = analysis.overlaps.iter().find(|found| found.what == name).unwrap();
            let its = |rank| world.times(|event| event.rank == rank && is_meant(event));
            let compute = |rank| {
                world.times(|event| event.rank == rank && event.layer == StackLayer::Compute)
            };
            let mean = |value: &dyn Fn(usize) -> u64| over_ranks(value).1;
            assert_eq!(found.total_ns, mean(&|rank| union_ns(&its(rank))), "{name}");
            let both = mean(&|rank| both_ns(&its(rank), &compute(rank)));
            assert_eq!(found.overlapped_ns, both, "{name}");
            // Both parts are of the same whole; a mean of either may have lost a fraction.
            let exposed = mean(&|rank| exposed_ns(&its(rank), &compute(rank)));
            assert!(found.exposed_ns.abs_diff(exposed) <= 1, "{name}: {}", found.exposed_ns);
            assert_eq!(found.overlapped_ns + found.exposed_ns, found.total_ns, "{name}");
            assert_eq!(found.compute_ns, mean(&|rank| union_ns(&compute(rank))), "{name}");
            let alone = mean(&|rank| exposed_ns(&compute(rank), &its(rank)));
            assert!(found.compute_alone_ns.abs_diff(alone) <= 1, "{name}");
        }
    });
}

#[test]
fn ranks() {
    check_all(|world, analysis| {
        assert_eq!(analysis.ranks.len(), RANKS);
        for (number, rank) in analysis.ranks.iter().enumerate() {
            assert_eq!(rank.rank as usize, number);
            assert_eq!((rank.host.as_str(), rank.workers), (["node0", "node1"][number % 2], 2));
            let calls = world.of(|event| event.rank == number && event.is_io());
            let bytes = |op| {
                let of = calls.iter().filter(|event| event.op == Some(op));
                of.map(|event| event.bytes).sum::<u64>()
            };
            assert_eq!(rank.calls, calls.len() as u64);
            assert_eq!(rank.bytes_read, bytes(FileOp::Read));
            assert_eq!(rank.bytes_written, bytes(FileOp::Write));
            let io = world.times(|event| event.rank == number && event.is_io());
            assert_eq!(rank.io_ns, union_ns(&io));
            let all = world.times(|event| event.rank == number);
            let first = all.iter().map(|time| time.0).min().unwrap();
            let last = all.iter().map(|time| time.1).max().unwrap();
            // Spans of the layers app and pipeline cover everything and show nothing.
            let seen = world.times(|event| {
                event.rank == number
                    && !matches!(event.layer, StackLayer::App | StackLayer::Pipeline)
            });
            assert_eq!(rank.unseen_ns, last.abs_diff(first) - union_ns(&seen), "rank {number}");
        }
    });
}

fn check_distribution(found: &Distribution, values: &mut [u64], what: &str) {
    let percents = [
        (5, found.p5),
        (25, found.p25),
        (50, found.p50),
        (75, found.p75),
        (95, found.p95),
        (99, found.p99),
    ];
    for (percent, value) in percents {
        let exact = percentile(values, percent);
        assert!(is_about(value, exact), "{what}: p{percent} is {value}, in truth {exact}");
    }
    assert_eq!((found.min, found.max), (values[0], values[values.len() - 1]), "{what}");
    let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
    assert!((found.mean - mean).abs() <= mean * 1e-9, "{what}: mean {} of {mean}", found.mean);
}

#[test]
fn functions() {
    check_all(|world, analysis| {
        let own_ns = world.self_ns();
        let names: BTreeSet<_> = world.events.iter().map(|event| event.what).collect();
        assert_eq!(analysis.functions.len(), names.len());
        let totals: Vec<u64> = analysis.functions.iter().map(|found| found.total_ns).collect();
        assert!(totals.is_sorted_by(|one, next| one >= next), "the longest first");
        for found in &analysis.functions {
            let what = (found.category.as_str(), found.name.as_str());
            let events = world.of(|event| event.what == what);
            let text = format!("{}/{}", what.0, what.1);
            assert_eq!(found.layer, events[0].layer, "{text}");
            assert_eq!(found.count, events.len() as u64, "{text}");
            let errors = events.iter().filter(|event| event.errno != 0).count() as u64;
            assert_eq!(found.errors, errors, "{text}");
            let mut times: Vec<u64> = events.iter().map(|event| event.ns()).collect();
            assert_eq!(found.total_ns, times.iter().sum::<u64>(), "{text}");
            let selves = world.events.iter().zip(&own_ns);
            let sum: u64 = selves.filter(|(event, _)| event.what == what).map(|(_, ns)| ns).sum();
            assert_eq!(found.self_ns, sum, "self time of {text}");
            check_distribution(&found.latency, &mut times, &text);
            let mut sizes: Vec<u64> =
                events.iter().map(|event| event.bytes).filter(|bytes| *bytes > 0).collect();
            assert_eq!(found.bytes, sizes.iter().sum::<u64>(), "{text}");
            assert_eq!(found.size.is_some(), !sizes.is_empty(), "{text}");
            if let Some(size) = &found.size {
                check_distribution(size, &mut sizes, &format!("sizes of {text}"));
                let rate = found.bytes as f64 / (found.total_ns as f64 / 1e9);
                let given = found.bytes_per_second.unwrap();
                assert!((given - rate).abs() <= rate * 1e-9, "{text}: {given} of {rate}");
            }
        }
    });
}

/// Sums of calls on files.
fn file_use(path: &str, calls: &[&Known]) -> FileUse {
    let count = |op| calls.iter().filter(|call| call.op == Some(op)).count() as u64;
    let of = |is_meant: &dyn Fn(&Known) -> bool, value: &dyn Fn(&Known) -> u64| {
        calls.iter().filter(|call| is_meant(call)).map(|call| value(call)).sum::<u64>()
    };
    let is_metadata =
        |call: &Known| matches!(call.op, Some(FileOp::Open | FileOp::Close | FileOp::Stat));
    let bytes_read = of(&Known::is_read, &|call| call.bytes);
    let mut extents: BTreeMap<&str, u64> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.is_read()) {
        let end = call.offset.map_or(0, |offset| offset.cast_unsigned() + call.bytes);
        let extent = extents.entry(&call.file).or_default();
        *extent = end.max(*extent);
    }
    let extent_read = extents.values().sum();
    FileUse {
        path: path.to_owned(),
        files: calls.iter().map(|call| &call.file).collect::<BTreeSet<_>>().len() as u64,
        opens: count(FileOp::Open),
        reads: count(FileOp::Read),
        writes: count(FileOp::Write),
        others: count(FileOp::Close) + count(FileOp::Stat) + count(FileOp::Other),
        bytes_read,
        bytes_written: of(&|call| call.op == Some(FileOp::Write), &|call| call.bytes),
        extent_read,
        reread_factor: (extent_read > 0).then(|| bytes_read as f64 / extent_read as f64),
        ns: of(&|_| true, &Known::ns),
        metadata_ns: of(&is_metadata, &Known::ns),
        ranks: calls.iter().map(|call| call.rank).collect::<BTreeSet<_>>().len() as u64,
        errors: calls.iter().filter(|call| call.errno != 0).count() as u64,
    }
}

fn check_uses(found: &[FileUse], mut truth: Vec<FileUse>, world: &World) {
    let times: Vec<u64> = found.iter().map(|one| one.ns).collect();
    assert!(times.is_sorted_by(|one, next| one >= next), "the longest first");
    let mut found = found.to_vec();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    truth.sort_by(|one, other| one.path.cmp(&other.path));
    for one in found.iter_mut().chain(&mut truth) {
        // How far reads went that do not say where they began is nobody's knowledge.
        if !world.is_placed {
            (one.extent_read, one.reread_factor) = (0, None);
        }
    }
    assert_eq!(found, truth);
}

#[test]
fn files_and_folders() {
    check_all(|world, analysis| {
        let calls = world.of(Known::is_io);
        let group = |key: &dyn Fn(&Known) -> String| -> Vec<FileUse> {
            let names: BTreeSet<String> = calls.iter().map(|call| key(call)).collect();
            let uses = names.iter().map(|name| {
                let of: Vec<&Known> =
                    calls.iter().filter(|call| key(call) == *name).copied().collect();
                file_use(name, &of)
            });
            uses.collect()
        };
        let by_file = group(&|call| call.file.clone());
        assert_eq!(by_file.len(), 20);
        check_uses(&analysis.files, by_file, world);
        let folder = |call: &Known| call.file.rsplit_once('/').unwrap().0.to_owned();
        check_uses(&analysis.folders, group(&folder), world);
    });
}

#[test]
fn data() {
    check_all(|world, analysis| {
        let calls = world.of(Known::is_io);
        let all = file_use("", &calls);
        let data = &analysis.data;
        assert_eq!((data.files, data.calls, data.errors), (20, calls.len() as u64, all.errors));
        assert_eq!((data.files_read, data.files_written), (12, 8));
        assert_eq!(data.bytes_read, all.bytes_read);
        assert_eq!(data.bytes_written, all.bytes_written);
        if world.is_placed {
            assert_eq!(data.extent_read, all.extent_read);
            assert_eq!(data.reread_factor, all.reread_factor);
        }
        let log = |value: u64| value.max(1).ilog2();
        let histogram = |values: Vec<u64>| {
            let mut counts = vec![0; 64];
            values.iter().for_each(|value| counts[log(*value) as usize] += 1);
            trimmed(&counts)
        };
        let reads = world.of(Known::is_read);
        let of = |op, value: &dyn Fn(&Known) -> u64| -> Vec<u64> {
            calls.iter().filter(|call| call.op == Some(op)).map(|call| value(call)).collect()
        };
        let sizes = |op| histogram(of(op, &|call| call.bytes));
        assert_eq!(trimmed(&data.read_sizes.counts), sizes(FileOp::Read));
        assert_eq!(trimmed(&data.write_sizes.counts), sizes(FileOp::Write));
        let times = histogram(of(FileOp::Read, &Known::ns));
        assert_eq!(trimmed(&data.read_latencies.counts), times);
        let mut cells: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for read in reads {
            *cells.entry((log(read.bytes).into(), log(read.ns()).into())).or_default() += 1;
        }
        let found: BTreeMap<_, _> = data
            .read_size_by_latency
            .iter()
            .map(|[size, time, calls]| ((*size, *time), *calls))
            .collect();
        assert_eq!(found, cells);
        let mut errors: BTreeMap<u16, u64> = BTreeMap::new();
        for call in calls.iter().filter(|call| call.errno != 0) {
            *errors.entry(call.errno).or_default() += 1;
        }
        let found: BTreeMap<_, _> =
            data.errors_by_number.iter().map(|error| (error.errno, error.count)).collect();
        assert_eq!(found, errors);
        let name = |errno| data.errors_by_number.iter().find(|error| error.errno == errno);
        assert_eq!(name(2).map(|error| error.name.as_str()), Some("ENOENT"));
        assert_eq!(name(13).map(|error| error.name.as_str()), Some("EACCES"));
    });
}

/// Without the zeros at the end.
fn trimmed(counts: &[u64]) -> Vec<u64> {
    let last = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    counts[..last].to_vec()
}

#[test]
fn access_pattern() {
    check_all(|world, analysis| {
        let mut truth = AccessPatterns::default();
        let mut ends: BTreeMap<(At, &str), i64> = BTreeMap::new();
        let mut calls = world
            .of(|event| matches!(event.op, Some(FileOp::Read | FileOp::Write | FileOp::Close)));
        calls.sort_by_key(|call| (call.time.0, std::cmp::Reverse(call.time.1)));
        for call in calls {
            if call.op == Some(FileOp::Close) {
                // Whoever closes a file begins anew.
                ends.remove(&(call.lane, call.file.as_str()));
                continue;
            }
            let is_read = call.is_read();
            let Some(offset) = call.offset else {
                add(&mut truth, ("unplaced", is_read));
                continue;
            };
            let end = offset + call.bytes.cast_signed();
            // No file is both read and written.
            let key = (call.lane, call.file.as_str());
            let kind = match ends.insert(key, end) {
                None => "first",
                Some(last) if last == offset => "consecutive",
                Some(last) if last < offset => "forward",
                Some(_) => "backward",
            };
            add(&mut truth, (kind, is_read));
        }
        assert_eq!(analysis.access, truth);
    });
}

fn add(access: &mut AccessPatterns, kind: (&str, bool)) {
    let count = match kind {
        ("first", true) => &mut access.reads_first,
        ("consecutive", true) => &mut access.reads_consecutive,
        ("forward", true) => &mut access.reads_forward,
        ("backward", true) => &mut access.reads_backward,
        ("unplaced", true) => &mut access.reads_unplaced,
        ("first", false) => &mut access.writes_first,
        ("consecutive", false) => &mut access.writes_consecutive,
        ("forward", false) => &mut access.writes_forward,
        ("backward", false) => &mut access.writes_backward,
        _ => &mut access.writes_unplaced,
    };
    *count += 1;
}

/// A bucket of the timeline, behind the first event.
fn bucket(world: &World, analysis: &Analysis, number: usize) -> Interval {
    let length = analysis.timeline.bucket_ns.cast_signed();
    let from = world.first_ns() + number as i64 * length;
    (from, from + length)
}

/// The bucket in which a moment lies; the last one has its end too.
fn bucket_of(world: &World, analysis: &Analysis, at_ns: i64) -> usize {
    let number = at_ns.abs_diff(world.first_ns()) / analysis.timeline.bucket_ns;
    (number as usize).min(analysis.timeline.calls.len() - 1)
}

#[test]
fn timelines_of_times() {
    check_all(|world, analysis| {
        let timeline = &analysis.timeline;
        let buckets = timeline.calls.len();
        assert!(buckets as u64 * timeline.bucket_ns >= analysis.trace.run_ns);
        assert!((buckets as u64 - 1) * timeline.bucket_ns <= analysis.trace.run_ns);
        assert!(buckets >= 50, "fine enough to see something: {buckets}");
        let io = world.of(Known::is_io);
        let within = |times: &[Interval], edge: Interval| -> Vec<Interval> {
            times.iter().map(|time| (time.0.max(edge.0), time.1.min(edge.1))).collect()
        };
        let compute: Vec<Vec<Interval>> = (0..RANKS)
            .map(|rank| {
                world.times(|event| event.rank == rank && event.layer == StackLayer::Compute)
            })
            .collect();
        for number in 0..buckets {
            let edge = bucket(world, analysis, number);
            let io_ns: u64 = io.iter().map(|call| cut_ns(call.time, edge)).sum();
            assert_eq!(timeline.io_ns[number], io_ns, "calls in bucket {number}");
            let compute_ns: u64 = compute.iter().map(|times| union_ns(&within(times, edge))).sum();
            assert_eq!(timeline.compute_ns[number], compute_ns, "bucket {number}");
            for rank in 0..RANKS {
                let its = io.iter().filter(|call| call.rank == rank);
                let ns: u64 = its.map(|call| cut_ns(call.time, edge)).sum();
                assert_eq!(timeline.rank_io_ns[rank][number], ns, "rank {rank}, {number}");
            }
            let stall_ns: u64 = timeline.rank_stall_ns.iter().map(|row| row[number]).sum();
            assert_eq!(timeline.stall_ns[number], stall_ns, "bucket {number}");
        }
    });
}

#[test]
fn timelines_of_counts() {
    check_all(|world, analysis| {
        let timeline = &analysis.timeline;
        let began = |number: usize, is_meant: &dyn Fn(&Known) -> bool| -> Vec<u64> {
            let its = |event: &Known| bucket_of(world, analysis, event.time.0) == number;
            world.of(|event| is_meant(event) && its(event)).iter().map(|event| event.ns()).collect()
        };
        for number in 0..timeline.calls.len() {
            assert_eq!(timeline.calls[number], began(number, &Known::is_io).len() as u64);
            let mut reads = began(number, &Known::is_read);
            let found = [timeline.read_p50_ns[number], timeline.read_p99_ns[number]];
            if reads.is_empty() {
                assert_eq!(found, [0, 0], "no read began in bucket {number}");
                continue;
            }
            for (found, percent) in found.into_iter().zip([50, 99]) {
                let exact = percentile(&mut reads, percent);
                // A thousand histograms are coarser than one.
                let off = found.abs_diff(exact);
                assert!(off <= exact / 16 + 1, "p{percent} of {number}: {found} of {exact}");
            }
        }
        check_bytes(world, analysis, FileOp::Read, &timeline.bytes_read);
        check_bytes(world, analysis, FileOp::Write, &timeline.bytes_written);
        for number in 0..timeline.calls.len() {
            let sum: u64 = timeline.rank_bytes_read.iter().map(|row| row[number]).sum();
            assert_eq!(timeline.bytes_read[number], sum);
        }
        let series = timeline.counters.iter().find(|series| series.name.contains("depth")).unwrap();
        for (number, found) in series.values.iter().enumerate() {
            let of = world.counters.iter();
            let values: Vec<f64> = of
                .filter(|(at_ns, _)| bucket_of(world, analysis, *at_ns) == number)
                .map(|(_, value)| *value)
                .collect();
            assert_eq!(found.is_some(), !values.is_empty(), "bucket {number}");
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            assert!(found.is_none_or(|found| (found - mean).abs() < 1e-9), "bucket {number}");
        }
    });
}

/// Bytes of a call lie in buckets as its time does, a byte more or less a call; none is lost.
fn check_bytes(world: &World, analysis: &Analysis, op: FileOp, found: &[u64]) {
    let calls = world.of(|event| event.op == Some(op));
    assert_eq!(found.iter().sum::<u64>(), calls.iter().map(|call| call.bytes).sum::<u64>());
    for (number, found) in found.iter().enumerate() {
        let edge = bucket(world, analysis, number);
        let (mut exact, mut slack) = (0.0, 1.0);
        for call in &calls {
            let inside_ns = cut_ns(call.time, edge);
            if call.ns() == 0 && bucket_of(world, analysis, call.time.0) == number {
                exact += call.bytes as f64;
            } else if inside_ns > 0 {
                exact += call.bytes as f64 * inside_ns as f64 / call.ns() as f64;
                slack += 1.0;
            }
        }
        assert!((*found as f64 - exact).abs() <= slack, "bucket {number}: {found} of {exact}");
    }
}

/// An analysis as others see it, without the names of its files.
fn text(analysis: &Analysis) -> String {
    let mut analysis = analysis.clone();
    analysis.trace.inputs.clear();
    serde_json::to_string_pretty(&analysis).unwrap()
}

/// The analysis that three tasks make, each of a part of the trace, which they hand on as text.
fn sharded(path: &Path) -> Analysis {
    let (inputs, settings) = ([path.to_owned()], Settings::default());
    let parts = (1..=3).map(|index| -> PartialAnalysis {
        let shard = Shard { index, of: 3 };
        let part = partial_of(&inputs, shard, &settings, &NoProgress).expect("a part");
        serde_json::from_str(&serde_json::to_string(&part).unwrap()).unwrap()
    });
    // In any order.
    let parts = parts.collect::<Vec<_>>().into_iter().rev().collect();
    PartialAnalysis::join(parts).expect("all parts").assemble(&settings)
}

#[test]
fn threads_and_shards_agree_to_the_last_digit() {
    for seed in 0..2 {
        let world = World::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("own");
        world.draft.write_folder(&folder);
        let other = dir.path().join("other");
        std::fs::create_dir(&other).unwrap();
        world.draft.write_dftracer(&other.join("run.pfw.gz"), TimeUnit::Nanoseconds);
        for path in [folder, other] {
            let once = text(&analysis_of(&path));
            for threads in [2, 4] {
                let inputs: Vec<PathBuf> = vec![path.clone()];
                assert!(text(&analysis_with(&inputs, threads)) == once, "{threads} threads");
            }
            assert!(text(&sharded(&path)) == once, "three shards of {}", path.display());
            assert!(once.len() > 10_000, "something was analyzed");
        }
    }
}

#[test]
fn both_kinds_of_files_say_the_same() {
    for seed in 0..2 {
        let world = World::new(seed);
        let own = world.draft.analysis();
        let dir = tempfile::tempdir().unwrap();
        world.draft.write_dftracer(&dir.path().join("run.pfw.gz"), TimeUnit::Nanoseconds);
        let other = analysis_of(dir.path());
        let events = world.events.len() + world.counters.len();
        assert_eq!(own.trace.events, events as u64);
        // The library's own first and last record of a process are events to DFTracer's tools.
        let processes: u64 = own.allocation.processes.iter().map(|role| role.count).sum();
        assert_eq!(own.trace.events + 2 * processes, other.trace.events);
        assert_eq!(own.trace.run_ns, other.trace.run_ns);
        assert_eq!(own.layers, other.layers);
        assert_eq!(own.overlaps, other.overlaps);
        assert_eq!(own.functions, other.functions);
        assert_eq!((own.data, own.access), (other.data, other.access));
        assert_eq!(own.steps, other.steps);
    }
}

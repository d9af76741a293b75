//! An analysis in which every section has something to show. The same every time.

use feedline_analyze::analysis::{
    AccessPatterns, Allocation, Analysis, Answer, CauseTime, CheckpointTransfer, Checkpoints,
    Confidence, CounterSeries, Coverage, DataVolume, Distribution, Epoch, ErrorCount, FORMAT,
    FileUse, Finding, Function, Health, Histogram, LayerTime, Overlap, Phase, Prediction, Problem,
    Rank, RoleCount, StallVerdict, Step, Straggler, Stragglers, Strip, Timeline, TraceFacts,
    VERSION, WhatIf,
};
use feedline_analyze::layer::CAUSES;
use feedline_analyze::{StackLayer, StallCause};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const EPOCHS: u32 = 3;
const WORKERS: u32 = 4;
const FILES: u64 = 1_200;

/// A path that would end the script and run one of its own if a page took it for markup.
pub(crate) const HOSTILE: &str =
    "/data/</script><img src=x onerror=\"document.title='owned'\"><!--.npz";

/// How large it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Ranks.
    pub(crate) ranks: u32,
    /// Steps of each rank.
    pub(crate) steps: u32,
    /// Buckets of the timeline.
    pub(crate) buckets: usize,
}

/// 8 ranks, 2,000 steps.
pub(crate) const SMALL: Scale = Scale { ranks: 8, steps: 250, buckets: 600 };
/// 512 ranks, 200,192 steps.
pub(crate) const LARGE: Scale = Scale { ranks: 512, steps: 391, buckets: 2_000 };

/// Numbers that look like chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

/// A training that waits for reads, with a slow rank and a slow first epoch.
pub(crate) fn analysis(scale: Scale) -> Analysis {
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    let steps = steps(scale, &mut chance);
    let run_ns = steps.iter().map(|step| step.start_ns + step.duration_ns).max().unwrap_or(0) + S;
    let parts_ns = parts_of(steps.iter());
    let stall_ns: u64 = parts_ns.iter().sum();
    let step_ns: u64 = steps.iter().map(|step| step.duration_ns).sum();
    Analysis {
        format: FORMAT.into(),
        version: VERSION,
        trace: TraceFacts {
            inputs: vec!["/scratch/runs/unet3d-64/trace".into()],
            source: "feedline".into(),
            events: 10_412_733,
            start_ns: 1_790_000_000_000_000_000,
            run_ns,
        },
        health: health(),
        allocation: allocation(scale),
        verdict: verdict(&steps, step_ns, stall_ns),
        stall: stall(&parts_ns, stall_ns),
        findings: findings(&parts_ns, step_ns),
        what_if: what_if(step_ns / steps.len() as u64),
        layers: layers(run_ns),
        overlaps: overlaps(run_ns),
        // Steps are in the order of their ranks.
        ranks: steps.chunk_by(|one, other| one.rank == other.rank).map(rank).collect(),
        functions: functions(),
        data: data_set(),
        access: access(),
        files: files(&mut chance),
        folders: folders(),
        timeline: timeline(scale, &steps, run_ns, &mut chance),
        epochs: (1..=EPOCHS).map(|number| epoch(number, &steps)).collect(),
        stragglers: stragglers(),
        checkpoints: checkpoints(run_ns, scale.ranks),
        steps,
    }
}

/// The same calls, of a program that says nothing about itself.
pub(crate) fn calls_only() -> Analysis {
    let mut all = analysis(SMALL);
    all.health.coverage = Coverage::CallsOnly;
    all.verdict = StallVerdict::default();
    all.stall.clear();
    all.findings.retain(|finding| finding.code == "errors");
    all.what_if = WhatIf { refused: Some("the trace has no steps".into()), ..WhatIf::default() };
    all.overlaps.clear();
    all.steps.clear();
    all.epochs.clear();
    all.stragglers = Stragglers::default();
    all.checkpoints = Checkpoints::default();
    all.timeline.stall_ns.clear();
    all.timeline.compute_ns.clear();
    all.timeline.ready_batches.clear();
    all.timeline.rank_stall_ns.clear();
    all.layers.retain(|layer| layer.layer.is_io());
    all.functions.retain(|function| function.layer.is_io());
    all
}

fn steps(scale: Scale, chance: &mut Chance) -> Vec<Step> {
    let mut all = Vec::new();
    let mut at_ns = vec![2 * S; scale.ranks as usize];
    for number in 0..scale.steps {
        let epoch = 1 + number * EPOCHS / scale.steps;
        let first = number > 0 && (number - 1) * EPOCHS / scale.steps + 1 != epoch || number == 0;
        let begun = at_ns.clone();
        let made: Vec<Step> = (0..scale.ranks)
            .map(|rank| step((rank, epoch, number + 1, first), at_ns[rank as usize], chance))
            .collect();
        // Ranks meet at the end of a step: all wait for the last one.
        let meet_ns = made.iter().map(|step| step.start_ns + step.duration_ns).max().unwrap_or(0);
        for (mut step, begun_ns) in made.into_iter().zip(begun) {
            let waited_ns = meet_ns - (begun_ns + step.duration_ns);
            let peer_ns = if waited_ns > 8 * MS { waited_ns * 3 / 4 } else { 0 };
            step.meets_at_ns = Some(begun_ns + step.duration_ns);
            step.communication_ns = waited_ns + 4 * MS;
            step.parts_ns[StallCause::Peer as usize] = peer_ns;
            step.stall_ns += peer_ns;
            step.duration_ns += step.communication_ns;
            at_ns[step.rank as usize] = begun_ns + step.duration_ns;
            all.push(step);
        }
        if (number + 1) % 60 == 0 {
            at_ns.iter_mut().for_each(|at| *at += 1_800 * MS);
        }
    }
    all.sort_by_key(|step| (step.rank, step.start_ns));
    all
}

fn step(
    (rank, epoch, number, first): (u32, u32, u32, bool),
    start_ns: u64,
    chance: &mut Chance,
) -> Step {
    let mut parts_ns = vec![0; CAUSES];
    let tenths = if epoch == 1 { 18 } else { 10 } + if rank == 5 { 6 } else { 0 };
    let burst = if (number / 20) % 4 == 3 { 4 } else { 1 };
    if first {
        parts_ns[StallCause::StartUp as usize] = 1_200 * MS + chance.below(40 * MS);
    }
    // Ranks read the same storage: they are slow together.
    if number * 7 % 10 < 6 {
        parts_ns[StallCause::Read as usize] =
            tenths * burst * (12 * MS + chance.below(8 * MS)) / 10;
        parts_ns[StallCause::Open as usize] = tenths * (3 * MS + chance.below(3 * MS)) / 10;
        parts_ns[StallCause::Decode as usize] = 7 * MS + chance.below(3 * MS);
        parts_ns[StallCause::Python as usize] = chance.below(3 * MS);
        parts_ns[StallCause::HandOff as usize] = chance.below(4 * MS);
    }
    if number % 9 == 0 {
        parts_ns[StallCause::Workers as usize] = burst * (18 * MS + chance.below(8 * MS));
    }
    if number % 31 == 0 {
        parts_ns[StallCause::Prefetch as usize] = 10 * MS + chance.below(10 * MS);
    }
    let stall_ns: u64 = parts_ns.iter().sum();
    let compute_ns = 110 * MS + chance.below(6 * MS);
    Step {
        rank,
        phase: Phase::Train,
        epoch,
        block: 1,
        step: number,
        start_ns,
        duration_ns: stall_ns + compute_ns + MS,
        fetch_ns: stall_ns + MS,
        stall_ns,
        compute_ns,
        worker: Some(number % WORKERS),
        service_ns: 320 * MS + chance.below(90 * MS),
        service_parts_ns: vec![0; CAUSES],
        service_start_ns: -300_000_000,
        samples: 7,
        confidence: Confidence::High,
        parts_ns,
        ..Step::default()
    }
}

fn parts_of<'a>(steps: impl Iterator<Item = &'a Step>) -> Vec<u64> {
    let mut sums = vec![0; CAUSES];
    for step in steps {
        for (sum, part) in sums.iter_mut().zip(&step.parts_ns) {
            *sum += part;
        }
    }
    sums
}

fn verdict(steps: &[Step], step_ns: u64, stall_ns: u64) -> StallVerdict {
    let mut stalls: Vec<u64> = steps.iter().map(|step| step.stall_ns).collect();
    stalls.sort_unstable();
    let stalled = steps.iter().filter(|step| step.stall_ns * 10 > step.duration_ns).count();
    let share = stall_ns as f64 / step_ns as f64;
    let text = format!(
        "accelerators stood still for {:.1} % of step time, most of it waiting for reads",
        100.0 * share
    );
    StallVerdict {
        answer: Answer::InputBound,
        text,
        steps: steps.len() as u64,
        step_ns,
        stall_ns,
        stall_share: share,
        stall_share_interval: Some([share - 0.021, share + 0.024]),
        stalled_steps_share: stalled as f64 / steps.len() as f64,
        stall_p95_ns: stalls[stalls.len() * 95 / 100],
        confidence: Confidence::High,
        au_percent: Some(100.0 * (1.0 - share)),
        samples_per_second: Some(7.0 * 1_000.0 / 180.0 * 8.0),
        read_bytes_per_second: Some(4.561e9),
    }
}

fn stall(parts_ns: &[u64], stall_ns: u64) -> Vec<CauseTime> {
    let mut all: Vec<CauseTime> = StallCause::ALL
        .into_iter()
        .zip(parts_ns)
        .filter(|(_, ns)| **ns > 0)
        .map(|(cause, &ns)| CauseTime { cause, ns, share: ns as f64 / stall_ns as f64 })
        .collect();
    all.sort_by_key(|time| std::cmp::Reverse(time.ns));
    all
}

fn health() -> Health {
    let problem = |code: &str, count, text: &str, places: &[&str], limits_claims| Problem {
        code: code.into(),
        count,
        text: text.into(),
        places: places.iter().map(|&place| place.into()).collect(),
        limits_claims,
    };
    Health {
        coverage: Coverage::Full,
        problems: vec![
            problem(
                "ends-early",
                1,
                "1 worker ends 3.20 s before its rank: what it did after that is not in the trace",
                &["node04 process 2417, worker 3 of rank 5"],
                true,
            ),
            problem(
                "bad-lines",
                3,
                "3 lines could not be read and were left out",
                &["part-0003.pfw.gz:184,212", HOSTILE],
                false,
            ),
        ],
    }
}

fn allocation(scale: Scale) -> Allocation {
    let ranks = u64::from(scale.ranks);
    let role = |role: &str, count| RoleCount { role: role.into(), count };
    Allocation {
        hosts: (0..ranks.div_ceil(4)).map(|host| format!("node{:02}", host + 3)).collect(),
        ranks,
        processes: vec![role("rank", ranks), role("worker", ranks * u64::from(WORKERS))],
        threads: vec![
            role("rank", ranks),
            role("worker", ranks * u64::from(WORKERS)),
            role("pin-memory", ranks),
        ],
        compute_threads: ranks,
        io_threads: ranks * u64::from(WORKERS),
    }
}

fn findings(parts_ns: &[u64], step_ns: u64) -> Vec<Finding> {
    let read_ns = parts_ns[StallCause::Read as usize];
    let rows = |rows: &[[&str; 2]]| rows.iter().map(|row| row.map(String::from)).collect();
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.into()).collect();
    let finding = |code: &str, title: &str, explains_ns: u64| Finding {
        code: code.into(),
        title: title.into(),
        explains_ns,
        severity: explains_ns as f64 / step_ns as f64,
        confidence: Confidence::High,
        ..Finding::default()
    };
    let mut all = vec![
        Finding {
            evidence: rows(&[
                ["reads", "1,204,116, p50 4.12 ms, p99 61.0 ms"],
                ["bytes a read", "131 kB"],
                ["in flight", "31.4 on average"],
            ]),
            objects: texts(&["/data/train", HOSTILE]),
            sql: "select path, count(*) as reads, sum(duration_ns) / 1e9 as seconds\nfrom events \
                  join files using (file)\nwhere name = 'pread' group by path order by seconds desc \
                  limit 20"
                .into(),
            actions: texts(&[
                "read larger pieces: 90 % of the rate needs 1.2 MB a read",
                "pack samples into shards (TFRecord, tar, indexed binary)",
            ]),
            threshold: "reads are more than a tenth of the stall and p50 is above 1 ms".into(),
            ..finding("slow-read", "reads of /data/train are slow: 4.12 ms for 131 kB", read_ns)
        },
        Finding {
            evidence: rows(&[
                ["slowest in", "171 of 250 steps"],
                ["reads on node04", "p50 8.40 ms, 4.01 ms elsewhere"],
            ]),
            objects: texts(&["rank 5", "node04"]),
            sql: "select rank, avg(duration_ns) from steps group by rank order by 2 desc".into(),
            actions: texts(&["look at node04's mount and network, or take it out"]),
            threshold: "a rank is the slowest in more than half of the steps".into(),
            ..finding(
                "straggler",
                "rank 5 on node04 holds the others up",
                parts_ns[StallCause::Peer as usize],
            )
        },
        Finding {
            confidence: Confidence::Medium,
            evidence: rows(&[["workers busy", "96.1 %"], ["service", "365 ms a batch"]]),
            actions: texts(&["raise the number of workers from 4 to 6"]),
            sql: "select worker, sum(service_ns) from steps group by worker".into(),
            threshold: "workers are busy for more than 90 % of their lives".into(),
            ..finding("few-workers", "4 workers a rank are too few", parts_ns[StallCause::Workers as usize])
        },
        Finding {
            evidence: rows(&[["first batch", "1.34 s in each of 3 epochs"]]),
            actions: texts(&["keep workers between epochs (persistent_workers=True)"]),
            sql: "select epoch, first_batch_ns from epochs".into(),
            threshold: "start-up is more than 2 % of step time".into(),
            ..finding(
                "start-up",
                "workers are started anew in every epoch",
                parts_ns[StallCause::StartUp as usize],
            )
        },
        Finding {
            confidence: Confidence::Low,
            evidence: rows(&[["ENOENT", "212"]]),
            objects: texts(&["/data/train/.index"]),
            actions: texts(&["write the index once, or do not ask for it"]),
            sql: "select errno, count(*) from events where errno > 0 group by errno".into(),
            threshold: "more than 100 calls ended in an error".into(),
            ..finding("errors", "212 calls ended in an error", 31 * MS)
        },
    ];
    all.sort_by_key(|finding| std::cmp::Reverse(finding.explains_ns));
    all
}

fn what_if(observed_step_ns: u64) -> WhatIf {
    let case = |change: &str, permille: u64, stall_share: f64| Prediction {
        change: change.into(),
        step_ns: observed_step_ns * permille / 1_000,
        step_interval_ns: [
            observed_step_ns * (permille - 30) / 1_000,
            observed_step_ns * (permille + 25) / 1_000,
        ],
        stall_share,
    };
    WhatIf {
        refused: None,
        workers: WORKERS,
        outstanding: 8,
        observed_step_ns,
        modelled_step_ns: observed_step_ns * 983 / 1_000,
        saved_by_workers_ns: 0,
        saved_by_prefetch_ns: 0,
        cases: vec![
            case("workers 6", 861, 0.201),
            case("workers 8", 744, 0.094),
            case("prefetch 4", 972, 0.313),
            case("storage 2x", 712, 0.061),
            case("packed files", 803, 0.150),
        ],
    }
}

fn layers(run_ns: u64) -> Vec<LayerTime> {
    let layer = |layer, events, bytes, percent: u64| LayerTime {
        layer,
        events,
        bytes,
        mean_ns: run_ns * percent / 100,
        least_ns: run_ns * (percent - 2) / 100,
        most_ns: run_ns * (percent + 4) / 100,
        self_ns: run_ns * percent * 4 / 100,
        summed_ns: run_ns * percent * 5 / 100,
        exposed_mean_ns: run_ns * percent / 250,
    };
    vec![
        layer(StackLayer::Fetch, 2_000, 0, 36),
        layer(StackLayer::Compute, 2_000, 0, 58),
        layer(StackLayer::Communication, 2_000, 0, 9),
        layer(StackLayer::Checkpoint, 16, 12_884_901_888, 4),
        layer(StackLayer::Batch, 2_000, 0, 93),
        layer(StackLayer::Sample, 14_000, 2_052_408_792, 90),
        layer(StackLayer::Decode, 14_000, 0, 31),
        layer(StackLayer::Storage, 10_378_711, 205_240_879_200, 71),
    ]
}

fn overlaps(run_ns: u64) -> Vec<Overlap> {
    let overlap = |what: &str, percent: u64| Overlap {
        what: what.into(),
        total_ns: run_ns * percent / 100,
        overlapped_ns: run_ns * percent * 6 / 1_000,
        exposed_ns: run_ns * percent / 100 - run_ns * percent * 6 / 1_000,
        compute_ns: run_ns * 58 / 100,
        compute_alone_ns: run_ns * 58 / 100 - run_ns * percent * 6 / 1_000,
    };
    vec![overlap("io", 71), overlap("app-io", 90), overlap("loader", 93), overlap("checkpoint", 4)]
}

fn rank(own: &[Step]) -> Rank {
    let number = own[0].rank;
    let sum = |value: fn(&Step) -> u64| own.iter().map(value).sum::<u64>();
    Rank {
        rank: number,
        title: format!("node{:02} process {} main", number / 4 + 3, 2_400 + number),
        host: format!("node{:02}", number / 4 + 3),
        workers: WORKERS,
        steps: own.len() as u64,
        step_ns: sum(|step| step.duration_ns),
        stall_ns: sum(|step| step.stall_ns),
        parts_ns: parts_of(own.iter()),
        compute_ns: sum(|step| step.compute_ns),
        communication_ns: sum(|step| step.communication_ns),
        io_ns: sum(|step| step.service_ns) / 2,
        bytes_read: own.len() as u64 * 1_026_204_396,
        bytes_written: 1_610_612_736,
        calls: own.len() as u64 * 5_189,
        samples: own.len() as u64 * 7,
        workers_busy_share: 0.961,
        unseen_ns: 310 * MS,
    }
}

fn spread(typical: u64) -> Distribution {
    Distribution {
        min: typical / 8,
        p5: typical / 4,
        p25: typical * 3 / 5,
        p50: typical,
        mean: typical as f64 * 1.21,
        p75: typical * 3 / 2,
        p95: typical * 4,
        p99: typical * 15,
        max: typical * 61,
    }
}

fn functions() -> Vec<Function> {
    let function = |layer, category: &str, name: &str, count: u64, typical_ns: u64| Function {
        layer,
        category: category.into(),
        name: name.into(),
        count,
        errors: 0,
        total_ns: count * typical_ns * 121 / 100,
        self_ns: count * typical_ns,
        bytes: 0,
        bytes_per_second: None,
        latency: spread(typical_ns),
        size: None,
    };
    let moved = |function: Function, bytes: u64| Function {
        bytes,
        bytes_per_second: Some(bytes as f64 / (function.total_ns as f64 / 1e9)),
        size: Some(spread(bytes / function.count)),
        ..function
    };
    vec![
        moved(
            function(StackLayer::Storage, "POSIX", "pread", 1_204_116, 4_120_000),
            157_739_196_000,
        ),
        function(StackLayer::Compute, "compute", "forward", 2_000, 112 * MS),
        function(StackLayer::Batch, "dataloader", "batch", 2_000, 365 * MS),
        Function {
            errors: 212,
            ..function(StackLayer::Storage, "POSIX", "openat", 14_212, 1_820_000)
        },
        function(StackLayer::Storage, "POSIX", "fstat", 28_424, 210_000),
        function(StackLayer::Decode, "reader", HOSTILE, 14_000, 9_310_000),
        function(StackLayer::Storage, "POSIX", "close", 14_000, 41_000),
        moved(function(StackLayer::Storage, "POSIX", "pwrite", 12_288, 2_210_000), 12_884_901_888),
    ]
}

fn data_set() -> DataVolume {
    let bell = |middle: usize, height: u64| Histogram {
        counts: (0..36usize).map(|power| height >> (2 * power.abs_diff(middle)).min(40)).collect(),
    };
    let cells = (9..22u64).flat_map(|size| {
        (14..30u64).map(move |ns| {
            [size, ns, 900_000 >> (3 * size.abs_diff(17) + 2 * ns.abs_diff(22)).min(40)]
        })
    });
    DataVolume {
        opens: 0,
        metadata_calls: 0,
        files: FILES,
        files_read: FILES - 16,
        files_written: 16,
        calls: 10_378_711,
        errors: 212,
        bytes_read: 157_739_196_000,
        bytes_written: 12_884_901_888,
        extent_read: 52_579_732_000,
        reread_factor: Some(3.0),
        opens_per_file: Some(11.7),
        errors_by_number: vec![ErrorCount { errno: 2, name: "ENOENT".into(), count: 212 }],
        read_sizes: bell(17, 1_000_000),
        write_sizes: bell(20, 12_000),
        read_latencies: bell(22, 1_000_000),
        read_size_by_latency: cells.filter(|cell| cell[2] > 0).collect(),
    }
}

fn access() -> AccessPatterns {
    AccessPatterns {
        reads_consecutive: 901_000,
        reads_forward: 120_400,
        reads_backward: 30_211,
        reads_first: 14_000,
        reads_unplaced: 0,
        writes_consecutive: 12_272,
        writes_first: 16,
        maps: 41,
        bytes_mapped: 88_080_384,
        ..AccessPatterns::default()
    }
}

fn files(chance: &mut Chance) -> Vec<FileUse> {
    let mut all: Vec<FileUse> = (0..FILES)
        .map(|number| {
            let reads = 700 + chance.below(600);
            FileUse {
                path: match number {
                    3 => HOSTILE.into(),
                    _ => format!("/data/train/part_{:03}/img_{number:05}.npz", number / 100),
                },
                files: 1,
                opens: 11 + chance.below(3),
                reads,
                others: 24,
                bytes_read: reads * 131_072,
                extent_read: reads * 131_072 / 3,
                reread_factor: Some(3.0),
                ns: reads * (3 * MS + chance.below(4 * MS)),
                metadata_ns: 20 * MS + chance.below(9 * MS),
                ranks: 1 + chance.below(8),
                ..FileUse::default()
            }
        })
        .collect();
    all.sort_by_key(|file| std::cmp::Reverse(file.ns));
    all
}

fn folders() -> Vec<FileUse> {
    let folder = |path: &str, files: u64, reads: u64, bytes_read, bytes_written| FileUse {
        path: path.into(),
        files,
        opens: files * 12,
        reads,
        writes: bytes_written / 1_048_576,
        others: files * 24,
        bytes_read,
        bytes_written,
        extent_read: bytes_read / 3,
        reread_factor: (bytes_read > 0).then_some(3.0),
        ns: reads * 4 * MS + bytes_written / 2,
        metadata_ns: files * 25 * MS,
        ranks: 8,
        ..FileUse::default()
    };
    vec![
        folder("/data/train", FILES - 16, 1_204_116, 157_739_196_000, 0),
        folder("/scratch/checkpoints", 16, 0, 0, 12_884_901_888),
    ]
}

fn timeline(scale: Scale, steps: &[Step], run_ns: u64, chance: &mut Chance) -> Timeline {
    let buckets = scale.buckets;
    let bucket_ns = run_ns.div_ceil(buckets as u64);
    let ranks = scale.ranks as usize;
    let rows = || vec![vec![0u64; buckets]; ranks];
    let (mut bytes, mut stall, mut io, mut compute) = (rows(), rows(), rows(), vec![0; buckets]);
    for step in steps {
        let (rank, place) = (step.rank as usize, (step.start_ns / bucket_ns) as usize);
        spill(&mut stall[rank], place, bucket_ns, step.stall_ns);
        spill(&mut io[rank], place, bucket_ns * 4, step.service_ns * 5 / 2);
        spill(&mut bytes[rank], place, bucket_ns * 8, 1_026_204_396 - chance.below(400_000_000));
        let from = ((step.start_ns + step.fetch_ns) / bucket_ns) as usize;
        spill(
            &mut compute,
            from.min(buckets - 1),
            bucket_ns * u64::from(scale.ranks),
            step.compute_ns,
        );
    }
    let sum = |rows: &[Vec<u64>]| -> Vec<u64> {
        (0..buckets).map(|place| rows.iter().map(|row| row[place]).sum()).collect()
    };
    let read_p50_ns: Vec<u64> = (0..buckets).map(|_| 3 * MS + chance.below(2 * MS)).collect();
    Timeline {
        bucket_ns,
        bytes_read: sum(&bytes),
        bytes_written: (0..buckets)
            .map(|place| u64::from(place % 150 > 140) * 80_000_000)
            .collect(),
        calls: sum(&bytes).iter().map(|bytes| bytes / 131_072).collect(),
        io_ns: sum(&io),
        read_p99_ns: read_p50_ns.iter().map(|p50| p50 * (8 + chance.below(9))).collect(),
        read_p50_ns,
        compute_ns: compute,
        stall_ns: sum(&stall),
        ready_batches: (0..buckets)
            .map(|place| (place % 80) as f64 / 80.0 * f64::from(scale.ranks))
            .collect(),
        counters: ["sys cpu user percent", "sys memory cached", "loader queue"]
            .into_iter()
            .map(|name| CounterSeries {
                name: name.into(),
                values: (0..buckets)
                    .map(|place| (place % 37 != 5).then(|| 40.0 + chance.below(50) as f64))
                    .collect(),
            })
            .collect(),
        strips: (0..scale.ranks.min(8)).flat_map(|rank| strips(rank, buckets, chance)).collect(),
        rank_bytes_read: bytes,
        rank_stall_ns: stall,
        rank_io_ns: io,
    }
}

/// Adds time from a bucket on, no more than fits into each.
fn spill(row: &mut [u64], from: usize, room_ns: u64, mut ns: u64) {
    for bucket in row.iter_mut().skip(from) {
        let part = ns.min(room_ns.saturating_sub(*bucket));
        *bucket += part;
        ns -= part;
        if ns == 0 {
            return;
        }
    }
}

fn strips(rank: u32, buckets: usize, chance: &mut Chance) -> Vec<Strip> {
    let mut strip = |title: String, role: &str, layers: &[StackLayer]| Strip {
        title,
        rank,
        role: role.into(),
        layers: (0..buckets.div_ceil(4))
            .flat_map(|_| [layers[chance.below(layers.len() as u64) as usize] as u8; 4])
            .take(buckets)
            .collect(),
        busy_percent: (0..buckets).map(|_| 55 + chance.below(45) as u8).collect(),
    };
    let busy = [
        StackLayer::Storage,
        StackLayer::Storage,
        StackLayer::Storage,
        StackLayer::Decode,
        StackLayer::Sample,
    ];
    let mut all = vec![strip(
        format!("rank {rank}"),
        "rank",
        &[StackLayer::Compute, StackLayer::Compute, StackLayer::Fetch, StackLayer::Communication],
    )];
    all.extend((0..2).map(|worker| strip(format!("rank {rank} worker {worker}"), "worker", &busy)));
    all
}

fn epoch(number: u32, steps: &[Step]) -> Epoch {
    let own: Vec<&Step> = steps.iter().filter(|step| step.epoch == number).collect();
    let sum = |value: fn(&Step) -> u64| own.iter().map(|step| value(step)).sum::<u64>();
    let start_ns = own.iter().map(|step| step.start_ns).min().unwrap_or(0);
    let end_ns = own.iter().map(|step| step.start_ns + step.duration_ns).max().unwrap_or(0);
    let (step_ns, compute_ns) = (sum(|step| step.duration_ns), sum(|step| step.compute_ns));
    Epoch {
        phase: Phase::Train,
        epoch: number,
        start_ns,
        duration_ns: end_ns - start_ns,
        steps: own.len() as u64,
        step_ns,
        stall_ns: sum(|step| step.stall_ns),
        parts_ns: parts_of(own.iter().copied()),
        compute_ns,
        first_batch_ns: 1_340 * MS,
        au_percent: Some(100.0 * compute_ns as f64 / step_ns as f64),
        excluded_steps: [1, 0],
        samples_per_second: Some(own.len() as f64 * 7.0 / ((end_ns - start_ns) as f64 / 1e9)),
        bytes_read: own.len() as u64 * 1_026_204_396,
        samples: own.len() as u64 * 7,
    }
}

fn stragglers() -> Stragglers {
    let one = |rank: u32, slowest_steps: u64, lost_ns, because: &str| Straggler {
        rank,
        host: format!("node{:02}", rank / 4 + 3),
        slowest_steps,
        slowest_share: slowest_steps as f64 / 250.0,
        lost_ns,
        because: because.into(),
        charged_ns: 0,
        charged_for: String::new(),
    };
    Stragglers {
        lost_ns: 9_512 * MS,
        median_ns: 41 * S,
        ranks: vec![
            one(5, 171, 7_803 * MS, "read"),
            one(2, 22, 611 * MS, "decode"),
            one(0, 14, 402 * MS, "compute"),
        ],
    }
}

fn checkpoints(run_ns: u64, ranks: u32) -> Checkpoints {
    let save = |turn: u64| CheckpointTransfer {
        direction: "save".into(),
        start_ns: run_ns * turn / 5,
        duration_ns: 1_790 * MS,
        stall_ns: 1_600 * MS * u64::from(ranks),
        bytes: 3_221_225_472,
        sync_ns: 410 * MS * u64::from(ranks),
        slowest_rank: 5,
        slowest_ns: 1_788 * MS,
        ranks: u64::from(ranks),
    };
    Checkpoints {
        transfers: (1..=4).map(save).collect(),
        stall_ns: 4 * 1_600 * MS * u64::from(ranks),
        stall_share: 0.131,
        interval_ns: Some(run_ns / 5),
    }
}

//! From what all shards counted to what is shown: layers, overlaps, functions, files, timelines.

use std::collections::BTreeMap;

use crate::analysis::{
    AccessPatterns, CounterSeries, DataVolume, ErrorCount, FileUse, Function, Histogram, LayerTime,
    Overlap, Timeline,
};
use crate::errno;
use crate::layer::StackLayer;
use crate::partial::{Covered, FilePart, FunctionPart, PartialAnalysis, RankPart};
use crate::saturating::{Total, grow};
use crate::sweep::Group;
use crate::tally::{COUNTER_UNIT, FileTally};

/// The most files, and folders, that are listed.
const FILES: usize = 1000;

/// The mean over ranks, in whole nanoseconds.
fn mean(values: impl Iterator<Item = u64>) -> u64 {
    let (count, sum) = values.fold((0_u64, 0_u128), |(n, sum), v| (n + 1, sum + u128::from(v)));
    u64::try_from(sum.checked_div(u128::from(count)).unwrap_or(0)).unwrap_or(u64::MAX)
}

/// `a / b` if there is a `b`.
pub(crate) fn ratio(a: u64, b: u64) -> Option<f64> {
    (b > 0).then(|| a as f64 / b as f64)
}

/// Bytes a second.
pub(crate) fn per_second(amount: u64, ns: u64) -> Option<f64> {
    (amount > 0 && ns > 0).then(|| amount as f64 / (ns as f64 / 1e9))
}

fn is_event(part: &FunctionPart) -> bool {
    part.layer != StackLayer::Meta && part.counts.count > 0
}

fn is_class(part: &FunctionPart, class: &str) -> bool {
    part.class.as_deref() == Some(class)
}

impl PartialAnalysis {
    /// Time of every layer that has any event.
    pub(crate) fn layer_times(&self) -> Vec<LayerTime> {
        let layers = StackLayer::ALL.into_iter().filter(|layer| *layer != StackLayer::Meta);
        layers.filter_map(|layer| self.layer_time(layer)).collect()
    }

    fn layer_time(&self, layer: StackLayer) -> Option<LayerTime> {
        let parts = self.functions.iter().filter(|part| part.layer == layer && is_event(part));
        let (mut events, mut bytes, mut self_ns, mut summed_ns) = (0, 0, 0, 0);
        for part in parts {
            grow(&mut events, part.counts.count);
            grow(&mut bytes, if is_class(part, "map") { 0 } else { part.counts.bytes });
            grow(&mut self_ns, part.self_ns);
            grow(&mut summed_ns, part.counts.total_ns);
        }
        if events == 0 {
            return None;
        }
        let of = |unit: &RankPart| unit.layers[layer as usize];
        let covered = || self.units.values().map(of);
        Some(LayerTime {
            layer,
            events,
            bytes,
            mean_ns: mean(covered().map(|covered| covered.ns)),
            least_ns: covered().map(|covered| covered.ns).min().unwrap_or(0),
            most_ns: covered().map(|covered| covered.ns).max().unwrap_or(0),
            self_ns,
            summed_ns,
            exposed_mean_ns: mean(covered().map(|covered| covered.ns - covered.overlap_ns)),
        })
    }

    /// How input and output, samples, the loader and checkpoints overlap with computation. Empty if
    /// no rank computes.
    pub(crate) fn overlaps(&self) -> Vec<Overlap> {
        let compute_ns = mean(self.units.values().map(|unit| unit.compute_ns));
        if compute_ns == 0 {
            return Vec::new();
        }
        type Pick = fn(&RankPart) -> Covered;
        let kinds: [(&str, Pick); 4] = [
            ("io", |unit| unit.groups[Group::Io as usize]),
            ("app-io", |unit| unit.layers[StackLayer::Sample as usize]),
            ("loader", |unit| unit.groups[Group::Loader as usize]),
            ("checkpoint", |unit| unit.layers[StackLayer::Checkpoint as usize]),
        ];
        let of = |(what, pick): (&str, Pick)| {
            let covered = || self.units.values().map(pick);
            let (total_ns, overlapped_ns) =
                (mean(covered().map(|c| c.ns)), mean(covered().map(|c| c.overlap_ns)));
            (total_ns > 0).then(|| Overlap {
                what: what.to_owned(),
                total_ns,
                overlapped_ns,
                exposed_ns: total_ns - overlapped_ns,
                compute_ns,
                compute_alone_ns: compute_ns.saturating_sub(overlapped_ns),
            })
        };
        kinds.into_iter().filter_map(of).collect()
    }

    /// Calls and spans by name, the longest first.
    pub(crate) fn function_table(&self) -> Vec<Function> {
        // Calls and spans of one name are one row: a summary is calls too.
        let mut rows: BTreeMap<(&str, &str), FunctionPart> = BTreeMap::new();
        for part in self.functions.iter().filter(|part| is_event(part)) {
            rows.entry((&part.category, &part.name))
                .and_modify(|known| {
                    known.counts.merge(&part.counts);
                    grow(&mut known.self_ns, part.self_ns);
                })
                .or_insert_with(|| part.clone());
        }
        let row = |part: FunctionPart| Function {
            layer: part.layer,
            count: part.counts.count,
            errors: part.counts.errors,
            total_ns: part.counts.total_ns,
            self_ns: part.self_ns,
            bytes: part.counts.bytes,
            bytes_per_second: per_second(part.counts.bytes, part.counts.total_ns),
            latency: part.counts.latency.distribution(),
            size: (part.counts.size.count() > 0).then(|| part.counts.size.distribution()),
            category: part.category,
            name: part.name,
        };
        let mut rows: Vec<Function> = rows.into_values().map(row).collect();
        rows.sort_by(|a, b| {
            b.total_ns
                .cmp(&a.total_ns)
                .then_with(|| (&a.category, &a.name).cmp(&(&b.category, &b.name)))
        });
        rows
    }

    pub(crate) fn data_set(&self) -> DataVolume {
        let all = || self.files.values().map(|file| &file.counts);
        let sum = |of: fn(&FileTally) -> u64| all().map(of).total();
        let io = || self.functions.iter().filter(|part| part.layer.is_io());
        let moved = |class: &str| {
            io().filter(|part| is_class(part, class)).map(|part| part.counts.bytes).total()
        };
        let calls = |classes: &[&str]| {
            let some = io().filter(|part| classes.iter().any(|class| is_class(part, class)));
            some.map(|part| part.counts.count).total()
        };
        let files_read = all().filter(|file| file.reads > 0).count() as u64;
        let extent_read = sum(|file| file.extent_read);
        let placed: u64 = all().filter(|file| file.extent_read > 0).map(|f| f.bytes_read).total();
        DataVolume {
            files: self.files.len() as u64,
            files_read,
            files_written: all().filter(|file| file.writes > 0).count() as u64,
            calls: io().map(|part| part.counts.count).total(),
            errors: io().map(|part| part.counts.errors).total(),
            opens: calls(&["open"]),
            metadata_calls: calls(&["open", "close", "stat", "directory", "name"]),
            bytes_read: moved("read"),
            bytes_written: moved("write"),
            extent_read,
            reread_factor: ratio(placed, extent_read),
            opens_per_file: ratio(
                all().filter(|file| file.reads > 0).map(|file| file.opens).total(),
                files_read,
            ),
            errors_by_number: self.error_counts(),
            read_sizes: histogram(&self.read_sizes),
            write_sizes: histogram(&self.write_sizes),
            read_latencies: histogram(&self.read_latencies),
            read_size_by_latency: self.size_by_latency(),
        }
    }

    fn size_by_latency(&self) -> Vec<[u64; 3]> {
        let cells = self.read_size_by_latency.iter().enumerate().filter(|(_, count)| **count > 0);
        cells.map(|(at, count)| [at as u64 / 64, at as u64 % 64, *count]).collect()
    }

    fn error_counts(&self) -> Vec<ErrorCount> {
        let counts = self.errors.iter().enumerate().filter(|(_, count)| **count > 0);
        let row = |(errno, count): (usize, &u64)| ErrorCount {
            errno: errno as u16,
            name: errno::name(errno as u16),
            count: *count,
        };
        let mut rows: Vec<ErrorCount> = counts.map(row).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.count), row.errno));
        rows
    }

    /// Where in files calls read and wrote.
    pub(crate) fn access(&self) -> AccessPatterns {
        let (reads, writes) = (&self.reads, &self.writes);
        let maps = || {
            let maps = self.functions.iter().filter(|part| is_class(part, "map"));
            maps.filter(|part| part.name.starts_with("mmap"))
        };
        AccessPatterns {
            reads_consecutive: reads.consecutive,
            reads_forward: reads.forward,
            reads_backward: reads.backward,
            reads_first: reads.first,
            reads_unplaced: reads.unplaced,
            writes_consecutive: writes.consecutive,
            writes_forward: writes.forward,
            writes_backward: writes.backward,
            writes_first: writes.first,
            writes_unplaced: writes.unplaced,
            maps: maps().map(|part| part.counts.count).total(),
            bytes_mapped: maps().map(|part| part.counts.bytes).total(),
        }
    }

    /// The files that took most time.
    pub(crate) fn file_table(&self) -> Vec<FileUse> {
        let rows = self.files.iter().map(|(path, part)| file_use(path, 1, part));
        longest(rows.collect())
    }

    /// The folders that took most time.
    pub(crate) fn folder_table(&self) -> Vec<FileUse> {
        let mut folders: BTreeMap<&str, (u64, FilePart)> = BTreeMap::new();
        for (path, part) in &self.files {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let folder = if folder.is_empty() && path.starts_with('/') { "/" } else { folder };
            folders
                .entry(folder)
                .and_modify(|(files, known)| {
                    *files += 1;
                    let extent = known.counts.extent_read.saturating_add(part.counts.extent_read);
                    known.counts.merge(&part.counts);
                    // Those of different files lie beside each other.
                    known.counts.extent_read = extent;
                    known.ranks.extend(&part.ranks);
                    known.ranks.sort_unstable();
                    known.ranks.dedup();
                })
                .or_insert_with(|| (1, part.clone()));
        }
        let rows = folders.into_iter().map(|(path, (files, part))| file_use(path, files, &part));
        longest(rows.collect())
    }

    /// What happened when.
    pub(crate) fn timeline(&self) -> Timeline {
        let moments = |of: fn(&crate::tally::Moment) -> u64| self.moments.iter().map(of).collect();
        let units = |of: fn(&RankPart) -> &Vec<u64>| {
            self.units.values().map(|unit| of(unit).clone()).collect::<Vec<_>>()
        };
        let mut compute_ns = vec![0; self.buckets];
        for unit in self.units.values() {
            for (sum, ns) in compute_ns.iter_mut().zip(&unit.compute_ns_at) {
                grow(sum, *ns);
            }
        }
        Timeline {
            bucket_ns: self.bucket_ns,
            bytes_read: moments(|moment| moment.bytes_read),
            bytes_written: moments(|moment| moment.bytes_written),
            calls: moments(|moment| moment.calls),
            io_ns: moments(|moment| moment.io_ns),
            read_p50_ns: moments(|moment| moment.read_ns(500)),
            read_p99_ns: moments(|moment| moment.read_ns(990)),
            compute_ns,
            stall_ns: Vec::new(),
            ready_batches: Vec::new(),
            rank_bytes_read: units(|unit| &unit.counts.read_at),
            rank_stall_ns: Vec::new(),
            rank_io_ns: units(|unit| &unit.counts.io_ns_at),
            counters: self.counter_series(),
            strips: self.strips.values().cloned().collect(),
        }
    }

    fn counter_series(&self) -> Vec<CounterSeries> {
        let series = |(name, tally): (&String, &crate::tally::CounterTally)| {
            let value = |bucket: usize| {
                let (count, sum) = tally.buckets.get(&(bucket as u32))?;
                Some(*sum as f64 / COUNTER_UNIT / *count as f64)
            };
            CounterSeries { name: name.clone(), values: (0..self.buckets).map(value).collect() }
        };
        self.counters.iter().map(series).collect()
    }
}

fn histogram(counts: &[u64]) -> Histogram {
    let used = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    Histogram { counts: counts[..used].to_vec() }
}

fn file_use(path: &str, files: u64, part: &FilePart) -> FileUse {
    let counts = &part.counts;
    FileUse {
        path: path.to_owned(),
        files,
        opens: counts.opens,
        reads: counts.reads,
        writes: counts.writes,
        others: counts.others,
        bytes_read: counts.bytes_read,
        bytes_written: counts.bytes_written,
        extent_read: counts.extent_read,
        reread_factor: ratio(counts.bytes_read, counts.extent_read),
        ns: counts.ns,
        metadata_ns: counts.metadata_ns,
        ranks: part.ranks.len() as u64,
        errors: counts.errors,
    }
}

fn longest(mut rows: Vec<FileUse>) -> Vec<FileUse> {
    rows.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.path.cmp(&b.path)));
    rows.truncate(FILES);
    rows
}

//! Facts about the machine, from `/proc`, as DLIO puts them into its results.

use std::fs;

use serde::{Deserialize, Serialize};

/// The machine that a run was made on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Logical processors.
    pub cpus: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// `/proc/cpuinfo` as a map; of several processors, the last one wins.
    pub cpuinfo: Vec<(String, String)>,
    /// `/proc/meminfo` as a map.
    pub meminfo: Vec<(String, String)>,
}

impl Host {
    /// Looks at this machine.
    pub(crate) fn look() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let (cpuinfo, meminfo) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
        let meminfo = parse(&meminfo);
        Self {
            name: feedline_recorder::host(),
            cpus: cpuinfo.lines().filter(|line| line.starts_with("processor")).count() as u32,
            memory_bytes: memory_bytes(&meminfo),
            cpuinfo: parse(&cpuinfo),
            meminfo,
        }
    }

    /// `/proc/meminfo` of this moment.
    pub(crate) fn meminfo_now() -> Vec<(String, String)> {
        parse(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
    }

    /// Bytes that programs can still have, if the system tells.
    pub(crate) fn available_bytes() -> Option<u64> {
        let facts = Self::meminfo_now();
        let (_, text) = facts.iter().find(|(name, _)| name == "MemAvailable")?;
        let kib: u64 = text.split_whitespace().next()?.parse().ok()?;
        Some(kib * 1024)
    }

    /// Memory in GiB, which DLIO calls GB.
    pub fn memory_gib(&self) -> f64 {
        self.memory_bytes as f64 / f64::from(1 << 30)
    }
}

/// Processors that this process may use.
pub(crate) fn usable_cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

fn memory_bytes(meminfo: &[(String, String)]) -> u64 {
    let total = meminfo.iter().find(|(key, _)| key == "MemTotal");
    let kib = total.and_then(|(_, value)| value.split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Lines with exactly one colon, later ones replacing earlier; `processor` is left out.
fn parse(text: &str) -> Vec<(String, String)> {
    let mut map: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim(), value.trim());
        if value.contains(':') || key == "processor" {
            continue;
        }
        match map.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => value.clone_into(old),
            None => map.push((key.to_owned(), value.to_owned())),
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_become_maps() {
        let text =
            "processor\t: 0\nmodel name\t: A\nbugs\t: a:b\nprocessor\t: 1\nmodel name\t: B\n";
        assert_eq!(parse(text), [("model name".to_owned(), "B".to_owned())]);
        let meminfo = parse("MemTotal:       16384 kB\nMemFree:   5 kB\n");
        assert_eq!(memory_bytes(&meminfo), 16 << 20);
    }
}

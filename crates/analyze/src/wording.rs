//! Numbers in sentences.

/// Seconds with as many digits as are worth reading.
pub(crate) fn seconds(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    match ns {
        0 => "0 s".to_owned(),
        1..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ if seconds < 100.0 => format!("{seconds:.2} s"),
        _ => format!("{seconds:.0} s"),
    }
}

/// Bytes in powers of 1024.
pub(crate) fn bytes(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{value:.0} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// Bytes a second, in powers of 1000.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    let units = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
    let mut value = bytes_per_second;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}

/// A share in percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let times = [0, 999, 1_500, 2_000_000, 12_345_678_900, 123_456_000_000].map(seconds);
        assert_eq!(times, ["0 s", "999 ns", "1.5 us", "2.0 ms", "12.35 s", "123 s"]);
        assert_eq!([512.0, 1536.0].map(bytes), ["512 B", "1.5 KiB"]);
        assert_eq!([12.0, 2.5e9].map(rate), ["12.0 B/s", "2.5 GB/s"]);
        assert_eq!(percent(0.1234), "12.3 %");
    }
}

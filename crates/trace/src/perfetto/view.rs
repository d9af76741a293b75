//! Which part of a trace is shown.

use std::str::FromStr;

/// What is shown of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Slices at most, counters not among them.
    pub max_events: u64,
    /// Seconds from the beginning of the trace.
    pub window: Window,
    /// Calls and spans that are shorter are left out; counters count them.
    pub min_duration_ns: u64,
    /// Only processes, or threads, of these ranks.
    pub ranks: Option<Ranks>,
}

impl Default for View {
    fn default() -> Self {
        Self { max_events: 2_000_000, window: Window::default(), min_duration_ns: 0, ranks: None }
    }
}

/// A part of the time, `2.5..10`; both ends may be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Nanoseconds from the beginning of the trace.
    pub start_ns: Option<i64>,
    /// Nanoseconds from the beginning of the trace.
    pub end_ns: Option<i64>,
}

impl Window {
    /// Whether something that lasts from `start_ns` to `end_ns` is seen in it.
    pub(crate) fn shows(&self, origin_ns: i64, start_ns: i64, end_ns: i64) -> bool {
        let after =
            |at: i64| self.start_ns.is_none_or(|start| at >= origin_ns.saturating_add(start));
        let before = |at: i64| self.end_ns.is_none_or(|end| at < origin_ns.saturating_add(end));
        after(end_ns) && before(start_ns)
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            || format!("expected START..END in seconds, such as 2.5..10, found {text:?}");
        let (start, end) = text.split_once("..").ok_or_else(expected)?;
        let side = |side: &str| -> Result<Option<i64>, String> {
            if side.trim().is_empty() {
                return Ok(None);
            }
            let seconds: f64 = side.trim().parse().map_err(|_| expected())?;
            if !(0.0..=1e9).contains(&seconds) {
                return Err(expected());
            }
            #[expect(clippy::cast_possible_truncation, reason = "at most 1e18")]
            Ok(Some((seconds * 1e9).round() as i64))
        };
        let window = Self { start_ns: side(start)?, end_ns: side(end)? };
        match (window.start_ns, window.end_ns) {
            (None, None) => Err(expected()),
            (Some(start), Some(end)) if start >= end => {
                Err(format!("the end of {text:?} is not after its start"))
            }
            _ => Ok(window),
        }
    }
}

/// Some ranks, `0,2,8-15`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks(Vec<(u32, u32)>);

impl Ranks {
    pub(crate) fn contains(&self, rank: u32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&rank))
    }
}

impl FromStr for Ranks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected ranks such as 0,2,8-15, found {text:?}");
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u32>().map_err(|_| expected());
            let (first, last) = (number(first)?, number(last)?);
            if first <= last { Ok((first, last)) } else { Err(expected()) }
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_half_open_and_checked() {
        let window: Window = "2.5..10".parse().unwrap();
        assert_eq!((window.start_ns, window.end_ns), (Some(2_500_000_000), Some(10_000_000_000)));
        let window: Window = "..1".parse().unwrap();
        assert!(window.shows(100, 1_000_000_099, 1_000_000_100));
        assert!(!window.shows(100, 1_000_000_100, 1_000_000_101));
        for bad in ["", "..", "3", "5..5", "9..1", "-1..2", "a..b", "nan..1"] {
            assert!(bad.parse::<Window>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ranks_are_single_or_in_a_row() {
        let ranks: Ranks = "0,2,8-15".parse().unwrap();
        let found: Vec<_> = (0..20).filter(|rank| ranks.contains(*rank)).collect();
        assert_eq!(found, [0, 2, 8, 9, 10, 11, 12, 13, 14, 15]);
        for bad in ["", "a", "3-1", "1,,2", "-1"] {
            assert!(bad.parse::<Ranks>().is_err(), "{bad}");
        }
    }
}

//! What a trace holds, at the end of recording it.

use feedline_numbers::units;
use serde_json::{Value, json};

/// Numbers of a trace that was just made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceReport {
    /// Where it is.
    pub folder: String,
    /// How long the program ran.
    pub seconds: f64,
    /// Processes that recorded.
    pub processes: u64,
    /// Processes that still run.
    pub running: u64,
    /// Events.
    pub events: u64,
    /// Bytes of the trace.
    pub trace_bytes: u64,
    /// Events that were lost.
    pub dropped: u64,
    /// Calls that filters left out.
    pub filtered: u64,
    /// Calls that sampling left out.
    pub skipped: u64,
    /// Bytes that the recorded calls read.
    pub read_bytes: u64,
    /// Bytes that the recorded calls wrote.
    pub written_bytes: u64,
    /// CPU time of the tracer's own process.
    pub tracer_cpu_seconds: f64,
    /// CPU time of the program and those of its children that it waited for.
    pub program_cpu_seconds: f64,
    /// Programs that had trouble: name, whether it was traced, events lost, why.
    pub troubles: Vec<(String, bool, u64, String)>,
    /// What else is wrong.
    pub problems: Vec<String>,
}

/// More programs than that are counted, not named.
const NAMED: usize = 5;

impl TraceReport {
    /// The tracer's share of all CPU time, in percent.
    fn share(&self) -> Option<f64> {
        let all = self.tracer_cpu_seconds + self.program_cpu_seconds;
        (all > 0.0).then(|| 100.0 * self.tracer_cpu_seconds / all)
    }

    /// For people.
    pub fn screen(&self) -> String {
        let mut lines = vec![format!(
            "traced      {} of {} in {}: read {}, wrote {}; {} dropped",
            units::counted(self.events, "event"),
            if self.processes == 1 {
                "1 process".to_owned()
            } else {
                format!("{} processes", units::count(self.processes))
            },
            units::duration(self.seconds),
            units::bytes(self.read_bytes as f64),
            units::bytes(self.written_bytes as f64),
            units::count(self.dropped),
        )];
        let mut left_out = Vec::new();
        if self.filtered > 0 {
            left_out.push(format!("{} by filters", units::count(self.filtered)));
        }
        if self.skipped > 0 {
            left_out.push(format!("{} by sampling", units::count(self.skipped)));
        }
        if !left_out.is_empty() {
            lines.push(format!("left out    {}", left_out.join(", ")));
        }
        let share = self.share().map_or_else(String::new, |share| {
            format!(", {} % of all CPU time", units::number(share))
        });
        lines.push(format!(
            "tracer      {} of CPU time beside the program's {}{share}",
            units::duration(self.tracer_cpu_seconds),
            units::duration(self.program_cpu_seconds),
        ));
        self.push_troubles(&mut lines);
        if self.running > 0 {
            lines.push(format!(
                "running     {} still; what they do from now on is not in the trace",
                units::count(self.running)
            ));
        }
        lines.extend(self.problems.iter().map(|problem| format!("warning     {problem}")));
        let per_event = self.trace_bytes as f64 / self.events.max(1) as f64;
        lines.push(format!(
            "trace       {}, {}, {} bytes per event",
            self.folder,
            units::bytes(self.trace_bytes as f64),
            units::number(per_event),
        ));
        lines.join("\n") + "\n"
    }

    fn push_troubles(&self, lines: &mut Vec<String>) {
        for (program, is_traced, dropped, why) in self.troubles.iter().take(NAMED) {
            lines.push(if *is_traced {
                format!("dropped     {} of {program}: {why}", units::counted(*dropped, "event"))
            } else {
                format!("not traced  {program}: {why}")
            });
        }
        let rest = self.troubles.len().saturating_sub(NAMED);
        if rest > 0 {
            lines.push(format!("            and {} more", units::count(rest as u64)));
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "feedline_trace": 1,
            "folder": self.folder,
            "seconds": self.seconds,
            "processes": self.processes,
            "running": self.running,
            "events": self.events,
            "trace_bytes": self.trace_bytes,
            "dropped": self.dropped,
            "filtered": self.filtered,
            "skipped": self.skipped,
            "read_bytes": self.read_bytes,
            "written_bytes": self.written_bytes,
            "tracer_cpu_seconds": self.tracer_cpu_seconds,
            "program_cpu_seconds": self.program_cpu_seconds,
            "tracer_cpu_percent": self.share(),
            "troubles": self.troubles.iter().map(|(program, is_traced, dropped, why)| json!({
                "program": program, "traced": is_traced, "dropped": dropped, "why": why,
            })).collect::<Vec<_>>(),
            "problems": self.problems,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_says_what_was_lost_and_what_it_cost() {
        let report = TraceReport {
            folder: "/t".into(),
            seconds: 2.0,
            processes: 3,
            running: 1,
            events: 1_000,
            trace_bytes: 3_400,
            dropped: 7,
            filtered: 5,
            read_bytes: 4_096_000,
            tracer_cpu_seconds: 0.1,
            program_cpu_seconds: 1.9,
            troubles: vec![
                ("/bin/a".into(), true, 7, "no room for another segment".into()),
                ("/bin/b".into(), false, 0, "statically linked".into()),
            ],
            ..TraceReport::default()
        };
        let expected = "\
traced      1,000 events of 3 processes in 2.00 s: read 4.10 MB, wrote 0 B; 7 dropped
left out    5 by filters
tracer      100 ms of CPU time beside the program's 1.90 s, 5.00 % of all CPU time
dropped     7 events of /bin/a: no room for another segment
not traced  /bin/b: statically linked
running     1 still; what they do from now on is not in the trace
trace       /t, 3.40 kB, 3.40 bytes per event
";
        assert_eq!(report.screen(), expected);
        assert_eq!(report.json()["tracer_cpu_percent"], 5.0);
    }
}

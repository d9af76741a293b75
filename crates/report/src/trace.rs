//! What a trace holds, at the end of recording it.

use feedline_numbers::units;
use feedline_trace::ProcessProblem;
use feedline_tracer::TraceReport;

/// More programs than that are counted, not named.
const NAMED: usize = 5;

/// The report as `feedline trace` prints it.
pub fn screen(report: &TraceReport) -> String {
    let mut lines = vec![format!(
        "traced      {} of {} in {}: read {}, wrote {}; {} dropped",
        units::counted(report.events, "event"),
        if report.processes == 1 {
            "1 process".to_owned()
        } else {
            format!("{} processes", units::count(report.processes))
        },
        units::duration(report.seconds),
        units::bytes(report.read_bytes as f64),
        units::bytes(report.written_bytes as f64),
        units::count(report.dropped),
    )];
    let mut left_out = Vec::new();
    if report.filtered > 0 {
        left_out.push(format!("{} by filters", units::count(report.filtered)));
    }
    if report.skipped > 0 {
        left_out.push(format!("{} by sampling", units::count(report.skipped)));
    }
    if !left_out.is_empty() {
        lines.push(format!("left out    {}", left_out.join(", ")));
    }
    let share = report
        .tracer_cpu_percent
        .map_or_else(String::new, |share| format!(", {} % of all CPU time", units::number(share)));
    lines.push(format!(
        "tracer      {} of CPU time beside the program's {}{share}",
        units::duration(report.tracer_cpu_seconds),
        units::duration(report.program_cpu_seconds),
    ));
    push_problems(&mut lines, report);
    if report.running > 0 {
        lines.push(format!(
            "running     {} still; what they do from now on is not in the trace",
            units::count(report.running)
        ));
    }
    lines.extend(report.problems.iter().map(|problem| format!("warning     {problem}")));
    let per_event = report.trace_bytes as f64 / report.events.max(1) as f64;
    lines.push(format!(
        "trace       {}, {}, {} bytes per event",
        report.folder.display(),
        units::bytes(report.trace_bytes as f64),
        units::number(per_event),
    ));
    lines.join("\n") + "\n"
}

fn push_problems(lines: &mut Vec<String>, report: &TraceReport) {
    for ProcessProblem { program, is_traced, dropped, reason } in report.troubles.iter().take(NAMED)
    {
        lines.push(if *is_traced {
            format!("dropped     {} of {program}: {reason}", units::counted(*dropped, "event"))
        } else {
            format!("not traced  {program}: {reason}")
        });
    }
    let rest = report.troubles.len().saturating_sub(NAMED);
    if rest > 0 {
        lines.push(format!("            and {} more", units::count(rest as u64)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_says_what_was_lost_and_what_it_cost() {
        let problem = |program: &str, dropped: u64, reason: &str| ProcessProblem {
            program: program.to_owned(),
            is_traced: dropped > 0,
            dropped,
            reason: reason.to_owned(),
        };
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
            tracer_cpu_percent: Some(5.0),
            troubles: vec![
                problem("/bin/a", 7, "no room for another segment"),
                problem("/bin/b", 0, "statically linked"),
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
        assert_eq!(screen(&report), expected);
    }
}

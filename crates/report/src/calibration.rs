//! What `feedline calibrate` found, on one screen.

use feedline_bench::Calibration;
use feedline_numbers::units;

use crate::style::{Ink, Style};
use crate::wrap::{all_labeled, hanging, headline, joined};

/// What was measured and where it was put.
pub fn calibration(found: &Calibration, file: &str, style: Style) -> String {
    let columns = style.columns();
    let text = format!(
        "CALIBRATED: runs with the framework read model burn what Python takes on this machine ({})",
        found.machine.cpu
    );
    let mut lines = headline(&text, ("CALIBRATED", Ink::BoldGreen), style);
    lines.push(String::new());
    lines.push("CPU time per sample: Python's reader, Feedline's in its place".to_owned());
    for (format, figures) in &found.readers {
        let point = |point: &feedline_bench::SamplePoint| {
            format!(
                "{} {} / {}",
                units::bytes(point.bytes as f64),
                units::duration(point.cpu_ns / 1e9),
                units::duration(point.replay_cpu_ns / 1e9)
            )
        };
        let points: Vec<_> = figures.points.iter().map(point).collect();
        lines.extend(hanging(
            &format!("  {format:<20}"),
            &" ".repeat(22),
            &points.join("; "),
            columns,
        ));
    }
    lines.push(String::new());
    let mut rows = Vec::new();
    if let Some(loader) = &found.data_loader {
        let start = |(context, figures): (&String, &feedline_bench::StartFigures)| {
            let all = figures.worker_cpu_ns + figures.consumer_cpu_ns;
            format!("{context} {}", units::duration(all / 1e9))
        };
        let starts: Vec<_> = loader.start.iter().map(start).collect();
        rows.push(("start", starts.join(", ")));
    }
    if !found.left_out.is_empty() {
        let why: Vec<_> =
            found.left_out.iter().map(|(format, why)| format!("{format}: {why}")).collect();
        rows.push(("left out", why.join("; ")));
    }
    rows.push(("file", file.to_owned()));
    rows.push(("next", "feedline run, or feedline ceiling: both use it".to_owned()));
    lines.extend(all_labeled(&rows, columns));
    joined(&lines)
}

//! Which samples of a set an epoch reads, in words.

use feedline_bench::PhasePlan;
use feedline_numbers::units;

/// How many of how many, how many of those twice, and what is left out and why.
pub(crate) fn read(phase: &PhasePlan) -> String {
    let (tally, given) = (phase.tally(), phase.given());
    let mut text = match given - tally.left_out {
        distinct if distinct == given => format!("all {}", units::counted(given, "sample")),
        distinct => {
            format!("{} of {}", units::count(distinct), units::counted(given, "sample"))
        }
    };
    if tally.repeated > 0 {
        text += &format!(" and {} of them again", units::count(tally.repeated));
    }
    if let Some(why) = phase.why_left_out() {
        let verb = if tally.left_out == 1 { "is" } else { "are" };
        text += &format!(" ({} {verb} left out by {why})", units::count(tally.left_out));
    }
    text
}

/// The same in one line, if whole epochs do not read every sample once.
pub(crate) fn uneven(phase: &PhasePlan) -> Option<String> {
    let tally = PhasePlan { steps: phase.available_steps, ..phase.clone() }.tally();
    (tally.left_out > 0 || tally.repeated > 0).then(|| format!("each epoch reads {}", read(phase)))
}

#[cfg(test)]
mod tests {
    use feedline_bench::{Plan, Semantics};
    use feedline_workload::{DataLoader, Framework, SampleFormat, Workload};

    use super::*;

    /// 61 samples in batches of 4.
    fn phase(ranks: u32, drop_last: Option<bool>) -> PhasePlan {
        let mut workload = Workload { framework: Framework::Pytorch, ..Workload::default() };
        workload.dataset.format = SampleFormat::find("npz").unwrap();
        workload.dataset.num_files_train = 61;
        workload.reader.data_loader = DataLoader::Pytorch;
        workload.reader.batch_size = 4;
        workload.reader.drop_last = drop_last;
        workload.reader.sampler_drop_last = drop_last;
        Plan::new(&workload, ranks, Semantics::Feedline).unwrap().train.unwrap()
    }

    #[test]
    fn what_is_left_out_or_read_twice_is_said() {
        assert_eq!(read(&phase(1, None)), "all 61 samples");
        assert_eq!(uneven(&phase(1, None)), None);
        assert_eq!(read(&phase(4, None)), "all 61 samples and 3 of them again");
        assert_eq!(
            uneven(&phase(4, Some(true))).as_deref(),
            Some(
                "each epoch reads 48 of 61 samples (13 are left out by \
                 `reader.sampler_drop_last`, `reader.drop_last`)"
            )
        );
        assert_eq!(
            read(&phase(1, Some(true))),
            "60 of 61 samples (1 is left out by `reader.drop_last`)"
        );
    }
}

//! Notices when a parallel launcher started several copies of this process.

use crate::failure;

/// The variables in which a launcher says how many processes it started, and which of them this is.
struct Launcher {
    name: &'static str,
    size: &'static str,
    rank: &'static str,
}

const LAUNCHERS: &[Launcher] = &[
    launcher("mpirun (Open MPI)", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    launcher("an MPI launcher", "PMI_SIZE", "PMI_RANK"),
    launcher("an MPI launcher", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"),
    launcher("srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
    launcher("flux", "FLUX_JOB_SIZE", "FLUX_TASK_RANK"),
    launcher("jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"),
    launcher("torchrun", "WORLD_SIZE", "RANK"),
];

const fn launcher(name: &'static str, size: &'static str, rank: &'static str) -> Launcher {
    Launcher { name, size, rank }
}

/// Several processes that were started together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    launcher: &'static str,
    pub(crate) processes: u32,
    /// Which of them this is, if that is known; only the first one speaks of what goes wrong before
    /// they know of one another.
    pub(crate) rank: u32,
}

/// The processes that this one was started with, if it is not alone.
pub(crate) fn started() -> Option<Started> {
    find(|name| std::env::var(name).ok())
}

fn find(variable: impl Fn(&str) -> Option<String>) -> Option<Started> {
    let number = |name| variable(name).and_then(|text| text.trim().parse::<u32>().ok());
    let found = LAUNCHERS.iter().find_map(|launcher| {
        let processes = number(launcher.size)?;
        let rank = number(launcher.rank).unwrap_or(0);
        Some(Started { launcher: launcher.name, processes, rank })
    });
    // The innermost launcher decides: an mpirun of one process inside of an srun of two is one.
    found.filter(|started| started.processes > 1)
}

impl Started {
    /// Why they cannot work together in a build without MPI.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn refused(self) -> anyhow::Error {
        let Self { launcher, processes, .. } = self;
        failure::hinted(
            format!("started {processes} times by {launcher}, but this build has no MPI"),
            format!(
                "start it once, with --accelerators {processes} (or \
                 FEEDLINE_ACCELERATORS={processes}), or build it with --features mpi"
            ),
        )
    }

    /// Why they cannot work together although this build has MPI.
    #[cfg(feature = "mpi")]
    pub(crate) fn not_joined(self, joined: u32) -> anyhow::Error {
        let Self { launcher, processes, .. } = self;
        failure::hinted(
            format!(
                "started {processes} times by {launcher}, but MPI sees {joined} of the processes"
            ),
            "start it with the mpirun of the MPI library that it was built with; with Slurm: srun \
             --mpi=pmix (or pmi2)",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_processes_are_noticed_and_one_is_not() {
        let found = |variables: &'static [(&str, &str)]| {
            find(|asked| {
                let known = variables.iter().find(|(name, _)| *name == asked);
                known.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(found(&[("OMPI_COMM_WORLD_SIZE", "1")]), None);
        assert_eq!(found(&[("HOME", "4")]), None);
        let mpirun = Started { launcher: "mpirun (Open MPI)", processes: 4, rank: 3 };
        let variables = &[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "3")];
        assert_eq!(found(variables), Some(mpirun));
        let within = &[("OMPI_COMM_WORLD_SIZE", "1"), ("SLURM_STEP_NUM_TASKS", "2")];
        assert_eq!(found(within), None);
        let torchrun = Started { launcher: "torchrun", processes: 2, rank: 0 };
        assert_eq!(found(&[("WORLD_SIZE", "2")]), Some(torchrun));
    }
}

//! Notices when a parallel launcher started several copies of this process.

use crate::failure;

/// Variables in which launchers say how many processes they started.
const SIZES: &[(&str, &str)] = &[
    ("mpirun (Open MPI)", "OMPI_COMM_WORLD_SIZE"),
    ("an MPI launcher", "PMI_SIZE"),
    ("an MPI launcher", "MPI_LOCALNRANKS"),
    ("srun", "SLURM_STEP_NUM_TASKS"),
    ("flux", "FLUX_JOB_SIZE"),
    ("jsrun", "JSM_NAMESPACE_SIZE"),
    ("torchrun", "WORLD_SIZE"),
];

/// Refuses to run as one of several unrelated processes.
pub(crate) fn refuse_many() -> anyhow::Result<()> {
    refuse(|name| std::env::var(name).ok())
}

fn refuse(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<()> {
    for (launcher, name) in SIZES {
        let size = variable(name).and_then(|text| text.trim().parse::<u32>().ok());
        if let Some(size) = size.filter(|&size| size > 1) {
            return Err(failure::hinted(
                format!("started {size} times by {launcher}, but this build has no MPI"),
                format!(
                    "start it once, with --accelerators {size} (or FEEDLINE_ACCELERATORS={size})"
                ),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_processes_are_refused_and_one_is_not() {
        let refused = |name: &'static str, value: &'static str| {
            refuse(move |asked| (asked == name).then(|| value.to_owned()))
                .map_err(|e| e.to_string())
        };
        assert_eq!(refused("OMPI_COMM_WORLD_SIZE", "1"), Ok(()));
        assert_eq!(refused("HOME", "4"), Ok(()));
        assert_eq!(
            refused("OMPI_COMM_WORLD_SIZE", "4"),
            Err("started 4 times by mpirun (Open MPI), but this build has no MPI".to_owned())
        );
        assert_eq!(
            refused("WORLD_SIZE", "2"),
            Err("started 2 times by torchrun, but this build has no MPI".to_owned())
        );
    }
}

//! The processes that were started together for one command.
//!
//! Process 0 reads the command line, decides everything that could differ between processes, prints
//! and chooses the exit code; the others do what it says. A process that cannot go on says why, and
//! all of them end with its exit code.

use std::cell::Cell;
use std::process::ExitCode;
use std::sync::Arc;

use feedline_bench::{Aborted, BenchError, Dialect, Team};
use feedline_engine::EngineError;
use feedline_ranks::{Alone, Link};

use crate::{failure, launcher, signals};

/// This process among those of its job.
pub(crate) struct Job {
    link: Arc<dyn Link>,
    /// The first of its ranks, once they are dealt out.
    first_rank: Cell<u32>,
    /// Whether process 0 has told the others what to do.
    told: Cell<bool>,
    #[cfg(feature = "mpi")]
    mpi: Option<Arc<feedline_ranks::Mpi>>,
}

impl Job {
    /// A job of this process only, whatever a launcher started with it.
    pub(crate) fn alone() -> Self {
        Self::new(
            Arc::new(Alone),
            #[cfg(feature = "mpi")]
            None,
        )
    }

    /// Joins the processes that a launcher started with this one.
    #[cfg(feature = "mpi")]
    pub(crate) fn join() -> anyhow::Result<Self> {
        let Some(started) = launcher::started() else {
            return Ok(Self::alone());
        };
        let mpi = feedline_ranks::Mpi::join()?;
        let joined = mpi.nodes().len() as u32;
        if joined != started.processes {
            return Err(started.not_joined(joined));
        }
        Ok(Self::new(Arc::clone(&mpi) as Arc<dyn Link>, Some(mpi)))
    }

    /// Without MPI, several processes would be as many unrelated jobs.
    #[cfg(not(feature = "mpi"))]
    pub(crate) fn join() -> anyhow::Result<Self> {
        match launcher::started() {
            None => Ok(Self::alone()),
            Some(started) => Err(started.refused()),
        }
    }

    fn new(
        link: Arc<dyn Link>,
        #[cfg(feature = "mpi")] mpi: Option<Arc<feedline_ranks::Mpi>>,
    ) -> Self {
        let first_rank = Cell::new(link.process());
        Self {
            link,
            first_rank,
            told: Cell::new(false),
            #[cfg(feature = "mpi")]
            mpi,
        }
    }

    /// Whether this process reads the command line and speaks.
    pub(crate) fn leads(&self) -> bool {
        self.link.process() == 0
    }

    pub(crate) fn processes(&self) -> u32 {
        self.link.nodes().len() as u32
    }

    /// An error if there are fewer ranks than processes; else errors name the first rank of this
    /// process from now on.
    pub(crate) fn check_ranks(&self, accelerators: u32) -> Result<(), EngineError> {
        let team = Team::new(Arc::clone(&self.link), accelerators).map_err(EngineError::Team)?;
        self.first_rank.set(team.geometry().ranks_of(self.link.process()).start);
        Ok(())
    }

    /// On process 0: the link over which the others are told what to do. From now on errors are those
    /// of a rank.
    pub(crate) fn begin(&self) -> Arc<dyn Link> {
        self.told.set(true);
        Arc::clone(&self.link)
    }

    /// On process 0: tells the others that there is nothing to do.
    pub(crate) fn dismiss(&self) -> Result<(), EngineError> {
        feedline_engine::dismiss(&*self.begin())
    }

    /// On the other processes: does what process 0 says; the exit code.
    pub(crate) fn assist(&self) -> anyhow::Result<u8> {
        if let Some(order) = feedline_engine::hear(&*self.link)? {
            let lost = order.assist(Arc::clone(&self.link), &signals::stop()?)?;
            failure::warn_of_lost_events(lost);
        }
        Ok(0)
    }

    /// On the other processes: waits until process 0 has ended or failed.
    pub(crate) fn wait(&self) -> Result<(), BenchError> {
        self.link.broadcast(Vec::new()).map(drop).map_err(BenchError::Aborted)
    }

    /// Ends the job: with the largest exit code that any process has, or with the error of the first
    /// one that failed. `code_of` is the exit code of an error.
    pub(crate) fn end(
        self,
        result: anyhow::Result<u8>,
        dialect: Dialect,
        code_of: impl Fn(&anyhow::Error) -> u8,
    ) -> ExitCode {
        let agreed = result.and_then(|code| {
            Ok(self.link.max(u64::from(code)).map_err(BenchError::Aborted)? as u8)
        });
        ExitCode::from(match agreed {
            Ok(code) => {
                #[cfg(feature = "mpi")]
                if let Some(mpi) = &self.mpi {
                    mpi.finish();
                }
                code
            }
            Err(error) => {
                self.report(&error, dialect);
                let code = code_of(&error);
                #[cfg(feature = "mpi")]
                self.leave_aborted(code);
                code
            }
        })
    }

    /// Prints an error of this process and tells the others; one that came from elsewhere is printed
    /// there.
    fn report(&self, error: &anyhow::Error, dialect: Dialect) {
        let elsewhere = error.chain().any(|cause| {
            cause.is::<Aborted>() || matches!(failure::bench(cause), Some(BenchError::Aborted(_)))
        });
        if !elsewhere {
            // A rank that failed has said so already; otherwise it was the process.
            let rank = self.link.aborted().map_or(self.first_rank.get(), |news| news.rank);
            // What process 0 finds wrong with the command line is not the fault of a rank.
            match self.processes() == 1 || (self.leads() && !self.told.get()) {
                true => failure::print_once(error, dialect),
                false => {
                    let place = format!("rank {rank} on {}", feedline_recorder::host());
                    failure::print_at(&place, error, dialect);
                }
            }
            self.link.abort(Aborted { rank, reason: format!("{error:#}") });
        }
    }

    /// Leaves a job that failed; ends it with `code` if a process of it does not exit.
    #[cfg(feature = "mpi")]
    fn leave_aborted(&self, code: u8) {
        if let Some(mpi) = &self.mpi
            && !mpi.leave_aborted()
        {
            // The process that failed may hang before it could say why.
            if let Some(news) = self.link.aborted() {
                failure::say(&format!("error: {news}; a process of the job does not exit"));
            }
            mpi.end_all(code)
        }
    }
}

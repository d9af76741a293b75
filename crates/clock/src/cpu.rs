//! CPU time of a thread: measured, and burnt.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::time::{ClockId, clock_gettime};

use crate::{Clock, Kind};

/// Turns of the loop between two looks at the thread's CPU time, a few microseconds.
const TURNS: u32 = 512;

/// A moment in the CPU time of the thread that took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuMark(u64);

impl CpuMark {
    /// CPU time that this thread has used since, which must be the thread that took the mark.
    pub fn elapsed_ns(self) -> u64 {
        thread_cpu_ns().saturating_sub(self.0)
    }
}

impl Clock {
    /// The calling thread's CPU time as of now. Simulated threads use none.
    pub fn cpu_mark(&self) -> CpuMark {
        match self.kind {
            Kind::Real { .. } => CpuMark(thread_cpu_ns()),
            Kind::Simulated(_) => CpuMark(0),
        }
    }

    /// Keeps a core busy until the calling thread has used `cpu_ns` of CPU time since `mark`, or
    /// `stop` is true. What the thread has really done since `mark` counts; threads that share a core
    /// take longer, as any program does. Under simulated time it is a sleep.
    pub fn burn(&self, mark: CpuMark, cpu_ns: u64, stop: &AtomicBool) {
        match &self.kind {
            Kind::Real { .. } => {
                while mark.elapsed_ns() < cpu_ns && !stop.load(Ordering::Relaxed) {
                    (0..TURNS).for_each(|_| std::hint::spin_loop());
                }
            }
            Kind::Simulated(_) => self.sleep_unless(cpu_ns, stop),
        }
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn burning_takes_cpu_time_and_what_was_done_before_counts() {
        let (clock, go_on) = (Clock::real(), AtomicBool::new(false));
        let mark = clock.cpu_mark();
        clock.burn(mark, 5 * MS, &go_on);
        let first = mark.elapsed_ns();
        assert!(first >= 5 * MS, "{first}");
        // The mark is 5 ms old already: only 2 ms more.
        clock.burn(mark, 7 * MS, &go_on);
        assert!((7 * MS..12 * MS).contains(&mark.elapsed_ns()), "{}", mark.elapsed_ns());
        let before = mark.elapsed_ns();
        clock.burn(mark, 3 * MS, &go_on);
        assert!(mark.elapsed_ns() - before < MS, "nothing was left to burn");
    }

    #[test]
    fn a_stop_ends_it() {
        let clock = Clock::real();
        clock.burn(clock.cpu_mark(), u64::MAX, &AtomicBool::new(true));
    }

    #[test]
    fn simulated_cpu_time_is_time() {
        let clock = Clock::simulated();
        clock.burn(clock.cpu_mark(), 7, &AtomicBool::new(false));
        assert_eq!(clock.now(), 7);
        clock.burn(clock.cpu_mark(), 7, &AtomicBool::new(true));
        assert_eq!(clock.now(), 7);
    }
}

//! Which rank is where. Pure: the machines of the processes come in.

use std::ops::Range;

/// A job with fewer ranks than processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{ranks} accelerators cannot be spread over {processes} processes: each holds at least one"
)]
pub struct TooFewRanks {
    /// Ranks that were asked for.
    pub ranks: u32,
    /// Processes that were started.
    pub processes: u32,
}

/// The ranks of a job, by process and machine.
///
/// A process holds neighboring ranks, and the first processes hold one more where they do not
/// divide evenly. Machines come from the link: a rank's number says nothing about its machine (Q40).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    ranks: u32,
    node_of_process: Vec<u32>,
}

impl Geometry {
    /// Spreads `ranks` over processes on these machines.
    pub fn new(ranks: u32, node_of_process: Vec<u32>) -> Result<Self, TooFewRanks> {
        let processes = node_of_process.len() as u32;
        if ranks < processes {
            return Err(TooFewRanks { ranks, processes });
        }
        Ok(Self { ranks, node_of_process })
    }

    /// Ranks of the job.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Processes of the job.
    pub fn processes(&self) -> u32 {
        self.node_of_process.len() as u32
    }

    /// Machines of the job.
    pub fn nodes(&self) -> u32 {
        self.node_of_process.iter().max().map_or(1, |last| last + 1)
    }

    /// The ranks that a process holds.
    pub fn ranks_of(&self, process: u32) -> Range<u32> {
        let (each, more) = (self.ranks / self.processes(), self.ranks % self.processes());
        let first = process * each + process.min(more);
        first..first + each + u32::from(process < more)
    }

    /// The machine of a process.
    pub fn node_of(&self, process: u32) -> u32 {
        self.node_of_process[process as usize]
    }

    /// Every rank's machine, in the order of ranks.
    pub fn node_of_ranks(&self) -> Vec<u32> {
        let of_process = |process| self.ranks_of(process).map(move |_| self.node_of(process));
        (0..self.processes()).flat_map(of_process).collect()
    }

    /// The processes of a machine, in order.
    pub fn processes_on(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        (0..self.processes()).filter(move |&process| self.node_of(process) == node)
    }

    /// How many ranks a machine has.
    pub fn ranks_on(&self, node: u32) -> u32 {
        self.processes_on(node).map(|process| self.ranks_of(process).len() as u32).sum()
    }

    /// Which of its machine's ranks a rank is, and how many there are, for a rank of `process`.
    pub(crate) fn on_node(&self, process: u32, rank: u32) -> (u32, u32) {
        let counted = |process| self.ranks_of(process).len() as u32;
        let on_node = self.processes_on(self.node_of(process));
        let before: u32 = on_node.filter(|&other| other < process).map(counted).sum();
        (before + rank - self.ranks_of(process).start, self.ranks_on(self.node_of(process)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_dealt_to_processes_in_order() {
        let geometry = Geometry::new(8, vec![0, 0, 0]).unwrap();
        let held: Vec<_> = (0..3).map(|process| geometry.ranks_of(process)).collect();
        assert_eq!(held, [0..3, 3..6, 6..8]);
        assert_eq!((geometry.processes(), geometry.nodes()), (3, 1));
        let refused = Geometry::new(2, vec![0, 0, 0]).unwrap_err();
        assert_eq!(refused, TooFewRanks { ranks: 2, processes: 3 });
    }

    #[test]
    fn q40_machines_do_not_follow_from_rank_numbers() {
        // Processes placed in turn on two machines, with two ranks each.
        let geometry = Geometry::new(8, vec![0, 1, 0, 1]).unwrap();
        assert_eq!(geometry.node_of_ranks(), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(geometry.processes_on(1).collect::<Vec<_>>(), [1, 3]);
        let places: Vec<_> = (0..8).map(|rank| geometry.on_node(rank / 2, rank)).collect();
        let own = [(0, 4), (1, 4), (0, 4), (1, 4), (2, 4), (3, 4), (2, 4), (3, 4)];
        assert_eq!(places, own);
    }
}

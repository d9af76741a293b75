//! What the ranks of other processes measured, brought to process 0.
//!
//! Process 0 takes one process after another and one rank after another, and a rank's steps in
//! pieces that go straight to disk: memory does not grow with the length of a run.

use std::io;
use std::path::Path;

use feedline_ranks::Team;
use feedline_store::Meter;
use serde::{Deserialize, Serialize};

use crate::error::{BenchError, Result};
use crate::results::host::Host;
use crate::results::outcome::{EpochOutcome, RankOutcome, SavingTally};
use crate::results::step_log::StepLog;
use crate::run::wire;

/// The job's ranks and machines.
pub(crate) struct Gathered {
    /// In rank order.
    pub(crate) ranks: Vec<RankOutcome>,
    /// In the order of the geometry.
    pub(crate) hosts: Vec<Host>,
}

/// What a process says first.
#[derive(Serialize, Deserialize)]
struct Greeting {
    host: Host,
    ranks: usize,
}

/// What a process says of a rank, before the pieces of its step log.
#[derive(Serialize, Deserialize)]
struct RankNews {
    epochs: Vec<EpochOutcome>,
    meter: Vec<u64>,
    done_ns: u64,
    saving: SavingTally,
}

/// On a process other than 0: hands over what its ranks measured.
pub(crate) fn send(team: &Team, ranks: &[RankOutcome]) -> Result<()> {
    team.send(wire::encode(&Greeting { host: Host::look(), ranks: ranks.len() }))?;
    for rank in ranks {
        let (epochs, done_ns, saving) = (rank.epochs.clone(), rank.done_ns, rank.saving);
        let meter = rank.meter.to_words();
        team.send(wire::encode(&RankNews { epochs, meter, done_ns, saving }))?;
        let mut aborted = None;
        let sent = rank.steps.each_raw(|piece| {
            team.send(piece.to_vec()).map_err(|news| {
                aborted = Some(news);
                io::Error::other("the job was aborted")
            })
        });
        match (aborted, sent) {
            (Some(news), _) => return Err(news.into()),
            (None, sent) => sent.map_err(spooled)?,
        }
        team.send(Vec::new())?;
    }
    Ok(())
}

/// On process 0: adds what the other processes hand over; their steps are kept in `folder`.
pub(crate) fn receive(team: &Team, own: Vec<RankOutcome>, folder: &Path) -> Result<Gathered> {
    let geometry = team.geometry();
    let mut gathered = Gathered { ranks: own, hosts: vec![Host::look()] };
    for process in 1..geometry.processes() {
        let greeting: Greeting = wire::decode(&team.receive(process)?, process)?;
        // Machines are numbered by their first process.
        if geometry.node_of(process) as usize == gathered.hosts.len() {
            gathered.hosts.push(greeting.host);
        }
        for _ in 0..greeting.ranks {
            gathered.ranks.push(receive_rank(team, process, folder)?);
        }
    }
    Ok(gathered)
}

fn receive_rank(team: &Team, process: u32, folder: &Path) -> Result<RankOutcome> {
    let news: RankNews = wire::decode(&team.receive(process)?, process)?;
    let meter = Meter::from_words(&news.meter).ok_or(BenchError::OtherBuild { process })?;
    let mut log = StepLog::create(folder).map_err(spooled)?;
    loop {
        let piece = team.receive(process)?;
        if piece.is_empty() {
            break;
        }
        log.add_raw(&piece).map_err(spooled)?;
    }
    let steps = log.finish().map_err(spooled)?;
    let RankNews { epochs, done_ns, saving, .. } = news;
    Ok(RankOutcome { epochs, meter, done_ns, saving, steps })
}

fn spooled(source: io::Error) -> BenchError {
    BenchError::Output { file: "step log".into(), source }
}

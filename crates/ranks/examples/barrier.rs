//! What a meeting of all ranks costs beside a bare MPI barrier, as JSON on rank 0.
//!
//! `mpirun -n 8 barrier [RANKS [ROUNDS]]`: the ranks of the whole job, one a process unless said, as
//! threads of the processes.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

use feedline_clock::Clock;
use feedline_ranks::{Link, Mpi, Ranks as _, Team};
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives as _;

/// Bare and own meetings take turns, so that both see the same machine.
const TURNS: u32 = 10;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<u32>().ok());
    let mpi = Mpi::join().expect("started by an MPI launcher");
    let processes = mpi.nodes().len() as u32;
    let ranks = numbers.next().unwrap_or(processes);
    let rounds = numbers.next().unwrap_or(2_000) / TURNS;
    let team = Team::new(Arc::clone(&mpi) as Arc<dyn Link>, ranks).expect("a rank a process");
    let (mut bare, mut own) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        bare.push(bare_us(rounds));
        own.push(own_us(&team, rounds));
    }
    if team.leads() {
        let (bare, own) = (median(bare), median(own));
        let line = format!(
            "{{\"processes\": {processes}, \"ranks\": {ranks}, \"bare_us\": {bare:.3}, \
             \"own_us\": {own:.3}}}"
        );
        writeln!(std::io::stdout(), "{line}").expect("stdout can be written");
    }
    team.max(0).expect("all processes have come so far");
    mpi.finish();
}

/// Microseconds of one `MPI_Barrier`, while no other thread calls MPI.
fn bare_us(rounds: u32) -> f64 {
    let world = SimpleCommunicator::world();
    world.barrier();
    let begin = Instant::now();
    (0..rounds).for_each(|_| world.barrier());
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(rounds)
}

/// Microseconds of one meeting of all ranks.
fn own_us(team: &Team, rounds: u32) -> f64 {
    let clock = Clock::real();
    let members = team.members(&clock);
    let begin = Instant::now();
    clock.scope(|scope| {
        for member in &members {
            let meet = move || (0..rounds).for_each(|_| member.barrier().expect("nobody fails"));
            scope.spawn("rank".into(), meet).expect("a thread");
        }
    });
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(rounds)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

//! Work that many threads do and whose results come in order.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Workforce {
    /// Threads that work.
    pub(crate) threads: NonZeroUsize,
    /// Results that may wait for one that is not there yet.
    pub(crate) ahead: usize,
}

/// Hands every task that `produce` gives to a thread, and the results to `take`, which runs on this thread, in
/// the order of the tasks. Every thread has a state of its own; they are all given back. The first error of
/// `take` ends everything. With one thread nothing is started, and all happens here.
pub(crate) fn ordered<T, R, S, E>(
    crew: Workforce,
    state: &(dyn Fn() -> S + Sync),
    produce: impl FnOnce(&mut dyn FnMut(T) -> bool) + Send,
    work: &(dyn Fn(&mut S, T) -> R + Sync),
    take: &mut dyn FnMut(R) -> Result<(), E>,
) -> Result<Vec<S>, E>
where
    T: Send,
    R: Send,
    S: Send,
{
    if crew.threads.get() == 1 {
        let (mut own, mut end) = (state(), Ok(()));
        produce(&mut |task| {
            end = take(work(&mut own, task));
            end.is_ok()
        });
        return end.map(|()| vec![own]);
    }
    let (to_workers, tasks) = sync_channel::<(T, SyncSender<R>)>(crew.threads.get());
    let (to_taker, results) = sync_channel::<Receiver<R>>(crew.ahead.max(1));
    let tasks = &Mutex::new(tasks);
    thread::scope(|scope| {
        scope.spawn(move || {
            produce(&mut |task| {
                let (give, receive) = sync_channel(1);
                // The place in the line first, so that it bounds what is under way.
                to_taker.send(receive).is_ok() && to_workers.send((task, give)).is_ok()
            });
        });
        let workers: Vec<_> = (0..crew.threads.get())
            .map(|_| {
                scope.spawn(move || {
                    let mut own = state();
                    loop {
                        let next = tasks.lock().map(|tasks| tasks.recv());
                        let Ok(Ok((task, give))) = next else { return own };
                        let done = work(&mut own, task);
                        // After an error, results are no longer read.
                        let _ = give.send(done);
                    }
                })
            })
            .collect();
        let mut end = Ok(());
        for result in &results {
            // No result comes of a worker that is gone; its panic is passed on below.
            let Ok(result) = result.recv() else { break };
            end = take(result);
            if end.is_err() {
                break;
            }
        }
        drop(results);
        let states = workers.into_iter().map(|worker| match worker.join() {
            Ok(state) => state,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let states: Vec<S> = states.collect();
        end.map(|()| states)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(threads: usize, stop_at: u32) -> (Result<Vec<u32>, u32>, Vec<u32>) {
        let crew = Workforce { threads: NonZeroUsize::new(threads).unwrap(), ahead: 3 };
        let mut seen = Vec::new();
        let counts = ordered(
            crew,
            &|| 0_u32,
            |give| {
                for task in 0..1000_u32 {
                    if !give(task) {
                        break;
                    }
                }
            },
            &|count, task| {
                *count += 1;
                task * 2
            },
            &mut |result| {
                seen.push(result);
                if result == stop_at { Err(result) } else { Ok(()) }
            },
        );
        (counts, seen)
    }

    #[test]
    fn results_come_in_the_order_of_tasks() {
        for threads in [1, 2, 7] {
            let (counts, seen) = run(threads, u32::MAX);
            assert_eq!(seen, (0..1000).map(|task| task * 2).collect::<Vec<_>>());
            let counts = counts.unwrap();
            assert_eq!((counts.len(), counts.iter().sum::<u32>()), (threads, 1000));
        }
    }

    #[test]
    fn an_error_ends_it() {
        for threads in [1, 2, 7] {
            let (counts, seen) = run(threads, 8);
            assert_eq!(counts, Err(8));
            assert_eq!(seen, [0, 2, 4, 6, 8]);
        }
    }
}

//! The shuffle buffer of tf.data and DALI: full before the first sample leaves it.

use crate::permutation::below;

/// Holds back up to `size` entries and lets a random one of them go for each that comes.
#[derive(Debug)]
pub struct ShuffleBuffer<T> {
    held: Vec<T>,
    size: usize,
    state: u64,
}

impl<T> ShuffleBuffer<T> {
    /// An empty buffer; the order in which entries leave it follows from `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        Self { held: Vec::new(), size: size.max(1), state: seed }
    }

    /// Takes an entry in; gives one out once the buffer is full.
    pub fn pass(&mut self, entry: T) -> Option<T> {
        self.held.push(entry);
        if self.held.len() < self.size {
            return None;
        }
        self.drain_one()
    }

    /// Gives one out although no more comes in.
    pub fn drain_one(&mut self) -> Option<T> {
        if self.held.is_empty() {
            return None;
        }
        let chosen = below(&mut self.state, self.held.len() as u64);
        Some(self.held.swap_remove(chosen as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shuffled(size: usize, seed: u64, count: u64) -> Vec<u64> {
        let mut buffer = ShuffleBuffer::new(size, seed);
        let mut out: Vec<u64> = (0..count).filter_map(|n| buffer.pass(n)).collect();
        out.extend(std::iter::from_fn(|| buffer.drain_one()));
        out
    }

    #[test]
    fn a_buffer_of_one_changes_nothing() {
        assert_eq!(shuffled(1, 7, 5), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn everything_comes_out_once_and_never_earlier_than_the_buffer_allows() {
        let out = shuffled(10, 7, 1000);
        for (place, &entry) in out.iter().enumerate() {
            assert!(entry < place as u64 + 10, "{entry} left at place {place}");
        }
        assert_ne!(out, shuffled(10, 8, 1000));
        let mut sorted = out;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_entry_waits_until_the_buffer_is_full() {
        let mut buffer = ShuffleBuffer::new(3, 1);
        assert_eq!((buffer.pass(1), buffer.pass(2)), (None, None));
        assert!(buffer.pass(3).is_some());
    }
}

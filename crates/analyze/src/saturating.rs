//! Sums that stop at the largest number.
//!
//! Damaged traces have times and sizes whose sums do not fit into a number. Such a sum is meaningless, but it
//! must neither stop an analysis nor depend on the order of what is added; a saturating one does neither.

#[inline]
pub(crate) fn grow(sum: &mut u64, by: u64) {
    *sum = sum.saturating_add(by);
}

/// Adds the named sums of another one.
macro_rules! grow_each {
    ($ours:expr, $theirs:expr; $($field:ident),+) => {
        $($crate::saturating::grow(&mut $ours.$field, $theirs.$field);)+
    };
}

pub(crate) use grow_each;

/// Saturating sums of iterators.
pub(crate) trait Total: Iterator<Item = u64> + Sized {
    fn total(self) -> u64 {
        self.fold(0, u64::saturating_add)
    }
}

impl<I: Iterator<Item = u64>> Total for I {}

//! Rows of entries that are taken one from each row in turn.

/// Rows of which the first `longer` have `long` entries and the others `short`, which is not more. One
/// is taken from each row in turn; rows that have ended are passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turns {
    pub(crate) rows: u64,
    pub(crate) longer: u64,
    pub(crate) long: u64,
    pub(crate) short: u64,
}

impl Turns {
    /// Entries of one row.
    pub(crate) fn len(&self, row: u64) -> u64 {
        if row < self.longer { self.long } else { self.short }
    }

    /// Entries of all rows.
    pub(crate) fn total(&self) -> u64 {
        self.longer * self.long + (self.rows - self.longer) * self.short
    }

    /// Row and place in it of the entry that is taken as number `k`.
    pub(crate) fn at(&self, k: u64) -> (u64, u64) {
        match k.checked_sub(self.rows * self.short) {
            None => (k % self.rows, k / self.rows),
            Some(behind) => (behind % self.longer, self.short + behind / self.longer),
        }
    }

    /// As which number an entry of a row is taken.
    pub(crate) fn number(&self, row: u64, place: u64) -> u64 {
        match place.checked_sub(self.short) {
            None => place * self.rows + row,
            Some(behind) => self.rows * self.short + behind * self.longer + row,
        }
    }

    /// How many of the first `count` entries are of one row.
    pub(crate) fn taken(&self, row: u64, count: u64) -> u64 {
        let of = |count: u64, rows: u64| count / rows + u64::from(row < count % rows);
        match count.checked_sub(self.rows * self.short) {
            None => of(count, self.rows),
            Some(behind) if row < self.longer => self.short + of(behind, self.longer),
            Some(_) => self.short,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_turns_and_go_on_alone_when_others_have_ended() {
        let turns = Turns { rows: 3, longer: 2, long: 4, short: 2 };
        let rows: Vec<u64> = (0..turns.total()).map(|k| turns.at(k).0).collect();
        assert_eq!(rows, [0, 1, 2, 0, 1, 2, 0, 1, 0, 1]);
        for k in 0..turns.total() {
            let (row, place) = turns.at(k);
            assert!(place < turns.len(row));
            assert_eq!(turns.number(row, place), k);
            for count in 0..=turns.total() {
                let taken = (0..count).filter(|&k| turns.at(k).0 == row).count() as u64;
                assert_eq!(turns.taken(row, count), taken, "row {row} of the first {count}");
            }
        }
    }

    #[test]
    fn rows_of_one_length_need_no_longer_ones() {
        let turns = Turns { rows: 2, longer: 0, long: 9, short: 3 };
        assert_eq!(turns.total(), 6);
        assert_eq!(turns.at(5), (1, 2));
        assert_eq!((turns.taken(1, 6), turns.taken(0, 5)), (3, 3));
    }
}

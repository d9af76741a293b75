//! Rows of entries that are taken one from each row in turn.

/// Rows of any lengths. One entry is taken from each row in turn; rows that have ended are passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turns {
    lens: Vec<u64>,
    /// The rounds, grouped by the rows that take part in them: in each group, fewer than before.
    groups: Vec<Group>,
}

/// Rounds in which the same rows take part.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    /// The first round, which is also the place in each row.
    first_place: u64,
    /// The number of the first entry of that round.
    first_number: u64,
    /// The rows that take part, in order.
    rows: Vec<u64>,
}

impl Turns {
    /// Rows of these lengths.
    pub(crate) fn new(lens: Vec<u64>) -> Self {
        let mut ends = lens.clone();
        ends.sort_unstable();
        ends.dedup();
        let (mut groups, mut first_place, mut first_number) = (Vec::new(), 0, 0);
        for end in ends.into_iter().filter(|&end| end > 0) {
            let long_enough = |&(_, &len): &(u64, &u64)| len >= end;
            let rows: Vec<u64> = (0..).zip(&lens).filter(long_enough).map(|(row, _)| row).collect();
            let entries = (end - first_place) * rows.len() as u64;
            groups.push(Group { first_place, first_number, rows });
            (first_place, first_number) = (end, first_number + entries);
        }
        Self { lens, groups }
    }

    /// Entries of one row.
    pub(crate) fn len(&self, row: u64) -> u64 {
        self.lens[row as usize]
    }

    /// Entries of all rows.
    pub(crate) fn total(&self) -> u64 {
        self.lens.iter().sum()
    }

    /// Row and place in it of the entry that is taken as number `k`.
    pub(crate) fn at(&self, k: u64) -> (u64, u64) {
        let group = self.group(|group| group.first_number <= k);
        let (rows, later) = (group.rows.len() as u64, k - group.first_number);
        (group.rows[(later % rows) as usize], group.first_place + later / rows)
    }

    /// As which number an entry of a row is taken.
    pub(crate) fn number(&self, row: u64, place: u64) -> u64 {
        let group = self.group(|group| group.first_place <= place);
        let (rows, later) = (group.rows.len() as u64, place - group.first_place);
        group.first_number + later * rows + group.rows_before(row)
    }

    /// How many of the first `count` entries are of one row.
    pub(crate) fn taken(&self, row: u64, count: u64) -> u64 {
        if count >= self.total() {
            return self.len(row);
        }
        let group = self.group(|group| group.first_number <= count);
        let (rows, later) = (group.rows.len() as u64, count - group.first_number);
        let of_last_round = u64::from(group.rows_before(row) < later % rows);
        (group.first_place + later / rows + of_last_round).min(self.len(row))
    }

    /// The last group that `begins` is true of.
    fn group(&self, begins: impl Fn(&Group) -> bool) -> &Group {
        &self.groups[self.groups.partition_point(begins) - 1]
    }
}

impl Group {
    /// How many rows have their turn before `row`.
    fn rows_before(&self, row: u64) -> u64 {
        self.rows.partition_point(|&other| other < row) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_turns_and_go_on_alone_when_others_have_ended() {
        let turns = Turns::new(vec![4, 4, 2]);
        let rows: Vec<u64> = (0..turns.total()).map(|k| turns.at(k).0).collect();
        assert_eq!(rows, [0, 1, 2, 0, 1, 2, 0, 1, 0, 1]);
        check(&turns);
    }

    #[test]
    fn rows_of_any_lengths_take_turns() {
        let turns = Turns::new(vec![1, 0, 5, 3, 3]);
        let rows: Vec<u64> = (0..turns.total()).map(|k| turns.at(k).0).collect();
        assert_eq!(rows, [0, 2, 3, 4, 2, 3, 4, 2, 3, 4, 2, 2]);
        check(&turns);
        check(&Turns::new(vec![0, 0]));
    }

    #[test]
    fn rows_of_one_length_need_no_longer_ones() {
        let turns = Turns::new(vec![3, 3]);
        assert_eq!(turns.total(), 6);
        assert_eq!(turns.at(5), (1, 2));
        assert_eq!((turns.taken(1, 6), turns.taken(0, 5)), (3, 3));
    }

    /// Every function agrees with `at`.
    fn check(turns: &Turns) {
        let mut all: Vec<(u64, u64)> = (0..turns.total()).map(|k| turns.at(k)).collect();
        for (k, &(row, place)) in (0..).zip(&all) {
            assert!(place < turns.len(row));
            assert_eq!(turns.number(row, place), k);
        }
        for row in 0..turns.lens.len() as u64 {
            for count in 0..=turns.total() {
                let taken = (0..count).filter(|&k| turns.at(k).0 == row).count() as u64;
                assert_eq!(turns.taken(row, count), taken, "row {row} of the first {count}");
            }
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len() as u64, turns.total(), "every entry once");
    }
}

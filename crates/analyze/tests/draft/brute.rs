//! Metrics of sets of intervals by counting, slowly, what any program must find.

/// An interval: from, and up to.
pub(crate) type Interval = (i64, i64);

/// How long at least one of the intervals lasted: counted from one edge to the next.
pub(crate) fn union_ns(intervals: &[Interval]) -> u64 {
    measure(&[intervals], |inside| inside[0])
}

/// How long one of the first lasted while none of the second did.
pub(crate) fn exposed_ns(of: &[Interval], without: &[Interval]) -> u64 {
    measure(&[of, without], |inside| inside[0] && !inside[1])
}

/// How long one of each lasted.
pub(crate) fn both_ns(one: &[Interval], other: &[Interval]) -> u64 {
    measure(&[one, other], |inside| inside[0] && inside[1])
}

/// Time between edges in which `is_meant` holds, given in which of the sets that time lies.
fn measure(sets: &[&[Interval]], is_meant: impl Fn(&[bool]) -> bool) -> u64 {
    let mut edges: Vec<(i64, usize, i64)> = Vec::new();
    for (number, set) in sets.iter().enumerate() {
        for (from, to) in set.iter().filter(|(from, to)| from < to) {
            edges.push((*from, number, 1));
            edges.push((*to, number, -1));
        }
    }
    edges.sort_unstable();
    let (mut open, mut total_ns, mut last) = (vec![0_i64; sets.len()], 0, 0);
    for (at, number, change) in edges {
        let inside: Vec<bool> = open.iter().map(|count| *count > 0).collect();
        if is_meant(&inside) {
            total_ns += at.abs_diff(last);
        }
        open[number] += change;
        last = at;
    }
    total_ns
}

/// The part of an interval that lies in another one.
pub(crate) fn cut_ns(of: Interval, to: Interval) -> u64 {
    u64::try_from(of.1.min(to.1) - of.0.max(to.0)).unwrap_or(0)
}

/// Time of each interval without those inside of it, all of one thread, where they nest: quadratic.
pub(crate) fn self_ns(lane: &[Interval]) -> Vec<u64> {
    let is_inside = |(inner, a): (Interval, usize), (outer, b): (Interval, usize)| {
        let holds = outer.0 <= inner.0 && inner.1 <= outer.1;
        // Of two that are equal, the later one is inside.
        a != b && holds && (inner != outer || a > b)
    };
    let all: Vec<_> = lane.iter().copied().zip(0..).collect();
    all.iter()
        .map(|outer| {
            let inner: Vec<_> =
                all.iter().filter(|one| is_inside(**one, *outer)).map(|one| one.0).collect();
            outer.0.1.abs_diff(outer.0.0) - union_ns(&inner)
        })
        .collect()
}

/// The value that so many percent of the values do not exceed. They are sorted here.
pub(crate) fn percentile(values: &mut [u64], percent: usize) -> u64 {
    values.sort_unstable();
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values[rank - 1]
}

/// Whether a value is another one as well as buckets of 1/128 of the value tell.
pub(crate) fn is_about(found: u64, exact: u64) -> bool {
    found.abs_diff(exact) <= exact / 128 + 1
}

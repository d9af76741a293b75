//! Moments as people write them.

/// Day, month and time of a moment in UTC in the form of C's `asctime`: `Fri Jan 15 08:00:00 2027`.
pub(crate) fn asctime(ns: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = ns.div_euclid(1_000_000_000);
    let (days, time) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years that begin in March have their odd day at the end; 400 of them have 146097 days.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = (month + 2) % 12;
    let year = year + era * 400 + i64::from(month < 2);
    let index = |number: i64| usize::try_from(number).unwrap_or(0);
    format!(
        "{} {} {day:>2} {:02}:{:02}:{:02} {year}",
        DAYS[index(days.rem_euclid(7))],
        MONTHS[index(month)],
        time / 3_600,
        time / 60 % 60,
        time % 60,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        let check = |seconds: i64, text: &str| assert_eq!(asctime(seconds * 1_000_000_000), text);
        check(0, "Thu Jan  1 00:00:00 1970");
        check(951_782_400, "Tue Feb 29 00:00:00 2000");
        check(1_800_000_000, "Fri Jan 15 08:00:00 2027");
        check(-1, "Wed Dec 31 23:59:59 1969");
    }
}

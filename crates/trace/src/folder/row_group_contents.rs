//! Who did what how often in a row group, kept at the end of its file: a reader that must know it before the
//! first event need not go through all of them twice.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::event::EventKind;

/// The key under which a file of events has the surveys of its row groups: eight digits of a checksum, then
/// JSON.
pub(crate) const SURVEY_KEY: &str = "feedline.trace.survey";

/// Pairs of threads and kinds of events that are told apart; a row group with more has no survey.
const MOST: usize = 4096;

/// What a row group has in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowGroupContents {
    /// Processes and threads, in the order in which they are met. Processes are rows of the tables.
    pub lanes: Vec<(i64, u32)>,
    /// Kinds of events, their categories and their names, in the order in which they are met.
    pub whats: Vec<(EventKind, String, String)>,
    /// Places in these two lists, and how many events are both; in the order of the places.
    pub counts: Vec<(u32, u32, u64)>,
    /// Events that begin at 0, which means "no time" in files of other tools.
    pub zero_times: u64,
    /// Rows that are summaries, and the calls that they cover.
    pub summaries: (u64, u64),
}

/// The columns of a row group that a survey is made of; texts as places among different ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContentColumns<'a> {
    pub(crate) processes: &'a [i64],
    pub(crate) threads: &'a [i64],
    pub(crate) starts: &'a [i64],
    pub(crate) counts: &'a [i64],
    /// Kind, category and name of every row, and the different texts.
    pub(crate) texts: [(&'a [u32], &'a [String]); 3],
}

impl RowGroupContents {
    /// `None` if there is more in it than is worth keeping.
    pub(crate) fn of(columns: ContentColumns<'_>) -> Option<Self> {
        let [kinds, categories, names] = columns.texts;
        let (of_kind, of_category) = (categories.1.len() * names.1.len(), names.1.len());
        let combinations = kinds.1.len().checked_mul(of_kind).filter(|all| *all <= 16 * MOST)?;
        let mut survey = Self::default();
        // Numbers of kinds of events, plus 1.
        let mut by_place = vec![0_u32; combinations];
        // By lane, then by kind of event.
        let mut counts: Vec<Vec<u64>> = Vec::new();
        let mut lanes: FxHashMap<(i64, i64), usize> = FxHashMap::default();
        let (mut last, mut lane) = (None, 0);
        for row in 0..columns.processes.len() {
            let key = (columns.processes[row], columns.threads[row]);
            if last != Some(key) {
                lane = *lanes.entry(key).or_insert_with(|| {
                    // Threads have numbers of 32 bits.
                    survey.lanes.push((key.0, key.1 as u32));
                    counts.push(Vec::new());
                    counts.len() - 1
                });
                last = Some(key);
            }
            let [kind, category, name] =
                [kinds.0[row], categories.0[row], names.0[row]].map(|place| place as usize);
            let what = &mut by_place[kind * of_kind + category * of_category + name];
            if *what == 0 {
                let text = |(_, texts): (&[u32], &[String]), place: usize| texts[place].clone();
                let kind =
                    EventKind::ALL.into_iter().find(|known| known.name() == kinds.1[kind])?;
                survey.whats.push((kind, text(categories, category), text(names, name)));
                *what = survey.whats.len() as u32;
            }
            let what = *what as usize - 1;
            let counts = &mut counts[lane];
            if counts.len() <= what {
                counts.resize(what + 1, 0);
            }
            counts[what] += 1;
            if survey.lanes.len() * survey.whats.len() > MOST {
                return None;
            }
        }
        for (lane, counts) in (0..).zip(counts) {
            let with = (0..).zip(counts).filter(|(_, count)| *count > 0);
            survey.counts.extend(with.map(|(what, count)| (lane, what, count)));
        }
        survey.zero_times = columns.starts.iter().filter(|start| **start == 0).count() as u64;
        survey.summaries = summaries(columns, kinds);
        Some(survey)
    }

    /// Whether it covers this many rows, and refers only to what it names.
    fn is_of(&self, rows: u64) -> bool {
        let names = |count: &(u32, u32, u64)| {
            (count.0 as usize) < self.lanes.len() && (count.1 as usize) < self.whats.len()
        };
        let all = self.counts.iter().try_fold(0_u64, |all, count| all.checked_add(count.2));
        self.counts.iter().all(names) && all == Some(rows)
    }
}

fn summaries(columns: ContentColumns<'_>, kinds: (&[u32], &[String])) -> (u64, u64) {
    let Some(summary) = kinds.1.iter().position(|kind| kind == EventKind::Summary.name()) else {
        return (0, 0);
    };
    let of = kinds.0.iter().zip(columns.counts).filter(|(kind, _)| **kind as usize == summary);
    of.fold((0, 0), |(rows, calls), (_, count)| {
        (rows + 1, u64::saturating_add(calls, (*count).max(0).cast_unsigned()))
    })
}

/// The text that a file keeps.
pub(crate) fn text_of(surveys: &[Option<RowGroupContents>]) -> String {
    let json = serde_json::to_string(surveys).unwrap_or_default();
    format!("{:08x}{json}", crc32fast::hash(json.as_bytes()))
}

/// The surveys of row groups with these numbers of rows; none where the text is damaged or of another file.
pub(crate) fn read(text: &str, rows: &[u64]) -> Vec<Option<RowGroupContents>> {
    let nothing = || vec![None; rows.len()];
    let Some((digits, json)) = text.split_at_checked(8) else { return nothing() };
    if u32::from_str_radix(digits, 16) != Ok(crc32fast::hash(json.as_bytes())) {
        return nothing();
    }
    let Ok(found) = serde_json::from_str::<Vec<Option<RowGroupContents>>>(json) else {
        return nothing();
    };
    if found.len() != rows.len() {
        return nothing();
    }
    let both = found.into_iter().zip(rows);
    both.map(|(survey, rows)| survey.filter(|survey| survey.is_of(*rows))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn pairs_are_counted_in_the_order_in_which_they_are_met() {
        let kinds = texts(&["call", "summary"]);
        let categories = texts(&["POSIX"]);
        let names = texts(&["open", "read"]);
        let survey = RowGroupContents::of(ContentColumns {
            processes: &[7, 7, 8, 7, 7],
            threads: &[1, 1, 1, 1, 2],
            starts: &[5, 0, 9, 3, 4],
            counts: &[1, 1, 1, 1, 30],
            texts: [(&[0, 0, 0, 0, 1], &kinds), (&[0; 5], &categories), (&[1, 1, 0, 0, 1], &names)],
        });
        let what = |kind, name: &str| (kind, "POSIX".to_owned(), name.to_owned());
        let expected = RowGroupContents {
            lanes: vec![(7, 1), (8, 1), (7, 2)],
            whats: vec![
                what(EventKind::Call, "read"),
                what(EventKind::Call, "open"),
                what(EventKind::Summary, "read"),
            ],
            counts: vec![(0, 0, 2), (0, 1, 1), (1, 1, 1), (2, 2, 1)],
            zero_times: 1,
            summaries: (1, 30),
        };
        assert_eq!(survey.as_ref(), Some(&expected));

        let text = text_of(&[survey.clone(), None]);
        assert_eq!(read(&text, &[5, 9]), [survey, None]);
        // Of a row group of another length, of another file, or changed: it is not believed.
        assert_eq!(read(&text, &[6, 9]), [None, None]);
        assert_eq!(read(&text, &[5]), [None]);
        assert_eq!(read(&text.replace("30", "31"), &[5, 9]), [None, None]);
        assert_eq!(read("", &[5]), [None]);
    }

    #[test]
    fn too_many_pairs_are_not_kept() {
        let rows = MOST + 1;
        let threads: Vec<i64> = (0..rows as i64).collect();
        let (kinds, one) = (texts(&["call"]), texts(&["read"]));
        let zeros = vec![0; rows];
        let survey = |rows: usize| {
            RowGroupContents::of(ContentColumns {
                processes: &vec![1; rows],
                threads: &threads[..rows],
                starts: &threads[..rows],
                counts: &threads[..rows],
                texts: [(&zeros[..rows], &kinds), (&zeros[..rows], &one), (&zeros[..rows], &one)],
            })
        };
        assert_eq!(survey(rows), None);
        assert_eq!(survey(MOST).map(|survey| survey.lanes.len()), Some(MOST));
    }
}

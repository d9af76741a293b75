//! Damaged files: what is good in them is read, what is not is counted, nothing panics.

use std::fs;

use feedline_trace::dftracer::{Chunk, ParseScope};
use feedline_trace::{Damage, TraceError, recognize};

use crate::bed::{Bed, gzip, lines, read};

fn event(number: usize) -> String {
    format!(
        "{{\"id\":{number},\"name\":\"read\",\"cat\":\"POSIX\",\"type\":3,\"pid\":7,\"tid\":8,\"ts\":{},\"dur\":3,\"ph\":1,\"args\":{{\"hhash\":\"0a1b2c3d4e5f6071\",\"ret\":{number}}}}}\n",
        1_000 + number
    )
}

fn results(trace: &crate::bed::Trace) -> Vec<i64> {
    trace.batch.events.iter().map(|event| event.result.unwrap()).collect()
}

#[test]
fn a_file_cut_at_any_byte_loses_only_the_line_that_was_cut() {
    let text: String = (0..3).map(event).collect();
    let ends: Vec<_> = text.match_indices('\n').map(|(at, _)| at).collect();
    for cut in 0..=text.len() {
        let trace = lines(&text[..cut]);
        let whole = ends.iter().filter(|end| cut >= **end).count();
        assert_eq!(results(&trace), (0..whole as i64).collect::<Vec<_>>(), "{cut}");
        let is_torn = cut > 0 && !ends.iter().any(|end| cut == *end || cut == end + 1);
        assert_eq!(trace.intake.bad_lines, u64::from(is_torn), "{cut}");
    }
}

#[test]
fn a_compressed_file_cut_at_any_byte_keeps_the_members_before() {
    let members: Vec<_> = (0..3).map(|number| gzip(event(number).as_bytes())).collect();
    let whole: Vec<u8> = members.concat();
    let bed = Bed::new();
    for cut in 1..whole.len() {
        let trace = read(&bed.write("t.pfw.gz", &whole[..cut]));
        let mut left = cut;
        let complete = members.iter().take_while(|member| {
            let fits = left >= member.len();
            left = left.saturating_sub(member.len());
            fits
        });
        let found = results(&trace);
        assert!(found.len() >= complete.count(), "{cut}: {found:?}");
        assert_eq!(found, (0..found.len() as i64).collect::<Vec<_>>(), "{cut}");
    }
}

#[test]
fn behind_a_damaged_member_the_next_one_is_read() {
    let members: Vec<_> = (0..3).map(|number| gzip(event(number).as_bytes())).collect();
    let bed = Bed::new();
    let (first, second) = (members[0].len(), members[1].len());
    for at in first..first + second {
        let mut damaged = members.concat();
        damaged[at] ^= 0x55;
        let trace = read(&bed.write("t.pfw.gz", &damaged));
        let found = results(&trace);
        assert_eq!((found.first(), found.last()), (Some(&0), Some(&2)), "{at}: {found:?}");
    }
}

#[test]
fn a_record_that_was_cut_off_without_its_line_end_does_not_take_the_next_one_along() {
    let torn = format!("{}{}{}", event(0), &event(1)[..90], event(2));
    let trace = lines(&torn);
    assert_eq!(results(&trace), [0, 2]);
    assert_eq!(trace.intake.bad_lines, 1);
}

#[test]
fn bad_lines_are_named_and_counted() {
    let bed = Bed::new();
    let quote = event(1).replace("read", "re\"ad");
    let backwards = event(2).replace("\"dur\":3", "\"dur\":-3");
    let path =
        bed.write("t.pfw", format!("{}{quote}nonsense\n{backwards}\n\n{}", event(0), event(4)));
    let trace = read(&path);
    assert_eq!(results(&trace), [0, 4]);
    let named = |line, reason| Damage { path: path.clone(), line, reason };
    let expected =
        [named(2, "is not JSON"), named(3, "is not JSON"), named(4, "ends before it begins")];
    assert_eq!(trace.intake.first_bad, expected);
    assert_eq!(trace.intake.bad_lines, 3);
}

#[test]
fn a_changed_byte_costs_at_most_the_lines_that_it_touches() {
    let text: String = (0..3).map(event).collect();
    for at in 0..text.len() {
        for change in [0_u8, b'"', b'\\', b'{', b'9', 0xff, b'\n'] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = change;
            let chunk = Chunk::parse(&bytes, ParseScope::Everything);
            let touched = if text.as_bytes()[at] == b'\n' { 2 } else { 1 };
            assert!(chunk.items.len() + touched >= 3, "{at} {change}");
        }
    }
}

#[test]
fn paths_that_are_not_utf8_are_read_with_replacements() {
    let mut text = b"{\"name\":\"FH\",\"cat\":\"dftracer\",\"pid\":7,\"tid\":8,\"ph\":4,\"args\":{\"name\":\"/d\xff\",\"value\":\"93aa5be1c07f2210\"}}\n".to_vec();
    text.extend_from_slice(
        event(0).replace("\"ret\"", "\"fhash\":\"93aa5be1c07f2210\",\"ret\"").as_bytes(),
    );
    let bed = Bed::new();
    let trace = read(&bed.write("t.pfw", text));
    assert_eq!(trace.shown()[0].file.as_deref(), Some("/d\u{fffd}"));
    assert_eq!(trace.intake.not_utf8, 1);
}

#[test]
fn what_is_no_trace_says_so() {
    let bed = Bed::new();
    let text = |path| recognize(path).unwrap_err().to_string();
    let path = bed.write("readme.txt", "hello world");
    assert_eq!(
        text(&path),
        format!("unrecognized trace format: {} (starts with \"hello world\")", path.display())
    );
    let path = bed.write("t.pftrace", [0x0a, 2, 8, 1]);
    assert!(matches!(recognize(&path), Err(TraceError::WriteOnly { title: "Perfetto", .. })));
    fs::create_dir(bed.path("empty")).unwrap();
    assert!(matches!(recognize(&bed.path("empty")), Err(TraceError::Empty { .. })));
    assert!(matches!(recognize(&bed.path("missing")), Err(TraceError::Read { .. })));
}

//! What a file of Chrome's JSON says beside its events.

use serde_json::Value;

use crate::chrome::ORIGIN;

/// The key of PyTorch and VizTracer for the same as [`ORIGIN`].
const BASE: &str = "baseTimeNanoseconds";
/// The key under which PyTorch says which part of a job a file is about.
const JOB: &str = "distributedInfo";

/// What was said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// When its time 0 is, in nanoseconds since 1970.
    pub(crate) origin_ns: Option<i64>,
    /// The rank that it is about.
    pub(crate) rank: Option<u32>,
}

impl Head {
    /// Looks at what comes before the events, and after them if they have been read.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let rank = value(&text, JOB).and_then(|job| job.get("rank").and_then(Value::as_u64));
        Self {
            origin_ns: value(&text, ORIGIN).or_else(|| value(&text, BASE)).as_ref().and_then(whole),
            rank: rank.and_then(|rank| u32::try_from(rank).ok()),
        }
    }
}

/// The value of a key, wherever it is: the text before the events is incomplete JSON and cannot be parsed.
fn value(text: &str, key: &str) -> Option<Value> {
    let quoted = format!("\"{key}\"");
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once(&quoted) {
        if let Some(value) = behind.trim_ascii_start().strip_prefix(':') {
            return serde_json::Deserializer::from_str(value).into_iter().next()?.ok();
        }
        rest = behind;
    }
    None
}

fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::String(quoted) => quoted.parse().ok(),
        other => other.as_i64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_rank_are_found_wherever_they_stand() {
        let check = |text: &str, origin_ns: Option<i64>, rank: Option<u32>| {
            assert_eq!(Head::of(text.as_bytes()), Head { origin_ns, rank }, "{text}");
        };
        check(r#"{"traceEvents":["#, None, None);
        check(r#"{"otherData":{"feedline_origin_ns":"17"},"traceEvents":["#, Some(17), None);
        check(r#"{ "baseTimeNanoseconds" : 17, "traceEvents":["#, Some(17), None);
        check(r#"{"baseTimeNanoseconds":1e300,"traceEvents":["#, None, None);
        check(r#"{"x":"baseTimeNanoseconds","baseTimeNanoseconds":-3}"#, Some(-3), None);
        check(
            r#"{"traceEvents":[, "distributedInfo": {"pg_config": [{"rank": 9}], "rank": 3, "world_size": 4}, "viztracer_metadata":{"baseTimeNanoseconds":5}}"#,
            Some(5),
            Some(3),
        );
        check(r#"{"distributedInfo": {"rank": -1}, "traceEvents":["#, None, None);
        // Cut off.
        check(r#"{"distributedInfo": {"rank": 1"#, None, None);
    }
}

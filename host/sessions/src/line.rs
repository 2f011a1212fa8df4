//! One record as a line of JSON whose last field is a checksum of all bytes before it.
//!
//! ```json
//! {"seq":1,"at":"2026-11-28T12:00:00Z","epoch":1,"type":"name","data":{…},"crc32":"89abcdef"}
//! ```

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{SessionRecord, StoredRecord};

/// The greatest number of a record or an owner. The index and other programs use signed numbers.
pub const NUMBER_MAX: u64 = i64::MAX.unsigned_abs();

/// The longest line with its newline, in bytes. A longer one counts as damaged.
pub const LINE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The deepest nesting of a record's content. The JSON parser refuses more than 128 levels.
const DEPTH_MAX: usize = 100;

/// The text before the checksum and after it.
const CHECKSUM_START: &str = r#","crc32":""#;
const CHECKSUM_END: &str = "\"}";

/// The hexadecimal digits of a checksum.
const CHECKSUM_DIGITS: usize = 8;

/// A line without its checksum.
#[derive(Serialize, Deserialize)]
struct LineFields<D> {
    seq: u64,
    at: Timestamp,
    epoch: u64,
    #[serde(rename = "type")]
    kind: String,
    data: D,
}

/// Why a record cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnwritableRecord {
    /// Its line would be too long.
    #[error("a record of {0} bytes is too long: a session file allows {LINE_BYTES_MAX}")]
    TooLong(u64),
    /// There is no further number for a record or an owner.
    #[error("the file is damaged: its record numbers are too large")]
    Number,
}

/// Writes a record as a line, with its newline. [`decode_record`] can read each line that this
/// returns. A value that is nested too deeply becomes its JSON text.
///
/// # Errors
/// If no line can hold the record.
pub fn encode_record(stored: &StoredRecord) -> Result<Vec<u8>, UnwritableRecord> {
    if stored.seq > NUMBER_MAX || stored.epoch > NUMBER_MAX {
        return Err(UnwritableRecord::Number);
    }
    let line = match is_nested_deeper(&stored.record.data, DEPTH_MAX) {
        true => {
            let data = flatten_below(&stored.record.data, DEPTH_MAX);
            let record = SessionRecord { kind: stored.record.kind.clone(), data };
            let StoredRecord { seq, at_ms, epoch, .. } = *stored;
            format_line(&StoredRecord { seq, at_ms, epoch, record })
        }
        false => format_line(stored),
    };
    check_length(line.len() as u64, LINE_BYTES_MAX)?;
    Ok(line)
}

fn check_length(bytes: u64, bytes_max: u64) -> Result<(), UnwritableRecord> {
    if bytes > bytes_max { Err(UnwritableRecord::TooLong(bytes)) } else { Ok(()) }
}

/// Returns true if a value has more levels of lists and objects than this.
fn is_nested_deeper(value: &Value, levels: usize) -> bool {
    let is_inner_deeper = |inner: &Value| is_nested_deeper(inner, levels - 1);
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => true,
        Value::Array(items) => items.iter().any(is_inner_deeper),
        Value::Object(fields) => fields.values().any(is_inner_deeper),
        _ => false,
    }
}

/// Replaces the lists and objects below this many levels with their JSON text.
fn flatten_below(value: &Value, levels: usize) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => Value::String(value.to_string()),
        Value::Array(items) => items.iter().map(|item| flatten_below(item, levels - 1)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, field)| (key.clone(), flatten_below(field, levels - 1)))
            .collect(),
        other => other.clone(),
    }
}

fn format_line(stored: &StoredRecord) -> Vec<u8> {
    let at = Timestamp::from_millisecond(stored.at_ms).unwrap_or(Timestamp::MAX);
    let SessionRecord { kind, data } = &stored.record;
    let (seq, epoch) = (stored.seq, stored.epoch);
    let fields = LineFields { seq, at, epoch, kind: kind.clone(), data };
    // Maps have text keys, and numbers are finite, so this cannot fail.
    let mut line = serde_json::to_vec(&fields).unwrap_or_default();
    line.pop();
    let checksum = format!("{:08x}", crc32fast::hash(&line));
    for part in [CHECKSUM_START, &checksum, CHECKSUM_END, "\n"] {
        line.extend_from_slice(part.as_bytes());
    }
    line
}

/// Reads a line without its newline. Returns `None` if the checksum is wrong, a field is missing or
/// a number is too large.
pub fn decode_record(line: &[u8]) -> Option<StoredRecord> {
    let end = CHECKSUM_START.len() + CHECKSUM_DIGITS + CHECKSUM_END.len();
    let (fields, checksum) = line.split_at_checked(line.len().checked_sub(end)?)?;
    let digits =
        checksum.strip_prefix(CHECKSUM_START.as_bytes())?.strip_suffix(CHECKSUM_END.as_bytes())?;
    if format!("{:08x}", crc32fast::hash(fields)).as_bytes() != digits {
        return None;
    }
    let whole = [fields, b"}"].concat();
    let LineFields { seq, at, epoch, kind, data } =
        serde_json::from_slice::<LineFields<Value>>(&whole).ok()?;
    if seq > NUMBER_MAX || epoch > NUMBER_MAX {
        return None;
    }
    let record = SessionRecord { kind, data };
    Some(StoredRecord { seq, at_ms: at.as_millisecond(), epoch, record })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample_record() -> StoredRecord {
        let record = SessionRecord::new("name", json!({ "name": "a \"b\" é\n" }));
        StoredRecord { seq: 7, at_ms: 1_795_867_200_123, epoch: 2, record }
    }

    #[test]
    fn record_survives_its_line() {
        let line = encode_record(&sample_record()).unwrap();
        let (end, text) = line.split_last().unwrap();
        assert_eq!(*end, b'\n');
        assert!(!text.contains(&b'\n'));
        assert!(serde_json::from_slice::<Value>(text).unwrap()["crc32"].is_string());
        assert_eq!(decode_record(text).unwrap(), sample_record());
    }

    #[test]
    fn line_with_any_changed_or_missing_byte_is_refused() {
        let line = encode_record(&sample_record()).unwrap();
        let text = &line[..line.len() - 1];
        for at in 0..text.len() {
            let mut changed = text.to_vec();
            changed[at] ^= 1;
            assert_eq!(decode_record(&changed), None, "byte {at}");
            assert_eq!(decode_record(&text[..at]), None, "cut at {at}");
        }
    }

    #[test]
    fn number_above_the_limit_is_neither_written_nor_read() {
        let greatest = StoredRecord { seq: NUMBER_MAX, epoch: NUMBER_MAX, ..sample_record() };
        let line = encode_record(&greatest).unwrap();
        assert_eq!(decode_record(&line[..line.len() - 1]).unwrap(), greatest);
        for (seq, epoch) in [(NUMBER_MAX + 1, 1), (1, NUMBER_MAX + 1), (u64::MAX, u64::MAX)] {
            let stored = StoredRecord { seq, epoch, ..sample_record() };
            assert_eq!(encode_record(&stored), Err(UnwritableRecord::Number));
            let line = format_line(&stored);
            assert_eq!(decode_record(&line[..line.len() - 1]), None);
        }
    }

    #[test]
    fn deeply_nested_value_becomes_text_that_can_be_read() {
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        for levels in [0, 1, DEPTH_MAX, DEPTH_MAX + 1, 500] {
            let record = SessionRecord::new("message", nested(levels));
            let line = encode_record(&StoredRecord { record, ..sample_record() }).unwrap();
            let decoded = decode_record(&line[..line.len() - 1]).unwrap();
            let mut data = &decoded.record.data;
            for _ in 0..levels.min(DEPTH_MAX) {
                data = &data[0];
            }
            let inner = nested(levels.saturating_sub(DEPTH_MAX));
            match inner {
                Value::Array(_) => assert_eq!(*data, json!(inner.to_string())),
                inner => assert_eq!(*data, inner),
            }
        }
    }

    #[test]
    fn line_above_the_limit_is_refused() {
        check_length(LINE_BYTES_MAX, LINE_BYTES_MAX).unwrap();
        let error = check_length(LINE_BYTES_MAX + 1, LINE_BYTES_MAX).unwrap_err();
        let text = "a record of 268435457 bytes is too long: a session file allows 268435456";
        assert_eq!(error.to_string(), text);
    }
}

//! One record as a line of JSON whose last field is a checksum of all bytes before it.
//!
//! ```json
//! {"seq":1,"at":"2026-11-28T12:00:00Z","epoch":1,"type":"name","data":{…},"crc32":"89abcdef"}
//! ```

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{SessionRecord, StoredRecord};

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

/// Writes a record as a line, with its newline.
pub fn encode(stored: &StoredRecord) -> Vec<u8> {
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

/// Reads a line without its newline. Returns `None` if the checksum is wrong or a field is missing.
pub fn decode(line: &[u8]) -> Option<StoredRecord> {
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
    let record = SessionRecord { kind, data };
    Some(StoredRecord { seq, at_ms: at.as_millisecond(), epoch, record })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored() -> StoredRecord {
        let record = SessionRecord::new("name", json!({ "name": "a \"b\" é\n" }));
        StoredRecord { seq: 7, at_ms: 1_795_867_200_123, epoch: 2, record }
    }

    #[test]
    fn record_survives_its_line() {
        let line = encode(&stored());
        let (end, text) = line.split_last().unwrap();
        assert_eq!(*end, b'\n');
        assert!(!text.contains(&b'\n'));
        assert!(serde_json::from_slice::<Value>(text).unwrap()["crc32"].is_string());
        assert_eq!(decode(text).unwrap(), stored());
    }

    #[test]
    fn line_with_any_changed_or_missing_byte_is_refused() {
        let line = encode(&stored());
        let text = &line[..line.len() - 1];
        for at in 0..text.len() {
            let mut changed = text.to_vec();
            changed[at] ^= 1;
            assert_eq!(decode(&changed), None, "byte {at}");
            assert_eq!(decode(&text[..at]), None, "cut at {at}");
        }
    }
}

//! The records that describe a conversation as it is, after all rewinds.

use crate::record::{StoredRecord, record_type};

/// The types of records that a rewind does not take away.
const SURVIVING: [&str; 3] = [record_type::NAME, record_type::RULES, record_type::STATE];

/// Drops the records that rewinds took away, and the rewinds. The others keep their order and their
/// numbers.
///
/// A rewind `{"seq": N}` continues the conversation as it was after record N. It takes away all
/// records between N and itself, except names, rules and states: a rename, a denial, a stricter
/// mode and money spent survive a rewind. N is 0 for an empty conversation, or the number of a
/// record that is still there. A rewind to any other number has no effect, because the conversation
/// at such a record is not known any longer.
pub fn effective_records(records: Vec<StoredRecord>) -> Vec<StoredRecord> {
    let mut kept: Vec<StoredRecord> = Vec::with_capacity(records.len());
    for stored in records {
        if stored.record.kind != record_type::REWIND {
            kept.push(stored);
            continue;
        }
        let target = stored.record.data["seq"].as_u64();
        if let Some(seq) = target.filter(|seq| is_rewind_target(&kept, *seq)) {
            kept.retain(|kept| kept.seq <= seq || SURVIVING.contains(&kept.record.kind.as_str()));
        }
    }
    kept
}

/// Returns true if a rewind to this record has an effect.
pub(crate) fn is_rewind_target(effective: &[StoredRecord], seq: u64) -> bool {
    seq == 0 || effective.iter().any(|stored| stored.seq == seq)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::record::SessionRecord;

    /// Numbers records from 1: a text is a message, a number is a rewind, `name` is a name.
    #[track_caller]
    fn check_effective(records: &[Value], expected: &[u64]) {
        let record = |value: &Value| match value {
            Value::Number(seq) => SessionRecord::new(record_type::REWIND, json!({ "seq": seq })),
            Value::String(text) if text == "name" => {
                SessionRecord::new(record_type::NAME, json!({ "name": text }))
            }
            Value::Object(_) => SessionRecord::new(record_type::REWIND, value.clone()),
            other => SessionRecord::new(record_type::MESSAGE, other.clone()),
        };
        let stored = |(at, value): (usize, &Value)| StoredRecord {
            seq: at as u64 + 1,
            at_ms: 0,
            epoch: 1,
            record: record(value),
        };
        let records: Vec<StoredRecord> = records.iter().enumerate().map(stored).collect();
        let kept = effective_records(records);
        assert_eq!(kept.iter().map(|kept| kept.seq).collect::<Vec<_>>(), expected);
        assert_eq!(effective_records(kept.clone()), kept, "again");
    }

    #[test]
    fn records_without_a_rewind_are_all_effective() {
        check_effective(&[], &[]);
        check_effective(&[json!("a"), json!("name"), json!("b")], &[1, 2, 3]);
    }

    #[test]
    fn rewind_takes_away_the_records_after_its_target() {
        check_effective(&[json!("a"), json!("b"), json!(1), json!("c")], &[1, 4]);
        check_effective(&[json!("a"), json!("b"), json!(0)], &[]);
        check_effective(&[json!("a"), json!("b"), json!(2), json!("c")], &[1, 2, 4]);
    }

    #[test]
    fn rename_survives_a_rewind() {
        check_effective(&[json!("a"), json!("b"), json!("name"), json!("c"), json!(1)], &[1, 3]);
        // It is also a target, with the conversation of that time.
        check_effective(&[json!("a"), json!("b"), json!("name"), json!("c"), json!(3)], &[1, 2, 3]);
        check_effective(&[json!("a"), json!("name"), json!(0), json!("b"), json!(2)], &[2]);
    }

    #[test]
    fn rewinds_can_follow_each_other() {
        let one = [json!("a"), json!("b"), json!("c"), json!(2), json!("d"), json!("e"), json!(5)];
        check_effective(&one, &[1, 2, 5]);
        let further = [json!("a"), json!("b"), json!("c"), json!(2), json!("d"), json!(1)];
        check_effective(&further, &[1]);
    }

    #[test]
    fn rewind_to_a_removed_or_unknown_record_has_no_effect() {
        check_effective(&[json!("a"), json!("b"), json!(1), json!("c"), json!(2)], &[1, 4]);
        check_effective(
            &[json!("a"), json!(7), json!({}), json!({ "seq": "1" }), json!({ "seq": -1 })],
            &[1],
        );
    }
}

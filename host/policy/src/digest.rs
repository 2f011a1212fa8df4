//! A digest of a JSON value, such as a call's arguments, so that a permission can apply to exactly
//! these.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// SHA-256 over a JSON value. The order of an object's keys does not matter. Everything else does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JsonDigest([u8; 32]);

impl JsonDigest {
    /// Digests a value.
    pub fn from_json(arguments: &Value) -> Self {
        let mut hash = Sha256::new();
        write_value(arguments, &mut hash);
        Self(hash.finalize().into())
    }
}

impl fmt::Display for JsonDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<JsonDigest> for String {
    fn from(digest: JsonDigest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for JsonDigest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for JsonDigest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "a digest has 64 hexadecimal digits";
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong);
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Debug for JsonDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes each value as a letter for its type, a length if it can vary, and its content, so that
/// different values never give the same bytes. The JSON parser limits the depth.
fn write_value(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(flag) => hash.update([b'b', u8::from(*flag)]),
        Value::Number(number) => write_text(b'#', &number.to_string(), hash),
        Value::String(text) => write_text(b's', text, hash),
        Value::Array(items) => {
            write_length(b'a', items.len(), hash);
            items.iter().for_each(|item| write_value(item, hash));
        }
        Value::Object(entries) => {
            write_length(b'o', entries.len(), hash);
            // Whether the map sorts depends on a feature that any crate in the build can enable.
            let mut sorted: Vec<_> = entries.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            for (name, value) in sorted {
                write_text(b'k', name, hash);
                write_value(value, hash);
            }
        }
    }
}

fn write_text(kind: u8, text: &str, hash: &mut Sha256) {
    write_length(kind, text.len(), hash);
    hash.update(text);
}

fn write_length(kind: u8, length: usize, hash: &mut Sha256) {
    hash.update([kind]);
    hash.update((length as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let one: Value = serde_json::from_str(r#"{"a":1,"b":{"c":2,"d":3}}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"b":{"d":3,"c":2},"a":1}"#).unwrap();
        assert_eq!(JsonDigest::from_json(&one), JsonDigest::from_json(&other));
    }

    #[test]
    fn a_digest_is_written_and_read_again() {
        let digest = JsonDigest::from_json(&json!({ "a": 1 }));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for wrong in ["", "0", &"g".repeat(64), &"0".repeat(65), &"+1".repeat(32), &"é".repeat(32)]
        {
            assert!(wrong.parse::<JsonDigest>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn different_json_values_have_different_digests() {
        let values = [
            json!(null),
            json!(false),
            json!(true),
            json!(1),
            json!(1.0),
            json!("1"),
            json!([]),
            json!({}),
            json!([1]),
            json!([[1]]),
            json!([1, 2]),
            json!([2, 1]),
            json!(["a", "b"]),
            json!(["ab"]),
            json!({"a": "b"}),
            json!({"ab": ""}),
            json!({"a": ["b"]}),
            json!(["a", "b", null]),
        ];
        for (at, one) in values.iter().enumerate() {
            for other in &values[at + 1..] {
                assert_ne!(
                    JsonDigest::from_json(one),
                    JsonDigest::from_json(other),
                    "{one} {other}"
                );
            }
        }
    }
}

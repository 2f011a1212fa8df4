//! Compares objects and values by content, and finds the reference of an object.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jaato_types::objects::{Object, REFERENCE_KEY};
use serde_json::{Map, Value};

/// Returns an object's reference.
pub(crate) fn object_reference(object: &Object) -> Option<&str> {
    object.get(REFERENCE_KEY)?.as_str()
}

/// Returns true if two values are the same JSON: numbers are compared by value, keys in any order.
pub(crate) fn is_same_json(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other
                || one.as_f64().is_some_and(|one| other.as_f64() == Some(one))
                    && !is_beyond_float(one)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same_json(one, other))
        }
        (Value::Object(one), Value::Object(other)) => is_same_map(one, other),
        _ => one == other,
    }
}

/// Returns true for whole numbers that a float cannot represent exactly.
fn is_beyond_float(number: &serde_json::Number) -> bool {
    number.as_f64().is_none_or(|number| number.abs() >= 9_007_199_254_740_992.0)
}

/// Like [`is_same_json`], for objects.
pub(crate) fn is_same_map(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.len() == other.len()
        && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| is_same_json(one, other)))
}

/// Returns true if two objects have the same content, ignoring their references.
pub(crate) fn has_same_content(one: &Object, other: &Object) -> bool {
    let count = |object: &Object| object.len() - usize::from(object.contains_key(REFERENCE_KEY));
    let mut content = one.iter().filter(|(key, _)| *key != REFERENCE_KEY);
    count(one) == count(other)
        && content.all(|(key, one)| other.get(key).is_some_and(|other| is_same_json(one, other)))
}

/// Returns a hash that is equal for objects with the same content.
pub(crate) fn content_hash(object: &Object) -> u64 {
    let content = object.iter().filter(|(key, _)| *key != REFERENCE_KEY);
    content.map(|(key, value)| entry_hash(key, value)).fold(0, u64::wrapping_add)
}

/// Returns a hash that is equal for equal maps.
pub(crate) fn map_hash(map: &Map<String, Value>) -> u64 {
    map.iter().map(|(key, value)| entry_hash(key, value)).fold(0, u64::wrapping_add)
}

/// Returns a hash that is equal for a key with equal values.
pub(crate) fn entry_hash(key: &str, value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, value_hash(value)).hash(&mut hasher);
    hasher.finish()
}

fn value_hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    std::mem::discriminant(value).hash(&mut hasher);
    match value {
        Value::Null => {}
        Value::Bool(value) => value.hash(&mut hasher),
        // As in [`is_same_json`]: 1 equals 1.0, and 0 equals -0.
        Value::Number(number) => match number.as_f64() {
            Some(number) => (number + 0.0).to_bits().hash(&mut hasher),
            None => number.hash(&mut hasher),
        },
        Value::String(text) => text.hash(&mut hasher),
        Value::Array(values) => values.iter().for_each(|value| value_hash(value).hash(&mut hasher)),
        Value::Object(map) => {
            map_hash(map).hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_value_and_types_are_distinct() {
        assert!(is_same_json(&json!(1), &json!(1.0)));
        assert!(is_same_json(&json!({ "a": [1], "b": null }), &json!({ "b": null, "a": [1.0] })));
        assert!(!is_same_json(&json!(1), &json!(true)));
        assert!(!is_same_json(&json!(0), &json!(null)));
        assert!(!is_same_json(&json!("1"), &json!(1)));
        assert!(!is_same_json(
            &json!(9_007_199_254_740_993_i64),
            &json!(9_007_199_254_740_992_i64)
        ));
        assert!(!is_same_json(&json!([1]), &json!([1, 2])));
        assert!(!is_same_json(&json!({ "a": 1 }), &json!({ "a": 1, "b": 1 })));
    }

    #[test]
    fn equal_content_has_the_same_hash() {
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        let one = object(json!({ "a": 1, "b": [{ "c": 2.0, "d": -0.0 }], "_REF_ID": "t_1" }));
        let other = object(json!({ "b": [{ "d": 0, "c": 2 }], "_REF_ID": "t_9", "a": 1.0 }));
        assert!(has_same_content(&one, &other));
        assert_eq!(content_hash(&one), content_hash(&other));
        let third = object(json!({ "a": 1, "b": [{ "c": 2, "d": 1 }] }));
        assert!(!has_same_content(&one, &third));
        assert_ne!(content_hash(&one), content_hash(&third));
    }
}

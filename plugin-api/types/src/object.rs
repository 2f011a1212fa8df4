//! Converts JSON values, as from `json!({…})`, to JSON objects.

use crate::text::truncate_chars;

use serde_json::{Map, Value};

use crate::{Error, ErrorKind, Result};

/// The maximum number of characters of a value in an error: enough to find it in the source code.
const SHOWN_CHARS_MAX: usize = 60;

/// Converts a JSON value to an object.
///
/// ```
/// use jaato_types::to_object;
/// use serde_json::json;
///
/// assert_eq!(to_object(json!({ "animal": "frog" }))?["animal"], "frog");
/// assert!(to_object(json!(["frog"])).is_err());
/// # Ok::<(), jaato_types::Error>(())
/// ```
///
/// # Errors
/// `invalid_arguments` if the value is not an object.
pub fn to_object(value: impl Into<Value>) -> Result<Map<String, Value>> {
    match value.into() {
        Value::Object(object) => Ok(object),
        other => {
            let text = other.to_string();
            let shown = truncate_chars(&text, SHOWN_CHARS_MAX);
            let what = match other {
                Value::Null => "null",
                Value::Bool(_) => "a boolean",
                Value::Number(_) => "a number",
                Value::String(_) => "a text",
                Value::Array(_) => "a list",
                Value::Object(_) => "an object",
            };
            let text = format!("expected an object, but `{shown}` is {what}");
            let hint = "write it with keys: `json!({ \"name\": … })`";
            Err(Error::new(ErrorKind::InvalidArguments, text).with_hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn non_object_value_is_named_in_the_error() {
        assert_eq!(json!(to_object(json!({ "a": 1 })).unwrap()), json!({ "a": 1 }));
        assert_eq!(to_object(Map::new()).unwrap(), Map::new());
        for (value, what) in [
            (json!(null), "`null` is null"),
            (json!(true), "`true` is a boolean"),
            (json!(7), "`7` is a number"),
            (json!("é"), "`\"é\"` is a text"),
            (json!([1]), "`[1]` is a list"),
        ] {
            let error = to_object(value).unwrap_err();
            assert_eq!(error.message, format!("expected an object, but {what}"));
        }
        let long = to_object(json!("é".repeat(1000))).unwrap_err().message;
        assert!(long.len() < 200 && long.contains("…` is a text"), "{long}");
    }
}

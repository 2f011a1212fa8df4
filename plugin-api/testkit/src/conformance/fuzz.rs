//! Bad input: malformed frames, and arguments that do not fit a schema.

use jaato_types::text::truncate_chars;
use jaato_types::{ErrorKind, FRAME_BYTES_MAX, Frame, Result};
use serde_json::{Map, Value, json};

use super::{ConformanceVerdict, check_error_text};

/// Returns frames that no plugin may accept.
pub(super) fn bad_frames() -> Vec<Vec<u8>> {
    let broken = |json: &[u8]| Frame::from_json_text(json, &[]).unwrap_or_default();
    vec![
        Vec::new(),
        vec![1, 0, 0],
        vec![9, 0, 0, 0, b'{', b'}'],
        vec![255, 255, 255, 255, b'{', b'}'],
        vec![0; FRAME_BYTES_MAX + 1],
        broken(b"{"),
        broken(b"moon"),
        broken(&[0xff, 0xfe, 0]),
        broken(&[b'['; 100_000]),
        broken(b"{} {}"),
    ]
}

/// Describes a frame briefly.
pub(super) fn display_frame(frame: &[u8]) -> String {
    let start = String::from_utf8_lossy(&frame[..frame.len().min(40)]).into_owned();
    format!("a frame of {} bytes, {start:?}", frame.len())
}

/// Checks that each bad frame is answered with an error, and not with success, a panic or silence.
pub(super) fn check_bad_frames_refused<T>(
    what: &str,
    ask: impl Fn(Vec<u8>) -> Result<T>,
) -> ConformanceVerdict {
    for frame in bad_frames() {
        let shown = format!("{what} with {}", display_frame(&frame));
        match ask(frame) {
            Ok(_) => return Err(format!("{shown} is accepted as valid")),
            Err(error) => check_error_text(&shown, &error)?,
        }
    }
    Ok(())
}

/// Returns values of every type, small and extreme.
fn odd_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("\u{0}\u{202e}é"),
        json!("x".repeat(100_000)),
        json!([]),
        json!([[[null]]]),
        json!({}),
        json!({ "no_such_property": 1 }),
    ]
}

/// Returns arguments of a wrong *type*, each made from good ones with one change. The tool's own
/// parser must refuse them, so that no tool runs with them.
pub(super) fn wrong_arguments(schema: &Value, good: &Map<String, Value>) -> Vec<Value> {
    let mut wrong = vec![json!([]), json!("moon"), json!(42), json!(true)];
    let with = |name: &str, value: Value| {
        let mut arguments = good.clone();
        arguments.insert(name.to_owned(), value);
        Value::Object(arguments)
    };
    wrong.push(with("no_such_property", json!(1)));
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let mut arguments = good.clone();
        arguments.remove(required);
        wrong.push(Value::Object(arguments));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let Some(types) = schema_types(property) else { continue };
        let of_another_type = |value: &Value| !types.iter().any(|kind| is_of_type(value, kind));
        wrong.extend(
            odd_values().into_iter().filter(of_another_type).map(|value| with(name, value)),
        );
    }
    wrong
}

/// Returns unusual arguments of the right types. A tool may accept or refuse them, but must not
/// panic.
pub(super) fn odd_arguments(schema: &Value, good: &Map<String, Value>) -> Vec<Value> {
    let mut odd = vec![Value::Object(good.clone())];
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let Some(types) = schema_types(property) else { continue };
        let of_this_type = |value: &Value| types.iter().any(|kind| is_of_type(value, kind));
        for value in odd_values().into_iter().filter(of_this_type) {
            let mut arguments = good.clone();
            arguments.insert(name.clone(), value);
            odd.push(Value::Object(arguments));
        }
    }
    odd
}

/// Returns the types that a property declares, or `None` if it does not declare them plainly.
fn schema_types(property: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match property.get("type")? {
        Value::Array(types) => types.iter().map(text).collect(),
        one => Some(vec![text(one)?]),
    }
}

fn is_of_type(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        // An integer may be written with a decimal point, which serde does not accept: leave these
        // out.
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        // serde also reads structs from lists: leave these out.
        "object" => value.is_object() || value.is_array(),
        _ => true,
    }
}

/// Checks a plugin's answer to wrong arguments.
pub(super) fn check_refusal<T>(
    what: &str,
    arguments: &Value,
    answer: &Result<T>,
) -> ConformanceVerdict {
    let arguments = arguments.to_string();
    let shown = truncate_chars(&arguments, 200);
    match answer {
        Ok(_) => Err(format!("{what} accepts {shown}, which its schema does not allow")),
        Err(error) if error.kind == ErrorKind::InvalidArguments => Ok(()),
        Err(error) => Err(format!(
            "{what} answers `{}` to {shown}, not `invalid_arguments`: {}",
            error.kind.name(),
            error.message
        )),
    }
}

//! The settings of a request, in the words of chat completions. Pure.

use jaato_plugin_sdk::serde::Serialize;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Effort, Request, ToolChoice};

use crate::dialect::Dialect;

/// What this provider honours of a request's options, by their names there.
pub const NAMES: [&str; 9] = [
    "max_output_tokens",
    "temperature",
    "stream",
    "effort",
    "tool_choice",
    "output_schema",
    "stop",
    "seed",
    "session_key",
];

/// What an answer's schema is called, because it has to be called something.
const SCHEMA_NAME: &str = "answer";

/// Longest key of a cache that OpenAI takes, in characters.
const CACHE_KEY_CHARS_MAX: usize = 64;

/// How deep a schema may be that is held to word by word.
const STRICT_DEPTH_MAX: usize = 10;

/// What such a schema may say: more is refused.
const STRICT_WORDS: [&str; 20] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "definitions",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "properties",
    "required",
    "title",
    "type",
];

/// The settings of a body; the order of the fields is what is sent.
#[derive(Serialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
pub(crate) struct Settings<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
}

impl<'a> Settings<'a> {
    /// Takes them from a request.
    pub(crate) fn new(request: &'a Request, dialect: Dialect) -> Self {
        let options = &request.options;
        let is_vendors = dialect == Dialect::Vendor;
        let most = options.max_output_tokens;
        let key = options.session_key.as_deref().filter(|key| is_vendors && !key.is_empty());
        Self {
            temperature: options.temperature,
            max_tokens: most.filter(|_| !is_vendors),
            max_completion_tokens: most.filter(|_| is_vendors),
            reasoning_effort: options.effort.and_then(|effort| effort_word(effort, dialect)),
            // Servers refuse a choice among no tools.
            tool_choice: options
                .tool_choice
                .filter(|_| !request.tools.is_empty())
                .and_then(choice_word),
            response_format: options.output_schema.as_ref().map(response_format),
            stop: options.stop.iter().map(String::as_str).filter(|text| !text.is_empty()).collect(),
            // Servers keep it as a signed number.
            seed: options.seed.map(|seed| seed & (u64::MAX >> 1)),
            prompt_cache_key: key.map(begin_of_key),
        }
    }
}

fn effort_word(effort: Effort, dialect: Dialect) -> Option<&'static str> {
    Some(match (effort, dialect) {
        (Effort::None, _) => "none",
        (Effort::Minimal, _) => "minimal",
        (Effort::Low, _) => "low",
        (Effort::Medium, _) => "medium",
        // The most that all servers know.
        (Effort::High, _) | (Effort::Max, Dialect::Common) => "high",
        (Effort::Max, Dialect::Vendor | Dialect::Router) => "xhigh",
        (Effort::Unknown, _) => return None,
    })
}

fn choice_word(choice: ToolChoice) -> Option<&'static str> {
    match choice {
        ToolChoice::Auto => Some("auto"),
        ToolChoice::Required => Some("required"),
        ToolChoice::None => Some("none"),
        ToolChoice::Unknown => None,
    }
}

fn begin_of_key(key: &str) -> &str {
    let end = key.char_indices().nth(CACHE_KEY_CHARS_MAX).map_or(key.len(), |(end, _)| end);
    &key[..end]
}

fn response_format(schema: &Value) -> Value {
    let is_strict = schema["type"] == "object" && fits_strict(schema, STRICT_DEPTH_MAX);
    let format = json!({ "name": SCHEMA_NAME, "schema": schema, "strict": is_strict });
    json!({ "type": "json_schema", "json_schema": format })
}

/// Tells whether a schema keeps the rules of those that are held to word by word: each object
/// requires all its properties and has no others, and nothing is said that servers do not hold to.
/// A schema that does not is sent all the same, and the model does what it can.
fn fits_strict(schema: &Value, depth: usize) -> bool {
    let (Some(words), Some(depth)) = (schema.as_object(), depth.checked_sub(1)) else {
        return false;
    };
    let is_known = words.keys().all(|word| STRICT_WORDS.contains(&word.as_str()));
    let each = |word: &str| {
        let inner = words.get(word).and_then(Value::as_object);
        inner.is_none_or(|inner| inner.values().all(|schema| fits_strict(schema, depth)))
    };
    let of_items = words.get("items").is_none_or(|items| fits_strict(items, depth));
    let of_any = words.get("anyOf").is_none_or(|any| {
        any.as_array().is_some_and(|any| any.iter().all(|schema| fits_strict(schema, depth)))
    });
    is_known
        && is_closed(schema)
        && of_items
        && of_any
        && ["properties", "$defs", "definitions"].into_iter().all(each)
}

/// Tells whether an object requires all its properties and has no others; what is no object is.
fn is_closed(schema: &Value) -> bool {
    let is_object = match &schema["type"] {
        Value::String(name) => name == "object",
        Value::Array(names) => names.iter().any(|name| name == "object"),
        _ => schema.get("properties").is_some(),
    };
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_required = |name: &String| required.iter().any(|one| one == name);
    let has_all = || schema["properties"].as_object().is_some_and(|it| it.keys().all(is_required));
    !is_object || (schema["additionalProperties"] == false && has_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_strict(schema: Value) -> bool {
        response_format(&schema)["json_schema"]["strict"].as_bool().unwrap()
    }

    fn of(properties: Value, required: Value) -> Value {
        json!({ "type": "object", "properties": properties, "required": required,
            "additionalProperties": false })
    }

    #[test]
    fn a_schema_is_held_to_where_it_keeps_the_rules() {
        assert!(is_strict(of(json!({}), json!([]))));
        let inner = of(json!({ "b": { "type": ["string", "null"] } }), json!(["b"]));
        let list = json!({ "type": "array", "items": { "$ref": "#/$defs/inner" } });
        let mut whole = of(json!({ "a": list, "c": { "anyOf": [inner] } }), json!(["c", "a"]));
        whole["$defs"] = json!({ "inner": inner });
        assert!(is_strict(whole.clone()));
        // Wherever a rule is broken.
        for path in ["/$defs/inner", "/properties/c/anyOf/0", ""] {
            let mut open = whole.clone();
            open.pointer_mut(path).unwrap()["additionalProperties"] = json!(true);
            assert!(!is_strict(open), "{path}");
            let mut optional = whole.clone();
            optional.pointer_mut(path).unwrap()["required"] = json!([]);
            assert!(!is_strict(optional), "{path}");
            let mut other = whole.clone();
            other.pointer_mut(path).unwrap()["patternProperties"] = json!({});
            assert!(!is_strict(other), "{path}");
        }
    }

    #[test]
    fn what_is_no_object_or_no_schema_is_not_held_to() {
        for schema in [
            json!({ "type": "array", "items": { "type": "string" } }),
            json!({ "type": "object" }),
            json!({ "type": "object", "additionalProperties": false }),
            of(json!({ "a": true }), json!(["a"])),
            of(json!({ "a": { "type": "array", "items": false } }), json!(["a"])),
            of(json!({ "a": { "anyOf": {} } }), json!(["a"])),
            json!(null),
            json!("x"),
        ] {
            assert!(!is_strict(schema.clone()), "{schema}");
        }
    }

    #[test]
    fn a_schema_that_is_too_deep_is_not_held_to() {
        let nested = |depth: usize| {
            (1..depth).fold(of(json!({}), json!([])), |it, _| of(json!({ "a": it }), json!(["a"])))
        };
        assert!(is_strict(nested(STRICT_DEPTH_MAX)) && !is_strict(nested(STRICT_DEPTH_MAX + 1)));
    }

    #[test]
    fn a_key_that_is_too_long_is_cut() {
        assert_eq!(begin_of_key("é"), "é");
        assert_eq!(begin_of_key(&"é".repeat(65)).chars().count(), CACHE_KEY_CHARS_MAX);
    }
}

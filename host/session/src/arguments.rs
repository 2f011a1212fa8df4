//! Checks a call's arguments against the tool's schema before a plugin sees them.
//!
//! A mismatch is written so that a model can repair its call: it has the path, the problem, and the
//! allowed values if they are known. Values that only have a different JSON type were already
//! converted ([`jaato_types::fit_arguments`]). Nothing else is filled in or converted.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use jaato_types::text::truncate_bytes;
use jaato_types::{Error, ErrorKind, Result, ToolName, ToolSpec};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use parking_lot::Mutex;
use serde_json::Value;

/// The maximum number of mismatches that one message lists. A model repairs the rest in later
/// calls.
const MISMATCHES_MAX: usize = 5;
/// The longest piece of a value or list that a message repeats, in bytes.
const VALUE_BYTES_MAX: usize = 400;

/// A cache of schemas, each compiled when its tool is first called.
#[derive(Debug, Default)]
pub struct ArgumentChecks {
    compiled: Mutex<HashMap<ToolName, CompiledSchema>>,
}

/// A compiled schema, or the error of a schema that does not compile.
type CompiledSchema = Arc<Result<Validator>>;

impl Clone for ArgumentChecks {
    fn clone(&self) -> Self {
        Self { compiled: Mutex::new(self.compiled.lock().clone()) }
    }
}

impl ArgumentChecks {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks arguments against the tool's schema.
    pub fn check_tool_arguments(&self, spec: &ToolSpec, arguments: &Value) -> Result<()> {
        if !arguments.is_object() {
            return Err(not_an_object_error(spec, arguments));
        }
        match &*self.compile_schema(spec) {
            Ok(validator) => check_arguments(validator, spec, arguments),
            Err(error) => Err(error.clone()),
        }
    }

    fn compile_schema(&self, spec: &ToolSpec) -> CompiledSchema {
        let mut compiled = self.compiled.lock();
        if let Some(known) = compiled.get(&spec.name) {
            return Arc::clone(known);
        }
        let fresh = Arc::new(compile_validator(spec));
        compiled.insert(spec.name.clone(), Arc::clone(&fresh));
        fresh
    }
}

fn compile_validator(spec: &ToolSpec) -> Result<Validator> {
    jsonschema::validator_for(&spec.parameters).map_err(|error| {
        let text = format!("the schema of tool `{}` is not valid: {error}", spec.name);
        Error::new(ErrorKind::PluginMisbehaved, text)
            .with_hint("the tool cannot be called until its plugin is fixed")
    })
}

fn not_an_object_error(spec: &ToolSpec, arguments: &Value) -> Error {
    let found = shorten_value(&arguments.to_string());
    let text = format!(
        "the arguments of `{}` must be a JSON object, not {} `{found}`",
        spec.name,
        type_name(arguments)
    );
    Error::new(ErrorKind::InvalidArguments, text).with_hint(describe_properties(spec))
}

fn check_arguments(validator: &Validator, spec: &ToolSpec, arguments: &Value) -> Result<()> {
    let mut mismatches = validator.iter_errors(arguments);
    let Some(first) = mismatches.next() else { return Ok(()) };
    let mut text = format!("the arguments of `{}` do not match its schema: ", spec.name);
    text.push_str(&describe_mismatch(&first));
    for mismatch in mismatches.by_ref().take(MISMATCHES_MAX - 1) {
        text.push_str("; ");
        text.push_str(&describe_mismatch(&mismatch));
    }
    match mismatches.count() {
        0 => {}
        more => text.push_str(&format!("; and {more} more")),
    }
    Err(Error::new(ErrorKind::InvalidArguments, text).with_hint(describe_properties(spec)))
}

/// Describes the path of a mismatch and the problem there.
fn describe_mismatch(mismatch: &ValidationError<'_>) -> String {
    let path = mismatch.instance_path().as_str();
    let place = if path.is_empty() { String::new() } else { format!("at `{path}`: ") };
    let found = shorten_value(&mismatch.instance().to_string());
    let what = match mismatch.kind() {
        ValidationErrorKind::Enum { options } => {
            format!(
                "`{found}` is not one of the allowed values: {}",
                format_allowed_values(options)
            )
        }
        ValidationErrorKind::Constant { expected_value } => {
            format!("`{found}` is not the only allowed value: `{expected_value}`")
        }
        ValidationErrorKind::Required { property } => {
            format!("the required property `{}` is missing", unquoted_value(property))
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("unknown properties: `{}`", shorten_value(&unexpected.join("`, `")))
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            describe_choice_mismatch(&found, context)
        }
        _ => shorten_value(&mismatch.to_string()),
    };
    format!("{place}{what}")
}

/// Optional enums are written as a choice of schemas, so the allowed values are inside them.
fn describe_choice_mismatch(found: &str, context: &[Vec<ValidationError<'static>>]) -> String {
    let mut text = format!("`{found}` fits none of the allowed forms");
    let reasons: Vec<String> = context.iter().flatten().map(describe_mismatch).collect();
    if !reasons.is_empty() {
        let _infallible = write!(text, " ({})", shorten_value(&reasons.join("; ")));
    }
    text
}

fn format_allowed_values(options: &Value) -> String {
    let list: Vec<String> = match options {
        Value::Array(options) => {
            options.iter().map(|option| format!("`{}`", unquoted_value(option))).collect()
        }
        other => vec![format!("`{}`", unquoted_value(other))],
    };
    // Not shortened, because the model needs the whole list to repair its call.
    list.join(", ")
}

/// Describes the tool's properties, and which of them are required.
fn describe_properties(spec: &ToolSpec) -> String {
    let names = |value: Option<&Value>| -> Vec<String> {
        match value {
            Some(Value::Object(map)) => map.keys().cloned().collect(),
            Some(Value::Array(list)) => list.iter().map(unquoted_value).collect(),
            Some(_) | None => Vec::new(),
        }
    };
    let properties = names(spec.parameters.get("properties"));
    let required = names(spec.parameters.get("required"));
    if properties.is_empty() {
        return "it takes no arguments: pass `{}`".to_owned();
    }
    let list: Vec<String> = properties
        .iter()
        .map(|name| {
            let mark = if required.contains(name) { " (required)" } else { "" };
            format!("`{name}`{mark}")
        })
        .collect();
    format!("its properties are {}", shorten_value(&list.join(", ")))
}

/// Returns a string without its quotes, and any other value as JSON.
fn unquoted_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "the boolean",
        Value::Number(_) => "the number",
        Value::String(_) => "the string",
        Value::Array(_) => "the array",
        Value::Object(_) => "the object",
    }
}

fn shorten_value(text: &str) -> String {
    truncate_bytes(text, VALUE_BYTES_MAX)
}

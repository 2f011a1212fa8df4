//! Checks arguments against a tool's schema, like the host does before a plugin gets them.

use jaato_types::{Error, ErrorKind, Result, ToolSpec};
use serde_json::Value;

/// Checks arguments against the tool's schema.
///
/// # Errors
/// `invalid_arguments` for arguments that do not match, `plugin_misbehaved` for an invalid schema.
pub fn check_arguments(spec: &ToolSpec, arguments: &Value) -> Result<()> {
    if !arguments.is_object() {
        let text = format!("the arguments of `{}` must be a JSON object", spec.name);
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    check_schema(&spec.parameters, arguments).map_err(|error| {
        let text =
            format!("the arguments of `{}` do not match its schema: {}", spec.name, error.message);
        Error { message: text, ..error }
    })
}

/// Checks a value against a schema.
///
/// # Errors
/// As [`check_arguments`].
pub(crate) fn check_schema(schema: &Value, value: &Value) -> Result<()> {
    let validator = jsonschema::validator_for(schema).map_err(|error| {
        Error::new(ErrorKind::PluginMisbehaved, format!("the schema is not valid: {error}"))
    })?;
    let mismatches: Vec<String> = validator
        .iter_errors(value)
        .map(|mismatch| match mismatch.instance_path().as_str() {
            "" => mismatch.to_string(),
            path => format!("at `{path}`: {mismatch}"),
        })
        .collect();
    if mismatches.is_empty() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidArguments, mismatches.join("; ")))
}

//! Generates JSON Schemas from types in a form for models: inlined, without titles, and with enums
//! as plain lists.

use jaato_types::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Generates the schema of an object type for a tool spec or a configuration schema.
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.shift_remove("title");
        // The tool's description already contains it.
        object.shift_remove("description");
        object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Some(closed) = object.shift_remove("additionalProperties") {
            object.insert("additionalProperties".to_owned(), closed);
        }
    }
    simplify_schema(&mut schema);
    schema
}

/// Parses arguments. Missing arguments count as an empty object.
///
/// # Errors
/// `invalid_arguments` with the name of the argument and serde's message.
pub fn parse_arguments<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    let json = if json.is_empty() || json == b"null" { b"{}" } else { json };
    // serde would also read a struct from a list, field by field.
    if json.trim_ascii_start().first() == Some(&b'[') {
        let text = "the arguments are a list, not an object";
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let arguments: T =
        serde_path_to_error::deserialize(&mut deserializer).map_err(invalid_argument_error)?;
    deserializer
        .end()
        .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
    Ok(arguments)
}

/// Creates an error that names the invalid argument: `edits[0].line`.
fn invalid_argument_error(error: serde_path_to_error::Error<serde_json::Error>) -> Error {
    let path = error.path().to_string();
    let text = match path.as_str() {
        "." => error.into_inner().to_string(),
        path => format!("`{path}`: {}", error.inner()),
    };
    Error::new(ErrorKind::InvalidArguments, text)
}

/// Creates an object from pairs.
pub fn to_json_object(pairs: Vec<(String, Value)>) -> Map<String, Value> {
    pairs.into_iter().collect()
}

fn simplify_schema(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            list_constants(object);
            // Rust's number formats mean nothing to a model, and validators ignore them.
            if object.get("type").is_some_and(|kind| kind != "string") {
                object.shift_remove("format");
            }
            object.values_mut().for_each(simplify_schema);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify_schema),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Converts `oneOf` constants, which schemars generates for documented enum variants, to one
/// `enum`. The documentation of the variants moves into the description.
fn list_constants(object: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = object.get("oneOf") else { return };
    let mut names = Vec::new();
    let mut says = Vec::new();
    for variant in variants {
        if let Some(constant) = variant.get("const") {
            names.push(constant.clone());
            if let (Some(name), Some(text)) = (constant.as_str(), variant["description"].as_str()) {
                says.push(format!("`{name}`: {}", text.trim_end_matches('.')));
            }
        } else if let Some(Value::Array(plain)) = variant.get("enum") {
            names.extend(plain.iter().cloned());
        } else {
            return;
        }
    }
    object.shift_remove("oneOf");
    object.insert("type".to_owned(), "string".into());
    object.insert("enum".to_owned(), Value::Array(names));
    if !says.is_empty() {
        let own = object.get("description").and_then(Value::as_str).map(|own| format!("{own} "));
        let text = format!("{}{}.", own.unwrap_or_default(), says.join("; "));
        object.insert("description".to_owned(), text.into());
    }
}

//! Reads typed values from the keys of a profile, and collects all errors. Pure.

use jaato_plugin_sdk::serde_json::{Map, Value};

use crate::tool_choice::split_at_commas;

/// The maximum number of errors and of warnings.
const PROBLEMS_MAX: usize = 20;

/// Reads keys. Null counts as absent.
#[derive(Debug)]
pub struct FieldReader<'a> {
    fields: &'a Map<String, Value>,
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl<'a> FieldReader<'a> {
    /// Starts to read.
    pub fn new(fields: &'a Map<String, Value>) -> Self {
        Self { fields, errors: Vec::new(), warnings: Vec::new() }
    }

    /// Ends the reading, and returns the errors and the warnings.
    pub fn into_errors_and_warnings(self) -> (Vec<String>, Vec<String>) {
        (self.errors, self.warnings)
    }

    /// Adds an error.
    pub fn add_error(&mut self, text: impl Into<String>) {
        if self.errors.len() < PROBLEMS_MAX {
            self.errors.push(text.into());
        }
    }

    /// Adds a warning.
    pub fn add_warning(&mut self, text: impl Into<String>) {
        if self.warnings.len() < PROBLEMS_MAX {
            self.warnings.push(text.into());
        }
    }

    /// Returns true if the key has a value.
    pub fn has_field(&self, key: &str) -> bool {
        self.field_value(key).is_some()
    }

    /// Reads a text.
    pub fn read_text(&mut self, key: &str) -> Option<String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.read_with(key, "must be a string", text)
    }

    /// Reads true or false.
    pub fn read_bool(&mut self, key: &str) -> Option<bool> {
        self.read_with(key, "must be a boolean", Value::as_bool)
    }

    /// Reads a whole number above 0.
    pub fn read_positive_integer(&mut self, key: &str) -> Option<u64> {
        let positive = |value: &Value| value.as_u64().filter(|number| *number > 0);
        self.read_with(key, "must be a positive integer", positive)
    }

    /// Reads a number above 0.
    pub fn read_positive_number(&mut self, key: &str) -> Option<f64> {
        let amount = |value: &Value| value.as_f64().filter(|number| *number > 0.0);
        self.read_with(key, "must be a positive number", amount)
    }

    /// Reads an object.
    pub fn read_object(&mut self, key: &str) -> Option<Map<String, Value>> {
        self.read_with(key, "must be an object", |value| value.as_object().cloned())
    }

    /// Reads a list of texts.
    pub fn read_text_list(&mut self, key: &str) -> Option<Vec<String>> {
        let items = self.read_with(key, "must be an array", |value| value.as_array().cloned())?;
        let texts: Option<_> = items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
        if texts.is_none() {
            self.add_error(format!("'{key}' must contain only strings"));
        }
        texts
    }

    /// Reads a list of texts, which may be one text with commas.
    pub fn read_list_or_text(&mut self, key: &str) -> Option<Vec<String>> {
        let list = |value: &Value| match value {
            Value::String(text) => Some(split_at_commas(text)),
            Value::Array(items) => items.iter().map(|it| it.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        self.read_with(key, "must be an array of strings or a list with commas", list)
    }

    fn field_value(&self, key: &str) -> Option<&'a Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    fn read_with<T>(
        &mut self,
        key: &str,
        wanted: &str,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        let converted = convert(self.field_value(key)?);
        if converted.is_none() {
            self.add_error(format!("'{key}' {wanted}"));
        }
        converted
    }
}

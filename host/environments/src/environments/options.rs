//! The user's environment options for one session: plugin settings that override the configuration.
//!
//! Pure. The user's command line may also set what a workspace may not.

use jaato_registry::nearest_name;
use jaato_types::{Description, Error, ErrorKind};
use serde_json::{Map, Value};

/// Maximum depth of `$ref` chains to follow in a schema.
const REFERENCES_MAX: usize = 8;

/// Parses settings of any plugin from the command line, without checking their names and values.
///
/// # Errors
/// `configuration` if a setting is given twice.
pub fn parse_settings(
    description: &Description,
    given: &[(String, String)],
) -> Result<Map<String, Value>, Error> {
    EnvironmentOptions::from_description("", description).parse_pairs(given)
}

/// The settings of an environment, as its plugin describes them.
pub(super) struct EnvironmentOptions<'a> {
    environment: &'a str,
    schema: Option<&'a Value>,
}

impl<'a> EnvironmentOptions<'a> {
    /// Reads the settings from a plugin's description.
    pub(super) fn from_description(environment: &'a str, description: &'a Description) -> Self {
        Self { environment, schema: description.config_schema.as_ref() }
    }

    /// Parses options from the command line. A value stays text if the setting is a text. Any other
    /// value is JSON. A list may be given item by item.
    ///
    /// # Errors
    /// `configuration` if a setting is unknown or given twice.
    pub(super) fn parse_options(
        &self,
        given: &[(String, String)],
    ) -> Result<Map<String, Value>, Error> {
        given.iter().try_for_each(|(key, _)| self.check_name(key))?;
        self.parse_pairs(given)
    }

    fn parse_pairs(&self, given: &[(String, String)]) -> Result<Map<String, Value>, Error> {
        let mut read = Map::new();
        for (key, text) in given {
            let value = self.parse_value(key, text);
            match (read.get_mut(key), value) {
                (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
                (Some(_), _) => {
                    let text = format!("the option `{key}` is given twice");
                    return Err(Error::new(ErrorKind::Configuration, text));
                }
                (None, value) => drop(read.insert(key.clone(), value)),
            }
        }
        Ok(read)
    }

    /// Validates options, each on its own. A plugin without a schema validates its own options.
    ///
    /// # Errors
    /// `configuration` if a setting is unknown, or the schema rejects its value.
    pub(super) fn check_options(&self, options: &Map<String, Value>) -> Result<(), Error> {
        let Some(schema) = self.schema.filter(|_| !options.is_empty()) else { return Ok(()) };
        options.keys().try_for_each(|key| self.check_name(key))?;
        let validator = jsonschema::validator_for(schema).map_err(|error| {
            let environment = self.environment;
            let text = format!("the settings of `{environment}` have a broken schema: {error}");
            Error::new(ErrorKind::PluginMisbehaved, text)
        })?;
        // Required settings that are missing here come from the configuration.
        let all = Value::Object(options.clone());
        let wrong = validator.iter_errors(&all).find_map(|error| {
            let path = error.instance_path().to_string();
            let key = path.split('/').nth(1)?.to_owned();
            options.contains_key(&key).then(|| (key, error.to_string()))
        });
        let Some((key, error)) = wrong else { return Ok(()) };
        let text = format!(
            "the option `{key}` of the environment `{}` is invalid: {error}",
            self.environment
        );
        Err(Error::new(ErrorKind::Configuration, text))
    }

    fn check_name(&self, key: &str) -> Result<(), Error> {
        let Some(schema) = self.schema else { return Ok(()) };
        let known = schema.get("properties").and_then(Value::as_object);
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        if !is_closed || known.is_some_and(|known| known.contains_key(key)) {
            return Ok(());
        }
        let text = format!("the environment `{}` has no option `{key}`", self.environment);
        let names: Vec<_> = known.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let hint = match nearest_name(key, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "it has no options".to_owned(),
            None => format!("its options are: {}", names.join(", ")),
        };
        Err(Error::new(ErrorKind::Configuration, text).with_hint(hint))
    }

    fn parse_value(&self, key: &str, text: &str) -> Value {
        let property = self.schema.and_then(|schema| schema.get("properties")?.get(key));
        let Some(property) = property else { return parse_json_or_text(text) };
        let types = self.allowed_types(property, REFERENCES_MAX);
        let has = |name: &str| types.iter().any(|known| known == name);
        if has("string") {
            return Value::from(text);
        }
        if has("array") && !text.trim_start().starts_with('[') {
            let item = property.get("items").map(|items| self.allowed_types(items, REFERENCES_MAX));
            let is_text = item.is_some_and(|types| types.iter().any(|known| known == "string"));
            return Value::Array(vec![if is_text {
                Value::from(text)
            } else {
                parse_json_or_text(text)
            }]);
        }
        parse_json_or_text(text)
    }

    /// Lists the types that a schema allows.
    fn allowed_types(&self, schema: &Value, references: usize) -> Vec<String> {
        let named = match schema.get("type") {
            Some(Value::String(name)) => vec![name.clone()],
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        let Some(references) = references.checked_sub(1) else { return named };
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| {
            self.schema?.pointer(reference.strip_prefix('#').unwrap_or(reference))
        });
        let ways = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
        let others = target.into_iter().chain(ways.flatten());
        named.into_iter().chain(others.flat_map(|it| self.allowed_types(it, references))).collect()
    }
}

/// Parses JSON. Invalid JSON is kept as text, which the schema may reject.
fn parse_json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn description() -> Description {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["keep"],
            "properties": {
                "image": { "type": ["string", "null"] },
                "timeout": { "type": "number", "maximum": 9 },
                "keep": { "type": "boolean" },
                "pull": { "$ref": "#/$defs/Pull" },
                "mounts": { "type": "array", "items": { "type": "string" } },
            },
            "$defs": { "Pull": { "oneOf": [{ "type": "string", "enum": ["never", "missing"] }] } },
        });
        Description { config_schema: Some(schema), ..Description::default() }
    }

    /// Parses options and validates them over settings. Returns them as JSON, or error and hint.
    #[track_caller]
    fn check_options_error(given: &[(&str, &str)], expected: &str) {
        let description = description();
        let options = EnvironmentOptions::from_description("moon", &description);
        let given: Vec<_> =
            given.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
        let checked = options.parse_options(&given).and_then(|read| {
            options.check_options(&read)?;
            Ok(Value::Object(read).to_string())
        });
        let told = checked.unwrap_or_else(|error| {
            [Some(error.message), error.hint].into_iter().flatten().collect::<Vec<_>>().join("; ")
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn option_value_is_parsed_by_its_schema_type() {
        check_options_error(&[("image", "7")], r#"{"image":"7"}"#);
        check_options_error(&[("image", "")], r#"{"image":""}"#);
        check_options_error(
            &[("timeout", "7"), ("keep", "false")],
            r#"{"timeout":7,"keep":false}"#,
        );
        check_options_error(&[("pull", "missing")], r#"{"pull":"missing"}"#);
    }

    #[test]
    fn list_option_is_given_item_by_item_or_as_json() {
        let both = r#"{"mounts":["/a:/b","/c:/d"]}"#;
        check_options_error(&[("mounts", "/a:/b"), ("mounts", "/c:/d")], both);
        check_options_error(&[("mounts", r#"["/a:/b","/c:/d"]"#)], both);
        check_options_error(&[("mounts", "[]")], r#"{"mounts":[]}"#);
    }

    #[test]
    fn unknown_option_error_suggests_or_lists_the_options() {
        check_options_error(
            &[("imag", "a")],
            "the environment `moon` has no option `imag`; did you mean `image`?",
        );
        check_options_error(
            &[("q", "a")],
            "the environment `moon` has no option `q`; its options are: image, timeout, keep, pull, mounts",
        );
        check_options_error(
            &[("", "a")],
            "the environment `moon` has no option ``; its options are: image, timeout, keep, pull, mounts",
        );
    }

    #[test]
    fn invalid_option_value_error_names_the_option() {
        let wrong = "of the environment `moon` is invalid:";
        check_options_error(
            &[("timeout", "soon")],
            &format!("the option `timeout` {wrong} \"soon\" is not of type \"number\""),
        );
        check_options_error(
            &[("timeout", "10")],
            &format!("the option `timeout` {wrong} 10 is greater than the maximum of 9"),
        );
        check_options_error(
            &[("mounts", "[1]")],
            &format!("the option `mounts` {wrong} 1 is not of type \"string\""),
        );
        check_options_error(&[("image", "a"), ("image", "b")], "the option `image` is given twice");
    }

    #[test]
    fn any_option_is_accepted_without_a_schema() {
        let description = Description::default();
        let options = EnvironmentOptions::from_description("moon", &description);
        let read = options.parse_options(&[("a".to_owned(), "7".to_owned())]).unwrap();
        assert_eq!(Value::Object(read.clone()), json!({ "a": 7 }));
        assert!(options.check_options(&read).is_ok());
    }
}

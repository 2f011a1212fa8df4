//! Reads plugin settings from variables, as its schema names them.
//!
//! A variable overrides the files. A variable from a workspace's variables file applies if the
//! workspace may set the setting. Only trusted plugins have such variables, because others could
//! name variables with the keys of other programs.

use jaato_config::{Config, EnvironmentVariables, ValueOrigin};
use jaato_types::{Error, ErrorKind};
use serde_json::{Number, Value};

/// The schema keyword with a property's list of variables. The first variable that is set applies.
const VARIABLES: &str = "x-jaato-variables";

/// A setting from a variable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VariableSetting {
    /// The key of the setting.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// The place of the variable.
    pub origin: ValueOrigin,
}

/// Reads the settings of a schema that variables give.
///
/// # Errors
/// `configuration` if a text is not a valid value of the setting.
pub(crate) fn variable_settings(
    schema: &Value,
    config: &Config,
    variables: &EnvironmentVariables,
    is_allowed_in_workspace: impl Fn(&str) -> bool,
) -> Result<Vec<VariableSetting>, Error> {
    let mut settings = Vec::new();
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let names = property[VARIABLES].as_array().into_iter().flatten();
        let given = |name: &Value| find_set_variable(name.as_str()?, config, variables);
        let mut found = names.filter_map(given);
        if let Some(given) = found.find(|given| given.is_own || is_allowed_in_workspace(key)) {
            let value = given.parse_value(property)?;
            settings.push(VariableSetting { key: key.clone(), value, origin: given.origin });
        }
    }
    Ok(settings)
}

/// Reads a variable as the text of a setting.
pub(crate) fn variable_text(
    key: &str,
    name: &str,
    config: &Config,
    variables: &EnvironmentVariables,
) -> Option<VariableSetting> {
    let given = find_set_variable(name, config, variables)?;
    let value = Value::String(given.text);
    Some(VariableSetting { key: key.to_owned(), value, origin: given.origin })
}

/// A variable that is set.
struct SetVariable {
    name: String,
    text: String,
    origin: ValueOrigin,
    /// Whether the user set it rather than a workspace.
    is_own: bool,
}

fn find_set_variable(
    name: &str,
    config: &Config,
    variables: &EnvironmentVariables,
) -> Option<SetVariable> {
    let is_set = |text: &&str| !text.is_empty();
    let of_process = variables.get(name).and_then(|value| value.to_str()).map(str::trim);
    if let Some(text) = of_process.filter(is_set) {
        let origin = ValueOrigin::Variable { name: name.to_owned() };
        return Some(SetVariable {
            name: name.to_owned(),
            text: text.to_owned(),
            origin,
            is_own: true,
        });
    }
    let of_file = config.env_file_variable(name)?;
    let text = Some(of_file.value.trim()).filter(is_set)?.to_owned();
    let (origin, is_own) = (of_file.origin.clone(), of_file.is_own);
    Some(SetVariable { name: name.to_owned(), text, origin, is_own })
}

impl SetVariable {
    /// Parses the text as the setting's first type other than text, otherwise as text.
    fn parse_value(&self, property: &Value) -> Result<Value, Error> {
        let is_of = |name: &str| match &property["type"] {
            Value::Array(names) => names.iter().any(|one| one == name),
            only => only == name,
        };
        let text = self.text.to_lowercase();
        if is_of("boolean") {
            return match text.as_str() {
                "true" | "1" => Ok(Value::Bool(true)),
                "false" | "0" => Ok(Value::Bool(false)),
                _ => Err(self.invalid_value_error("true or false")),
            };
        }
        if is_of("number") && !is_of("integer") {
            let number = text.parse::<f64>().ok().and_then(Number::from_f64);
            return number.map(Value::Number).ok_or_else(|| self.invalid_value_error("a number"));
        }
        if is_of("integer") {
            return text
                .parse::<i64>()
                .map(Value::from)
                .map_err(|_| self.invalid_value_error("a whole number"));
        }
        Ok(Value::String(self.text.clone()))
    }

    fn invalid_value_error(&self, wants: &str) -> Error {
        let text = format!("`{}` wants {wants} ({})", self.name, self.origin);
        Error::new(ErrorKind::Configuration, text)
    }
}

#[cfg(test)]
mod tests {
    use jaato_config::{ConfigSources, Overrides, UserFolders, load_config};
    use serde_json::{Map, json};

    use super::*;

    /// Returns the two settings that a user's variables and variables file produce.
    fn settings_from_variables(variables: &[(&str, &str)], env_file: &str) -> Result<Value, Error> {
        let folder = tempfile::tempdir().unwrap();
        let folders = UserFolders::under_root(folder.path());
        let file = folder.path().join("named.env");
        std::fs::write(&file, env_file).unwrap();
        let variables: EnvironmentVariables = variables.iter().copied().collect();
        let config = load_config(ConfigSources {
            folders: &folders,
            config_file: None,
            env_file: Some(&file),
            workspace: None,
            variables: &variables,
            working_directory: folder.path(),
            overrides: Overrides::default(),
        })
        .unwrap();
        let schema = json!({ "properties": {
            "phase": { "type": "string", VARIABLES: ["MOON_PHASE", "PHASE"] },
            "far": { "type": ["boolean", "null"], VARIABLES: ["MOON_FAR"] },
            "days": { "type": "integer", VARIABLES: ["MOON_DAYS"] },
            "name": { "type": "string" },
        } });
        let mut values = Map::from_iter([("phase".to_owned(), json!("new"))]);
        for given in variable_settings(&schema, &config, &variables, |_| false)? {
            values.insert(given.key, given.value);
        }
        Ok(Value::Object(values))
    }

    #[test]
    fn the_first_variable_that_is_set_wins_over_the_files() {
        assert_eq!(settings_from_variables(&[], "").unwrap(), json!({ "phase": "new" }));
        let both = [("PHASE", "half"), ("MOON_PHASE", " full ")];
        assert_eq!(
            settings_from_variables(&both, "MOON_PHASE=dark\n").unwrap(),
            json!({ "phase": "full" })
        );
        let blank = [("MOON_PHASE", " "), ("PHASE", "half")];
        assert_eq!(settings_from_variables(&blank, "").unwrap(), json!({ "phase": "half" }));
        assert_eq!(
            settings_from_variables(&[], "PHASE=dark\n").unwrap(),
            json!({ "phase": "dark" })
        );
    }

    #[test]
    fn variable_is_converted_to_the_setting_type_or_refused_with_its_origin() {
        let expected = json!({ "phase": "new", "far": true, "days": 28 });
        assert_eq!(
            settings_from_variables(&[("MOON_FAR", "True"), ("MOON_DAYS", "28")], "").unwrap(),
            expected
        );
        assert_eq!(settings_from_variables(&[("MOON_FAR", "0")], "").unwrap()["far"], false);
        for (name, text, wants) in
            [("MOON_FAR", "perhaps", "true or false"), ("MOON_DAYS", "many", "a whole number")]
        {
            let error = settings_from_variables(&[(name, text)], "").unwrap_err();
            let expected = format!("`{name}` wants {wants} (variable {name})");
            assert_eq!((error.kind, error.message), (ErrorKind::Configuration, expected));
        }
    }
}

//! Checks `[plugins.NAME]` against the plugin's own schema and says where the wrong value stands.

use jaato_config::PluginSettings;
use jaato_types::{Description, Error, ErrorKind, PluginName};
use serde_json::Value;

/// Returns a plugin's settings as JSON.
///
/// # Errors
/// `configuration`, with the place of the first value that the schema refuses.
pub fn checked(
    plugin: &PluginName,
    description: &Description,
    settings: Option<&PluginSettings>,
) -> Result<Value, Error> {
    let Some(settings) = settings else { return Ok(Value::Object(serde_json::Map::new())) };
    let values = Value::Object(settings.values().clone());
    let wrong = |place: String, text: &str| {
        Error::new(ErrorKind::Configuration, format!("{place}: `[plugins.{plugin}]` {text}"))
    };
    let Some(schema) = &description.config_schema else {
        let place = first_place(settings);
        return Err(wrong(place, "is set, but the plugin takes no configuration"));
    };
    let validator = jsonschema::validator_for(schema).map_err(|error| {
        let text = format!("the configuration schema of plugin `{plugin}` is broken: {error}");
        Error::new(ErrorKind::PluginMisbehaved, text)
    })?;
    if let Some(error) = validator.iter_errors(&values).next() {
        let pointer = error.instance_path().to_string();
        let place =
            settings.origin(&pointer).map_or_else(|| first_place(settings), ToString::to_string);
        return Err(wrong(place, &format!("is wrong at `{pointer}`: {error}")));
    }
    Ok(values)
}

fn first_place(settings: &PluginSettings) -> String {
    let first = settings.values().keys().next();
    let origin = first.and_then(|key| settings.origin(&format!("/{key}")));
    origin.map_or_else(|| "the configuration".to_owned(), ToString::to_string)
}

//! The settings of `[gc]` that gc plugins use.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde::Deserialize;
use jaato_plugin_sdk::serde_json;

/// The values of `[gc]`. Unknown keys belong to the session or to another gc.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
pub struct PlanSettings {
    /// Number of finished turns to keep, counted back from the last one.
    pub preserve_recent_turns: usize,
    /// Turns that are always kept, counted from 0 among those of the request.
    pub pinned_turn_indices: Vec<usize>,
    /// How full the context may be, in percent, after a collection.
    pub target_percent: u64,
    /// From which fill, in percent, `gc-budget` removes recent turns too. 0 means never.
    pub pressure_percent: u64,
    /// How many turns before the recent ones `gc-hybrid` summarises.
    pub summarize_middle_turns: usize,
    /// The model that writes summaries. If absent, the session's model.
    pub summary_model: Option<String>,
    /// Whether to notify the user about removed turns.
    pub notify_on_gc: bool,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self {
            preserve_recent_turns: 5,
            pinned_turn_indices: Vec::new(),
            target_percent: 60,
            pressure_percent: 90,
            summarize_middle_turns: 10,
            summary_model: None,
            notify_on_gc: true,
        }
    }
}

impl PlanSettings {
    /// Reads the settings of a request. Missing settings have their defaults.
    ///
    /// # Errors
    /// `configuration` if a value has the wrong type.
    pub fn from_json(settings: &Value) -> Result<Self> {
        if settings.is_null() {
            return Ok(Self::default());
        }
        serde_json::from_value(settings.clone()).map_err(|error| {
            Error::new(ErrorKind::Configuration, format!("invalid setting under `[gc]`: {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_settings_get_defaults_and_unknown_settings_are_ignored() {
        assert_eq!(PlanSettings::from_json(&Value::Null), Ok(PlanSettings::default()));
        let read =
            PlanSettings::from_json(&json!({ "preserve_recent_turns": 2, "deadline_ms": 90 }));
        let expected = PlanSettings { preserve_recent_turns: 2, ..PlanSettings::default() };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn setting_of_the_wrong_type_is_an_error() {
        let error = PlanSettings::from_json(&json!({ "target_percent": "most" })).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration);
        assert!(error.message.starts_with("invalid setting under `[gc]`: "), "{error}");
    }
}

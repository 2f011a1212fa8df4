//! `[plugins.tool-file-edit]`.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{schemars, serde_json};

use crate::history::HistoryLimits;

/// `[plugins.tool-file-edit]`.
#[tool_type]
#[derive(Debug, Default)]
#[serde(default)]
struct Config {
    /// Number of changes of one file that can be undone; older ones are forgotten. The default is
    /// 50.
    #[schemars(range(min = 1, max = 10000))]
    #[schemars(extend(
        "x-jaato-workspace" = true,
        "x-jaato-variables" = ["JAATO_FILE_BACKUP_COUNT"]
    ))]
    backup_count: Option<u32>,
}

/// Reads the limits of the history from the configuration.
///
/// # Errors
/// The host's error.
pub async fn read_history_limits(home: &Home) -> Result<HistoryLimits> {
    let config: Config = home.config().await?;
    let bounds = HistoryLimits::default();
    let count = config.backup_count.and_then(|count| usize::try_from(count).ok());
    Ok(HistoryLimits { changes_per_file: count.unwrap_or(bounds.changes_per_file), ..bounds })
}

/// Returns the schema of the settings.
pub fn settings_schema() -> Option<Value> {
    serde_json::to_value(schemars::schema_for!(Config)).ok()
}

//! `[plugins.tool-interactive-shell]`.

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{schemars, serde_json};

/// The default limit of running sessions.
const SESSIONS: u32 = 8;

/// The maximum limit of running sessions that a user may set. Each holds a terminal and a screen.
pub const SESSIONS_MAX: u32 = 64;

/// The default lifetime of a session, in seconds.
const LIFETIME_SECONDS: f64 = 600.0;

/// The default lifetime of an unused session, in seconds.
const IDLE_SECONDS: f64 = 300.0;

/// The default silence that ends a wait if the program's state is unknown, in seconds.
const SILENCE_SECONDS: f64 = 0.5;

/// The maximum duration that can be set: one year.
const SECONDS_MAX: f64 = 31_536_000.0;

/// `[plugins.tool-interactive-shell]`.
#[tool_type]
#[derive(Debug, Default)]
#[serde(default)]
struct InteractiveShellConfig {
    /// Maximum number of sessions at the same time.
    #[schemars(range(min = 1, max = 64))]
    #[schemars(extend("x-jaato-workspace" = true))]
    max_sessions: Option<u32>,
    /// Maximum lifetime of a session in seconds.
    #[schemars(range(min = 0.1, max = 31536000.0))]
    #[schemars(extend("x-jaato-workspace" = true))]
    max_lifetime: Option<f64>,
    /// Number of seconds without use after which a session ends.
    #[schemars(range(min = 0.1, max = 31536000.0))]
    #[schemars(extend("x-jaato-workspace" = true))]
    max_idle: Option<f64>,
    /// Number of seconds of silence that end a wait if jaato cannot detect whether the program
    /// waits for input. If set, it also ends the wait for a busy program.
    #[schemars(range(min = 0.05, max = 30.0))]
    #[schemars(extend("x-jaato-workspace" = true))]
    idle_timeout: Option<f64>,
    /// Where programs run. The default is the session's working directory.
    #[schemars(extend("x-jaato-path" = "file"))]
    workspace_root: Option<String>,
    /// The name of the agent in the trace log.
    agent_name: Option<String>,
    /// Whether to keep a trace log. The default is true.
    trace_log: Option<bool>,
    /// Whether the model may type at prompts that hide the input. Meant for throw-away passwords
    /// if no user can be asked. The passwords stay in the conversation.
    type_secrets: Option<bool>,
}

/// The settings with their defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct InteractiveShellSettings {
    /// The maximum number of running sessions.
    pub sessions_max: usize,
    /// The maximum lifetime of a session.
    pub lifetime: Duration,
    /// The maximum lifetime of an unused session.
    pub idle: Duration,
    /// The silence that ends a wait if the program's state is unknown.
    pub silence: Duration,
    /// Whether that silence also ends the wait for a busy program, because the user set it.
    pub ends_busy_waits: bool,
    /// The folder in which programs run.
    pub directory: Option<String>,
    /// The name of the agent in the trace log.
    pub agent: Option<String>,
    /// Whether a trace log is written.
    pub is_traced: bool,
    /// Whether the model may type at hidden prompts.
    pub types_secrets: bool,
}

impl InteractiveShellSettings {
    /// Reads the settings from the host.
    ///
    /// # Errors
    /// The host's error.
    pub async fn read_from_host(home: &Home) -> Result<Self> {
        Ok(Self::from_config(home.config().await?))
    }

    fn from_config(config: InteractiveShellConfig) -> Self {
        let time = |given: Option<f64>, default: f64| {
            Duration::from_secs_f64(given.unwrap_or(default).clamp(0.05, SECONDS_MAX))
        };
        let sessions = config.max_sessions.unwrap_or(SESSIONS).clamp(1, SESSIONS_MAX);
        Self {
            sessions_max: sessions as usize,
            lifetime: time(config.max_lifetime, LIFETIME_SECONDS),
            idle: time(config.max_idle, IDLE_SECONDS),
            silence: time(config.idle_timeout, SILENCE_SECONDS),
            ends_busy_waits: config.idle_timeout.is_some(),
            directory: config.workspace_root,
            agent: config.agent_name,
            is_traced: config.trace_log.unwrap_or(true),
            types_secrets: config.type_secrets.unwrap_or(false),
        }
    }
}

/// Returns the schema of the configuration.
pub fn config_schema() -> Option<Value> {
    serde_json::to_value(schemars::schema_for!(InteractiveShellConfig)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_settings_match_the_original() {
        let expected = InteractiveShellSettings {
            sessions_max: 8,
            lifetime: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            silence: Duration::from_millis(500),
            ends_busy_waits: false,
            directory: None,
            agent: None,
            is_traced: true,
            types_secrets: false,
        };
        assert_eq!(
            InteractiveShellSettings::from_config(InteractiveShellConfig::default()),
            expected
        );
    }

    #[test]
    fn configured_idle_timeout_ends_waits_for_busy_programs() {
        let set = InteractiveShellSettings::from_config(InteractiveShellConfig {
            idle_timeout: Some(0.5),
            ..InteractiveShellConfig::default()
        });
        assert!(set.ends_busy_waits);
    }

    #[test]
    fn config_keys_match_the_original_plus_two_switches() {
        let schema = config_schema().unwrap();
        let keys: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(
            keys,
            [
                "max_sessions",
                "max_lifetime",
                "max_idle",
                "idle_timeout",
                "workspace_root",
                "agent_name",
                "trace_log",
                "type_secrets"
            ]
        );
        let bound = &schema["properties"]["max_sessions"]["maximum"];
        assert_eq!(bound.as_f64(), Some(f64::from(SESSIONS_MAX)));
    }
}

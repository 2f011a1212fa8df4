//! Configuration layers, trust, and the origin of each value.
//!
//! Reads files, and writes files for the user. It never asks, never prints, and never interprets
//! plugins' settings. Everything it needs (folders, variables, working directory) is passed in.
//!
//! Invariants: every value of a [`Config`] knows the layer that set it. A workspace is read only
//! through a [`trust::TrustedWorkspace`], which returns only files that the user trusted.

mod answer_settings;
mod docs;
mod edit;
mod env_file;
mod error;
mod file;
mod folders;
mod gc_file;
mod keys;
mod layers;
mod mask;
mod model_id;
mod model_named;
mod model_settings;
mod money;
mod nearest;
mod origin;
mod percent;
mod permission_prompts;
pub mod permissions;
mod platform;
mod plugin_settings;
mod setting;
mod show;
mod toml_tree;
pub mod trust;
mod variables;

pub use answer_settings::{Temperature, TextList, parse_effort};
pub use docs::keys_as_markdown;
pub use edit::{ListChange, list_disabled_plugin, replace_file, set_model};
pub use env_file::EnvFileVariable;
pub use error::{ConfigError, ConfigWarning};
pub use folders::{NoHomeFolder, UserFolders};
pub use keys::{
    Caps, Config, DEFAULT_ENVIRONMENT, GcSettings, KEYS, KeyInfo, KeyOwner, KeyPrecedence,
    LayerMerge, LedgerSettings, Limits, Overrides, PromptSettings, TerminalSettings,
};
pub use layers::{ConfigSources, load_config};
pub use mask::is_secret_name;
pub use model_id::{BadModelId, DEFAULT_MODEL, DEFAULT_PROVIDER, parse_model_id, parse_model_name};
pub use model_named::NamedModel;
pub use model_settings::ModelSettings;
pub use money::Dollars;
pub use origin::{ConfigLayer, ValueOrigin};
pub use percent::Percent;
pub use permission_prompts::{PermissionChannel, PermissionMode, PromptEndpoint, parse_mode};
pub use plugin_settings::PluginSettings;
pub use show::ConfigEntry;
pub use variables::EnvironmentVariables;

/// The version of the configuration file that this host writes and understands.
pub const CONFIG_VERSION: i64 = 1;

/// The largest configuration or variables file that is read. A bigger one is a mistake (a log, a
/// binary), and reading it would delay the start.
pub const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

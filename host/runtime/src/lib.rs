//! The host's crates wired together: what the binary, tests and embedders stand on.
//!
//! [`Setup`] reads folders, trust and configuration; [`Runtime`] finds the plugins; sessions and calls
//! run on it. It prints nothing: everything that happens is an event, an answer or a line in the log.
//!
//! Needs tokio with I/O and time; a current-thread runtime will do.

mod assets;
mod describe;
mod discover;
mod facts;
mod instances;
mod log;
mod outputs;
mod prompt;
mod provider;
mod runtime;
mod services;
mod session;
mod settings;
mod setup;
mod tools;
mod trusted;

/// The configuration and what the person trusts.
pub use jaato_config as config;
/// Reading plugin files.
pub use jaato_loader as loader;
/// Who has which name.
pub use jaato_registry as registry;
/// The turn loop and the traits that it stands on.
pub use jaato_session as session_loop;
/// What crosses the plugin boundary.
pub use jaato_types as types;

pub use assets::{Assets, delta_of};
pub use describe::{DESCRIBE_DEADLINE, describe};
pub use discover::{Discovery, places};
pub use jaato_assets::{Found as FoundAsset, Report as AssetReport};
pub use log::{LOG_BYTES_MAX, Log};
pub use prompt::PROMPT_FILE_BYTES_MAX;
pub use runtime::{
    GUARDIAN_ARGUMENT, Model, ModelState, Runtime, description, supervisor, why_not,
};
pub use session::SessionOptions;
pub use setup::{Arguments, Setup, SetupError};
pub use trusted::{CopyError, private_copy, sha256_of};

//! Knows which plugins exist: the host's setup, the files that were found, described and trusted,
//! and the result when they change.
//!
//! This crate opens no plugin. A child describes each file, and crates above call it. [`Setup`]
//! reads folders, trust and configuration. [`discover_plugins()`] finds the plugins once.
//! [`Plugins`] keeps the knowledge about them up to date, separately for each session.
//!
//! Invariants:
//! - From an untrusted workspace only manifests are read.
//! - An unusable file only changes the messages to the user.

mod describe;
mod discover;
mod exit;
mod grants;
mod one_answer_child;
mod plugins;
mod setup;
mod trusted;

pub use describe::{DESCRIBE_DEADLINE, describe_plugin_file};
pub use discover::{
    Discovery, PluginFileCandidate, PluginSearch, PluginStamps, RereadFiles, SearchedPlugins,
    discover_plugins, list_search_folders, missing_shipped_hint, problem_line, registry_rules,
    search_plugins,
};
pub use exit::exit_text;
pub use grants::{GrantHolder, GrantState, GrantTable};
pub use one_answer_child::{ChildTask, child_folder};
pub use plugins::{
    Catalog, Edition, Plugins, RedescribedFile, ScanInputs, SessionOffer, StartState,
    describe_again,
};
pub use setup::{
    GUARDIAN_ARGUMENT, PluginFiles, Setup, SetupArguments, SetupError, started_as_child, supervisor,
};
pub use trusted::{
    CopyError, create_private_copy, file_sha256, forget_copy, trust_command, trust_line,
};

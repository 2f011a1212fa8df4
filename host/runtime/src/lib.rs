//! Connects the host's crates: the base for the binary, tests and embedders.
//!
//! [`Setup`] reads folders, trust and configuration. [`Runtime`] finds the plugins, and sessions
//! and calls run on it. This crate prints nothing: everything that happens is an event, an answer
//! or a line in the log. [`Runtime::watch_plugins`] lets long-lived sessions pick up replaced
//! plugin files.
//!
//! Needs tokio with I/O and time. A current-thread runtime is enough. The executable must become
//! the guardian when it is started with [`GUARDIAN_ARGUMENT`], and describe plugins as
//! `jaato plugin-worker` does. Alternatively, [`Setup::executable`] names an installed `jaato`,
//! which does both. In a program that does neither, the first child fails with an error that says
//! what to do:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use jaato_runtime::session_loop::{Cancel, EventSink};
//! use jaato_runtime::types::{Event, EventEnvelope};
//! use jaato_runtime::{Runtime, SessionOptions, Setup, SetupArguments};
//!
//! struct Print;
//!
//! impl EventSink for Print {
//!     fn receive_event(&self, envelope: EventEnvelope) {
//!         if let Event::TextDelta { text, .. } = envelope.event {
//!             print!("{text}");
//!         }
//!     }
//! }
//!
//! async fn ask(task: &str) -> Result<String, Box<dyn std::error::Error>> {
//!     let mut setup = Setup::from_process(SetupArguments::default())?;
//!     setup.executable = "/usr/local/bin/jaato".into();
//!     let runtime = Runtime::start(setup).await;
//!     let mut session = runtime.open_session(SessionOptions::unattended(Arc::new(Print)))?;
//!     let report = session.run_turn(task, &Cancel::new()).await;
//!     runtime.close_session(session.id()).await;
//!     runtime.close().await;
//!     Ok(report.text)
//! }
//! ```

mod answers;
mod attach;
mod attachments;
mod awaiting;
mod channels;
mod check;
mod child;
mod commands;
mod core_tools;
mod environments;
mod gate;
mod gc;
mod hooks;
mod host;
mod image_shape;
mod known_provider;
mod large_requests;
mod ledger;
mod maker;
mod media;
mod model_queries;
mod named_model;
mod patterns;
mod plugin_openings;
mod program;
mod prompt;
mod provider;
mod providers;
mod pull;
mod repository;
mod runtime;
pub mod saved;
mod session;
mod start_session;
mod tools;
mod watching;

/// The configuration and the user's trust decisions.
pub use jaato_config as config;
/// Reads plugin files.
pub use jaato_loader as loader;
/// The objects that tools show to the model or hide from it.
pub use jaato_objects as objects;
/// Decides about calls.
pub use jaato_policy as policy;
/// Assigns names to plugins.
pub use jaato_registry as registry;
/// The turn loop and the traits that it depends on.
pub use jaato_session as session_loop;
/// Saved sessions.
pub use jaato_sessions as sessions;
/// The ledger: its records and their totals.
pub use jaato_store as store;
/// The types that cross the plugin boundary.
pub use jaato_types as types;

pub use attach::TEXT_BYTES_MAX;
pub use channels::{ANSWER_MS, FolderAsker, SplitAsker, WebhookAsker};
pub use check::{ConformanceSuite, conformance_checks};
pub use commands::{ListedCommand, WORD_CHOICES_MAX, WordCompleter, preview_json};
pub use gate::{call_place, rule_files};
pub use jaato_assets::{AssetReporter as AssetReport, VerifiedAsset as FoundAsset};
pub use jaato_catalog::{
    CopyError, DESCRIBE_DEADLINE, Discovery, GUARDIAN_ARGUMENT, GrantHolder,
    GrantState as GrantStanding, PluginFiles, RedescribedFile, Setup, SetupArguments, SetupError,
    create_private_copy, describe_again, describe_plugin_file, file_sha256, forget_copy,
    list_search_folders, problem_line, registry_rules, started_as_child, supervisor, trust_command,
    trust_line,
};
pub use jaato_environments::{EndedProcess, EnvironmentListing, SharedEnvironment};
pub use jaato_instances::{DeltaCallback, log_worker_output};
pub use jaato_log::{LOG_BYTES_MAX, Log, visible};
pub use jaato_model_facts::{ModelFacts, snapshot_source};
pub use jaato_places::open_own_file as open_private_file;
pub use jaato_policy::{AllowedTool, PluginSource};
pub use jaato_services::{Assets, asset_progress_delta};
pub use jaato_services::{KeyCommands, KeyInfo, KeyStore, SecretStorageKind};
pub use jaato_terminals::{
    FoundTerminal, JoinReply as TerminalReply, JoinableTerminal as ListedTerminal, JoinedTerminal,
    TerminalSearchResult, find_terminals, join_terminal,
};
pub use ledger::ledger_path;
pub use program::{PROGRAM, ProgramParts, ProgramTool};
pub use prompt::PROMPT_FILE_BYTES_MAX;
pub use providers::ProviderInfo;
pub use pull::WeightsSource;
pub use runtime::{ListedModel, ModelState, Runtime, ShutdownReport};
pub use session::{OfferedTools, SessionCloser};
pub use start_session::SessionOptions;

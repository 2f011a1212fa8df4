//! The host's crates wired together: what the binary, tests and embedders stand on.
//!
//! [`Setup`] reads folders, trust and configuration; [`Runtime`] finds the plugins; sessions and
//! calls run on it. It prints nothing: everything that happens is an event, an answer or a line in
//! the log. [`Runtime::watch_plugins`] lets sessions that live long take plugin files that are
//! replaced.
//!
//! Needs tokio with I/O and time; a current-thread runtime will do. The executable must become the
//! guardian when it is started with [`GUARDIAN_ARGUMENT`], and describe plugins as `jaato
//! plugin-worker` does; or [`Setup::executable`] names an installed `jaato`, which does both. A
//! program that does neither is refused in the process that was to be its guardian or worker, and
//! its first child fails with what to do:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use jaato_runtime::session_loop::{Cancel, EventSink};
//! use jaato_runtime::types::{Envelope, Event};
//! use jaato_runtime::{Arguments, Runtime, SessionOptions, Setup};
//!
//! struct Print;
//!
//! impl EventSink for Print {
//!     fn event(&self, envelope: Envelope) {
//!         if let Event::TextDelta { text, .. } = envelope.event {
//!             print!("{text}");
//!         }
//!     }
//! }
//!
//! async fn ask(task: &str) -> Result<String, Box<dyn std::error::Error>> {
//!     let mut setup = Setup::of_process(Arguments::default())?;
//!     setup.executable = "/usr/local/bin/jaato".into();
//!     let runtime = Runtime::start(setup).await;
//!     let mut session = runtime.session(SessionOptions::unattended(Arc::new(Print)))?;
//!     let report = session.turn(task, &Cancel::new()).await;
//!     runtime.close_session(session.id()).await;
//!     runtime.close().await;
//!     Ok(report.text)
//! }
//! ```

mod assets;
mod check;
mod commands;
mod credentials;
mod describe;
mod discover;
mod environments;
mod errand;
mod facts;
mod gc;
mod host;
mod http;
pub mod install;
mod instances;
mod ledger;
mod log;
mod objects;
mod outputs;
mod platform;
mod processes;
mod prompt;
mod provider;
mod reload;
mod runtime;
mod scrub;
mod services;
mod session;
mod settings;
mod setup;
mod terminals;
mod tools;
mod trusted;
pub mod visible;
mod windows;
mod workers;

/// The configuration and what the person trusts.
pub use jaato_config as config;
/// Reading plugin files.
pub use jaato_loader as loader;
/// Who has which name.
pub use jaato_registry as registry;
/// The turn loop and the traits that it stands on.
pub use jaato_session as session_loop;
/// The ledger: its records, and what they come to.
pub use jaato_store as store;
/// What crosses the plugin boundary.
pub use jaato_types as types;

pub use assets::{Assets, delta_of};
pub use check::{Conformance, conformance_checks};
pub use commands::Command;
pub use describe::{DESCRIBE_DEADLINE, describe};
pub use discover::{Discovery, places, problem_line, rules};
pub use environments::{EnvironmentListed, SavedResources, SharedEnvironment};
pub use jaato_assets::{Found as FoundAsset, Report as AssetReport};
pub use jaato_policy::{Allowed, PluginSource};
pub use ledger::ledger_path;
pub use log::{LOG_BYTES_MAX, Log};
pub use processes::EndedProcess;
pub use prompt::PROMPT_FILE_BYTES_MAX;
pub use reload::{DescribedAgain, describe_again};
pub use runtime::{
    Ending, GUARDIAN_ARGUMENT, Model, ModelState, Runtime, description, supervisor, trust_command,
    trust_line, why_not,
};
pub use session::SessionOptions;
pub use setup::{Arguments, Setup, SetupError};
pub use terminals::join::{
    FoundTerminal, FoundTerminals, Joined, Listed as ListedTerminal, Reply as TerminalReply,
    find_terminals, join_terminal,
};
pub use trusted::{CopyError, forget_copy, private_copy, sha256_of};
pub use workers::log_printed;

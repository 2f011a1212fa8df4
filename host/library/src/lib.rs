//! The library that programs embed: sessions with models and tools inside another program.
//!
//! [`Jaato`] is a host in this process. It opens sessions, and [`Session::send`] returns a
//! [`Turn`]: a stream of events and a future of the report. Everything else has a default that a
//! program can replace: tools ([`Tool`]), providers, permission prompts, saving, the ledger, the
//! clock.
//!
//! ```
//! use jaato_library::types::Event;
//! use jaato_library::{Jaato, Tool};
//! use serde_json::json;
//! # use jaato_library::testing::{ScriptedProvider, ScriptedProviderAction as Say};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> jaato_library::Result<()> {
//! #   let model = ScriptedProvider::default();
//! #   model.add_answer([Say::call("1", "add", json!({"a": 2, "b": 40}))]);
//! #   model.add_answer([Say::text("It is 42.")]);
//!     let schema = json!({"type": "object", "required": ["a", "b"],
//!         "properties": {"a": {"type": "number"}, "b": {"type": "number"}}});
//!     let add = Tool::new("add", "Adds two numbers.", schema, |input, _cx| async move {
//!         let [a, b] = ["a", "b"].map(|name| input[name].as_f64().unwrap_or_default());
//!         Ok::<_, String>(json!({ "sum": a + b }))
//!     });
//!     let jaato = Jaato::builder().provider("my", model).tool(add.allowed()).start().await?;
//!     let session = jaato.session().model("my/model").open()?;
//!     let mut turn = session.send("What is 2 + 40?");
//!     while let Some(event) = turn.next().await {
//!         if let Event::TextDelta { text, .. } = event {
//!             print!("{text}");
//!         }
//!     }
//!     assert_eq!(turn.await?.text, "It is 42.");
//!     Ok(())
//! }
//! ```
//!
//! Needs a tokio runtime, of one thread or of many. [`blocking`] has its own, for programs without
//! one. With plugin files or programs of an environment, this process starts children from its own
//! executable, which must call [`run_child_if_asked`] at the start of `main`.
//!
//! Not here: the terminal, commands, exit codes. Invariants: the library never prints and never
//! exits; dropping a turn cancels it.

pub mod blocking;
mod builder;
mod child;
pub mod client;
mod environment;
mod events;
mod ledger;
mod permission;
mod session;
mod tool;
mod turn;

/// The pages of the documentation, whose examples are tested.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
pub mod documentation {}

/// The traits and macros with which plugins are written. A plugin that is linked into the program
/// becomes a part of it by [`JaatoBuilder::plugin`].
pub use jaato_plugin_sdk as sdk;
pub use jaato_plugin_sdk::schemars;
/// A scripted provider and further stand-ins, for the tests of programs.
#[cfg(feature = "testing")]
pub use jaato_runtime::session_loop::testing;
/// The types of conversations, events and tools.
pub use jaato_runtime::types;
pub use jaato_runtime::types::{Error, ErrorKind, Result};
pub use jaato_runtime::{config, objects, policy};

/// The traits whose implementations a program may replace, and their types.
pub mod ports {
    pub use jaato_runtime::session_loop::{
        CallGate, Cancel, DeltaSink, EventSink, FormQuestion, NoAnswer, PermissionAsker, Provider,
        SavedState, SecretAnswer, SecretQuestion, SessionClock, SessionSaver, SharedObjects,
        SharedRules, SystemClock, TypedSecret, UserAsker,
    };
}

pub use builder::{Configuration, Jaato, JaatoBuilder};
pub use child::run_child_if_asked;
pub use environment::{
    EnvironmentFiles, EnvironmentShell, OpenEnvironment, PreviousResource, Resource,
    ResourceRegistry, ShellOutput,
};
pub use jaato_runtime::PluginFiles;
pub use jaato_runtime::session_loop::{
    GcPreview, GcReport, GcUndoResult, HistoryEntry, PolicyMode, TurnReport, UserPrompt,
};
pub use jaato_runtime::store::{LedgerRecord, UsageTotals};
pub use ledger::LedgerRecorder;
pub use permission::{allow, deny};
pub use session::{Session, SessionBuilder, SessionHandle};
pub use tool::{Tool, ToolContext};
pub use turn::Turn;

//! The SDK for execution environment plugins.
//!
//! An environment holds a session's files and runs its commands. Authors implement
//! [`ExecutionEnvironment`] and, for the parts that it has, [`Files`], [`Shell`] and [`Terminals`].
//! Files need six methods. Walks, patterns, searches, edits and streams build on these.
//!
//! [`files::ConfinedFiles`] gives access to files of this machine and lets no path leave the
//! allowed folders. It blocks and is independent of plugins. [`HostFiles`] wraps it as [`Files`]
//! for an environment plugin. [`waiting`] detects what the programs of a terminal wait for.
//!
//! ```
//! use jaato_plugin_sdk_environment::HostFiles;
//! use jaato_plugin_sdk_environment::files::{
//!     AllowedFolder, ConfinedFiles, ConfinedFilesSettings, TemporarySettings,
//! };
//!
//! fn main() -> jaato_types::Result<()> {
//!     let workspace = std::env::temp_dir();
//!     let confined = ConfinedFiles::open(&ConfinedFilesSettings {
//!         roots: vec![AllowedFolder::local(&workspace)],
//!         default_folder: workspace,
//!         temporary: Some(TemporarySettings::default()),
//!     })?;
//!     let _files = HostFiles::new(confined);
//!     Ok(())
//! }
//! ```
#![forbid(unsafe_code)]

mod engine;
mod environment;
mod errors;
pub mod files;
mod host_files;
mod platform;
pub mod waiting;

pub use engine::{CallLimits, PageFiller, collect_matches, invalid_regex_error, searched_line};
pub use environment::{
    ExecutionEnvironment, FilePieces, FileSink, FileWriter, Files, NoFiles, NoShell, NoTerminals,
    PageSource, PageStream, PieceStream, Program, ProgramEvents, Shell, Terminal, TerminalEvents,
    Terminals, settings,
};
#[doc(hidden)]
pub use environment::{StandaloneEnvironment, entry};
pub use host_files::HostFiles;

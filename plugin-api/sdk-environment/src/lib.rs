//! What environment plugins are made of.
//!
//! An environment is where a session's files are and its commands run. Authors implement
//! [`ExecutionEnvironment`] and, for what it has, [`Files`], [`Shell`] and [`Terminals`]. Files
//! need six methods; walks, patterns, searches, edits and streams work over them.
//!
//! [`files::Confined`] has the files of this machine, which no path can leave. It blocks, and knows
//! nothing of plugins. [`HostFiles`] is the same as [`Files`]: an environment plugin names it and
//! opens it. [`waiting`] tells what a terminal's programs wait for.
//!
//! ```
//! use jaato_plugin_sdk_environment::HostFiles;
//! use jaato_plugin_sdk_environment::files::{Confined, Root, Settings, TemporarySettings};
//!
//! fn main() -> jaato_types::Result<()> {
//!     let workspace = std::env::temp_dir();
//!     let confined = Confined::open(&Settings {
//!         roots: vec![Root::local(&workspace)],
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

pub use engine::{CallLimits, PageFiller, matches_in, searched_line, wrong_regex};
pub use environment::{
    ExecutionEnvironment, FilePieces, FileSink, FileWriter, Files, NoFiles, NoShell, NoTerminals,
    PageStream, Pages, PieceStream, Program, ProgramEvents, Shell, Terminal, TerminalEvents,
    Terminals, settings,
};
#[doc(hidden)]
pub use environment::{Served, entry};
pub use host_files::HostFiles;

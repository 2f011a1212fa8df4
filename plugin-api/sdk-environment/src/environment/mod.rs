//! Execution environments: the traits that authors implement, and the code that answers the host.
//!
//! This module handles the numbers of streams and programs, background programs, and frames, so
//! that authors need not.

mod background;
mod by_path;
mod copy;
mod default_methods;
mod dispatch;
mod entry;
mod exchange;
mod exclusive_value;
mod file_calls;
mod files;
mod frames;
mod handle_table;
mod program_calls;
mod remote;
mod served;
mod shell;
mod streams;
mod terminal_calls;
mod terminals;
mod traits;
mod watched_value;

pub use entry::entry;
pub use files::{Files, NoFiles};
pub use served::StandaloneEnvironment;
pub use shell::{NoShell, Program, ProgramEvents, Shell};
pub use streams::{FilePieces, FileSink, FileWriter, PageSource, PageStream, PieceStream};
pub use terminals::{NoTerminals, Terminal, TerminalEvents, Terminals};
pub use traits::{ExecutionEnvironment, settings};

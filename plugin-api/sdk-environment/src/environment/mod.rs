//! Execution environments: what authors implement, and what answers the host for them.
//!
//! Numbers of streams and programs, programs that outlive a call, and frames are handled here, so
//! that authors write none of them.

mod background;
mod by_default;
mod by_path;
mod copy;
mod desk;
mod dispatch;
mod entry;
mod exchange;
mod file_calls;
mod files;
mod frames;
mod held;
mod program_calls;
mod remote;
mod served;
mod shell;
mod streams;
mod terminal_calls;
mod terminals;
mod traits;
mod watched;

pub use entry::entry;
pub use files::{Files, NoFiles};
pub use served::Served;
pub use shell::{NoShell, Program, ProgramEvents, Shell};
pub use streams::{FilePieces, FileSink, FileWriter, PageStream, Pages, PieceStream};
pub use terminals::{NoTerminals, Terminal, TerminalEvents, Terminals};
pub use traits::{ExecutionEnvironment, settings};

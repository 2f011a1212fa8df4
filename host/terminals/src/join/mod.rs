//! The socket through which the same user joins terminals: its place, its protocol, and the
//! client's end.
//!
//! Each host process has one socket in a private folder, so the folder's listing is the list of
//! hosts. Both sides send lines of JSON. Only the same user may connect, and no process that a
//! session started.

mod client;
pub(crate) mod line;
pub(crate) mod protocol;
pub(crate) mod socket_folder;

pub use client::{
    FoundTerminal, JoinedTerminal, TerminalSearchResult, find_terminals, join_terminal,
};
pub use protocol::{JoinReply, JoinableTerminal};
pub use socket_folder::{SocketFolders, own_temporary_folder};

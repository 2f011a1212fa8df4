//! The socket by which people of the same user join terminals: where it is, what is said there,
//! both ends of it.
//!
//! One socket a host process, in a folder that is the user's alone; a folder's listing is the list
//! of hosts. Lines of JSON both ways. Only the same user is let in, and no process that a session
//! started.

mod client;
mod line;
mod place;
mod protocol;
mod serve;

pub use client::{FoundTerminal, FoundTerminals, Joined, find_terminals, join_terminal};
pub(crate) use place::{Door, own_temporary_folder};
pub use protocol::{Listed, Reply};
pub(crate) use serve::Server;

//! The socket by which people of the same user join terminals: where it is, what is said there,
//! and the end of those who join.
//!
//! One socket a host process, in a folder that is the user's alone; a folder's listing is the list
//! of hosts. Lines of JSON both ways. Only the same user is let in, and no process that a session
//! started.

mod client;
pub(crate) mod line;
pub(crate) mod place;
pub(crate) mod protocol;

pub use client::{FoundTerminal, FoundTerminals, Joined, find_terminals, join_terminal};
pub use place::{Door, own_temporary_folder};
pub use protocol::{Listed, Reply};

//! Terminals that users see and join: their screens, their watchers, and the users' input.
//!
//! The terminals themselves belong to the execution environment, and the plugin draws their
//! screens. A board holds the newest screen of each. Events show it to those who follow the
//! session, and a socket to those who join from another terminal ([`find_terminals`]).
//!
//! Invariants: a plugin can show and ask only for its own terminals. The user's input is never
//! stored, reported or logged. Only its length is reported, if the terminal shows the input, and
//! never to the model. A slow watcher gets the newest screen and delays no one.

mod board;
mod join;
mod service;
#[cfg(test)]
#[path = "../../../plugin-api/testkit/src/skip.rs"]
mod skip;
#[cfg(test)]
mod tests;

pub use board::{SessionAudience, SessionTerminals, SharedTerminals};
pub use join::{
    FoundTerminal, JoinReply, JoinableTerminal, JoinedTerminal, SocketFolders,
    TerminalSearchResult, find_terminals, join_terminal, own_temporary_folder,
};
pub use service::{TerminalServices, is_operation};

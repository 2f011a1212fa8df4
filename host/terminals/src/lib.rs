//! Terminals that people see and join: what plugins show of them, who looks, and what people type
//! there.
//!
//! Not the terminals themselves: those are the execution environment's, and what is on a screen is
//! the plugin's to draw. The newest screen of each stands on a board; events tell it to those who
//! follow the session, a socket to those who join from another terminal ([`find_terminals`]).
//!
//! Invariants: a plugin shows and asks for its own terminals alone; of what people type nothing is
//! kept, told or logged but how much it was where the terminal shows it, which the model is not
//! told; who looks slowly gets the newest screen, and holds nobody up.

mod board;
mod join;
mod service;
#[cfg(test)]
#[path = "../../../plugin-api/testkit/src/skip.rs"]
mod skip;
#[cfg(test)]
mod tests;

pub use board::{Audience, SessionTerminals, Terminals};
pub use join::{
    Door, FoundTerminal, FoundTerminals, Joined, Listed, Reply, find_terminals, join_terminal,
    own_temporary_folder,
};
pub use service::{TerminalServices, is_operation};

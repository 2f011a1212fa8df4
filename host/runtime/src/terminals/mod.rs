//! Terminals that people see and join: what plugins show of them, who looks, and what people type
//! there.
//!
//! Not the terminals themselves: those are the execution environment's, and what is on a screen is
//! the plugin's to draw. The newest screen of each stands on a board; events tell it to those who
//! follow the session, a socket to those who join from another terminal ([`join`]).
//!
//! Invariants: a plugin shows and asks for its own terminals alone; of what people type nothing is
//! kept, told or logged but how much it was where the terminal shows it, which the model is not
//! told; who looks slowly gets the newest screen, and holds nobody up.

mod asking;
mod board;
pub(crate) mod join;
mod news;
mod service;
mod shown;
#[cfg(test)]
mod tests;

pub(crate) use board::{Audience, Hands, Terminals};
pub(crate) use service::{TerminalServices, is_operation};

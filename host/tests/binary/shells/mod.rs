//! Tests interactive sessions of the real binary with real programs, through `jaato call --batch`.

mod jobs;
mod limits;
mod model;
mod outputs;
mod programs;
mod screens;
mod sessions;
mod settings;
mod unread_input;
mod user_terminals;

pub use crate::support::shells::*;

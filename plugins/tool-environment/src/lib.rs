//! `get_environment`: tells a model the system, shell, terminal, clock, network and session that it works in.
//!
//! Facts are gathered in one place and concluded from in others, so that the answers for every system
//! are tested on any. No variable leaves here but those that are fields of the report, and no credential.
#![forbid(unsafe_code)]

mod aspect;
mod clock;
mod facts;
mod gather;
mod machine;
mod mask;
mod network;
#[cfg(test)]
mod readme;
mod report;
mod session;
mod shell;
mod terminal;
#[cfg(test)]
mod testing;

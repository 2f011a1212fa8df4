//! The macros: what they make, and what they refuse.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod refused;
mod specs;

// Where the macros look for it, in a plugin's own crate.
use specs::__jaato;

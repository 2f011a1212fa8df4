//! Tests of the macros: the code that they generate, and the input that they refuse.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod refused;
mod specs;

// The path where the macros expect it in a plugin's own crate.
use specs::__jaato;

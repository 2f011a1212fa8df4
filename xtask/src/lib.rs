//! `cargo xtask`: the chores of this workspace, one file each, listed in [`chores`].
//!
//! It compiles in seconds and needs nothing but a Rust toolchain; what else a chore wants is looked
//! for by [`setup`], which says what is missing instead of failing. What is public is what
//! `xtask-measure` stands on, the crate of the benches: nobody who types `cargo xtask run` compiles
//! that.

pub mod artifacts;
pub mod build_plugins;
mod check_macos;
pub mod child;
pub mod chores;
mod dist;
pub mod gather;
mod measure;
mod models;
mod new_plugin;
mod nightly;
pub mod run;
pub mod setup;
#[cfg(test)]
#[path = "../../plugin-api/testkit/src/skip.rs"]
mod skip;
mod test;
mod tidy;
pub mod workspace;

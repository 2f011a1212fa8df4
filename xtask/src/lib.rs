//! `cargo xtask`: the chores of this workspace, one file each, listed in [`chores`].
//!
//! The crate compiles in seconds and needs only a Rust toolchain. [`setup`] looks for everything
//! else that a chore needs, and reports what is missing instead of failing. The public items are
//! for `xtask-measure`, the crate of the benchmarks, which `cargo xtask run` does not compile.

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

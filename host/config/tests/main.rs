//! Layers, files, trust and their documentation.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod documentation;
mod files;
mod grants;
mod layers;
mod permissions;
mod session_tree;
mod trust;

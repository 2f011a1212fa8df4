//! The boundary: its layout, and the objects that cross it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod crossing;
mod layout;

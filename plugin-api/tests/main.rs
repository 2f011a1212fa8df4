//! Tests of the boundary: its layout, and the values that cross it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod crossing;
mod layout;

//! The boundary: its layout, and what crosses it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod crossing;
mod layout;

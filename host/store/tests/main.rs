//! Tests the ledger: what is written, how, and what is read back.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod ledger;
mod recorder;
mod summary;
mod support;

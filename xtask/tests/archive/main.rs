//! The archive of `dist`, unpacked where nothing else of jaato is, and used as people use it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod ci;
mod guide;
mod installed;
mod runs;

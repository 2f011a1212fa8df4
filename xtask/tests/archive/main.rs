//! The archive of `dist`, unpacked where nothing else of jaato is, and used as people use it.
#![cfg(target_os = "linux")]

mod ci;
mod containers;
mod doc;
mod grows;
mod guide;
mod image;
mod installed;
mod runs;
#[path = "../../../plugin-api/testkit/src/skip.rs"]
mod skip;

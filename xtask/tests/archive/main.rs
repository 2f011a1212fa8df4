//! Tests of the archive of `dist`, unpacked without anything else of jaato, and used like users do.
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

//! What environment plugins share: files of this machine that cannot be left by any path, and what
//! a terminal's programs wait for.
//!
//! [`files::Confined`] answers what tools ask of the files of an execution environment. It blocks,
//! and knows nothing of plugins. [`HostFiles`] is the same as the sdk's `Files`: an environment
//! plugin names it and opens it.
//!
//! ```
//! use jaato_plugin_sdk_environment::HostFiles;
//! use jaato_plugin_sdk_environment::files::{Confined, Root, Settings, TemporarySettings};
//!
//! fn main() -> jaato_types::Result<()> {
//!     let workspace = std::env::temp_dir();
//!     let confined = Confined::open(&Settings {
//!         roots: vec![Root::local(&workspace)],
//!         default_folder: workspace,
//!         temporary: Some(TemporarySettings::default()),
//!     })?;
//!     let _files = HostFiles::new(confined);
//!     Ok(())
//! }
//! ```
#![forbid(unsafe_code)]

pub mod files;
mod host_files;
mod platform;
pub mod waiting;

pub use host_files::{HostFiles, HostPages, HostPieces, HostWriter};

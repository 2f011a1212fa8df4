//! Which servers a person has set up: files, merged and expanded.

pub mod entry;
pub mod expand;
pub mod files;
pub mod oauth;

pub use entry::{HttpReach, Origin, Reach, ServerEntry, StdioReach};
pub use files::{Configured, FILE_NAME, Places};
pub use oauth::{GrantKind, OAuthSettings};

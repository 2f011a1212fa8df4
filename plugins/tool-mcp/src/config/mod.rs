//! The configuration of servers: reads files, merges them and expands variables.

pub mod entry;
pub mod expand;
pub mod files;
pub mod oauth;

pub use entry::{HttpReach, Origin, Reach, ServerEntry, StdioReach};
pub use files::{Configured, FILE_NAME, Places};
pub use oauth::{GrantKind, OAuthSettings};

//! The configuration of servers: reads files, merges them and expands variables.

pub mod entry;
pub mod expand;
pub mod files;
pub mod oauth;

pub use entry::{HttpServerAddress, McpConfigOrigin, McpServerAddress, ServerEntry, StdioServerAddress};
pub use files::{LoadedMcpConfig, FILE_NAME, McpConfigLocations};
pub use oauth::{GrantKind, OAuthSettings};

//! The configuration of servers: reads files, merges them and expands variables.

pub mod entry;
pub mod expand;
pub mod files;
pub mod oauth;

pub use entry::{
    HttpServerAddress, McpConfigOrigin, McpServerAddress, ServerEntry, StdioServerAddress,
};
pub use files::{FILE_NAME, LoadedMcpConfig, McpConfigLocations};
pub use oauth::{GrantKind, OAuthSettings};

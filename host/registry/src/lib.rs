//! Assigns names to plugins, tools and providers: order, conflicts, enabling. Pure data.
//!
//! This crate touches no file and runs no plugin. It takes the candidates in the order of trust,
//! and decides which plugin gets each name.
//!
//! Invariants:
//! - A name is assigned once. A later plugin with the name of a plugin is refused, and the refusal
//!   names both paths. If the name of something that it offers is taken, only that offer is left
//!   out. Its plugin stays if it offers anything else.
//! - Invalid offers (a bad name or schema, a text that is too long) are removed from a plugin's
//!   description before anything else, and reported.
//! - The outcome depends only on the order of the candidates and on the rules.

mod commands;
mod conflict;
mod names;
mod registry;
mod schema;
mod usable;

pub use commands::{CommandEntry, CommandRefusal, CommandStatus};
pub use conflict::NameRefusal;
pub use names::nearest_name;
pub use registry::{
    NO_TOOLS, PluginCandidate, PluginEntry, PluginFileTrust, PluginStatus, Registry, RegistryRules,
    ToolEntry, ToolStatus, matches_tool,
};
pub use usable::{
    COMMANDS_MAX, DescriptionOmission, INSTRUCTIONS_BYTES_MAX, LINE_BYTES_MAX, SCHEMA_BYTES_MAX,
    SchemaCheck, TOOL_TEXT_BYTES_MAX, TOOLS_MAX, keep_usable,
};

/// Tool names reserved for the host.
pub const RESERVED_TOOLS: [&str; 2] = ["get_tool_schemas", "list_tools"];

/// Command names reserved for the host: its own commands, and those by which users expect to get
/// help and to quit.
pub const RESERVED_COMMANDS: [&str; 9] =
    ["context", "exit", "gc", "help", "mode", "model", "permissions", "plugin", "quit"];

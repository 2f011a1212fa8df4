//! Names to plugins, tools and providers: order, conflicts, enabling. Pure data.
//!
//! Not the loader: this crate touches no file and runs no plugin. It takes what was found, in the
//! order of trust, and says who has which name.
//!
//! Invariants:
//! - A name is taken once. A later plugin with the name of a plugin, a provider or an
//!   environment is refused, and the refusal names both paths. A tool or a command whose name is
//!   taken is left out alone, and its plugin stays if anything else of it is left.
//! - What could not be offered (a name, a schema, a text without bounds) is left out of its
//!   plugin's description before anything else is looked at, and told.
//! - The outcome depends on the order of the candidates and on the rules alone.

mod commands;
mod conflict;
mod names;
mod registry;
mod schema;
mod usable;

pub use commands::{CommandEntry, CommandRefusal, CommandStatus};
pub use conflict::Refusal;
pub use names::nearest;
pub use registry::{
    Candidate, NO_TOOLS, PluginEntry, Registry, Rules, Status, ToolEntry, ToolStatus, Trust,
    names_tool,
};
pub use usable::{
    COMMANDS_MAX, INSTRUCTIONS_BYTES_MAX, LINE_BYTES_MAX, LeftOut, SCHEMA_BYTES_MAX,
    TOOL_TEXT_BYTES_MAX, TOOLS_MAX, keep_usable,
};

/// Tool names that the host keeps for itself.
pub const RESERVED_TOOLS: [&str; 2] = ["get_tool_schemas", "list_tools"];

/// Command names that the host keeps for itself: those that it has, and those by which people
/// expect to get help and to leave.
pub const RESERVED_COMMANDS: [&str; 8] =
    ["exit", "gc", "help", "mode", "model", "permissions", "plugin", "quit"];

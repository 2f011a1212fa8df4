//! The user's trust: in plugin files by their content, and in workspaces by path and content. Also
//! the user's grants to plugins.
//!
//! Nothing here asks the user. It records decisions, and checks whether they still hold and, if
//! not, which file changed. Of an untrusted workspace, only names are read.

mod candidate;
mod development;
mod error;
mod grants;
mod record;
mod rewrite;
mod scan;
mod session_tree;
mod stamp;
mod store;
mod workspace;

use jaato_types::command_hooks::{SCRIPT_FOLDER, SETTINGS_FILES};
pub use jaato_types::mcp_entry::AgreedVariables;

pub use candidate::{McpEntry, TrustCandidate};
pub use development::{DevelopmentFolder, DevelopmentTrust};
pub use error::TrustError;
pub use grants::{GrantStore, LiveGrants, PluginGrants, RecordedGrants};
pub use record::RecordKind;
pub use scan::{DEPTH_MAX, FILES_MAX, WORKSPACE_BYTES_MAX};
pub use session_tree::{
    SESSION_MARK, SESSION_MARKER, is_inside_session, is_session_process, refuse_inside_session,
};
pub use store::{PluginTrust, RecordedTrust, TrustStore, WorkspaceTrust};
pub use workspace::{FileChange, TrustedFileChange, TrustedWorkspace, Workspace, WorkspaceState};

/// The folder of a workspace that belongs to jaato.
pub const WORKSPACE_FOLDER: &str = ".jaato";

/// The workspace's configuration.
pub const CONFIG_FILE: &str = ".jaato/config.toml";

/// The workspace's variables.
pub const ENV_FILE: &str = ".env";

/// The workspace's list of MCP servers.
pub const MCP_FILE: &str = ".mcp.json";

/// Folders of a workspace with prompts, skills and subagents, which other clients also read.
pub const SHARED_FOLDERS: [&str; 4] =
    [".agents/skills", ".claude/agents", ".claude/commands", ".claude/skills"];

/// Files and folders of a workspace with hooks that run commands, which other clients also read.
pub const HOOK_FILES: [&str; 3] = [SCRIPT_FOLDER, SETTINGS_FILES[0], SETTINGS_FILES[1]];

/// A repository's or folder's instructions for agents.
pub const AGENTS_FILE: &str = "AGENTS.md";

/// The same for one agent. It counts in a folder without an [`AGENTS_FILE`].
pub const CLAUDE_FILE: &str = "CLAUDE.md";

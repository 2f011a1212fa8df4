//! What the person trusts: plugin files by their content, workspaces by path and content; and what
//! they grant to plugins.
//!
//! Nothing here asks: it records what was decided, tells whether it still holds, and if not, which
//! file changed. Of a workspace that is not trusted only names are looked at.

mod candidate;
mod error;
mod grants;
mod record;
mod rewrite;
mod scan;
mod session_tree;
mod stamp;
mod store;
mod workspace;

pub use jaato_types::mcp_entry::AgreedVariables;

pub use candidate::{Candidate, McpEntry};
pub use error::TrustError;
pub use grants::{GrantStore, Grants, LiveGrants, PluginGrants};
pub use record::RecordKind;
pub use scan::{DEPTH_MAX, FILES_MAX, WORKSPACE_BYTES_MAX};
pub use session_tree::{
    SESSION_MARK, SESSION_MARKER, inside_session, is_of_a_session, refuse_inside_session,
};
pub use store::{PluginTrust, Trust, TrustStore, WorkspaceTrust};
pub use workspace::{ChangeKind, FileChange, TrustedWorkspace, Workspace, WorkspaceState};

/// The folder of a workspace that is jaato's.
pub const WORKSPACE_FOLDER: &str = ".jaato";

/// The workspace's configuration.
pub const CONFIG_FILE: &str = ".jaato/config.toml";

/// The workspace's variables.
pub const ENV_FILE: &str = ".env";

/// The workspace's list of MCP servers.
pub const MCP_FILE: &str = ".mcp.json";

/// Folders of a workspace with prompts and skills, which other clients read too.
pub const SKILL_FOLDERS: [&str; 3] = [".agents/skills", ".claude/commands", ".claude/skills"];

/// Instructions of a repository, or of a folder in it, for agents.
pub const AGENTS_FILE: &str = "AGENTS.md";

/// The same, written for one agent. It counts in a folder that has no [`AGENTS_FILE`].
pub const CLAUDE_FILE: &str = "CLAUDE.md";

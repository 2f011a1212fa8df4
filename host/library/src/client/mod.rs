//! The names of the original jaato in snake case, as a thin layer over this crate.
//!
//! Each call waits, as the original's do, so that a program needs no tokio. Only those of
//! environments and resources are futures. `docs/library.md` shows the original's examples next to
//! these.

mod environments;
mod executor;
mod facade;
mod mcp;
mod permissions;
mod providers;
mod registry;
mod tokens;

pub use environments::{
    AgentContext, DockerEnvironment, EnvironmentPlugin, FileOperator, LocalEnvironment, Shell,
};
pub use executor::ToolExecutor;
pub use facade::{JaatoClient, JaatoRuntime, JaatoSession, SessionPlugin};
pub use mcp::MCPClientManager;
pub use permissions::PermissionPlugin;
pub use providers::{CancelledException, ModelProviderPlugin, raise_if_cancelled};
pub use registry::PluginRegistry;
pub use tokens::{LedgerTotals, TokenLedger};

pub use crate::ports::Cancel as CancelToken;
pub use crate::types::{
    Completion as ProviderResponse, FinishReason, Message, Part, Role, ToolCall as FunctionCall,
    ToolResult, ToolSpec as ToolSchema,
};
pub use crate::{Resource, ResourceRegistry};

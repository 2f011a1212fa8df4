//! Whether the person trusts the workspace at this moment.

use jaato_catalog::Setup;
use jaato_config::trust::{TrustStore, Workspace, WorkspaceState};

/// A workspace that was trusted when the process began.
#[derive(Clone)]
pub struct WorkspaceTrust {
    store: TrustStore,
    workspace: Workspace,
}

impl WorkspaceTrust {
    /// Returns it, or nothing where the workspace was not trusted: trust that comes later is there
    /// with the next start.
    pub fn of(setup: &Setup) -> Option<Self> {
        setup.trusted_workspace()?;
        let store = TrustStore::in_folder(setup.folders.data().ok()?);
        Some(Self { store, workspace: setup.workspace.clone() })
    }

    /// Returns the root, unless a file that the trust covers has changed. Reads files.
    pub fn root_now(&self) -> Option<String> {
        match self.store.workspace_state(&self.workspace) {
            Ok(WorkspaceState::Trusted(trusted)) => Some(trusted.root().display().to_string()),
            Ok(
                WorkspaceState::Nothing
                | WorkspaceState::Untrusted { .. }
                | WorkspaceState::Changed { .. },
            )
            | Err(_) => None,
        }
    }
}

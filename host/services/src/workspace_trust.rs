//! Whether the user currently trusts the workspace.

use std::time::SystemTime;

use jaato_catalog::Setup;
use jaato_config::trust::{
    TrustError, TrustStore, TrustedWorkspace, Workspace, WorkspaceState, is_inside_session,
};

/// A workspace that was trusted when the process began.
#[derive(Clone)]
pub struct WorkspaceTrust {
    store: TrustStore,
    workspace: Workspace,
    /// Whether a session started this process, so that no user is present.
    is_inside_session: bool,
}

impl WorkspaceTrust {
    /// Returns `None` if the workspace was not trusted. Trust that is given later takes effect at
    /// the next start.
    pub fn from_setup(setup: &Setup) -> Option<Self> {
        setup.trusted_workspace()?;
        let store = TrustStore::in_folder(setup.folders.data_folder().ok()?);
        let (workspace, variables) = (setup.workspace.clone(), &setup.variables);
        Some(Self { store, workspace, is_inside_session: is_inside_session(variables) })
    }

    /// Returns the workspace, unless a file that the trust covers has changed. Reads files.
    pub fn current_trusted_workspace(&self) -> Option<TrustedWorkspace> {
        match self.store.workspace_state(&self.workspace) {
            Ok(WorkspaceState::Trusted(trusted)) => Some(trusted),
            Ok(
                WorkspaceState::Nothing
                | WorkspaceState::Untrusted { .. }
                | WorkspaceState::Changed { .. },
            )
            | Err(_) => None,
        }
    }

    /// Writes a covered file, and keeps the workspace trusted. Blocks on files.
    ///
    /// # Errors
    /// As [`TrustStore::rewrite_file`], or [`TrustError::InsideSession`] if no user is present.
    pub fn rewrite_file(&self, name: &str, content: &[u8]) -> Result<(), TrustError> {
        if self.is_inside_session {
            return Err(TrustError::InsideSession);
        }
        self.store.rewrite_file(&self.workspace, name, content, SystemTime::now())
    }
}

//! Writes covered files for the user while the workspace stays trusted.

use std::collections::BTreeSet;
use std::time::SystemTime;

use super::store::RecordedTrust;
use super::{TrustError, TrustStore, Workspace, WorkspaceState, scan};
use crate::edit::replace_name;

impl TrustStore {
    /// Writes a covered file of a trusted workspace, by its name from the root, and records its new
    /// content. Records of other files stay, so a change of another file is still reported.
    ///
    /// Only for actions of the user. The caller must make sure that no session does this.
    ///
    /// # Errors
    /// [`TrustError::Changed`] if the workspace is not trusted in its current state. Nothing is
    /// written then. Also file system errors.
    pub fn rewrite_file(
        &self,
        workspace: &Workspace,
        name: &str,
        content: &[u8],
        now: SystemTime,
    ) -> Result<(), TrustError> {
        let path = workspace.root().join(name);
        match self.workspace_state(workspace)? {
            WorkspaceState::Trusted(_) => {}
            WorkspaceState::Nothing
            | WorkspaceState::Untrusted { .. }
            | WorkspaceState::Changed { .. } => return Err(TrustError::Changed { path }),
        }
        replace_name(&path, content).map_err(|error| TrustError::Io {
            path,
            doing: "write",
            cause: error.to_string(),
        })?;
        let root = workspace.recorded_root()?.to_owned();
        let (files, stamps) = workspace.digest_all(&BTreeSet::from([name.to_owned()]), now)?;
        self.file.edit_content(|trust: &mut RecordedTrust| {
            let Some(known) = trust.workspaces.get_mut(&root) else { return };
            known.stamps.remove(name);
            known.files.extend(files);
            known.stamps.extend(stamps);
            known.digest = scan::combined_digest(&known.files);
        })
    }
}

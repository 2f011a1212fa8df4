//! The record of trust on disk: `trust.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jaato_types::mcp_entry::AgreedVariables;
use serde::{Deserialize, Serialize};

use super::record::{RECORD_VERSION, RecordFile, RecordKind, checked_digest, unix_seconds};
use super::stamp::CoveredFileStamps;
use super::workspace::list_file_changes;
use super::{
    DevelopmentTrust, FileChange, TrustCandidate, TrustError, TrustedFileChange, TrustedWorkspace,
    Workspace, WorkspaceState, candidate, scan,
};

/// The record of the user's trust, in one of the user's folders.
#[derive(Debug, Clone)]
pub struct TrustStore {
    pub(super) file: RecordFile,
}

/// The content of the record at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedTrust {
    version: u64,
    /// Trusted plugin files by the SHA-256 of their content.
    pub plugins: BTreeMap<String, PluginTrust>,
    /// Trusted workspaces by their canonical root.
    pub workspaces: BTreeMap<String, WorkspaceTrust>,
    /// Workspaces that the user does not want to be asked about again, by their canonical root,
    /// with the names that existed when the user declined.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub declined: BTreeMap<String, Vec<String>>,
    /// Folders of plugin crates whose builds are trusted, by their canonical path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub development: BTreeMap<String, DevelopmentTrust>,
}

/// A trusted plugin file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginTrust {
    /// The plugin's name when it was trusted.
    pub name: String,
    /// The path of the file.
    pub path: String,
    /// When, in seconds since 1970.
    pub trusted_at_s: u64,
}

/// A trusted workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceTrust {
    /// Digest over all covered files.
    pub digest: String,
    /// Digest of each covered file, by its path relative to the workspace.
    pub files: BTreeMap<String, String>,
    /// Stamps of big files, which show later that they did not change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) stamps: CoveredFileStamps,
    /// Variables that may be sent to its MCP servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<AgreedVariables>,
    /// When, in seconds since 1970.
    pub trusted_at_s: u64,
}

impl Default for RecordedTrust {
    fn default() -> Self {
        Self {
            version: RECORD_VERSION,
            plugins: BTreeMap::new(),
            workspaces: BTreeMap::new(),
            declined: BTreeMap::new(),
            development: BTreeMap::new(),
        }
    }
}

impl RecordedTrust {
    /// Returns true if the content with this SHA-256 is trusted.
    pub fn is_plugin_trusted(&self, sha256: &str) -> bool {
        self.plugins.contains_key(&sha256.to_ascii_lowercase())
    }
}

impl TrustStore {
    /// Returns the record in a folder, which the first write creates.
    pub fn in_folder(folder: &Path) -> Self {
        Self { file: RecordFile::new(folder, RecordKind::Trust) }
    }

    /// Returns the file of the record.
    pub fn path(&self) -> PathBuf {
        self.file.path()
    }

    /// Reads the record. A missing record means that nothing is trusted.
    pub fn read_trust(&self) -> Result<RecordedTrust, TrustError> {
        self.file.read_content()
    }

    /// Returns true if the content with this SHA-256 is trusted. To check many, use one
    /// [`RecordedTrust`].
    pub fn is_plugin_trusted(&self, sha256: &str) -> Result<bool, TrustError> {
        Ok(self.read_trust()?.is_plugin_trusted(sha256))
    }

    /// Trusts a plugin file by its content.
    pub fn trust_plugin(
        &self,
        sha256: &str,
        name: &str,
        path: &Path,
        now: SystemTime,
    ) -> Result<(), TrustError> {
        let sha256 = checked_digest(sha256)?;
        let path = path.to_string_lossy().into_owned();
        let entry = PluginTrust { name: name.to_owned(), path, trusted_at_s: unix_seconds(now) };
        self.file.edit_content(|trust: &mut RecordedTrust| {
            trust.plugins.insert(sha256, entry);
        })
    }

    /// Withdraws trust in a plugin file. Returns true if there was any.
    pub fn untrust_plugin(&self, sha256: &str) -> Result<bool, TrustError> {
        let sha256 = checked_digest(sha256)?;
        self.file.edit_content(|trust: &mut RecordedTrust| trust.plugins.remove(&sha256).is_some())
    }

    /// Returns the state of a workspace. Reads its files only if it was trusted before.
    pub fn workspace_state(&self, workspace: &Workspace) -> Result<WorkspaceState, TrustError> {
        let trust = self.read_trust()?;
        let known = workspace.recorded_root().ok().and_then(|root| trust.workspaces.get(root));
        let Some(known) = known else { return Ok(workspace.untrusted_state()) };
        let present = workspace
            .all_covered_names(&known.files)
            .and_then(|names| workspace.digest_changed_files(&names, known));
        let present = match present {
            Ok(present) => present,
            // A file that cannot be read could be read when the workspace was trusted. `jaato
            // trust` describes the problem.
            Err(error) => {
                let name = workspace.file_name_in_error(&error);
                let files = vec![FileChange { name, kind: TrustedFileChange::Changed }];
                return Ok(WorkspaceState::Changed { files });
            }
        };
        let files = list_file_changes(&known.files, &present);
        Ok(if !files.is_empty() {
            WorkspaceState::Changed { files }
        } else {
            WorkspaceState::Trusted(TrustedWorkspace::new(
                workspace.root(),
                present,
                known.variables.clone(),
            ))
        })
    }

    /// Trusts a workspace in its current state, without any variables for its MCP servers.
    pub fn trust_workspace(
        &self,
        workspace: &Workspace,
        now: SystemTime,
    ) -> Result<TrustedWorkspace, TrustError> {
        self.record_workspace_trust(workspace, None, Vec::new(), now)
    }

    /// Trusts a workspace as the user has seen it, and records the variables that may be sent to
    /// its MCP servers.
    ///
    /// # Errors
    /// [`TrustError::Changed`] if a covered file has changed since then. Also file system errors.
    pub fn trust_as_seen(
        &self,
        workspace: &Workspace,
        seen: &TrustCandidate,
        variables: Vec<AgreedVariables>,
        now: SystemTime,
    ) -> Result<TrustedWorkspace, TrustError> {
        self.record_workspace_trust(workspace, Some(seen), variables, now)
    }

    /// Records trust in the existing files, if they have not changed since they were seen.
    fn record_workspace_trust(
        &self,
        workspace: &Workspace,
        seen: Option<&TrustCandidate>,
        variables: Vec<AgreedVariables>,
        now: SystemTime,
    ) -> Result<TrustedWorkspace, TrustError> {
        let root = workspace.recorded_root()?.to_owned();
        self.file.edit_content(|trust: &mut RecordedTrust| {
            let names = candidate::covered_names(workspace, trust)?;
            let (files, stamps) = workspace.digest_all(&names, now)?;
            let changed =
                seen.map(|seen| list_file_changes(seen.file_digests(), &files)).unwrap_or_default();
            if let Some(change) = changed.first() {
                return Err(TrustError::Changed { path: workspace.root().join(&change.name) });
            }
            let entry = WorkspaceTrust {
                digest: scan::combined_digest(&files),
                files: files.clone(),
                stamps,
                variables: variables.clone(),
                trusted_at_s: unix_seconds(now),
            };
            trust.declined.remove(&root);
            trust.workspaces.insert(root, entry);
            Ok(TrustedWorkspace::new(workspace.root(), files, variables))
        })?
    }

    /// Records that the user does not want to be asked about a workspace while it has only these
    /// names.
    pub fn decline_workspace(
        &self,
        workspace: &Workspace,
        found: &[String],
    ) -> Result<(), TrustError> {
        let root = workspace.recorded_root()?.to_owned();
        self.file.edit_content(|trust: &mut RecordedTrust| {
            trust.declined.insert(root, found.to_vec());
        })
    }

    /// Returns true if the user declined a workspace with exactly these names.
    pub fn is_declined(&self, workspace: &Workspace, found: &[String]) -> Result<bool, TrustError> {
        let root = workspace.recorded_root()?;
        Ok(self.read_trust()?.declined.get(root).is_some_and(|names| names == found))
    }

    /// Withdraws trust in a workspace. Returns true if there was any.
    pub fn untrust_workspace(&self, workspace: &Workspace) -> Result<bool, TrustError> {
        let root = workspace.recorded_root()?.to_owned();
        self.file.edit_content(|trust: &mut RecordedTrust| trust.workspaces.remove(&root).is_some())
    }
}

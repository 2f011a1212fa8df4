//! The record of trust on disk: `trust.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jaato_types::mcp_entry::AgreedVariables;
use serde::{Deserialize, Serialize};

use super::record::{RECORD_VERSION, RecordFile, RecordKind, checked_digest, seconds};
use super::stamp::Stamps;
use super::workspace::changes;
use super::{
    Candidate, ChangeKind, FileChange, TrustError, TrustedWorkspace, Workspace, WorkspaceState,
    candidate, scan,
};

/// The record of what the person trusts, in a folder of theirs.
#[derive(Debug, Clone)]
pub struct TrustStore {
    pub(super) file: RecordFile,
}

/// What the record says, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    version: u64,
    /// Trusted plugin files by the SHA-256 of their content.
    pub plugins: BTreeMap<String, PluginTrust>,
    /// Trusted workspaces by their canonical root.
    pub workspaces: BTreeMap<String, WorkspaceTrust>,
    /// Workspaces that the person does not want to be asked about again, by their canonical root:
    /// the names that were there when they said no.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub declined: BTreeMap<String, Vec<String>>,
}

/// A trusted plugin file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginTrust {
    /// The plugin's name when it was trusted.
    pub name: String,
    /// Where the file lay.
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
    /// Digest of each covered file, by name from the root.
    pub files: BTreeMap<String, String>,
    /// Of big files, by which a later look sees that they did not change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) stamps: Stamps,
    /// Variables that its MCP servers may be sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<AgreedVariables>,
    /// When, in seconds since 1970.
    pub trusted_at_s: u64,
}

impl Default for Trust {
    fn default() -> Self {
        Self {
            version: RECORD_VERSION,
            plugins: BTreeMap::new(),
            workspaces: BTreeMap::new(),
            declined: BTreeMap::new(),
        }
    }
}

impl Trust {
    /// Tells whether the content with this SHA-256 is trusted.
    pub fn is_plugin_trusted(&self, sha256: &str) -> bool {
        self.plugins.contains_key(&sha256.to_ascii_lowercase())
    }
}

impl TrustStore {
    /// The record in a folder, which is made with the first write.
    pub fn in_folder(folder: &Path) -> Self {
        Self { file: RecordFile::new(folder, RecordKind::Trust) }
    }

    /// The file of the record.
    pub fn path(&self) -> PathBuf {
        self.file.path()
    }

    /// What the record says. No record means that nothing is trusted.
    pub fn read(&self) -> Result<Trust, TrustError> {
        self.file.read()
    }

    /// Tells whether the content with this SHA-256 is trusted. For many, ask one [`Trust`].
    pub fn is_plugin_trusted(&self, sha256: &str) -> Result<bool, TrustError> {
        Ok(self.read()?.is_plugin_trusted(sha256))
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
        let entry = PluginTrust { name: name.to_owned(), path, trusted_at_s: seconds(now) };
        self.file.change(|trust: &mut Trust| {
            trust.plugins.insert(sha256, entry);
        })
    }

    /// Withdraws trust in a plugin file; tells whether there was any.
    pub fn untrust_plugin(&self, sha256: &str) -> Result<bool, TrustError> {
        let sha256 = checked_digest(sha256)?;
        self.file.change(|trust: &mut Trust| trust.plugins.remove(&sha256).is_some())
    }

    /// How a workspace stands. Reads its files only if it was trusted before.
    pub fn workspace_state(&self, workspace: &Workspace) -> Result<WorkspaceState, TrustError> {
        let trust = self.read()?;
        let known = workspace.recorded_root().ok().and_then(|root| trust.workspaces.get(root));
        let Some(known) = known else { return Ok(workspace.state_untrusted()) };
        let present =
            workspace.names(&known.files).and_then(|names| workspace.digest_again(&names, known));
        let present = match present {
            Ok(present) => present,
            // What cannot be looked at was not so when it was trusted. `jaato trust` says what is
            // wrong with it.
            Err(error) => {
                let name = workspace.name_of_trouble(&error);
                let files = vec![FileChange { name, kind: ChangeKind::Changed }];
                return Ok(WorkspaceState::Changed { files });
            }
        };
        let files = changes(&known.files, &present);
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

    /// Trusts a workspace as it is, without any variable for its MCP servers.
    pub fn trust_workspace(
        &self,
        workspace: &Workspace,
        now: SystemTime,
    ) -> Result<TrustedWorkspace, TrustError> {
        self.record(workspace, None, Vec::new(), now)
    }

    /// Trusts a workspace as the user has seen it, and records the variables that its MCP servers
    /// may be sent.
    ///
    /// # Errors
    /// [`TrustError::Changed`] if a covered file is not as it was seen; what the file system says.
    pub fn trust_as_seen(
        &self,
        workspace: &Workspace,
        seen: &Candidate,
        variables: Vec<AgreedVariables>,
        now: SystemTime,
    ) -> Result<TrustedWorkspace, TrustError> {
        self.record(workspace, Some(seen), variables, now)
    }

    /// Records trust in the files that are there, if they are as they were seen.
    fn record(
        &self,
        workspace: &Workspace,
        seen: Option<&Candidate>,
        variables: Vec<AgreedVariables>,
        now: SystemTime,
    ) -> Result<TrustedWorkspace, TrustError> {
        let root = workspace.recorded_root()?.to_owned();
        self.file.change(|trust: &mut Trust| {
            let names = candidate::names(workspace, trust)?;
            let (files, stamps) = workspace.digest_all(&names, now)?;
            let changed = seen.map(|seen| changes(seen.files(), &files)).unwrap_or_default();
            if let Some(change) = changed.first() {
                return Err(TrustError::Changed { path: workspace.root().join(&change.name) });
            }
            let entry = WorkspaceTrust {
                digest: scan::whole(&files),
                files: files.clone(),
                stamps,
                variables: variables.clone(),
                trusted_at_s: seconds(now),
            };
            trust.declined.remove(&root);
            trust.workspaces.insert(root, entry);
            Ok(TrustedWorkspace::new(workspace.root(), files, variables))
        })?
    }

    /// Notes that the person does not want to be asked about a workspace as long as no other names
    /// are there.
    pub fn decline_workspace(
        &self,
        workspace: &Workspace,
        found: &[String],
    ) -> Result<(), TrustError> {
        let root = workspace.recorded_root()?.to_owned();
        self.file.change(|trust: &mut Trust| {
            trust.declined.insert(root, found.to_vec());
        })
    }

    /// Tells whether the person said no to a workspace with just these names.
    pub fn is_declined(&self, workspace: &Workspace, found: &[String]) -> Result<bool, TrustError> {
        let root = workspace.recorded_root()?;
        Ok(self.read()?.declined.get(root).is_some_and(|names| names == found))
    }

    /// Withdraws trust in a workspace; tells whether there was any.
    pub fn untrust_workspace(&self, workspace: &Workspace) -> Result<bool, TrustError> {
        let root = workspace.recorded_root()?.to_owned();
        self.file.change(|trust: &mut Trust| trust.workspaces.remove(&root).is_some())
    }
}

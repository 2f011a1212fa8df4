//! The record of trust on disk: `trust.json`.
//!
//! Written beside and renamed, under a lock, readable by its owner only. A record that cannot be
//! read is an error and never an empty record: else damage would quietly withdraw trust, and the
//! next write would lose it for good.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jaato_places::{PlaceError, Why};
use serde::{Deserialize, Serialize};

use super::stamp::Stamps;
use super::workspace::changes;
use super::{
    ChangeKind, FileChange, TrustError, TrustedWorkspace, Workspace, WorkspaceState, scan,
};

const TRUST_VERSION: u64 = 1;

/// Longest wait for another process that writes the record: it takes milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Longest record that is read: thousands of workspaces with hundreds of files each.
const RECORD_BYTES_MAX: u64 = 256 * 1024 * 1024;

const LOCK_POLL: Duration = Duration::from_millis(10);

/// The record of what the person trusts, in a folder of theirs.
#[derive(Debug, Clone)]
pub struct TrustStore {
    folder: PathBuf,
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
    /// When, in seconds since 1970.
    pub trusted_at_s: u64,
}

/// Only this much of the record has to be read to know whether the rest can be.
#[derive(Deserialize)]
struct VersionOnly {
    version: u64,
}

impl Default for Trust {
    fn default() -> Self {
        Self {
            version: TRUST_VERSION,
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
        Self { folder: folder.to_owned() }
    }

    /// The file of the record.
    pub fn path(&self) -> PathBuf {
        self.folder.join("trust.json")
    }

    /// What the record says. No record means that nothing is trusted.
    pub fn read(&self) -> Result<Trust, TrustError> {
        let path = self.path();
        let text = match jaato_places::read(&path, RECORD_BYTES_MAX) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(Trust::default()),
            Err(error) if is_nowhere(&error) => return Ok(Trust::default()),
            // Whatever keeps it from being read: it counts as empty, and jaato goes on.
            Err(error) => return Err(TrustError::NotBelieved(error)),
        };
        let corrupt = |error: serde_json::Error| TrustError::Corrupt {
            path: path.clone(),
            cause: error.to_string(),
        };
        let VersionOnly { version } = serde_json::from_slice(&text).map_err(corrupt)?;
        if version > TRUST_VERSION {
            return Err(TrustError::Newer { path, has: version, knows: TRUST_VERSION });
        }
        serde_json::from_slice(&text).map_err(corrupt)
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
        self.change(|trust| {
            trust.plugins.insert(sha256, entry);
        })
    }

    /// Withdraws trust in a plugin file; tells whether there was any.
    pub fn untrust_plugin(&self, sha256: &str) -> Result<bool, TrustError> {
        let sha256 = checked_digest(sha256)?;
        self.change(|trust| trust.plugins.remove(&sha256).is_some())
    }

    /// How a workspace stands. Reads its files only if it was trusted before.
    pub fn workspace_state(&self, workspace: &Workspace) -> Result<WorkspaceState, TrustError> {
        let trust = self.read()?;
        let known = workspace.recorded_root().ok().and_then(|root| trust.workspaces.get(root));
        let Some(known) = known else {
            let found = workspace.shown_names();
            return Ok(if found.is_empty() {
                WorkspaceState::Nothing
            } else {
                WorkspaceState::Untrusted { found }
            });
        };
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
        } else if present.is_empty() {
            WorkspaceState::Nothing
        } else {
            WorkspaceState::Trusted(TrustedWorkspace::new(workspace.root(), present))
        })
    }

    /// Trusts a workspace as it is: reads and digests its covered files.
    pub fn trust_workspace(
        &self,
        workspace: &Workspace,
        now: SystemTime,
    ) -> Result<TrustedWorkspace, TrustError> {
        let root = workspace.recorded_root()?.to_owned();
        self.change(|trust| {
            let known = trust.workspaces.get(&root).map(|known| known.files.clone());
            let mut recorded = known.unwrap_or_default();
            recorded.retain(|name, _| !workspace.is_replaced(name));
            let names = workspace.names(&recorded)?;
            let (files, stamps) = workspace.digest_all(&names, now)?;
            let entry = WorkspaceTrust {
                digest: scan::whole(&files),
                files: files.clone(),
                stamps,
                trusted_at_s: seconds(now),
            };
            trust.declined.remove(&root);
            trust.workspaces.insert(root, entry);
            Ok(TrustedWorkspace::new(workspace.root(), files))
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
        self.change(|trust| {
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
        self.change(|trust| trust.workspaces.remove(&root).is_some())
    }

    /// Reads, changes and writes the record while no other process does.
    fn change<T>(&self, edit: impl FnOnce(&mut Trust) -> T) -> Result<T, TrustError> {
        jaato_places::make(&self.folder).map_err(not_believed)?;
        // Unlocked when it is dropped, also by a process that is killed.
        let _lock = self.lock()?;
        let before = self.read()?;
        let mut trust = before.clone();
        let answer = edit(&mut trust);
        if trust != before {
            self.write(&trust)?;
        }
        Ok(answer)
    }

    fn lock(&self) -> Result<File, TrustError> {
        let path = self.folder.join("trust.lock");
        // Not the record itself: renaming over a locked file would leave two that are locked.
        let mut options = OpenOptions::new();
        let file = jaato_places::open(&path, options.write(true).create(true).truncate(false))
            .map_err(not_believed)?;
        let begin = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if begin.elapsed() < LOCK_WAIT => {
                    std::thread::sleep(LOCK_POLL);
                }
                Err(TryLockError::WouldBlock) => return Err(TrustError::Locked { path }),
                Err(TryLockError::Error(error)) => return Err(failed(&path, "lock", &error)),
            }
        }
    }

    fn write(&self, trust: &Trust) -> Result<(), TrustError> {
        let path = self.path();
        let write = || -> std::io::Result<()> {
            // Made with mode 0600.
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            serde_json::to_writer_pretty(&mut file, trust)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(|error| failed(&path, "write", &error))
    }
}

fn checked_digest(sha256: &str) -> Result<String, TrustError> {
    let is_digest = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest
        .then(|| sha256.to_ascii_lowercase())
        .ok_or_else(|| TrustError::BadDigest { has: sha256.to_owned() })
}

fn seconds(time: SystemTime) -> u64 {
    // A clock before 1970 is wrong, and the time is only shown.
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn failed(path: &Path, doing: &'static str, error: &std::io::Error) -> TrustError {
    TrustError::Io { path: path.to_owned(), doing, cause: error.to_string() }
}

fn not_believed(error: PlaceError) -> TrustError {
    match &error.why {
        Why::System(cause) => failed(&error.path, "use", cause),
        Why::Owner(_)
        | Why::Writable(_)
        | Why::NotAFolder
        | Why::NotAFile
        | Why::TooLarge(_)
        | Why::TooManyLinks => TrustError::NotBelieved(error),
    }
}

/// Returns true where a file stands in place of a folder above the record (`HOME=/dev/null`): there
/// is none, and none can be made.
fn is_nowhere(error: &PlaceError) -> bool {
    matches!(&error.why, Why::System(error) if error.kind() == ErrorKind::NotADirectory)
}

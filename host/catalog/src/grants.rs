//! Services and hooks that need a grant from the user.
//!
//! A shipped plugin has every grant that its description lists. Any other plugin has only those
//! that the grant record contains for its name and content. The record is checked for each
//! question, so that a change by another process takes effect at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use jaato_config::UserFolders;
use jaato_config::trust::{GrantStore, LiveGrants, RecordedGrants, TrustError};
use jaato_registry::{PluginEntry, PluginFileTrust};
use jaato_types::grant::{grant_missing_error, grant_not_requested_error, requested_grants};
use jaato_types::{Error, ErrorKind, PluginName};

/// The grants of a host's plugins.
#[derive(Debug)]
pub struct GrantTable {
    /// `None` if the system reports no home directory.
    record: Option<LiveGrants>,
}

/// The properties of a plugin edition on which grants depend.
#[derive(Debug, Clone)]
pub struct GrantHolder {
    name: PluginName,
    trust: PluginFileTrust,
    asked: Vec<&'static str>,
}

/// The state of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantState {
    /// The plugin has it because it is shipped with jaato.
    Shipped,
    /// The user granted it.
    Granted,
    /// The user did not grant it.
    NotGranted,
}

impl GrantState {
    /// Returns the name for lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::Granted => "granted",
            Self::NotGranted => "not granted",
        }
    }
}

impl GrantHolder {
    /// Takes the relevant properties of a plugin.
    pub fn from_entry(entry: &PluginEntry) -> Self {
        Self {
            name: entry.candidate.manifest.name.clone(),
            trust: entry.candidate.trust.clone(),
            asked: entry.description().map(requested_grants).unwrap_or_default(),
        }
    }

    /// Returns the digest of the plugin's file, to which its grants are bound. Returns `None` if
    /// the plugin is shipped or never runs.
    pub fn digest(&self) -> Option<&str> {
        match &self.trust {
            PluginFileTrust::ByHash(digest) | PluginFileTrust::No(digest) => Some(digest),
            PluginFileTrust::Shipped | PluginFileTrust::WorkspaceNot => None,
        }
    }

    fn grant_state(&self, grants: &RecordedGrants, grant: &str) -> GrantState {
        if self.trust == PluginFileTrust::Shipped {
            return GrantState::Shipped;
        }
        let digest = self.digest();
        match digest.is_some_and(|digest| grants.has_grant(self.name.as_str(), digest, grant)) {
            true => GrantState::Granted,
            false => GrantState::NotGranted,
        }
    }
}

impl GrantTable {
    /// Uses the record in the user's folders. Reads nothing yet.
    pub fn in_folders(folders: &UserFolders) -> Self {
        let store = folders.data_folder().ok().map(GrantStore::in_folder);
        Self { record: store.map(LiveGrants::new) }
    }

    /// Returns true if a plugin lists a grant and has it. Checked before each hook.
    pub fn has_grant(&self, entry: &PluginEntry, grant: &str) -> bool {
        self.check_grant(&GrantHolder::from_entry(entry), grant).is_ok()
    }

    /// Checks that a plugin lists a grant and has it.
    ///
    /// # Errors
    /// `permission_denied`, with a hint.
    pub fn check_grant(&self, holder: &GrantHolder, grant: &str) -> Result<(), Error> {
        if !holder.asked.contains(&grant) {
            return Err(grant_not_requested_error(&holder.name, grant));
        }
        if holder.trust == PluginFileTrust::Shipped {
            return Ok(());
        }
        let grants = self.current_grants().map_err(|error| {
            let denied = grant_missing_error(&holder.name, grant);
            let text = format!("{}: {error}", denied.message);
            let denied = Error::new(ErrorKind::PermissionDenied, text);
            error.hint().into_iter().fold(denied, Error::with_hint)
        })?;
        match holder.grant_state(&grants, grant) {
            GrantState::Shipped | GrantState::Granted => Ok(()),
            GrantState::NotGranted => Err(grant_missing_error(&holder.name, grant)),
        }
    }

    /// Lists the grants that a plugin asks for, and the state of each. If the record cannot be
    /// read, nothing is granted.
    pub fn requested_grants(&self, entry: &PluginEntry) -> Vec<(&'static str, GrantState)> {
        let holder = GrantHolder::from_entry(entry);
        let grants = self.current_grants().unwrap_or_default();
        let standing = |grant: &&'static str| (*grant, holder.grant_state(&grants, grant));
        holder.asked.iter().map(standing).collect()
    }

    /// Returns the grants of this content under a plugin's name.
    pub fn granted_services(&self, plugin: &str, sha256: &str) -> BTreeSet<String> {
        let grants = self.current_grants().unwrap_or_default();
        let granted = grants.plugins.get(sha256).filter(|granted| granted.name == plugin);
        granted.map(|granted| granted.services.clone()).unwrap_or_default()
    }

    /// Returns the command that gives a plugin its missing grants, or `None` if it has all of them.
    pub fn grant_command(&self, entry: &PluginEntry) -> Option<String> {
        let lacks = |(_, standing): &(_, GrantState)| *standing == GrantState::NotGranted;
        let name = &entry.candidate.manifest.name;
        self.requested_grants(entry).iter().any(lacks).then(|| format!("jaato plugin grant {name}"))
    }

    /// Returns the problem with the record, if there is one.
    pub fn read_problem(&self) -> Option<Arc<TrustError>> {
        self.current_grants().err()
    }

    fn current_grants(&self) -> Result<Arc<RecordedGrants>, Arc<TrustError>> {
        self.record.as_ref().map_or_else(|| Ok(Arc::default()), LiveGrants::current_grants)
    }
}

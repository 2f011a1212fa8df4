//! What plugins may ask of the host, or be asked by it, only where the person grants it.
//!
//! Shipped plugins have what they list in their description; any other has of that what the record
//! of grants says for its name and content. The record is looked at with each question, so that
//! what another process grants or takes back holds at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use jaato_config::Folders;
use jaato_config::trust::{GrantStore, Grants, LiveGrants, TrustError};
use jaato_registry::{PluginEntry, Trust};
use jaato_types::grant::{grants_asked, not_asked_for, not_granted};
use jaato_types::{Error, ErrorKind, PluginName};

/// What the plugins of a host were granted.
#[derive(Debug)]
pub struct GrantTable {
    /// Absent where the system names no home.
    record: Option<LiveGrants>,
}

/// A plugin in one edition, as far as grants depend on it.
#[derive(Debug, Clone)]
pub struct GrantHolder {
    name: PluginName,
    trust: Trust,
    asked: Vec<&'static str>,
}

/// How it stands with something that a plugin asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has it, as it is shipped with jaato.
    Shipped,
    /// The person granted it.
    Granted,
    /// It does without.
    NotGranted,
}

impl Standing {
    /// Returns the words for lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::Granted => "granted",
            Self::NotGranted => "not granted",
        }
    }
}

impl GrantHolder {
    /// Takes what matters of a plugin.
    pub fn of(entry: &PluginEntry) -> Self {
        Self {
            name: entry.candidate.manifest.name.clone(),
            trust: entry.candidate.trust.clone(),
            asked: entry.description().map(grants_asked).unwrap_or_default(),
        }
    }

    /// Returns the digest of the plugin's file, to which its grants are bound; `None` where it is
    /// shipped, or nothing of it is run.
    pub fn digest(&self) -> Option<&str> {
        match &self.trust {
            Trust::ByHash(digest) | Trust::No(digest) => Some(digest),
            Trust::Shipped | Trust::WorkspaceNot => None,
        }
    }

    fn standing(&self, grants: &Grants, grant: &str) -> Standing {
        if self.trust == Trust::Shipped {
            return Standing::Shipped;
        }
        let digest = self.digest();
        match digest.is_some_and(|digest| grants.has(self.name.as_str(), digest, grant)) {
            true => Standing::Granted,
            false => Standing::NotGranted,
        }
    }
}

impl GrantTable {
    /// Asks the record of the person's folders; reads nothing yet.
    pub fn of(folders: &Folders) -> Self {
        let store = folders.data().ok().map(GrantStore::in_folder);
        Self { record: store.map(LiveGrants::new) }
    }

    /// Tells whether a plugin lists a grant and has it: what a hook asks before it calls one.
    pub fn may(&self, entry: &PluginEntry, grant: &str) -> bool {
        self.check(&GrantHolder::of(entry), grant).is_ok()
    }

    /// Checks that a plugin lists a grant and has it.
    ///
    /// # Errors
    /// `permission_denied`, with what to do.
    pub fn check(&self, holder: &GrantHolder, grant: &str) -> Result<(), Error> {
        if !holder.asked.contains(&grant) {
            return Err(not_asked_for(&holder.name, grant));
        }
        if holder.trust == Trust::Shipped {
            return Ok(());
        }
        let grants = self.now().map_err(|error| {
            let denied = not_granted(&holder.name, grant);
            let text = format!("{}: {error}", denied.message);
            let denied = Error::new(ErrorKind::PermissionDenied, text);
            error.hint().into_iter().fold(denied, Error::with_hint)
        })?;
        match holder.standing(&grants, grant) {
            Standing::Shipped | Standing::Granted => Ok(()),
            Standing::NotGranted => Err(not_granted(&holder.name, grant)),
        }
    }

    /// Lists what a plugin asks for, and how it stands with each. Of a record that cannot be read
    /// nothing is granted.
    pub fn asked(&self, entry: &PluginEntry) -> Vec<(&'static str, Standing)> {
        let holder = GrantHolder::of(entry);
        let grants = self.now().unwrap_or_default();
        let standing = |grant: &&'static str| (*grant, holder.standing(&grants, grant));
        holder.asked.iter().map(standing).collect()
    }

    /// Returns what a content under a plugin's name was granted.
    pub fn granted(&self, plugin: &str, sha256: &str) -> BTreeSet<String> {
        let grants = self.now().unwrap_or_default();
        let granted = grants.plugins.get(sha256).filter(|granted| granted.name == plugin);
        granted.map(|granted| granted.services.clone()).unwrap_or_default()
    }

    /// Returns the command that grants a plugin what it asks for and has not; `None` if it has all.
    pub fn command(&self, entry: &PluginEntry) -> Option<String> {
        let lacks = |(_, standing): &(_, Standing)| *standing == Standing::NotGranted;
        let name = &entry.candidate.manifest.name;
        self.asked(entry).iter().any(lacks).then(|| format!("jaato plugin grant {name}"))
    }

    /// Returns what is wrong with the record, where something is.
    pub fn problem(&self) -> Option<Arc<TrustError>> {
        self.now().err()
    }

    fn now(&self) -> Result<Arc<Grants>, Arc<TrustError>> {
        self.record.as_ref().map_or_else(|| Ok(Arc::default()), LiveGrants::now)
    }
}

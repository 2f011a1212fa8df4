//! What a fake host has granted to its plugin: all that the plugin lists, but what a test denies.

use std::collections::BTreeSet;

use jaato_types::grant::{GRANTS, grant_of, grants_asked, not_asked_for, not_granted};
use jaato_types::{Description, PluginName, Result};

/// What a plugin lists, and what of it is denied.
#[derive(Default)]
pub(crate) struct Grants {
    plugin: Option<PluginName>,
    listed: BTreeSet<&'static str>,
    denied: BTreeSet<&'static str>,
}

impl Grants {
    /// Takes what a plugin lists.
    pub(crate) fn of(plugin: PluginName, description: &Description) -> Self {
        let listed = grants_asked(description).into_iter().collect();
        Self { plugin: Some(plugin), listed, denied: BTreeSet::new() }
    }

    /// Takes it that the plugin lists everything.
    pub(crate) fn list_all(&mut self) {
        self.listed = GRANTS.iter().map(|grant| grant.name).collect();
    }

    /// Denies what an operation needs, or takes a grant by its name back.
    pub(crate) fn deny(&mut self, operation: &str) {
        self.denied.extend(grant_of(operation));
    }

    /// Gives a grant that was denied.
    pub(crate) fn give(&mut self, operation: &str) {
        if let Some(grant) = grant_of(operation) {
            self.denied.remove(grant);
        }
    }

    /// Refuses an operation as the host does.
    pub(crate) fn check(&self, operation: &str) -> Result<()> {
        let (Some(plugin), Some(grant)) = (&self.plugin, grant_of(operation)) else {
            return Ok(());
        };
        if !self.listed.contains(grant) {
            return Err(not_asked_for(plugin, grant));
        }
        if self.denied.contains(grant) {
            return Err(not_granted(plugin, grant));
        }
        Ok(())
    }
}

//! The grants of a fake host's plugin: everything that it lists, except what a test denies.

use std::collections::BTreeSet;

use jaato_types::grant::{
    GRANTS, grant_missing_error, grant_not_requested_error, requested_grants, required_grant,
    required_grant_in_hook,
};
use jaato_types::{Description, PluginName, Result};

/// The grants that a plugin lists, and those that are denied.
#[derive(Default)]
pub(crate) struct FakeGrants {
    plugin: Option<PluginName>,
    listed: BTreeSet<&'static str>,
    denied: BTreeSet<&'static str>,
    has_hooks: bool,
}

impl FakeGrants {
    /// Creates the grants from a plugin's description.
    pub(crate) fn from_description(plugin: PluginName, description: &Description) -> Self {
        let listed = requested_grants(description).into_iter().collect();
        let has_hooks = !description.hooks.is_empty();
        Self { plugin: Some(plugin), listed, denied: BTreeSet::new(), has_hooks }
    }

    /// Acts as if the plugin listed every grant.
    pub(crate) fn list_all_grants(&mut self) {
        self.listed = GRANTS.iter().map(|grant| grant.name).collect();
    }

    /// Denies the grant of an operation, or revokes a grant by its name.
    pub(crate) fn deny_grant(&mut self, operation: &str) {
        self.denied.extend(required_grant(operation));
    }

    /// Restores a grant that was denied.
    pub(crate) fn restore_grant(&mut self, operation: &str) {
        if let Some(grant) = required_grant(operation) {
            self.denied.remove(grant);
        }
    }

    /// Refuses an operation like the host does. `is_call` means that neither a hook nor an instance
    /// asks.
    pub(crate) fn check_grant(&self, operation: &str, is_call: bool) -> Result<()> {
        let grant = match is_call || !self.has_hooks {
            true => required_grant(operation),
            false => required_grant_in_hook(operation),
        };
        let (Some(plugin), Some(grant)) = (&self.plugin, grant) else { return Ok(()) };
        if !self.listed.contains(grant) {
            return Err(grant_not_requested_error(plugin, grant));
        }
        if self.denied.contains(grant) {
            return Err(grant_missing_error(plugin, grant));
        }
        Ok(())
    }
}

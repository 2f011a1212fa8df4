//! Creates the services of calls. The user's settings and keys are read once per edition of a
//! plugin.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_catalog::{GrantHolder, Setup};
use jaato_environments::declared_secrets;
use jaato_instances::{CallServices, CallSite, DeltaCallback, PluginInUse, ServiceFactory};
use jaato_registry::{PluginEntry, PluginFileTrust, Registry};
use jaato_types::store::StoreOwner;
use jaato_types::{Asset, Error, ErrorKind, PluginKind, PluginName, PluginScope};
use parking_lot::Mutex;
use serde_json::Value;

use crate::call::ServiceCall;
use crate::credentials::{CredentialAccess, PluginCredentials};
use crate::plugin::PluginServices;
use crate::scrub::SecretScrubber;
use crate::section::SettingsSection;
use crate::settings;
use crate::shared::SharedServices;

/// The services of a host.
pub struct HostServices {
    setup: Arc<Setup>,
    shared: Arc<SharedServices>,
    prepared: Mutex<PreparedEditions>,
}

/// By plugin and section, with the number of the edition.
type PreparedEditions = HashMap<(PluginName, SettingsSection), (u64, Arc<PreparedEdition>)>;

/// The state that the calls of one plugin edition share.
struct PreparedEdition {
    config: Arc<Value>,
    credentials: Arc<PluginCredentials>,
    assets: Arc<[Asset]>,
    grants: Arc<GrantHolder>,
}

impl HostServices {
    /// Creates the services. Reads nothing.
    pub fn new(setup: Arc<Setup>, shared: SharedServices) -> Self {
        Self { setup, shared: Arc::new(shared), prepared: Mutex::default() }
    }

    /// Returns the state that the calls of all plugins share.
    pub fn shared_services(&self) -> &SharedServices {
        &self.shared
    }

    /// Returns a plugin's settings as the plugin sees them, or those of a name in `[providers]` if
    /// it is given. Returns `None` if they are unusable.
    pub fn plugin_settings(
        &self,
        entry: &PluginEntry,
        provider: Option<&Arc<str>>,
        edition: u64,
    ) -> Option<Arc<Value>> {
        Some(Arc::clone(&self.prepare_edition(entry, provider, edition).ok()?.config))
    }

    /// Returns the location of a provider's server, and the sources of its keys.
    ///
    /// # Errors
    /// If its settings are invalid.
    pub fn credential_access(
        &self,
        entry: &PluginEntry,
        provider: Option<&Arc<str>>,
        edition: u64,
    ) -> Result<CredentialAccess, Error> {
        Ok(self.prepare_edition(entry, provider, edition)?.credentials.list_access())
    }

    /// Returns the vendor of a provider's models (the plugin's own, or one that it knows by name),
    /// and whether the vendor's own server is used. If the user names another server, its models
    /// are unknown.
    pub fn vendor_name(
        &self,
        entry: &PluginEntry,
        provider: Option<&Arc<str>>,
        edition: u64,
    ) -> Option<(String, bool)> {
        let prepared = self.prepare_edition(entry, provider, edition).ok()?;
        let description = entry.description()?;
        let section = SettingsSection::for_plugin(&entry.candidate.manifest.name, provider);
        let preset = section.preset(&self.setup.config, description);
        let own = || Some(description.provider.as_ref()?.name.clone());
        let vendor = preset.map(|preset| preset.name.clone()).or_else(own)?;
        Some((vendor, prepared.credentials.is_at_vendor()))
    }

    /// Overwrites all keys and secrets that plugins of this process use in a file, from an offset
    /// on. The file may still grow.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn mask_secrets_in_file(&self, path: &Path, from: u64) -> io::Result<()> {
        let prepared: Vec<_> =
            self.prepared.lock().values().map(|(_, prepared)| Arc::clone(prepared)).collect();
        let keys = prepared.iter().flat_map(|prepared| prepared.credentials.scrubbers());
        let scrubbers: Vec<SecretScrubber> = keys.chain(self.shared.secrets.scrubbers()).collect();
        if scrubbers.is_empty() {
            return Ok(());
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        scrubbers.iter().try_for_each(|scrubber| scrubber.mask_in_file(&file, from))
    }

    /// Removes all keys and secrets that plugins of this process use from a text.
    pub fn without_any_secret(&self, text: &str) -> String {
        let prepared: Vec<_> =
            self.prepared.lock().values().map(|(_, prepared)| Arc::clone(prepared)).collect();
        let text = prepared
            .iter()
            .fold(text.to_owned(), |text, prepared| prepared.credentials.without_secrets(text));
        self.shared.secrets.without_any_secret(text)
    }

    /// Returns true if a plugin has something to do before its first call: it names no files that
    /// it needs, one of them exists, or the user has configured it.
    pub fn has_work(&self, entry: &PluginEntry) -> bool {
        let Some(description) = entry.description() else { return true };
        let name = &entry.candidate.manifest.name;
        let files = &description.only_with_files;
        files.is_empty()
            || self.setup.config.plugin_settings.contains_key(name.as_str())
            || files.iter().any(|path| self.has_file(name, path))
    }

    /// Returns true if a file of `only_with_files` exists. A path that begins with an unknown root
    /// counts as one that exists.
    fn has_file(&self, plugin: &PluginName, path: &str) -> bool {
        let Some((root, rest)) = path.split_once('/') else { return true };
        let store = |of| self.shared.stores.open_store(plugin, of).ok().map(|it| it.folder_path());
        let home = self.setup.variables.get("HOME").map(PathBuf::from);
        let folder = match root {
            "{home}" => home,
            "{store}" => store(StoreOwner::Person),
            "{workspace_store}" => store(StoreOwner::Workspace),
            // Some plugins also search the folders above the working directory. Files in the home
            // folder do not belong to a workspace below it.
            "{workspace}" => {
                let here = self.setup.workspace.working_directory();
                let above = here.ancestors().skip(1);
                let above = above.take_while(|folder| home.as_deref() != Some(*folder));
                let mut folders = std::iter::once(here).chain(above);
                return folders.any(|folder| folder.join(rest).exists());
            }
            _ => return true,
        };
        folder.is_some_and(|folder| folder.join(rest).exists())
    }

    /// Validates the user's settings and reads credentials, once per edition.
    fn prepare_edition(
        &self,
        entry: &PluginEntry,
        provider: Option<&Arc<str>>,
        edition: u64,
    ) -> Result<Arc<PreparedEdition>, Error> {
        let name = &entry.candidate.manifest.name;
        let key = (name.clone(), SettingsSection::for_plugin(name, provider));
        let mut prepared = self.prepared.lock();
        if let Some((_, prepared)) = prepared.get(&key).filter(|(number, _)| *number == edition) {
            return Ok(Arc::clone(prepared));
        }
        let Some(description) = entry.description() else {
            let text = format!("plugin `{name}` cannot be used");
            return Err(Error::new(ErrorKind::PluginDisabled, text));
        };
        let (config, credentials) =
            settings::settings_of_plugin(entry, &key.1, description, &self.setup)?;
        let (config, credentials) = (Arc::new(config), Arc::new(credentials));
        let assets = description.assets.clone().into();
        let grants = Arc::new(GrantHolder::from_entry(entry));
        let new = Arc::new(PreparedEdition { config, credentials, assets, grants });
        prepared.insert(key, (edition, Arc::clone(&new)));
        Ok(new)
    }
}

impl ServiceFactory for HostServices {
    fn services_for_call(
        &self,
        plugin: PluginInUse<'_>,
        site: &CallSite,
        tell: &DeltaCallback,
    ) -> Result<Arc<dyn CallServices>, Error> {
        let PluginInUse { entry, edition, registry } = plugin;
        let PreparedEdition { config, credentials, assets, grants } =
            &*self.prepare_edition(entry, site.provider.as_ref(), edition)?;
        let call = ServiceCall::new(
            Arc::clone(&self.shared),
            entry.candidate.manifest.name.clone(),
            Arc::clone(config),
            Arc::clone(assets),
            site.clone(),
            Arc::clone(tell),
        );
        let call =
            call.with_credentials(Arc::clone(credentials)).with_grant_holder(Arc::clone(grants));
        let call = match own_tools(entry, registry, site) {
            Some(own_tools) => call.with_own_tools(own_tools),
            None => call,
        };
        let is_host_wide = entry.candidate.manifest.scope == PluginScope::Host;
        let has_hooks = entry.description().is_some_and(|it| !it.hooks.is_empty());
        let call = ServiceCall { is_host_wide, has_hooks, ..call };
        let is_environment = entry.candidate.manifest.kinds.contains(&PluginKind::Environment);
        let call = if is_environment { call.with_processes() } else { call };
        Ok(Arc::new(PluginServices(call)))
    }

    fn without_secrets(&self, plugin: &str, text: &str) -> String {
        // Those of all its sections, because an instance may be used under several names.
        let prepared = self.prepared.lock();
        let its = prepared.iter().filter(|((name, _), _)| name.as_str() == plugin);
        let text = its.fold(text.to_owned(), |text, (_, (_, prepared))| {
            prepared.credentials.without_secrets(text)
        });
        self.shared.secrets.without_secrets(plugin, text)
    }

    fn follow_registry(&self, registry: &Registry) {
        let pass = &self.setup.config.tools_cli_pass;
        self.shared.processes.withhold_variables(&declared_secrets(registry), pass);
    }
}

/// Lists the tools whose objects an untrusted plugin may access. Its own command counts as one,
/// unless its name is another plugin's tool.
fn own_tools(entry: &PluginEntry, registry: &Registry, site: &CallSite) -> Option<Arc<[String]>> {
    if !matches!(entry.candidate.trust, PluginFileTrust::No(_) | PluginFileTrust::WorkspaceNot) {
        return None;
    }
    let running = site.running_tool_name()?;
    let tools = entry.description().map_or(&[][..], |it| &it.tools);
    let mut own: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
    if registry.tool(running).is_none() {
        own.push(running.to_owned());
    }
    Some(own.into())
}

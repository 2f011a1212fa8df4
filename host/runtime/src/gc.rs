//! The session's view of a gc plugin. The plugin is found and opened with the first request for a
//! plan.

use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use jaato_config::Config;
use jaato_instances::{CallSite, DeltaCallback, invalid_answer_error};
use jaato_registry::{PluginEntry, Registry};
use jaato_session::{Cancel, DeadlineHold, Gc, GcSettings, Session, SharedFacts};
use jaato_types::large::LargeRequestKind;
use jaato_types::{Error, ErrorKind, Frame, GcPlan, GcRequest, PluginKind, PluginName, SessionId};

use crate::Runtime;
use crate::host::RuntimeHost;
use crate::large_requests;

/// The prefix of every gc's name. Users may omit it.
const PREFIX: &str = "gc-";

/// The gc of one session.
pub struct PluginGc {
    host: Arc<RuntimeHost>,
    plugin: PluginName,
    session: SessionId,
    facts: OnceLock<SharedFacts>,
}

impl PluginGc {
    /// Creates the gc with this name, or a short form of it, for a session.
    pub fn new(host: Arc<RuntimeHost>, session: SessionId, named: &str) -> Self {
        let plugin = resolve_gc_name(&host.registry(), named);
        Self { host, plugin, session, facts: OnceLock::new() }
    }

    /// Sets the session's facts, which exist only after the session does.
    pub fn set_facts(&self, facts: SharedFacts) {
        // A second call can only bring the same session's facts.
        let _ = self.facts.set(facts);
    }

    async fn request_plan(
        &self,
        request: &GcRequest,
        cancel: Cancel,
        hold: DeadlineHold,
    ) -> Result<GcPlan, Error> {
        self.check_gc_plugin()?;
        let site = CallSite {
            facts: self.facts.get().cloned(),
            hold,
            ..self.host.environments.call_site(&self.session)
        };
        let (of, quiet): (_, DeltaCallback) = (LargeRequestKind::Plan, Arc::new(|_| {}));
        let asked = large_requests::send_large_request(
            &self.host,
            &self.plugin,
            of,
            site,
            request,
            &quiet,
            &cancel,
        );
        Frame::read(&asked.await?).map_err(invalid_answer_error(self.plugin.as_str()))
    }

    /// Returns an error if the plugin cannot be the gc.
    fn check_gc_plugin(&self) -> Result<(), Error> {
        let name = &self.plugin;
        let catalog = self.host.plugins.plugins.catalog_for_call(&self.session, name.as_str());
        let Some(entry) = catalog.registry.plugin(name.as_str()) else {
            let text = format!("no plugin `{name}`, which `[gc] plugin` names, was found");
            return Err(Error::new(ErrorKind::NotFound, text)
                .with_hint(known_gc_names(&self.host.registry())));
        };
        if !entry.candidate.manifest.kinds.contains(&PluginKind::Gc) {
            let text = format!("plugin `{name}`, which `[gc] plugin` names, is not a gc");
            return Err(Error::new(ErrorKind::Configuration, text)
                .with_hint(known_gc_names(&self.host.registry())));
        }
        match entry.unusable_reason() {
            None => Ok(()),
            Some((reason, hint)) => {
                let text = format!("the gc `{name}` cannot be used: {reason}");
                let error = Error::new(ErrorKind::PluginDisabled, text);
                Err(hint.into_iter().fold(error, Error::with_hint))
            }
        }
    }
}

impl Runtime {
    /// Replaces a session's gc by the one that the settings name. `None` removes it. Requires
    /// that no turn runs.
    ///
    /// # Errors
    /// If no usable plugin is that gc. The session then keeps the gc that it has.
    pub fn change_gc(
        &self,
        session: &mut Session,
        settings: Option<GcSettings>,
    ) -> Result<(), Error> {
        let Some(settings) = settings else {
            session.change_gc(None, GcSettings::default());
            return Ok(());
        };
        let gc = PluginGc::new(Arc::clone(self.host()), session.id().clone(), &settings.plugin);
        gc.check_gc_plugin()?;
        gc.set_facts(session.shared_facts());
        session.change_gc(Some(Arc::new(gc)), settings);
        Ok(())
    }
}

impl Gc for PluginGc {
    fn source(&self) -> &str {
        self.host.registry().event_source_name(&self.plugin)
    }

    fn is_available(&self) -> bool {
        self.check_gc_plugin().is_ok()
    }

    fn create_plan<'a>(
        &'a self,
        request: &'a GcRequest,
        cancel: Cancel,
        hold: DeadlineHold,
    ) -> BoxFuture<'a, Result<GcPlan, Error>> {
        Box::pin(self.request_plan(request, cancel, hold))
    }
}

/// Returns an error text if no plugin has the name from `[gc] plugin`. Lists the existing gcs.
pub fn gc_setting_problem(registry: &Registry, config: &Config) -> Option<String> {
    // A missing default gc is fine: the session cuts contexts itself when it must.
    if config.gc.plugin == GcSettings::default().plugin {
        return None;
    }
    let plugin = resolve_gc_name(registry, &config.gc.plugin);
    let is_gc = registry
        .plugin(plugin.as_str())
        .is_some_and(|entry| entry.candidate.manifest.kinds.contains(&PluginKind::Gc));
    let text = format!("unknown gc `{}` in `[gc] plugin`", config.gc.plugin);
    (!is_gc).then(|| format!("{text}\nhint: {}", known_gc_names(registry)))
}

fn known_gc_names(registry: &Registry) -> String {
    let is_gc = |entry: &&PluginEntry| entry.candidate.manifest.kinds.contains(&PluginKind::Gc);
    let gcs = registry.plugins().iter().filter(is_gc);
    let names: Vec<&str> = gcs.map(|entry| entry.candidate.manifest.name.as_str()).collect();
    match names.as_slice() {
        [] => "no gc plugin was found: `jaato doctor` shows the plugin folders".into(),
        names => format!("known gcs are: {}", names.join(", ")),
    }
}

/// Finds the plugin that the user means by its full name, or by the name that seeds use: `truncate`
/// or `gc_truncate`.
fn resolve_gc_name(registry: &Registry, given: &str) -> PluginName {
    let dashed = given.replace('_', "-");
    let with_prefix = format!("{PREFIX}{}", dashed.trim_start_matches(PREFIX));
    let known = [given, with_prefix.as_str()].into_iter().find(|it| registry.plugin(it).is_some());
    PluginName::from(known.unwrap_or(&with_prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_gc_in_the_configuration_is_reported() {
        let registry = Registry::build([], &jaato_registry::RegistryRules::default());
        let named = |name: &str| {
            let mut config = Config::default();
            name.clone_into(&mut config.gc.plugin);
            gc_setting_problem(&registry, &config)
        };
        assert_eq!(named("gc-truncate"), None);
        let told = named("nope").unwrap();
        assert!(told.starts_with("unknown gc `nope` in `[gc] plugin`\nhint: "), "{told}");
    }

    #[test]
    fn gc_may_be_named_with_or_without_its_prefix() {
        let registry = Registry::build([], &jaato_registry::RegistryRules::default());
        for given in ["truncate", "gc-truncate", "gc_truncate"] {
            assert_eq!(resolve_gc_name(&registry, given).as_str(), "gc-truncate");
        }
    }
}

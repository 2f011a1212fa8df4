//! What sessions and their ports share: the plugins as they are known, and what runs them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_loader::Services;
use jaato_process::Supervisor;
use jaato_registry::{PluginEntry, Registry, Trust};
use jaato_store::Ledger;
use jaato_types::terminal::{
    STATE, TerminalRef, TerminalState, TerminalWrite, TerminalWritten, WRITE,
};
use jaato_types::{Asset, Delta, Error, ErrorKind, Frame, FrameError, Kind, PluginName, SessionId};
use parking_lot::Mutex;
use serde_json::Value;

use crate::credentials::Credentials;
use crate::environments::Environments;
use crate::instances::{Got, Instances, Lease, Wanted};
use crate::log::Log;
use crate::reload::{Eyes, Plugins};
use crate::runtime::description;
use crate::services::{Lent, Place, PluginServices, Tell};
use crate::settings;
use crate::setup::Setup;
use crate::terminals::{Hands, Terminals};

/// How often a file may change under the hands of who opens it.
const CHANGES_MAX: u32 = 5;

/// What sessions and their ports share.
pub struct Host {
    pub(crate) setup: Setup,
    pub(crate) plugins: Plugins,
    pub(crate) lent: Arc<Lent>,
    pub(crate) log: Log,
    /// None where the person switched it off.
    pub(crate) ledger: Option<Ledger>,
    pub(crate) instances: Instances,
    pub(crate) supervisor: Supervisor,
    pub(crate) environments: Environments,
    /// What people see and join.
    pub(crate) terminals: Arc<Terminals>,
    /// By plugin, with the number of the edition that it is of.
    pub(crate) prepared: Mutex<HashMap<PluginName, (u64, Arc<Prepared>)>>,
}

/// What the calls of one edition of a plugin share.
pub struct Prepared {
    config: Arc<Value>,
    credentials: Arc<Credentials>,
    assets: Arc<[Asset]>,
}

impl Host {
    /// Returns who has which name at this moment.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.plugins.current().registry)
    }

    /// Returns what looking at the plugins' files needs.
    pub(crate) fn eyes(&self) -> Eyes<'_> {
        let processes = &self.lent.processes;
        Eyes { setup: &self.setup, supervisor: &self.supervisor, processes }
    }

    /// Returns a plugin's instance for a session and the services of one call on it. Where its file
    /// was replaced, it is an instance of what is there.
    pub(crate) async fn instance(
        &self,
        plugin: &str,
        place: Place,
        tell: Tell,
    ) -> Result<(Lease, Arc<dyn Services>), Error> {
        let session = place.session.clone();
        let services = |entry: &PluginEntry, edition| self.services(entry, edition, &place, &tell);
        for _ in 0..CHANGES_MAX {
            self.plugins.look_at(self.eyes(), plugin).await;
            let catalog = self.plugins.for_call(&session, plugin);
            let wanted = Wanted {
                setup: &self.setup,
                catalog: &catalog,
                plugin,
                session: &session,
                services: &services,
                copies: self.plugins.copies(),
            };
            let Some(Got { lease, services, refused }) = self.instances.get(wanted).await? else {
                self.plugins.look(self.eyes()).await;
                continue;
            };
            if let Some(error) = refused {
                let name = lease.plugin();
                self.plugins.refuse(&session, name, &catalog, lease.catalog(), &error.to_string());
            }
            services.bind(lease.downgrade());
            return Ok((lease, services));
        }
        let text = format!("the file of plugin `{plugin}` is gone, or changes again and again");
        Err(Error::new(ErrorKind::Unavailable, text).with_hint("try again once it is in its place"))
    }

    /// Tells whoever follows a call what has become of its plugin.
    pub(crate) fn tell_news(&self, session: &SessionId, plugin: &str, tell: &Tell) {
        for text in self.plugins.news(session, Some(plugin)) {
            tell(Delta::Notice { text });
        }
    }

    /// Makes the services of a further call on an instance, which may be one that another has
    /// followed.
    pub(crate) fn services_on(
        &self,
        lease: &Lease,
        place: &Place,
        tell: &Tell,
    ) -> Result<Arc<dyn Services>, Error> {
        let (catalog, plugin) = (lease.catalog(), lease.plugin().as_str());
        let Some(entry) = catalog.registry.plugin(plugin) else {
            return Err(Error::new(ErrorKind::NotFound, format!("no plugin `{plugin}`")));
        };
        let services = self.services(entry, catalog.edition(plugin).number, place, tell)?;
        services.bind(lease.downgrade());
        Ok(services)
    }

    /// Makes the services of a call, or says what keeps the plugin from having any.
    fn services(
        &self,
        entry: &PluginEntry,
        edition: u64,
        place: &Place,
        tell: &Tell,
    ) -> Result<Arc<PluginServices>, Error> {
        let Prepared { config, credentials, assets } = &*self.prepared(entry, edition)?;
        let services = PluginServices::new(
            Arc::clone(&self.lent),
            entry.candidate.manifest.name.clone(),
            Arc::clone(config),
            Arc::clone(assets),
            place.clone(),
            Arc::clone(tell),
        );
        let services = services.with_credentials(Arc::clone(credentials));
        let services = match self.own_tools(entry, place) {
            Some(own_tools) => services.kept_to(own_tools),
            None => services,
        };
        let is_environment = entry.candidate.manifest.kinds.contains(&Kind::Environment);
        Ok(Arc::new(if is_environment { services.with_processes() } else { services }))
    }

    /// Lists the tools to whose objects a plugin is kept, where it is not trusted. A command of its
    /// own counts as one, unless its name is another plugin's tool.
    fn own_tools(&self, entry: &PluginEntry, place: &Place) -> Option<Arc<[String]>> {
        if !matches!(entry.candidate.trust, Trust::No(_) | Trust::WorkspaceNot) {
            return None;
        }
        let running = place.running()?;
        let tools = description(entry).map_or(&[][..], |it| &it.tools);
        let mut own: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
        if self.registry().tool(running).is_none() {
            own.push(running.to_owned());
        }
        Some(own.into())
    }

    /// Checks the person's settings and reads credentials, once for each edition.
    fn prepared(&self, entry: &PluginEntry, edition: u64) -> Result<Arc<Prepared>, Error> {
        let name = &entry.candidate.manifest.name;
        let mut prepared = self.prepared.lock();
        if let Some((_, prepared)) = prepared.get(name).filter(|(number, _)| *number == edition) {
            return Ok(Arc::clone(prepared));
        }
        let Some(description) = description(entry) else {
            let text = format!("plugin `{name}` cannot be used");
            return Err(Error::new(ErrorKind::PluginDisabled, text));
        };
        let (config, credentials) = settings::of_plugin(entry, description, &self.setup)?;
        let (config, credentials) = (Arc::new(config), Arc::new(credentials));
        let assets = description.assets.clone().into();
        let new = Arc::new(Prepared { config, credentials, assets });
        prepared.insert(name.clone(), (edition, Arc::clone(&new)));
        Ok(new)
    }

    /// Takes the keys of a plugin out of an error that it answers with.
    pub(crate) fn without_secrets(&self, plugin: &str, error: Error) -> Error {
        let prepared = self.prepared.lock();
        match prepared.get(plugin) {
            Some((_, prepared)) => prepared.credentials.without_secrets(error),
            // It was never called, so it was given no key.
            None => error,
        }
    }

    /// Returns `[plugins.NAME]` as the plugin sees it; `None` where it cannot be used.
    pub(crate) fn settings_of(&self, plugin: &PluginName) -> Option<Arc<Value>> {
        let catalog = self.plugins.current();
        let entry = catalog.registry.plugin(plugin.as_str())?;
        let edition = catalog.edition(plugin.as_str()).number;
        Some(Arc::clone(&self.prepared(entry, edition).ok()?.config))
    }

    /// Lets an instance that a call may have changed say what its successor is to be given. Awaited
    /// before the call is over, so that nothing is lost when the next one kills it.
    pub(crate) async fn save(&self, instance: &Lease, tell: &Tell) {
        if !instance.is_in_worker() {
            return;
        }
        if let Some(text) = self.instances.save(instance).await {
            self.log.line(2, "host", &text);
            tell(Delta::Notice { text });
        }
    }

    /// Forgets a session that is over: what its plugins keep open is closed first, then they end,
    /// then what they had in its environment.
    pub(crate) async fn close_session(self: &Arc<Self>, session: &SessionId) {
        self.environments.close_resources(self, session).await;
        self.plugins.close_view(session);
        self.instances.close(Some(session)).await;
        self.environments.leave(self, session).await;
        self.terminals.leave(session);
    }
}

/// Types into terminals of a host's sessions.
pub(crate) struct HostHands(pub(crate) Weak<Host>);

impl HostHands {
    /// Asks the environment of a session.
    fn ask(
        &self,
        session: &SessionId,
        operation: &'static str,
        request: Result<Vec<u8>, FrameError>,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let (host, session) = (self.0.upgrade(), session.clone());
        Box::pin(async move {
            let gone = || Error::new(ErrorKind::Unavailable, "the session has ended");
            let host = host.ok_or_else(gone)?;
            let member = host.environments.of(&session).ok_or_else(gone)?;
            let request =
                request.map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))?;
            member.answer(host, operation, request).await
        })
    }
}

impl Hands for HostHands {
    fn write(
        &self,
        session: &SessionId,
        terminal: u64,
        bytes: Vec<u8>,
        longest: Duration,
    ) -> BoxFuture<'static, Result<usize, Error>> {
        let wait_ms = u64::try_from(longest.as_millis()).ok();
        let request = Frame::write_with_bytes(&TerminalWrite { terminal, wait_ms }, &bytes);
        let answer = self.ask(session, WRITE, request);
        Box::pin(async move {
            let written: Option<TerminalWritten> =
                Frame::read(&answer.await?).map_err(crate::tools::misbehaved)?;
            // One that is older says nothing, once it has taken all.
            let taken = written.and_then(|written| usize::try_from(written.bytes).ok());
            Ok(taken.unwrap_or(bytes.len()))
        })
    }

    fn is_shown(&self, session: &SessionId, terminal: u64) -> BoxFuture<'static, bool> {
        let answer = self.ask(session, STATE, Frame::write(&TerminalRef { terminal }));
        Box::pin(async move {
            let state = answer.await.ok().and_then(|answer| Frame::read(&answer).ok());
            state.is_some_and(|state: TerminalState| state.echoes == Some(true))
        })
    }
}

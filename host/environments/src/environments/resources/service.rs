//! The service `resources` for one plugin.

use std::sync::Arc;

use jaato_instances::{AskingInstance, DeltaCallback, FacetRequest, StateEffect};
use jaato_loader::EngineServiceAnswer;
use jaato_registry::{PluginEntry, PluginStatus};
use jaato_session::Cancel;
use jaato_types::resources::{
    CALL, GET, GET_OR_CREATE, LIST, REMOVE, ResourceAction, ResourceCloseAnswer, ResourceFacts,
    ResourceName, ResourceRequest, ResourceSet, SET,
};
use jaato_types::{Error, ErrorKind, Frame, PluginName, PluginScope as InstanceScope, SessionId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::keeper::InstanceKeeper;
use super::{EnvironmentResources, ResourceEntry, not_found_error};
use crate::environments::Environments;
use crate::environments::scope::{parse_answer, serialize_request};

/// Returns true if an operation belongs to the service.
pub fn is_operation(operation: &str) -> bool {
    [SET, GET, LIST, CALL, GET_OR_CREATE, REMOVE].contains(&operation)
}

/// The plugin that asks.
pub struct ResourceCaller {
    pub host: Arc<Environments>,
    pub resources: Arc<EnvironmentResources>,
    pub plugin: PluginName,
    pub session: SessionId,
    pub asker: AskingInstance,
    pub tell: DeltaCallback,
}

impl ResourceCaller {
    /// Answers an operation.
    ///
    /// # Errors
    /// `invalid_arguments` if the request cannot be parsed, or the operation's error.
    pub async fn answer_operation(
        self,
        operation: &str,
        request: &[u8],
    ) -> Result<EngineServiceAnswer, Error> {
        match operation {
            SET => encode_answer(&self.set(parse_request(request)?).await?),
            GET => {
                encode_answer(&self.resources.get(&parse_request::<ResourceName>(request)?.name))
            }
            LIST => encode_answer(&self.resources.list()),
            CALL => encode_answer(&self.resources.call(parse_request(request)?).await?),
            GET_OR_CREATE => encode_answer(
                &self.get_or_create(&parse_request::<ResourceName>(request)?.name).await?,
            ),
            REMOVE => {
                let closed =
                    self.resources.remove(&parse_request::<ResourceName>(request)?.name).await;
                self.record_problem(closed.problem.as_deref());
                encode_answer(&closed)
            }
            other => {
                let text = format!("this host has no service `{other}`");
                Err(Error::new(ErrorKind::UnknownOperation, text))
            }
        }
    }

    async fn set(&self, set: ResourceSet) -> Result<ResourceCloseAnswer, Error> {
        let plugin = &self.plugin;
        let registry = self.host.plugins.registry();
        if registry.plugin(plugin.as_str()).is_some_and(is_host_wide_plugin) {
            return Err(host_scope_error(plugin));
        }
        let closed =
            self.resources.set(self.new_entry(plugin, set, Arc::clone(&self.asker))).await?;
        self.record_problem(closed.problem.as_deref());
        Ok(closed)
    }

    async fn get_or_create(&self, name: &str) -> Result<ResourceFacts, Error> {
        if let Some(facts) = self.resources.get(name) {
            return Ok(facts);
        }
        let plugin = self.factory_plugin(name)?;
        self.resources.get_or_create(name, &self.session, self.create_resource(plugin, name)).await
    }

    /// Returns the plugin that creates the resource with this name, preferring the plugin that
    /// asks.
    fn factory_plugin(&self, name: &str) -> Result<PluginName, Error> {
        let registry = self.host.plugins.registry();
        let makes = |entry: &&PluginEntry| {
            let described = entry.description().map_or(&[][..], |it| &it.resources);
            entry.status == PluginStatus::Active && described.iter().any(|spec| spec.name == name)
        };
        let of = |entry: &PluginEntry| entry.candidate.manifest.name.clone();
        let mut found: Vec<_> = registry.plugins().iter().filter(makes).collect();
        // The sort is stable: among other plugins, the registry's order decides.
        found.sort_by_key(|entry| of(entry) != self.plugin);
        match found.first() {
            Some(entry) if is_host_wide_plugin(entry) => Err(host_scope_error(&of(entry))),
            Some(entry) => Ok(of(entry)),
            None => {
                Err(not_found_error(name, "no active plugin creates a resource with this name"))
            }
        }
    }

    /// Asks a plugin to create a resource.
    async fn create_resource(
        &self,
        plugin: PluginName,
        name: &str,
    ) -> Result<ResourceEntry, Error> {
        let site = self.host.call_site(&self.session);
        let request = ResourceRequest::new(ResourceAction::Create, name, 0);
        let facet = FacetRequest::Resource(StateEffect::Changes);
        let reached =
            self.host.plugins.prepare_call(plugin.as_str(), facet, site, &self.tell).await?;
        let lease = reached.lease().clone();
        let answer = reached.ask(serialize_request(&request)?, &Cancel::new()).await?;
        let made: ResourceSet = parse_answer(plugin.as_str(), &answer)?;
        let asker = AskingInstance::from(std::sync::OnceLock::from(lease.downgrade()));
        Ok(self.new_entry(&plugin, ResourceSet { name: name.to_owned(), ..made }, asker))
    }

    fn new_entry(
        &self,
        plugin: &PluginName,
        set: ResourceSet,
        asker: AskingInstance,
    ) -> ResourceEntry {
        let ResourceSet { name, number, kind, about } = set;
        let session = self.session.clone();
        let keeper = Arc::new(InstanceKeeper::new(&self.host, session.clone(), asker));
        let facts = ResourceFacts { name, plugin: plugin.to_string(), kind, about };
        ResourceEntry { facts, number, session, keeper }
    }

    fn record_problem(&self, problem: Option<&str>) {
        if let Some(problem) = problem {
            self.host.plugins.log.write_line(1, "host", problem);
        }
    }
}

fn is_host_wide_plugin(entry: &PluginEntry) -> bool {
    entry.candidate.manifest.scope == InstanceScope::Host
}

fn host_scope_error(plugin: &PluginName) -> Error {
    let text = format!(
        "plugin `{plugin}` has one instance for all sessions, so it cannot keep resources of a session"
    );
    Error::new(ErrorKind::Unavailable, text).with_hint("its manifest says `scope: host`")
}

fn encode_answer(answer: &impl Serialize) -> Result<EngineServiceAnswer, Error> {
    serialize_request(answer).map(EngineServiceAnswer::Frame)
}

fn parse_request<T: DeserializeOwned>(request: &[u8]) -> Result<T, Error> {
    Frame::read(request).map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))
}

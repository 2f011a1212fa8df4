//! The resources of all plugins of a session's environment, by name: [`HostResources`].

use jaato_types::Result;
use jaato_types::resources::{
    CALL, GET, GET_OR_CREATE, LIST, REMOVE, ResourceCall, ResourceClosed, ResourceFacts,
    ResourceName,
};
use serde_json::Value;

use crate::context::Reporter;

/// The resources of a session's environment: those of all its plugins, as JSON.
pub struct HostResources<'a> {
    host: &'a Reporter,
}

impl Reporter {
    /// Reaches the resources of the session's environment. Without one, they are answered
    /// `unavailable`.
    pub fn resources(&self) -> HostResources<'_> {
        HostResources { host: self }
    }
}

impl HostResources<'_> {
    /// Returns what is known of a resource; nothing where there is none of that name.
    ///
    /// # Errors
    /// `unavailable` where there is no environment.
    pub async fn get(&self, name: &str) -> Result<Option<ResourceFacts>> {
        self.host.service(GET, &named(name)).await
    }

    /// Lists all, in the order in which they were registered.
    ///
    /// # Errors
    /// As [`HostResources::get`].
    pub async fn list(&self) -> Result<Vec<ResourceFacts>> {
        self.host.service(LIST, &()).await
    }

    /// Asks a resource for something.
    ///
    /// # Errors
    /// `not_found` where there is none; `plugin_crashed` where it went with the worker that kept
    /// it; what the resource answers.
    pub async fn call(&self, name: &str, operation: &str, arguments: Value) -> Result<Value> {
        let (name, operation) = (name.to_owned(), operation.to_owned());
        self.host
            .service(CALL, &ResourceCall { name, operation, arguments, ..ResourceCall::default() })
            .await
    }

    /// Returns what is known of a resource, made first by the plugin that describes a factory of
    /// that name where there is none: once, however many ask at a time.
    ///
    /// # Errors
    /// `not_found` where no plugin makes it; what making it came to.
    pub async fn get_or_create(&self, name: &str) -> Result<ResourceFacts> {
        self.host.service(GET_OR_CREATE, &named(name)).await
    }

    /// Closes and forgets a resource.
    ///
    /// # Errors
    /// As [`HostResources::get`]. What closing it came to is in the answer.
    pub async fn remove(&self, name: &str) -> Result<ResourceClosed> {
        self.host.service(REMOVE, &named(name)).await
    }
}

fn named(name: &str) -> ResourceName {
    ResourceName { name: name.to_owned(), ..ResourceName::default() }
}

//! Access by name to the resources of all plugins in a session's environment: [`HostResources`].

use jaato_types::Result;
use jaato_types::resources::{
    CALL, GET, GET_OR_CREATE, LIST, REMOVE, ResourceCall, ResourceCloseAnswer, ResourceFacts,
    ResourceName,
};
use serde_json::Value;

use crate::context::Reporter;

/// The resources of all plugins in a session's environment, as JSON.
pub struct HostResources<'a> {
    host: &'a Reporter,
}

impl Reporter {
    /// Returns access to the resources of the session's environment. Without an environment, all
    /// requests answer `unavailable`.
    pub fn resources(&self) -> HostResources<'_> {
        HostResources { host: self }
    }
}

impl HostResources<'_> {
    /// Returns the facts about a resource, or `None` if no resource has this name.
    ///
    /// # Errors
    /// `unavailable` without an environment.
    pub async fn get(&self, name: &str) -> Result<Option<ResourceFacts>> {
        self.host.service(GET, &resource_name(name)).await
    }

    /// Lists all resources in the order of their registration.
    ///
    /// # Errors
    /// As [`HostResources::get`].
    pub async fn list(&self) -> Result<Vec<ResourceFacts>> {
        self.host.service(LIST, &()).await
    }

    /// Calls an operation of a resource.
    ///
    /// # Errors
    /// `not_found` if no resource has this name; `plugin_crashed` if it was lost with its worker;
    /// the resource's own error.
    pub async fn call(&self, name: &str, operation: &str, arguments: Value) -> Result<Value> {
        let (name, operation) = (name.to_owned(), operation.to_owned());
        self.host
            .service(CALL, &ResourceCall { name, operation, arguments, ..ResourceCall::default() })
            .await
    }

    /// Returns the facts about a resource. If there is none with this name, the plugin whose
    /// description has a factory for the name creates it, once for all simultaneous callers.
    ///
    /// # Errors
    /// `not_found` if no plugin can create it; the error of its creation.
    pub async fn get_or_create(&self, name: &str) -> Result<ResourceFacts> {
        self.host.service(GET_OR_CREATE, &resource_name(name)).await
    }

    /// Closes and forgets a resource.
    ///
    /// # Errors
    /// As [`HostResources::get`]. The answer contains the result of the closing.
    pub async fn remove(&self, name: &str) -> Result<ResourceCloseAnswer> {
        self.host.service(REMOVE, &resource_name(name)).await
    }
}

fn resource_name(name: &str) -> ResourceName {
    ResourceName { name: name.to_owned(), ..ResourceName::default() }
}

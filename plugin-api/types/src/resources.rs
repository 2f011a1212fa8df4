//! Resources: named objects that plugins keep open in a session's execution environment until it
//! ends.
//!
//! A resource lives in the instance of the plugin that created it. The host knows its name and its
//! plugin, closes all resources in reverse order, and forwards calls from other plugins with the
//! operation [`RESOURCE`] of that instance.

use serde::{Deserialize, Serialize};
use serde_json::Value;

crate::operations::service_operations! { $ resource_operations, None, passed_on;
    /// Registers a resource of the calling plugin. An existing resource with the same name is
    /// closed first.
    set SET "resources.set": ResourceSet => ResourceCloseAnswer;
    /// Returns a resource by name.
    get GET "resources.get": ResourceName => (Option<ResourceFacts>);
    /// Lists all resources in the order of their registration.
    list LIST "resources.list": () => (Vec<ResourceFacts>);
    /// Calls an operation of a resource and returns the resource's answer.
    call CALL "resources.call": ResourceCall => Value;
    /// Returns a resource. If it does not exist, the plugin with a matching factory creates it,
    /// only once even for simultaneous requests.
    get_or_create GET_OR_CREATE "resources.get_or_create": ResourceName => ResourceFacts;
    /// Closes and removes a resource.
    remove REMOVE "resources.remove": ResourceName => ResourceCloseAnswer;
}

/// The operation with which the host accesses a plugin's resources. Takes a [`ResourceRequest`];
/// the answer depends on its action.
pub const RESOURCE: &str = "resource";

/// The maximum number of resources in one environment. Each one holds something open and must be
/// closed at the end.
pub const RESOURCES_MAX: usize = 256;

/// The maximum length of a resource's name, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// A plugin's factory for a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceSpec {
    /// The name of the resource that it creates.
    pub name: String,
    /// A description in one line.
    pub about: String,
}

/// A request to register a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceSet {
    /// The name in the environment.
    pub name: String,
    /// The plugin's number for the resource, which distinguishes it from the plugin's others. Each
    /// [`ResourceRequest`] contains it.
    pub number: u64,
    /// The kind of resource, for other plugins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// A description in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// The name of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceName {
    /// The name.
    pub name: String,
}

/// Facts about a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceFacts {
    /// The name of the resource.
    pub name: String,
    /// The plugin that keeps it.
    pub plugin: String,
    /// The kind of resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// A description in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// A request to call an operation of a resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceCall {
    /// The name of the resource.
    pub name: String,
    /// The operation. The resource defines which ones exist.
    pub operation: String,
    /// The arguments of the operation.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
}

/// The result of closing a resource. The name is free afterwards, even after a problem.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceCloseAnswer {
    /// Whether a resource with that name existed.
    pub found: bool,
    /// The problem that occurred when it was closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// An action on a plugin's resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceAction {
    /// Create the resource. The answer is a [`ResourceSet`] with the requested name. The plugin
    /// does not register the resource, because the host does.
    Create,
    /// Call an operation. The answer is that of the resource.
    Call,
    /// Close and forget the resource. The answer is null, even if the number does not exist.
    Close,
}

/// A request for an action on a plugin's resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceRequest {
    /// The action.
    #[serde(rename = "do")]
    pub action: ResourceAction,
    /// The name of the resource.
    pub name: String,
    /// The plugin's number for the resource. 0 for `Create`.
    #[serde(default)]
    pub number: u64,
    /// The operation. Empty unless the action is `Call`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operation: String,
    /// The arguments of the operation.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
}

impl ResourceRequest {
    /// Creates a request without an operation and arguments.
    pub fn new(action: ResourceAction, name: &str, number: u64) -> Self {
        let (name, operation) = (name.to_owned(), String::new());
        Self { action, name, number, operation, arguments: Value::Null }
    }
}

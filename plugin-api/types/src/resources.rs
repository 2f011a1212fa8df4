//! Resources: what plugins keep open in a session's execution environment, by name, until it ends.
//!
//! A resource lives in the instance of the plugin that made it. The host knows its name and who
//! keeps it, closes all in reverse order, and passes on what others ask of it: by the operation
//! [`RESOURCE`] of that instance.

use serde::{Deserialize, Serialize};
use serde_json::Value;

crate::operations::service_operations! { $ resource_operations, None, passed_on;
    /// Registers a resource of the calling plugin, and first closes the one that had the name.
    set SET "resources.set": ResourceSet => ResourceClosed;
    /// Finds a resource by its name.
    get GET "resources.get": ResourceName => (Option<ResourceFacts>);
    /// Lists all resources in the order of their registration.
    list LIST "resources.list": () => (Vec<ResourceFacts>);
    /// Asks a resource for something, and returns its answer.
    call CALL "resources.call": ResourceCall => Value;
    /// Finds a resource, or lets the plugin with a factory of that name make it, once for any
    /// number of callers.
    get_or_create GET_OR_CREATE "resources.get_or_create": ResourceName => ResourceFacts;
    /// Closes and forgets a resource.
    remove REMOVE "resources.remove": ResourceName => ResourceClosed;
}

/// The operation by which a plugin is asked for what it keeps: [`ResourceRequest`], and what its
/// action says.
pub const RESOURCE: &str = "resource";

/// Resources at most in one environment: each holds something open, and each is closed at the end.
pub const RESOURCES_MAX: usize = 256;

/// Bytes at most in a resource's name.
pub const NAME_BYTES_MAX: usize = 128;

/// A factory that a plugin has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceSpec {
    /// The name of what it makes.
    pub name: String,
    /// One line of what that is.
    pub about: String,
}

/// Registers a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceSet {
    /// Its name in the environment.
    pub name: String,
    /// What tells it from others of its plugin's: chosen by the plugin, and said in each
    /// [`ResourceRequest`].
    pub number: u64,
    /// What kind of thing it is, for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// One line of what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// Names a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceName {
    /// The name.
    pub name: String,
}

/// What is known of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceFacts {
    /// Its name.
    pub name: String,
    /// The plugin that keeps it.
    pub plugin: String,
    /// What kind of thing it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// One line of what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// Asks a resource for something.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceCall {
    /// Its name.
    pub name: String,
    /// What is asked; the resource says what it knows.
    pub operation: String,
    /// With what.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
}

/// What closing came to. Whatever it was, the name is free.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceClosed {
    /// Whether one of that name was there.
    pub found: bool,
    /// What went wrong when it was closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What a plugin is asked to do with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceAction {
    /// Make it; answered with [`ResourceSet`], its name as it was asked. The plugin does not
    /// register it: the host does.
    Create,
    /// Pass an operation on; answered with what the resource answers.
    Call,
    /// Close and forget it; answered with null, also where there is none of that number.
    Close,
}

/// Asks a plugin for what it keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceRequest {
    /// What to do.
    #[serde(rename = "do")]
    pub action: ResourceAction,
    /// The resource's name.
    pub name: String,
    /// As the plugin said when it was registered; 0 for one that is to be made.
    #[serde(default)]
    pub number: u64,
    /// What is asked of it; empty but for a call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operation: String,
    /// With what.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
}

impl ResourceRequest {
    /// Asks for an action without more to say.
    pub fn new(action: ResourceAction, name: &str, number: u64) -> Self {
        let (name, operation) = (name.to_owned(), String::new());
        Self { action, name, number, operation, arguments: Value::Null }
    }
}

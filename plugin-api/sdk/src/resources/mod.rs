//! Resources that a plugin keeps open in the session's execution environment until the environment
//! ends.
//!
//! Examples are a connection, a browser or a running server. [`Resource`] defines how to close it
//! and which operations other plugins may call. [`Resources`] in the plugin's state holds the typed
//! resources. The host knows their names, lets other plugins call them with JSON
//! ([`HostResources`]), and closes them in reverse order before the environment itself.
//!
//! ```
//! use jaato_plugin_sdk::prelude::*;
//! use jaato_plugin_sdk::resources::{NewResource, Resource, Resources};
//!
//! struct Browser { pages: u32 }
//!
//! impl Resource for Browser {
//!     const KIND: &'static str = "browser";
//!
//!     async fn close(&self) -> Result<()> {
//!         Ok(()) // quits it
//!     }
//!
//!     async fn call(&self, operation: &str, arguments: Value) -> Result<Value> {
//!         match operation {
//!             "pages" => Ok(json!(self.pages)),
//!             other => Err(self.unknown_operation(other)),
//!         }
//!     }
//! }
//!
//! #[derive(Default)]
//! struct Browsing { resources: Resources }
//!
//! impl State for Browsing {
//!     async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
//!         Ok(Self::default())
//!     }
//!
//!     // Others reach what this plugin keeps, and may have it made by name.
//!     fn resources(&self) -> Option<&Resources> {
//!         Some(&self.resources)
//!     }
//!
//!     fn describe(description: &mut Description) {
//!         description.resources = vec![NewResource::spec("browser", "shows pages")];
//!     }
//!
//!     async fn create_resource(_cx: &Cx<Self>, _name: &str) -> Result<NewResource> {
//!         Ok(NewResource::new(Browser { pages: 0 }))
//!     }
//! }
//!
//! async fn in_a_tool(cx: &Cx<Browsing>) -> Result<()> {
//!     let start = async { Ok(Browser { pages: 1 }) };
//!     let browser = cx.state().resources.get_or_create(cx, "browser", start).await?;
//!     assert_eq!(browser.pages, 1);
//!     assert!(cx.state().resources.get::<Browser>("browser").is_some());
//!     // What another plugin keeps: by name.
//!     let row = cx.resources().call("database", "query", json!({ "sql": "…" })).await?;
//!     Ok(drop(row))
//! }
//! ```

mod host;
mod typed_resources;

use std::any::Any;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use jaato_types::resources::ResourceSpec;
use jaato_types::{Error, ErrorKind, Result};
use serde_json::Value;

pub use host::HostResources;
pub use typed_resources::Resources;
pub(crate) use typed_resources::answer_request;

pub use crate::types::resources::{ResourceCloseAnswer, ResourceFacts};

/// An open resource that must be closed. The host calls its methods on its plugin executor, so they
/// must not block.
pub trait Resource: Send + Sync + 'static {
    /// The kind of resource, for other plugins. Leave it empty if it is of no use.
    const KIND: &'static str = "";

    /// Returns a one-line description, for other plugins.
    fn about(&self) -> String {
        String::new()
    }

    /// Closes the resource. The host calls it once and waits at most 2 s. Other holders of the
    /// resource find it closed.
    ///
    /// # Errors
    /// The host shows the error to the user. Regardless, it forgets the resource and closes the
    /// others.
    fn close(&self) -> impl Future<Output = Result<()>> + Send;

    /// Runs an operation that this plugin or another one calls by name.
    ///
    /// # Errors
    /// The caller gets the error. Return [`Resource::unknown_operation`] for an unknown operation.
    fn call(
        &self,
        operation: &str,
        _arguments: Value,
    ) -> impl Future<Output = Result<Value>> + Send {
        ready(Err(self.unknown_operation(operation)))
    }

    /// Returns the error for an unknown operation.
    fn unknown_operation(&self, operation: &str) -> Error {
        let text = format!("the resource does not know the operation `{operation}`");
        Error::new(ErrorKind::UnknownOperation, text)
    }
}

/// A new resource of any type.
pub struct NewResource(AnyResource);

impl NewResource {
    /// Wraps a resource.
    pub fn new(resource: impl Resource) -> Self {
        Self(Arc::new(resource))
    }

    /// Describes a factory, for `Description::resources`.
    pub fn spec(name: &str, about: &str) -> ResourceSpec {
        ResourceSpec { name: name.to_owned(), about: about.to_owned(), ..ResourceSpec::default() }
    }
}

type ResourceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A resource of any type.
type AnyResource = Arc<dyn ErasedResource>;

/// The operations of a resource that the host uses.
trait ErasedResource: Send + Sync {
    fn kind(&self) -> &'static str;
    fn about(&self) -> String;
    fn close(&self) -> ResourceFuture<'_, ()>;
    fn call<'a>(&'a self, operation: &'a str, arguments: Value) -> ResourceFuture<'a, Value>;
    /// Returns the type name, for error messages.
    fn type_name(&self) -> &'static str;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<T: Resource> ErasedResource for T {
    fn kind(&self) -> &'static str {
        T::KIND
    }

    fn about(&self) -> String {
        Resource::about(self)
    }

    fn close(&self) -> ResourceFuture<'_, ()> {
        Box::pin(Resource::close(self))
    }

    fn call<'a>(&'a self, operation: &'a str, arguments: Value) -> ResourceFuture<'a, Value> {
        Box::pin(Resource::call(self, operation, arguments))
    }

    fn type_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

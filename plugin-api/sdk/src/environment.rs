//! The SDK's access to a plugin's execution environment. `jaato-plugin-sdk-environment` contains
//! the traits that authors implement, and creates the entry.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use jaato_types::Result;
use jaato_types::execution::{EnvironmentPart, EnvironmentSpec};

use crate::context::{Cx, Home};
use crate::state::State;

/// The open resources of an environment, as any type.
pub type AnyEnvironmentHandleTable = Arc<dyn Any + Send + Sync>;

/// The answer to an operation.
pub type EnvironmentAnswerFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>>> + Send + 'a>>;

/// The SDK's access to the environment.
pub struct EnvironmentEntry<S: State> {
    /// Returns the spec.
    pub spec: fn() -> EnvironmentSpec,
    /// Returns the parts that the environment does not have.
    pub lacks: fn() -> Vec<EnvironmentPart>,
    /// Creates the desk of an instance.
    pub desk: fn(Home) -> AnyEnvironmentHandleTable,
    /// Runs an operation.
    pub call: for<'a> fn(
        &'a Cx<S>,
        &'a AnyEnvironmentHandleTable,
        &'a str,
        &'a [u8],
    ) -> EnvironmentAnswerFuture<'a>,
}

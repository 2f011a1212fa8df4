//! How the sdk reaches a plugin's execution environment. `jaato-plugin-sdk-environment` has the
//! traits that authors implement and makes the entry.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use jaato_types::Result;
use jaato_types::execution::{EnvironmentPart, EnvironmentSpec};

use crate::context::{Cx, Home};
use crate::state::State;

/// What an environment has open, whatever its type.
pub type AnyDesk = Arc<dyn Any + Send + Sync>;

/// The answer to an operation.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>>> + Send + 'a>>;

/// How the sdk reaches the environment.
pub struct EnvironmentEntry<S: State> {
    /// Names it.
    pub spec: fn() -> EnvironmentSpec,
    /// Lists the parts that it does not have.
    pub lacks: fn() -> Vec<EnvironmentPart>,
    /// Makes the desk of an instance.
    pub desk: fn(Home) -> AnyDesk,
    /// Answers an operation.
    pub call: for<'a> fn(&'a Cx<S>, &'a AnyDesk, &'a str, &'a [u8]) -> Running<'a>,
}

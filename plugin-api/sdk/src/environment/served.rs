//! An environment outside of a plugin: the testkit's host has one.

use std::sync::Arc;

use jaato_plugin_api::abi::ContextBox;
use jaato_types::Result;

use super::ExecutionEnvironment;
use super::desk::Desk;
use super::dispatch;
use crate::context::{Cx, Home};

/// Answers what an environment is asked, without a plugin around it.
pub struct Served<E: ExecutionEnvironment> {
    cx: Cx<E::State>,
    desk: Desk<E>,
}

impl<E: ExecutionEnvironment> Served<E> {
    /// Lends it contexts: one for its calls, one for what outlives them.
    pub fn new(call: ContextBox, instance: ContextBox, state: E::State) -> Self {
        let (cx, home) = (Cx::new(call, Arc::new(state)), Home::new(instance));
        Self { cx, desk: Desk::new(home) }
    }

    /// Answers an operation.
    ///
    /// # Errors
    /// What the environment answers.
    pub async fn answer(&self, operation: &str, frame: &[u8]) -> Result<Vec<u8>> {
        dispatch::answer(&self.cx, &self.desk, operation, frame).await
    }
}

//! An environment outside of a plugin: the testkit's host has one.

use jaato_plugin_sdk::__private::abi::ContextBox;
use jaato_plugin_sdk::__private::{call_context, instance_context};
use jaato_plugin_sdk::Cx;
use jaato_types::Result;

use super::desk::Desk;
use super::dispatch;
use super::traits::ExecutionEnvironment;

/// Answers what an environment is asked, without a plugin around it.
pub struct Served<E: ExecutionEnvironment> {
    cx: Cx<E::State>,
    desk: Desk<E>,
}

impl<E: ExecutionEnvironment> Served<E> {
    /// Lends it contexts: one for its calls, one for what outlives them.
    pub fn new(call: ContextBox, instance: ContextBox, state: E::State) -> Self {
        Self { cx: call_context(call, state), desk: Desk::new(instance_context(instance)) }
    }

    /// Answers an operation.
    ///
    /// # Errors
    /// What the environment answers.
    pub async fn answer(&self, operation: &str, frame: &[u8]) -> Result<Vec<u8>> {
        dispatch::answer(&self.cx, &self.desk, operation, frame).await
    }
}

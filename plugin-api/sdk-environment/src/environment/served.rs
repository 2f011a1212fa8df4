//! An environment outside a plugin, for the testkit's host.

use jaato_plugin_sdk::__private::{detached_call, detached_home};
use jaato_plugin_sdk::Cx;
use jaato_types::Result;

use super::dispatch;
use super::handle_table::EnvironmentHandleTable;
use super::traits::ExecutionEnvironment;

/// Answers the operations of an environment without a plugin around it.
pub struct StandaloneEnvironment<E: ExecutionEnvironment> {
    cx: Cx<E::State>,
    desk: EnvironmentHandleTable<E>,
}

impl<E: ExecutionEnvironment> StandaloneEnvironment<E> {
    /// Creates the environment with the given state.
    pub fn new(state: E::State) -> Self {
        Self { cx: detached_call(state), desk: EnvironmentHandleTable::new(detached_home()) }
    }

    /// Answers an operation.
    ///
    /// # Errors
    /// The error of the environment.
    pub async fn answer(&self, operation: &str, frame: &[u8]) -> Result<Vec<u8>> {
        dispatch::answer_operation(&self.cx, &self.desk, operation, frame).await
    }
}

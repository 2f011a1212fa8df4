//! An environment outside of a plugin: the testkit's host has one.

use jaato_plugin_sdk::__private::{detached_call, detached_home};
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
    /// Makes it with that state.
    pub fn new(state: E::State) -> Self {
        Self { cx: detached_call(state), desk: Desk::new(detached_home()) }
    }

    /// Answers an operation.
    ///
    /// # Errors
    /// What the environment answers.
    pub async fn answer(&self, operation: &str, frame: &[u8]) -> Result<Vec<u8>> {
        dispatch::answer(&self.cx, &self.desk, operation, frame).await
    }
}

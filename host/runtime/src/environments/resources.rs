//! The resources of an environment: what plugins keep there, closed before the environment in reverse order.

use std::sync::Arc;

use crate::host::Host;

/// The resources of one environment.
#[derive(Default)]
pub struct Resources;

impl Resources {
    /// Closes all of them; returns what went wrong.
    pub(super) async fn close(&self, _host: &Arc<Host>) -> Vec<String> {
        Vec::new()
    }
}

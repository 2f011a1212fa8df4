//! The service `config`: the plugin's settings, without those that are the host's.

use jaato_types::service::CONFIG;

use super::{Answer, Service, frame, ready};
use crate::call::Call;

/// The settings of a plugin.
pub struct Configuration;

impl Service for Configuration {
    fn has(&self, operation: &str) -> bool {
        operation == CONFIG
    }

    fn call(&self, call: &Call, _operation: &str, _request: Vec<u8>) -> Answer {
        ready(frame(&*call.config))
    }
}

//! The service `resources`: what plugins keep open in the session's environment.

use jaato_environments::is_resource_operation;
use jaato_types::{Error, ErrorKind};

use super::{Answer, Service, ready};
use crate::call::Call;

/// The resources of the session's environment.
pub struct Resources;

impl Service for Resources {
    fn has(&self, operation: &str) -> bool {
        is_resource_operation(operation)
    }

    fn call(&self, call: &Call, operation: &str, request: Vec<u8>) -> Answer {
        let Some(environment) = &call.site.environment else {
            let text = "there is no execution environment to keep resources in";
            return ready(Err(Error::new(ErrorKind::Unavailable, text).with_hint(
                "only sessions have one; `jaato environment list` tells which there are",
            )));
        };
        environment.resources(call.to_environment(operation, request))
    }
}

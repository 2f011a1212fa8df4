//! The services `resources.*` for open resources of plugins. The session's environment answers.

use jaato_environments::is_resource_operation;
use jaato_types::{Error, ErrorKind};

use super::{Body, ServiceAnswer, ready_answer};
use crate::call::ServiceCall;

pub(super) fn find_body(operation: &str) -> Option<Body> {
    is_resource_operation(operation).then_some(forward_to_resources)
}

fn forward_to_resources(call: &ServiceCall, operation: &str, request: Vec<u8>) -> ServiceAnswer {
    let Some(environment) = &call.site.environment else {
        let text = "there is no execution environment to keep resources in";
        return ready_answer(Err(Error::new(ErrorKind::Unavailable, text)
            .with_hint("only sessions have one; `jaato environment list` lists them")));
    };
    environment.call_resources(call.environment_request(operation, request))
}

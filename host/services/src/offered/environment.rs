//! The services of the session's execution environment: files, programs and terminals.
//!
//! The host forwards their frames unchanged, including operations that it does not know, because
//! the environment may be newer.

use jaato_environments::is_operation;
use jaato_types::{Error, ErrorKind};

use super::{Body, ServiceAnswer, ready_answer, unknown_service_error};
use crate::call::ServiceCall;

pub(super) fn find_body(operation: &str) -> Option<Body> {
    is_operation(operation).then_some(forward_to_environment)
}

fn forward_to_environment(call: &ServiceCall, operation: &str, request: Vec<u8>) -> ServiceAnswer {
    // Environment plugins can only run programs on this machine.
    if let Some(processes) = &call.processes {
        let answer = processes.call(operation, &request);
        return answer.unwrap_or_else(|| ready_answer(Err(unknown_service_error(operation))));
    }
    let request = call.environment_request(operation, request);
    let answer = call.site.environment.as_ref().and_then(|it| it.call(request));
    answer.unwrap_or_else(|| {
        let text = "there is no execution environment to run it in";
        ready_answer(Err(Error::new(ErrorKind::UnknownOperation, text)
            .with_hint("only sessions have one; `jaato environment list` lists them")))
    })
}

//! The services `host_process.*`: programs on this machine, for plugins with the grant.
//!
//! The host forwards them as the corresponding `process.*` operations.

use jaato_types::host_process::process_operation;

use super::{Body, ServiceAnswer, ready_answer, unknown_service_error};
use crate::call::ServiceCall;

pub(super) fn find_body(operation: &str) -> Option<Body> {
    process_operation(operation).map(|_| forward_to_processes as Body)
}

fn forward_to_processes(call: &ServiceCall, operation: &str, request: Vec<u8>) -> ServiceAnswer {
    let meant = process_operation(operation);
    let answer = meant.and_then(|meant| call.host_processes.call(meant, &request));
    answer.unwrap_or_else(|| ready_answer(Err(unknown_service_error(operation))))
}

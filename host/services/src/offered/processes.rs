//! The service `process` of execution environments: programs of this machine.

use jaato_environments::is_operation;
use jaato_loader::Caller;

use super::{Answer, Service, ready, unknown};
use crate::call::Call;

/// Programs, for the plugins that are execution environments. They alone have any: what else they
/// ask of an environment is answered here too, by a refusal.
pub struct Processes;

impl Service for Processes {
    fn has(&self, operation: &str) -> bool {
        is_operation(operation)
    }

    fn is_for(&self, call: &Call, _caller: &Caller) -> bool {
        call.processes.is_some()
    }

    fn call(&self, call: &Call, operation: &str, request: Vec<u8>) -> Answer {
        let answer = call.processes.as_ref().and_then(|it| it.call(operation, &request));
        answer.unwrap_or_else(|| ready(Err(unknown(operation))))
    }
}

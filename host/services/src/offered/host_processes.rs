//! The services `host_process.*`: programs of this machine, for plugins that were granted that.

use jaato_types::host_process::process_operation;

use super::{Answer, Service, ready, unknown};
use crate::call::Call;

/// Programs outside of the session's environment.
pub struct HostProcesses;

impl Service for HostProcesses {
    fn has(&self, operation: &str) -> bool {
        process_operation(operation).is_some()
    }

    fn call(&self, call: &Call, operation: &str, request: Vec<u8>) -> Answer {
        let meant = process_operation(operation);
        let answer = meant.and_then(|meant| call.host_processes.call(meant, &request));
        answer.unwrap_or_else(|| ready(Err(unknown(operation))))
    }
}

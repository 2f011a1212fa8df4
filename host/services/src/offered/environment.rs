//! The services of the session's execution environment: files, programs, terminals.

use jaato_environments::is_operation;
use jaato_loader::Caller;
use jaato_types::{Error, ErrorKind};

use super::{Answer, Service, ready};
use crate::call::Call;

/// The session's execution environment, for all plugins but those that are one.
pub struct OfEnvironment;

impl Service for OfEnvironment {
    fn has(&self, operation: &str) -> bool {
        is_operation(operation)
    }

    fn is_for(&self, call: &Call, _caller: &Caller) -> bool {
        call.processes.is_none()
    }

    fn call(&self, call: &Call, operation: &str, request: Vec<u8>) -> Answer {
        let request = call.to_environment(operation, request);
        let answer = call.site.environment.as_ref().and_then(|it| it.call(request));
        answer.unwrap_or_else(|| {
            let text = "there is no execution environment to run it in";
            ready(Err(Error::new(ErrorKind::UnknownOperation, text).with_hint(
                "only sessions have one; `jaato environment list` tells which there are",
            )))
        })
    }
}

//! The service `objects`: what tools put in front of the model.

use jaato_types::{Error, ErrorKind};

use super::{Answer, Service, ready};
use crate::call::Call;
use crate::objects;

/// The session's objects.
pub struct Objects;

impl Service for Objects {
    fn has(&self, operation: &str) -> bool {
        jaato_objects::service::is_operation(operation)
    }

    fn call(&self, call: &Call, operation: &str, request: Vec<u8>) -> Answer {
        let Some(all) = &call.site.objects else {
            let text = "only tools and commands reach the session's objects";
            return ready(Err(Error::new(ErrorKind::Unavailable, text)));
        };
        let own = call.own_tools.as_deref();
        ready(objects::answer(all, &call.plugin, own, operation, &request))
    }
}

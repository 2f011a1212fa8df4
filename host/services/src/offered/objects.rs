//! The services `objects.*`, with which tools put objects in the model's context.
//!
//! `jaato-objects` answers them, for the fake host too.

use jaato_types::{Error, ErrorKind};

use super::{Body, ServiceAnswer, ready_answer};
use crate::call::ServiceCall;
use crate::objects;

pub(super) fn find_body(operation: &str) -> Option<Body> {
    jaato_objects::service::is_operation(operation).then_some(answer_objects_call)
}

fn answer_objects_call(call: &ServiceCall, operation: &str, request: Vec<u8>) -> ServiceAnswer {
    let Some(all) = &call.site.objects else {
        let text = "only tools and commands can access the session's objects";
        return ready_answer(Err(Error::new(ErrorKind::Unavailable, text)));
    };
    let own = call.own_tools.as_deref();
    ready_answer(objects::answer_objects_operation(all, &call.plugin, own, operation, &request))
}

//! The service `ask`: a form for the person of the session.

use jaato_types::Frame;
use jaato_types::ask::{ASK, Form};

use super::{Answer, Service, bad_request, frame, ready};
use crate::call::Call;
use crate::detached::Detached;

/// Forms.
pub struct Forms;

impl Service for Forms {
    fn has(&self, operation: &str) -> bool {
        operation == ASK
    }

    fn call(&self, call: &Call, _operation: &str, request: Vec<u8>) -> Answer {
        let form = Frame::read::<Form>(&request).map_err(bad_request);
        let session = call.shared.sessions.find(&call.site.session);
        let (form, session) = match (form, session) {
            (Ok(form), Ok(session)) => (form, session),
            (Err(error), _) | (_, Err(error)) => return ready(Err(error)),
        };
        let (plugin, hold) = (call.plugin.clone(), call.site.hold.clone());
        let asking = Detached::start(|cancel| async move {
            // The person may take their time: the call's deadline stands still meanwhile.
            let _held = hold.hold();
            session.ask(&plugin, &form, &cancel).await
        });
        Box::pin(async move { frame(&asking.await?) })
    }
}

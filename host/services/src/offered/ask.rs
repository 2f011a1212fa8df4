//! The service `ask`: a form for the user of the session.

use jaato_types::Error;
use jaato_types::ask::{Form, FormAnswer};

use super::ServiceFuture;
use crate::call::ServiceCall;
use crate::detached::DetachedWork;

jaato_types::ask_operations!(bodies);

fn ask(call: &ServiceCall, form: Form) -> Result<ServiceFuture<FormAnswer>, Error> {
    let session = call.shared.sessions.find(&call.site.session)?;
    let (plugin, hold) = (call.plugin.clone(), call.site.hold.clone());
    Ok(Box::pin(DetachedWork::start(|cancel| async move {
        // The call's deadline pauses while the user fills in the form.
        let _held = hold.pause();
        session.ask_form(&plugin, &form, &cancel).await
    })))
}

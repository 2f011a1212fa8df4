//! The service `ask`: a form for the user of the session.

use jaato_types::Error;
use jaato_types::ask::{Form, FormAnswer};

use super::Later;
use crate::call::Call;
use crate::detached::Detached;

jaato_types::ask_operations!(bodies);

fn ask(call: &Call, form: Form) -> Result<Later<FormAnswer>, Error> {
    let session = call.shared.sessions.find(&call.site.session)?;
    let (plugin, hold) = (call.plugin.clone(), call.site.hold.clone());
    Ok(Box::pin(Detached::start(|cancel| async move {
        // The call's deadline pauses while the user fills in the form.
        let _held = hold.hold();
        session.ask(&plugin, &form, &cancel).await
    })))
}

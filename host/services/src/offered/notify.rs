//! The service `notify`, which sends a plugin's notification to the model and wakes an idle
//! session.

use jaato_types::notify::{
    NOTIFICATION_BYTES_MAX, NOTIFICATIONS_PER_MINUTE_MAX, NotifyAnswer, NotifyRequest,
};
use jaato_types::{Error, ErrorKind};

use crate::call::ServiceCall;

jaato_types::notify_operations!(bodies);

fn notify(
    call: &ServiceCall,
    NotifyRequest { text, .. }: NotifyRequest,
) -> Result<NotifyAnswer, Error> {
    if text.trim().is_empty() || text.len() > NOTIFICATION_BYTES_MAX {
        let text = format!("a notification has 1 to {NOTIFICATION_BYTES_MAX} bytes of text");
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    let sessions = &call.shared.sessions;
    let session = sessions.find(&call.site.session)?;
    if !sessions.may_notify(&call.site.session, &call.plugin) {
        let text = format!(
            "a plugin notifies a session at most {NOTIFICATIONS_PER_MINUTE_MAX} times a minute"
        );
        return Err(Error::new(ErrorKind::LimitReached, text).temporary());
    }
    session.notify_model(&call.plugin, text).map(|()| NotifyAnswer::default())
}

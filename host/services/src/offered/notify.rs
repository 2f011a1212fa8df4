//! The service `notify`: a plugin has something for the model, and wakes an idle session with it.

use jaato_types::notify::{
    NOTIFICATION_BYTES_MAX, NOTIFICATIONS_PER_MINUTE_MAX, NOTIFY, Notified, Notify,
};
use jaato_types::{Error, ErrorKind, Frame};

use super::{Answer, Service, bad_request, frame, ready};
use crate::call::Call;

/// Notifications.
pub struct Notifications;

impl Service for Notifications {
    fn has(&self, operation: &str) -> bool {
        operation == NOTIFY
    }

    fn call(&self, call: &Call, _operation: &str, request: Vec<u8>) -> Answer {
        ready(notify(call, &request).and_then(|()| frame(&Notified::default())))
    }
}

fn notify(call: &Call, request: &[u8]) -> Result<(), Error> {
    let Notify { text, .. } = Frame::read(request).map_err(bad_request)?;
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
    session.notify(&call.plugin, text)
}

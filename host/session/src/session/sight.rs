//! What the model looks at beside text: what its provider says of it when it is asked, else what
//! the provider's description says.
//!
//! It is asked for before the first image or file is sent, and never changes afterwards: what was
//! sent stays as it was.

use jaato_types::{Message, Part};

use crate::{Cancel, Session};

/// What a session knows of what its model looks at.
#[derive(Debug, Default)]
pub(crate) struct Sight {
    /// Whether the answer was waited for: once is enough.
    waited: bool,
    /// Whether the provider's answer was looked at.
    taken: bool,
}

impl Session {
    /// Waits, shortly and once, for what the provider says of the model.
    pub(crate) async fn wait_for_sight(&mut self, cancel: &Cancel) {
        if self.sight.taken || std::mem::replace(&mut self.sight.waited, true) {
            return;
        }
        self.wait_for_told(cancel).await;
    }

    /// Goes by what the provider says, unless something was shown to the model already.
    pub(crate) fn take_sight(&mut self, accepts: Option<&Vec<String>>) {
        if std::mem::replace(&mut self.sight.taken, true) {
            return;
        }
        let was_shown = self.history.messages().any(shows);
        if let Some(accepts) = accepts.filter(|_| !was_shown) {
            self.takes.media_types.clone_from(accepts);
        }
    }
}

/// Tells whether a message has what is no text.
fn shows(message: &Message) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Data(data) => data.blob_id().is_some(),
        Part::ToolResult(result) => !result.attachments.is_empty(),
        _ => false,
    })
}

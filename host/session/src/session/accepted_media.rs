//! The media types that the model accepts besides text: the provider's answer, else its
//! description.
//!
//! The session asks before it sends the first image or file. The types never change after that, so
//! that earlier requests stay the same.

use jaato_types::{Message, Part};

use crate::{Cancel, Session};

/// The session's state of the accepted media types.
#[derive(Debug, Default)]
pub(crate) struct MediaTypeState {
    /// Whether the session has waited for the answer. It waits once.
    waited: bool,
    /// Whether the provider's answer was used.
    taken: bool,
}

impl Session {
    /// Waits briefly, and once, for the provider's facts about the model.
    pub(crate) async fn wait_for_accepted_media(&mut self, cancel: &Cancel) {
        if self.sight.taken || std::mem::replace(&mut self.sight.waited, true) {
            return;
        }
        self.wait_for_model_info(cancel).await;
    }

    /// Uses the provider's answer, unless the model was already shown something.
    pub(crate) fn take_accepted_media(&mut self, accepts: Option<&Vec<String>>) {
        if std::mem::replace(&mut self.sight.taken, true) {
            return;
        }
        let was_shown = self.history.messages().any(has_blob);
        if let Some(accepts) = accepts.filter(|_| !was_shown) {
            self.takes.media_types.clone_from(accepts);
        }
    }
}

/// Returns true if a message contains a blob.
fn has_blob(message: &Message) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Data(data) => data.blob_id().is_some(),
        Part::ToolResult(result) => !result.attachments.is_empty(),
        _ => false,
    })
}

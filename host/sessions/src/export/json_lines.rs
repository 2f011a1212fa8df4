//! A transcript as JSON lines, which lose nothing and which [`import_file`](crate::import_file)
//! reads.
//!
//! The first line is the header:
//!
//! ```json
//! {"format":"jaato-transcript","version":1,"id":"…","name":"…","workspace":"/w","begun_ms":0}
//! ```
//!
//! Each further line is a message, oldest first. `role` and `parts` are those of a message in
//! jaato, with tool calls, results, signatures and unknown parts as they are. `model` and `note`
//! are absent if there are none:
//!
//! ```json
//! {"at_ms":0,"role":"user","parts":[{"type":"text","text":"Hello"}]}
//! {"at_ms":1,"role":"model","parts":[{"type":"text","text":"Hi"}],"model":"anthropic/claude-x"}
//! ```
//!
//! The last lines are the attachments. A part with a `blob` names one by its SHA-256, and a result
//! with a whole output in a file names that file by its path in the folder that the header names as
//! `attachments_folder`:
//!
//! ```json
//! {"attachment":"6b86b273…","base64":"MQ=="}
//! ```
//!
//! A reader ignores fields that it does not know, and refuses a higher version.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jaato_types::{Message, SessionId};
use serde::{Deserialize, Serialize};

use super::transcript::{Transcript, TranscriptMessage};

/// The name of the format, in the header.
pub const TRANSCRIPT_FORMAT: &str = "jaato-transcript";

/// The version of the format that this program writes, and the newest one that it reads.
pub const TRANSCRIPT_VERSION: u32 = 1;

/// The first line.
#[derive(Serialize, Deserialize)]
pub(crate) struct TranscriptHeader {
    pub(crate) format: String,
    pub(crate) version: u32,
    pub(crate) id: SessionId,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) workspace: String,
    #[serde(default)]
    pub(crate) begun_ms: i64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) attachments_folder: String,
}

/// The line of a message.
#[derive(Serialize, Deserialize)]
pub(crate) struct TranscriptLine {
    #[serde(default)]
    pub(crate) at_ms: i64,
    #[serde(flatten)]
    pub(crate) message: Message,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// The line of an attachment.
#[derive(Serialize, Deserialize)]
pub(crate) struct AttachmentLine {
    /// The SHA-256 of the content.
    pub(crate) attachment: String,
    pub(crate) base64: String,
}

/// Writes a transcript as JSON lines. [`TRANSCRIPT_FORMAT`] names the format.
pub fn to_json_lines(transcript: &Transcript) -> String {
    let header = TranscriptHeader {
        format: TRANSCRIPT_FORMAT.to_owned(),
        version: TRANSCRIPT_VERSION,
        id: transcript.id.clone(),
        name: transcript.name.clone(),
        workspace: transcript.workspace.clone(),
        begun_ms: transcript.begun_ms,
        attachments_folder: transcript.attachments_folder.clone(),
    };
    let mut text = format_line(&header);
    for TranscriptMessage { at_ms, message, model, note } in &transcript.messages {
        let (model, note) = (model.clone(), note.clone());
        text +=
            &format_line(&TranscriptLine { at_ms: *at_ms, message: message.clone(), model, note });
    }
    for (name, content) in &transcript.attachments {
        let (attachment, base64) = (name.clone(), STANDARD.encode(content));
        text += &format_line(&AttachmentLine { attachment, base64 });
    }
    text
}

fn format_line(value: &impl Serialize) -> String {
    // Maps have text keys, and numbers are finite, so this cannot fail.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

//! What models look at beside text, and what is said of what they cannot: images, files.

use std::collections::BTreeMap;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::{Data, DataContent, MediaLimit};

/// Media types of images that models look at.
pub const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The media type of files that some models read.
pub const PDF: &str = "application/pdf";

/// Limits every image and file to so many bytes.
pub fn limits(bytes_max: usize) -> Vec<MediaLimit> {
    let limit = |mime_type: &str| MediaLimit {
        mime_type: mime_type.to_owned(),
        bytes_max: bytes_max as u64,
        ..MediaLimit::default()
    };
    vec![limit("image/*"), limit(PDF)]
}

/// Bytes of a session's blob store, by their ids.
pub type Blobs = BTreeMap<String, Vec<u8>>;

/// Lists the data that the messages of people and tools hold, in order. In a model's own message no
/// protocol has a place for images.
pub fn data_of(request: &Request) -> impl Iterator<Item = &Data> {
    let is_shown = |message: &&Message| matches!(message.role, Role::User | Role::Tool);
    let parts = request.messages.iter().filter(is_shown).flat_map(|message| &message.parts);
    parts.flat_map(|part| match part {
        Part::Data(data) => std::slice::from_ref(data),
        Part::ToolResult(result) => result.attachments.as_slice(),
        _ => &[],
    })
}

/// Says in words what a model is not shown.
pub fn in_words(data: &Data) -> String {
    match &data.content {
        DataContent::Json { json, .. } => json.to_string(),
        DataContent::Blob { .. } | DataContent::Unknown(_) => {
            format!("[{}: cannot be sent to this model]", data.mime_type)
        }
    }
}

/// Fetches blobs, each by its id and the most bytes that it may have. What the session does not
/// have, or does not give, or what is too large, is left out: the model is told of it in words.
///
/// # Errors
/// What else keeps a blob from coming, such as a cancel.
pub async fn fetch_blobs<'a>(
    host: &Reporter,
    wanted: impl IntoIterator<Item = (&'a str, usize)>,
) -> Result<Blobs> {
    let mut blobs = Blobs::new();
    for (id, bytes_max) in wanted {
        if blobs.contains_key(id) {
            continue;
        }
        match host.blobs().get(id, bytes_max).await {
            Ok(bytes) => {
                blobs.insert(id.to_owned(), bytes);
            }
            Err(error) if is_left_out(error.kind) => {
                let text = format!("the blob `{id}` is not shown to the model: {error}");
                host.log(Level::Warn, text);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(blobs)
}

fn is_left_out(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::LimitReached
            | ErrorKind::PermissionDenied
            | ErrorKind::Unavailable
            | ErrorKind::UnknownOperation
    )
}

//! Images and files for models, and descriptions of those that cannot be shown.

use std::collections::BTreeMap;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::{DataContent, DataPart, MediaLimit};

/// The media types of images that models can see.
pub const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The media type of files that some models can read.
pub const PDF: &str = "application/pdf";

/// Limits every image and file to this number of bytes.
pub fn media_limits(bytes_max: usize) -> Vec<MediaLimit> {
    let limit = |mime_type: &str| MediaLimit {
        mime_type: mime_type.to_owned(),
        bytes_max: bytes_max as u64,
        ..MediaLimit::default()
    };
    vec![limit("image/*"), limit(PDF)]
}

/// The bytes of blobs from a session's store, by id.
pub type BlobContents = BTreeMap<String, Vec<u8>>;

/// Returns the data in user and tool messages, in order. No protocol allows images in a model's own
/// messages.
pub fn visible_data(request: &CompletionRequest) -> impl Iterator<Item = &DataPart> {
    let is_shown = |message: &&Message| matches!(message.role, Role::User | Role::Tool);
    let parts = request.messages.iter().filter(is_shown).flat_map(|message| &message.parts);
    parts.flat_map(|part| match part {
        Part::Data(data) => std::slice::from_ref(data),
        Part::ToolResult(result) => result.attachments.as_slice(),
        _ => &[],
    })
}

/// Returns a description of data that the model cannot see.
pub fn describe_data(data: &DataPart) -> String {
    match &data.content {
        DataContent::Json { json, .. } => json.to_string(),
        DataContent::Blob { .. } | DataContent::Unknown(_) => {
            format!("[{}: cannot be sent to this model]", data.mime_type)
        }
    }
}

/// Fetches blobs, each by its id and the most bytes that it may have. Skips a blob that the session
/// does not have or denies, or that is too large, and the model gets a description instead.
///
/// # Errors
/// Any other failure, such as a cancel.
pub async fn fetch_blobs<'a>(
    host: &Reporter,
    wanted: impl IntoIterator<Item = (&'a str, usize)>,
) -> Result<BlobContents> {
    let mut blobs = BlobContents::new();
    for (id, bytes_max) in wanted {
        if blobs.contains_key(id) {
            continue;
        }
        match host.blobs().get(id, bytes_max).await {
            Ok(bytes) => {
                blobs.insert(id.to_owned(), bytes);
            }
            Err(error) if is_skipped_error(error.kind) => {
                let text = format!("the blob `{id}` is not shown to the model: {error}");
                host.log(LogLevel::Warn, text);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(blobs)
}

fn is_skipped_error(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::LimitReached
            | ErrorKind::PermissionDenied
            | ErrorKind::Unavailable
            | ErrorKind::UnknownOperation
    )
}

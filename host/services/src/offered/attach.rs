//! The service `attach`, which attaches blobs of the session to a tool call's result.

use jaato_instances::CallAttachments;
use jaato_types::media_type::{MEDIA_TYPE_HEAD_BYTES, check_media_type, is_media_type};
use jaato_types::service::{ATTACHMENTS_MAX, AttachAnswer, AttachRequest};
use jaato_types::{DataPart, Error, ErrorKind};

use super::ServiceFuture;
use crate::blobs::{SessionBlobs, run_blocking};
use crate::call::ServiceCall;

/// The maximum length of a file name, in bytes. Most file systems have this limit.
const NAME_BYTES_MAX: usize = 255;

jaato_types::attach_operations!(bodies);

fn attach(call: &ServiceCall, asked: AttachRequest) -> Result<ServiceFuture<AttachAnswer>, Error> {
    let Some(attachments) = call.site.attachments.clone() else {
        let text = "only a tool call can attach: there is no result to attach to";
        return Err(Error::new(ErrorKind::Unavailable, text));
    };
    let blobs = call.shared.blobs.session_blobs(&call.site.session)?;
    Ok(Box::pin(async move {
        let data = run_blocking(move || checked_attachment(&blobs, asked)).await?;
        add_attachment(&attachments, data).map(AttachAnswer::new)
    }))
}

/// Checks that the blob has the declared media type, so that the model gets only real images as
/// images.
fn checked_attachment(blobs: &SessionBlobs, asked: AttachRequest) -> Result<DataPart, Error> {
    let AttachRequest { mime_type, blob, name } = asked;
    let wrong = |text: String| Error::new(ErrorKind::InvalidArguments, text);
    if !is_media_type(&mime_type) {
        return Err(wrong("the attachment's `mime_type` is not a media type".to_owned()));
    }
    if name.as_deref().is_some_and(|name| !is_file_name(name)) {
        return Err(wrong("the attachment's `name` is not a plain file name".to_owned()));
    }
    let head = blobs.read_blob_start(&blob, MEDIA_TYPE_HEAD_BYTES as u64)?;
    check_media_type(&mime_type, &head).map_err(|shown| {
        wrong(format!("the attachment is declared as `{mime_type}`, but its bytes are `{shown}`"))
    })?;
    Ok(DataPart { name, ..DataPart::blob(mime_type, blob) })
}

fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '/' | '\\');
    !matches!(name, "" | "." | "..") && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain)
}

fn add_attachment(attachments: &CallAttachments, data: DataPart) -> Result<u64, Error> {
    let mut all = attachments.lock();
    if all.len() >= ATTACHMENTS_MAX {
        let text = format!("a tool call has at most {ATTACHMENTS_MAX} attachments");
        return Err(Error::new(ErrorKind::LimitReached, text));
    }
    all.push(data);
    Ok(all.len() as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jaato_environments::OutputFolder;
    use jaato_types::SessionId;

    use super::*;
    use crate::blobs::BlobStore;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    /// Attaches bytes with a media type and a name.
    fn attach_bytes(bytes: &[u8], mime_type: &str, name: Option<&str>) -> Result<DataPart, Error> {
        let folder = tempfile::tempdir().unwrap();
        let blobs = BlobStore::next_to_outputs(Arc::new(OutputFolder::in_folder(folder.path())));
        let blobs = blobs.session_blobs(&SessionId::from("s1")).unwrap();
        let mut upload = blobs.begin_upload("application/octet-stream").unwrap();
        upload.write(bytes).unwrap();
        let (blob, mime_type) = (upload.finish().unwrap().id, mime_type.to_owned());
        let request = AttachRequest { mime_type, blob, name: name.map(str::to_owned) };
        checked_attachment(&blobs, request)
    }

    #[test]
    fn declared_attachment_type_must_match_its_bytes() {
        let data = attach_bytes(PNG, "image/png", Some("moon.png")).unwrap();
        assert_eq!(
            (data.mime_type.as_str(), data.name.as_deref()),
            ("image/png", Some("moon.png"))
        );
        assert!(data.blob_id().is_some_and(|id| id.len() == 64));
        for (bytes, said, shown) in [
            (PNG, "image/jpeg", "image/png"),
            (PNG, "text/plain", "image/png"),
            (&b"<html>"[..], "image/png", "application/octet-stream"),
            (b"", "application/pdf", "application/octet-stream"),
        ] {
            let error = attach_bytes(bytes, said, None).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidArguments);
            let text =
                format!("the attachment is declared as `{said}`, but its bytes are `{shown}`");
            assert_eq!(error.message, text);
        }
        assert!(attach_bytes(b"a,b\n", "text/csv", None).is_ok());
    }

    #[test]
    fn attachment_with_a_path_as_name_or_an_invalid_type_is_refused() {
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for name in ["", ".", "..", "../x", "a/b", "a\\b", "a\nb", &long] {
            let error = attach_bytes(PNG, "image/png", Some(name)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidArguments, "{name}");
        }
        assert!(attach_bytes(PNG, "image/png", Some(&long[1..])).is_ok());
        assert_eq!(attach_bytes(PNG, "png", None).unwrap_err().kind, ErrorKind::InvalidArguments);
    }

    #[test]
    fn number_of_attachments_per_call_is_limited() {
        let attachments = CallAttachments::default();
        for number in 1..=ATTACHMENTS_MAX as u64 {
            assert_eq!(add_attachment(&attachments, DataPart::blob("a/b", "00")), Ok(number));
        }
        let error = add_attachment(&attachments, DataPart::blob("a/b", "00")).unwrap_err();
        assert_eq!(error.message, "a tool call has at most 20 attachments");
    }
}

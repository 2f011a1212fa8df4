//! Request bodies that one call or instance assembles before it sends them.
//!
//! Small bodies stay in memory. Larger ones move to an unnamed file in the host's folder, from
//! which they are sent. Dropping a body frees both.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jaato_http::{FileBody, OutgoingRequest};
use jaato_types::http::{HTTP_BODIES_MAX, HTTP_BODY_BYTES_MAX};
use jaato_types::{Error, ErrorKind};
use tempfile::{SpooledData, SpooledTempFile, spooled_tempfile_in};

use crate::blobs::{SessionBlobs, run_blocking};
use crate::unfinished_work::{UnfinishedItemError, UnfinishedItems};

/// Maximum bytes to keep in memory.
const IN_MEMORY_MAX: usize = 1024 * 1024;

/// Bytes of a blob to encode at once: a multiple of three, so that only the end has padding.
const ENCODED_AT_ONCE: u64 = 3 * 64 * 1024;

/// The unfinished bodies of one context. Dropped with it.
pub type RequestBodies = UnfinishedItems<AssembledBody>;

/// A body that is being assembled.
#[derive(Debug)]
pub struct AssembledBody {
    file: SpooledTempFile,
    bytes: u64,
}

/// A blob to append.
#[derive(Debug)]
pub struct AppendedBlob {
    /// The session's blobs.
    pub blobs: Arc<SessionBlobs>,
    /// The blob's id.
    pub id: String,
    /// Whether to write it as base64.
    pub base64: bool,
}

impl RequestBodies {
    /// Appends to a body or to a new one. Returns its number and length. If writing fails or the
    /// caller is dropped, the body is lost.
    ///
    /// # Errors
    /// `not_found` if this context has no body with this number, or the session has no such blob,
    /// `limit_reached`, or `io`.
    pub async fn append_piece(
        self: Arc<Self>,
        number: Option<u64>,
        folder: &Path,
        bytes: Vec<u8>,
        blob: Option<AppendedBlob>,
    ) -> Result<(u64, u64), Error> {
        let (place, mut body) = match number {
            Some(number) => self.take_item(number).map_err(|why| body_error(why, number))?,
            None => {
                let place = self.reserve_item(HTTP_BODIES_MAX).ok_or_else(too_many_bodies_error)?;
                let file = spooled_tempfile_in(IN_MEMORY_MAX, folder);
                (place, AssembledBody { file, bytes: 0 })
            }
        };
        let body = run_blocking(move || {
            body.write(&bytes)?;
            if let Some(blob) = blob {
                body.write_blob(&blob)?;
            }
            Ok(body)
        })
        .await?;
        let bytes = body.bytes;
        Ok((place.put_back(body), bytes))
    }

    /// Takes a finished body out, to send it.
    ///
    /// # Errors
    /// `not_found` if this context has no body with this number, `invalid_arguments` while a piece
    /// of it is being written.
    pub fn finish(self: &Arc<Self>, number: u64) -> Result<AssembledBody, Error> {
        self.take_item(number).map(|(_, body)| body).map_err(|why| body_error(why, number))
    }
}

impl AssembledBody {
    /// Makes it the body of a request.
    pub fn send_with(self, request: &mut OutgoingRequest) {
        match self.file.into_inner() {
            SpooledData::InMemory(bytes) => request.body = bytes.into_inner().into(),
            SpooledData::OnDisk(file) => request.file = Some(FileBody::new(file, self.bytes)),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.add_bytes(bytes.len() as u64)?;
        self.file.write_all(bytes).map_err(|error| body_write_error(&error))
    }

    fn write_blob(&mut self, part: &AppendedBlob) -> Result<(), Error> {
        let (kept, mut blob) = part.blobs.open(&part.id)?;
        if !part.base64 {
            self.add_bytes(kept.bytes)?;
            let copied = std::io::copy(&mut blob.take(kept.bytes), &mut self.file);
            return copied.map(|_| ()).map_err(|error| body_write_error(&error));
        }
        self.add_bytes(kept.bytes.div_ceil(3) * 4)?;
        let mut piece = Vec::new();
        loop {
            piece.clear();
            let read = (&mut blob).take(ENCODED_AT_ONCE).read_to_end(&mut piece);
            read.map_err(|error| body_write_error(&error))?;
            if piece.is_empty() {
                return Ok(());
            }
            let text = STANDARD.encode(&piece);
            self.file.write_all(text.as_bytes()).map_err(|error| body_write_error(&error))?;
        }
    }

    fn add_bytes(&mut self, bytes: u64) -> Result<(), Error> {
        if self.bytes + bytes > HTTP_BODY_BYTES_MAX {
            let text = format!("the body of a request has at most {HTTP_BODY_BYTES_MAX} bytes");
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        self.bytes += bytes;
        Ok(())
    }
}

fn body_write_error(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot assemble the request body: {error}"))
}

fn body_error(why: UnfinishedItemError, number: u64) -> Error {
    match why {
        UnfinishedItemError::Unknown => {
            let text = format!("this call has no body number {number}");
            Error::new(ErrorKind::NotFound, text)
                .with_hint("a body can be sent with only one request")
        }
        UnfinishedItemError::Busy => {
            let text = format!("a piece of body number {number} is being written");
            Error::new(ErrorKind::InvalidArguments, text)
                .with_hint("wait for each piece before you send the next, or the request")
        }
    }
}

fn too_many_bodies_error() -> Error {
    let text = format!("the call has already begun {HTTP_BODIES_MAX} bodies");
    Error::new(ErrorKind::LimitReached, text).with_hint("send one of them first")
}

#[cfg(test)]
mod tests {
    use jaato_environments::OutputFolder;
    use jaato_http::Method;
    use jaato_types::SessionId;
    use tempfile::TempDir;

    use super::*;
    use crate::blobs::BlobStore;

    /// Returns a session with one blob of these bytes, and the blob's id.
    fn session_with_blob(bytes: &[u8]) -> (TempDir, Arc<SessionBlobs>, String) {
        let folder = tempfile::tempdir().unwrap();
        let blobs = BlobStore::next_to_outputs(Arc::new(OutputFolder::in_folder(folder.path())));
        let blobs = blobs.session_blobs(&SessionId::from("s1")).unwrap();
        let mut upload = blobs.begin_upload("a/b").unwrap();
        upload.write(bytes).unwrap();
        let id = upload.finish().unwrap().id;
        (folder, blobs, id)
    }

    fn request_with_body(bodies: &Arc<RequestBodies>, number: u64) -> OutgoingRequest {
        let mut request = OutgoingRequest::new(Method::POST, "http://a.example/").unwrap();
        bodies.finish(number).unwrap().send_with(&mut request);
        request
    }

    #[tokio::test]
    async fn body_bytes_and_blobs_are_sent_in_the_order_they_were_appended() {
        let (folder, blobs, id) = session_with_blob(b"any moon");
        let bodies: Arc<RequestBodies> = Arc::default();
        let part =
            |base64| Some(AppendedBlob { blobs: Arc::clone(&blobs), id: id.clone(), base64 });
        let append = |number, bytes: &[u8], blob| {
            Arc::clone(&bodies).append_piece(number, folder.path(), bytes.to_vec(), blob)
        };
        assert_eq!(append(None, b"<", None).await, Ok((1, 1)));
        assert_eq!(append(Some(1), b"", part(false)).await, Ok((1, 9)));
        assert_eq!(append(Some(1), b"|", part(true)).await, Ok((1, 22)));
        assert_eq!(append(Some(1), b">", part(true)).await, Ok((1, 35)));
        let request = request_with_body(&bodies, 1);
        assert_eq!(&request.body[..], b"<any moon|YW55IG1vb24=>YW55IG1vb24=");
        assert!(request.file.is_none());
        let gone = append(Some(1), b"", None).await.unwrap_err();
        assert_eq!(gone.kind, ErrorKind::NotFound);
        assert_eq!(bodies.finish(1).unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(append(None, b"", None).await, Ok((2, 0)));
        let path = AppendedBlob { blobs, id: "../../etc/passwd".to_owned(), base64: true };
        let error = append(Some(2), b"", Some(path)).await.unwrap_err();
        assert_eq!(error.message, "the session has no blob `../../etc/passwd`");
        assert_eq!(bodies.finish(2).unwrap_err().kind, ErrorKind::NotFound, "it is lost");
    }

    #[tokio::test]
    async fn large_body_is_kept_in_an_unnamed_file_and_limited() {
        let large = vec![7; 100 * 1024 * 1024];
        let (folder, blobs, id) = session_with_blob(&large);
        let bodies: Arc<RequestBodies> = Arc::default();
        let part =
            |base64| Some(AppendedBlob { blobs: Arc::clone(&blobs), id: id.clone(), base64 });
        let append = |number, bytes: &[u8], blob| {
            Arc::clone(&bodies).append_piece(number, folder.path(), bytes.to_vec(), blob)
        };
        let (number, bytes) = append(None, b"", part(true)).await.unwrap();
        assert_eq!(bytes, large.len().div_ceil(3) as u64 * 4);
        let beyond = append(Some(number), b"", part(false)).await.unwrap_err();
        assert_eq!(beyond.kind, ErrorKind::LimitReached);
        assert_eq!(append(None, b"", part(false)).await.unwrap().0, 2);
        assert_eq!(append(Some(2), b"", part(false)).await, Ok((2, HTTP_BODY_BYTES_MAX)));
        let files = std::fs::read_dir(folder.path())
            .unwrap()
            .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_file()));
        assert_eq!(files.count(), 0);
        let request = request_with_body(&bodies, 2);
        assert_eq!((request.body.len(), request.body_bytes()), (0, HTTP_BODY_BYTES_MAX));
        for number in 3..3 + HTTP_BODIES_MAX as u64 {
            assert_eq!(append(None, b"", None).await, Ok((number, 0)));
        }
        assert_eq!(append(None, b"", None).await.unwrap_err().kind, ErrorKind::LimitReached);
    }
}

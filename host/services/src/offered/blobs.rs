//! The services `blob.put` and `blob.get`, which keep binary content of the session by its hash.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use futures_util::stream;
use jaato_loader::{EngineServiceAnswer, FrameStream};
use jaato_types::service::{BLOB_GET, BLOB_PUT, BlobGet, BlobPut, BlobPutAnswer};
use jaato_types::{Error, ErrorKind, Frame};
use serde_json::Map;

use super::{Body, ServiceAnswer, bad_request_error, encode_answer, ready_answer};
use crate::blobs::{
    BlobPiece, BlobUploads, PieceWriteResult, SessionBlobs, StoredBlob, run_blocking,
};
use crate::call::ServiceCall;

/// The maximum number of bytes that one `next` returns.
const PIECE_BYTES_MAX: u64 = 1024 * 1024;

// Handwritten, so that the engine can check blobs without a call.
pub(super) fn find_body(operation: &str) -> Option<Body> {
    matches!(operation, BLOB_PUT | BLOB_GET).then_some(answer_blob_call)
}

fn answer_blob_call(call: &ServiceCall, operation: &str, request: Vec<u8>) -> ServiceAnswer {
    match call.shared.blobs.session_blobs(&call.site.session) {
        Ok(blobs) => answer_blob_operation(blobs, Arc::clone(&call.uploads), operation, request),
        Err(error) => ready_answer(Err(error)),
    }
}

/// Answers an operation on the blobs of a session. `uploads` are those of the call.
pub fn answer_blob_operation(
    blobs: Arc<SessionBlobs>,
    uploads: Arc<BlobUploads>,
    operation: &str,
    request: Vec<u8>,
) -> ServiceAnswer {
    if operation == BLOB_GET {
        return Box::pin(async move { get_blob(blobs, &request).await });
    }
    Box::pin(async move {
        let answer = match uploads.write(blobs, parse_blob_piece(&request)?).await? {
            PieceWriteResult::Begun { number, bytes } => BlobPutAnswer::unfinished(number, bytes),
            PieceWriteResult::Whole(put) => BlobPutAnswer::complete(put.id, put.bytes),
        };
        encode_answer(&answer)
    })
}

fn parse_blob_piece(request: &[u8]) -> Result<BlobPiece, Error> {
    let parsed = Frame::parse(request).map_err(bad_request_error)?;
    let BlobPut { mime_type, put, more } = parsed.json().map_err(bad_request_error)?;
    Ok(BlobPiece { number: put, mime_type, bytes: parsed.bytes.to_vec(), more })
}

async fn get_blob(blobs: Arc<SessionBlobs>, request: &[u8]) -> Result<EngineServiceAnswer, Error> {
    let BlobGet { blob } = Frame::read(request).map_err(bad_request_error)?;
    let (StoredBlob { bytes, mime_type, .. }, file) =
        run_blocking(move || blobs.open(&blob)).await?;
    let head = [("mime_type", mime_type.into()), ("bytes", bytes.into())];
    let head = Map::from_iter(head.map(|(key, value)| (key.to_owned(), value)));
    Ok(EngineServiceAnswer::StreamWith(head, Box::new(FrameStream(Box::pin(file_pieces(file))))))
}

/// Reads a file piece by piece, each as a frame.
fn file_pieces(file: File) -> impl futures_util::Stream<Item = Result<Vec<u8>, Error>> + Send {
    stream::try_unfold(file, |file| {
        run_blocking(move || {
            let mut piece = Vec::new();
            let broken = |error: std::io::Error| {
                Error::new(ErrorKind::Io, format!("cannot read a blob: {error}"))
            };
            (&file).take(PIECE_BYTES_MAX).read_to_end(&mut piece).map_err(broken)?;
            if piece.is_empty() {
                return Ok(None);
            }
            let bug =
                |error: jaato_types::FrameError| Error::new(ErrorKind::HostBug, error.to_string());
            let frame = Frame::from_json_text(b"", &piece).map_err(bug)?;
            Ok(Some((frame, file)))
        })
    })
}

#[cfg(test)]
#[path = "blobs_tests.rs"]
mod tests;

//! The unfinished blobs of one call or instance.

use std::sync::Arc;

use jaato_types::service::BLOBS_BEGUN_MAX;
use jaato_types::{Error, ErrorKind};

use super::upload::{BlobUpload, FinishedBlob};
use super::{SessionBlobs, run_blocking};
use crate::unfinished_work::{ReservedItem, UnfinishedItemError, UnfinishedItems};

/// The unfinished blobs of one context. Dropped with it.
pub type BlobUploads = UnfinishedItems<Box<BlobUpload>>;

/// A piece of a blob.
#[derive(Debug)]
pub struct BlobPiece {
    /// The number of the upload to continue, or `None` for a new one.
    pub number: Option<u64>,
    /// The media type of a new upload.
    pub mime_type: String,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether more pieces follow.
    pub more: bool,
}

impl BlobUploads {
    /// Writes a piece.
    ///
    /// # Errors
    /// As [`SessionBlobs::begin_upload`], [`BlobUpload::write`] and [`BlobUpload::finish`], after
    /// which the upload is lost. `not_found` if this context has no upload with this number.
    pub async fn write(
        self: Arc<Self>,
        blobs: Arc<SessionBlobs>,
        piece: BlobPiece,
    ) -> Result<PieceWriteResult, Error> {
        let BlobPiece { number, mime_type, bytes, more } = piece;
        // A blob in a single piece is written directly and needs no number.
        let (place, begun) = match (number, more) {
            (Some(number), _) => {
                let (place, upload) =
                    self.take_item(number).map_err(|why| upload_error(why, number))?;
                (Some(place), Some(upload))
            }
            (None, true) => {
                (Some(self.reserve_item(BLOBS_BEGUN_MAX).ok_or_else(too_many_uploads_error)?), None)
            }
            (None, false) => (None, None),
        };
        let (upload, put) = run_blocking(move || {
            let mut upload = match begun {
                Some(upload) => upload,
                None => Box::new(blobs.begin_upload(&mime_type)?),
            };
            upload.write(&bytes)?;
            if more { Ok((Some(upload), None)) } else { Ok((None, Some(upload.finish()?))) }
        })
        .await?;
        Ok(match (put, upload, place) {
            (Some(put), _, _) => PieceWriteResult::Whole(put),
            (None, Some(upload), Some(place)) => continue_upload(place, upload),
            (None, _, _) => unreachable!("an upload that continues has a number"),
        })
    }
}

/// The result of writing a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PieceWriteResult {
    /// More pieces may follow.
    Begun {
        /// The upload's number.
        number: u64,
        /// Bytes written so far.
        bytes: u64,
    },
    /// The finished blob.
    Whole(FinishedBlob),
}

fn continue_upload(
    place: ReservedItem<Box<BlobUpload>>,
    upload: Box<BlobUpload>,
) -> PieceWriteResult {
    let bytes = upload.written_bytes();
    PieceWriteResult::Begun { number: place.put_back(upload), bytes }
}

fn upload_error(why: UnfinishedItemError, number: u64) -> Error {
    match why {
        UnfinishedItemError::Unknown => {
            let text = format!("this call has not begun blob number {number}");
            Error::new(ErrorKind::NotFound, text)
        }
        UnfinishedItemError::Busy => {
            let text = format!("a piece of blob number {number} is being written");
            Error::new(ErrorKind::InvalidArguments, text)
                .with_hint("wait for each piece before you send the next")
        }
    }
}

fn too_many_uploads_error() -> Error {
    let text = format!("the call has already begun {BLOBS_BEGUN_MAX} blobs");
    Error::new(ErrorKind::LimitReached, text).with_hint("finish one of them first")
}

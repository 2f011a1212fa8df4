//! The unfinished blobs of one call or instance.

use std::sync::Arc;

use jaato_types::service::BLOBS_BEGUN_MAX;
use jaato_types::{Error, ErrorKind};

use super::upload::{Put, Upload};
use super::{SessionBlobs, blocking};
use crate::begun::{Begun, Place, Refused};

/// The unfinished blobs of one context. Dropped with it.
pub type Uploads = Begun<Box<Upload>>;

/// A piece of a blob.
#[derive(Debug)]
pub struct Piece {
    /// The number of the upload to continue, or `None` for a new one.
    pub number: Option<u64>,
    /// The media type of a new upload.
    pub mime_type: String,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether more pieces follow.
    pub more: bool,
}

impl Uploads {
    /// Writes a piece.
    ///
    /// # Errors
    /// As [`SessionBlobs::begin`], [`Upload::write`] and [`Upload::finish`], after which the upload
    /// is lost. `not_found` if this context has no upload with this number.
    pub async fn write(
        self: Arc<Self>,
        blobs: Arc<SessionBlobs>,
        piece: Piece,
    ) -> Result<Written, Error> {
        let Piece { number, mime_type, bytes, more } = piece;
        // A blob in a single piece is written at once and needs no number.
        let (place, begun) = match (number, more) {
            (Some(number), _) => {
                let (place, upload) = self.take(number).map_err(|why| refused(why, number))?;
                (Some(place), Some(upload))
            }
            (None, true) => (Some(self.enter(BLOBS_BEGUN_MAX).ok_or_else(too_many)?), None),
            (None, false) => (None, None),
        };
        let (upload, put) = blocking(move || {
            let mut upload = match begun {
                Some(upload) => upload,
                None => Box::new(blobs.begin(&mime_type)?),
            };
            upload.write(&bytes)?;
            if more { Ok((Some(upload), None)) } else { Ok((None, Some(upload.finish()?))) }
        })
        .await?;
        Ok(match (put, upload, place) {
            (Some(put), _, _) => Written::Whole(put),
            (None, Some(upload), Some(place)) => go_on(place, upload),
            (None, _, _) => unreachable!("what goes on has a number"),
        })
    }
}

/// The result of writing a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// More pieces may follow.
    Begun {
        /// The upload's number.
        number: u64,
        /// Bytes written so far.
        bytes: u64,
    },
    /// The finished blob.
    Whole(Put),
}

fn go_on(place: Place<Box<Upload>>, upload: Box<Upload>) -> Written {
    let bytes = upload.bytes();
    Written::Begun { number: place.keep(upload), bytes }
}

fn refused(why: Refused, number: u64) -> Error {
    match why {
        Refused::Unknown => {
            let text = format!("this call has not begun a blob of number {number}");
            Error::new(ErrorKind::NotFound, text)
        }
        Refused::Busy => {
            let text = format!("a piece of blob number {number} is being written");
            Error::new(ErrorKind::InvalidArguments, text)
                .with_hint("wait for each piece before you send the next")
        }
    }
}

fn too_many() -> Error {
    let text = format!("the call has begun {BLOBS_BEGUN_MAX} blobs already");
    Error::new(ErrorKind::LimitReached, text).with_hint("finish one of them first")
}

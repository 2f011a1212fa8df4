//! The blobs that one call, or one instance, has begun to write.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jaato_types::service::BLOBS_BEGUN_MAX;
use jaato_types::{Error, ErrorKind};
use parking_lot::Mutex;

use super::upload::{Put, Upload};
use super::{SessionBlobs, blocking};

/// The blobs that one context has begun to write. They go with it.
#[derive(Debug, Default)]
pub struct Uploads {
    open: Mutex<HashMap<u64, Slot>>,
    last: AtomicU64,
}

/// One of them.
#[derive(Debug)]
enum Slot {
    /// It waits for its next piece.
    Idle(Box<Upload>),
    /// A piece is being written. When nobody waits for that any more, the slot is given up: how
    /// much was written is not known then.
    Busy,
}

/// A piece of a blob.
#[derive(Debug)]
pub struct Piece {
    /// The number of the upload that goes on; a new one without.
    pub number: Option<u64>,
    /// The media type of a new one.
    pub mime_type: String,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether more follow.
    pub more: bool,
}

impl Uploads {
    /// Writes a piece.
    ///
    /// # Errors
    /// As [`SessionBlobs::begin`], [`Upload::write`] and [`Upload::finish`]; the upload is lost
    /// then. `not_found` for a number that is none of this context.
    pub async fn write(
        self: Arc<Self>,
        blobs: Arc<SessionBlobs>,
        piece: Piece,
    ) -> Result<Written, Error> {
        let Piece { number, mime_type, bytes, more } = piece;
        let begun = number.map(|number| self.take(number)).transpose()?;
        // What is whole at once is written in one go and has no number.
        let entry = match (number, more) {
            (Some(number), _) => Some(Entry { uploads: Arc::clone(&self), number }),
            (None, true) => Some(self.enter()?),
            (None, false) => None,
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
        Ok(match (put, upload, entry) {
            (Some(put), _, _) => Written::Whole(put),
            (None, Some(upload), Some(entry)) => entry.keep(upload),
            (None, _, _) => unreachable!("what goes on has a number"),
        })
    }

    fn take(&self, number: u64) -> Result<Box<Upload>, Error> {
        let mut open = self.open.lock();
        let gone = || {
            let text = format!("this call has not begun a blob of number {number}");
            Error::new(ErrorKind::NotFound, text)
        };
        let slot = open.get_mut(&number).ok_or_else(gone)?;
        match std::mem::replace(slot, Slot::Busy) {
            Slot::Idle(upload) => Ok(upload),
            Slot::Busy => {
                let text = format!("a piece of blob number {number} is being written");
                Err(Error::new(ErrorKind::InvalidArguments, text)
                    .with_hint("wait for each piece before you send the next"))
            }
        }
    }

    fn enter(self: &Arc<Self>) -> Result<Entry, Error> {
        let mut open = self.open.lock();
        if open.len() >= BLOBS_BEGUN_MAX {
            let text = format!("the call has begun {BLOBS_BEGUN_MAX} blobs already");
            return Err(
                Error::new(ErrorKind::LimitReached, text).with_hint("finish one of them first")
            );
        }
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        open.insert(number, Slot::Busy);
        Ok(Entry { uploads: Arc::clone(self), number })
    }
}

/// What came of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// More may follow.
    Begun {
        /// The upload's number.
        number: u64,
        /// Bytes that it has.
        bytes: u64,
    },
    /// The blob is there.
    Whole(Put),
}

/// The place of an upload. It is free again when this is dropped, unless the upload is kept.
struct Entry {
    uploads: Arc<Uploads>,
    number: u64,
}

impl Entry {
    fn keep(self, upload: Box<Upload>) -> Written {
        let (number, bytes) = (self.number, upload.bytes());
        self.uploads.open.lock().insert(number, Slot::Idle(upload));
        Written::Begun { number, bytes }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut open = self.uploads.open.lock();
        if matches!(open.get(&self.number), Some(Slot::Busy)) {
            open.remove(&self.number);
        }
    }
}

//! Open files that an environment in a worker lends: read and written here, so that their bytes
//! cross no socket.
//!
//! What came is whatever the worker sent: it is used if it is a regular file, and gives no right
//! that the worker has not. Whatever goes wrong with it is left to the environment, which does the
//! same and says what is wrong.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt as _;
use jaato_types::execution::PIECE_BYTES_MAX;
use jaato_types::files::{DESCRIPTOR_KEY, FileNumber, LentFile};
use jaato_types::{Error, ErrorKind, Frame};
use parking_lot::{Mutex, MutexGuard};
use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, pread};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::Mutex as Turns;
use tokio::task::JoinHandle;

use super::scope::{Ready, host_bug};
use super::stream::{HEAD_BYTES, OnEnd, SLICE_BYTES, Takes};
use crate::platform::read_at_once;

/// Bytes of a piece that is read in place: they fit into a processor's cache.
const IN_PLACE_BYTES: usize = 256 * 1024;

/// Bytes that are read in place before others have their turn.
const TURN_BYTES: usize = 4 * 1024 * 1024;

/// An open file that was lent with an answer.
pub(super) struct Lent {
    file: OwnedFd,
    how: LentFile,
    size: u64,
}

impl Lent {
    /// Takes what an answer lends out of it. None where nothing came, or nothing that can be used.
    pub(super) fn taken(answer: &mut Map<String, Value>, file: Option<OwnedFd>) -> Option<Self> {
        // The key goes in any case: it is nothing to a tool.
        let how = answer.remove(DESCRIPTOR_KEY)?;
        let (how, file) = (LentFile::deserialize(how).ok()?, file?);
        let stat = fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        is_file.then(|| Self { file, how, size: u64::try_from(stat.st_size).unwrap_or(0) })
    }
}

/// A lent file that is read piece by piece.
pub(super) struct LentReader {
    file: Arc<OwnedFd>,
    offset: u64,
    left: u64,
    handed_out: u64,
    takes: Takes,
    /// What is left of this turn.
    turn_bytes: usize,
    /// A piece that the disk is asked for.
    reading: Option<JoinHandle<Result<Vec<u8>, Errno>>>,
}

/// What comes of a lent file.
pub(super) enum Came {
    /// A frame of bytes.
    Piece(Vec<u8>),
    /// The end.
    End,
    /// Nothing more; so many bytes came before.
    Failed(u64),
}

impl LentReader {
    /// Makes it. None for a file without a size, which is the kernel's own and may make a reader
    /// wait for ever.
    pub(super) fn new(lent: Lent, takes: Takes) -> Option<Self> {
        let Lent { file, how: LentFile { offset, length, .. }, size } = lent;
        let left = length.unwrap_or(u64::MAX);
        let file = Arc::new(file);
        let turn_bytes = TURN_BYTES;
        let reader = Self { file, offset, left, handed_out: 0, takes, turn_bytes, reading: None };
        (size > 0).then_some(reader)
    }

    /// Gives the next piece: at once where it is in memory.
    pub(super) fn poll(&mut self, runtime: &Handle, cx: &mut Context<'_>) -> Poll<Came> {
        if self.reading.is_none() {
            if self.left == 0 {
                return Poll::Ready(Came::End);
            }
            if self.turn_bytes == 0 {
                self.turn_bytes = TURN_BYTES;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let bytes = self.piece_bytes(IN_PLACE_BYTES);
            let mut frame = vec![0; HEAD_BYTES + bytes];
            if let Some(count) = read_at_once(&self.file, &mut frame[HEAD_BYTES..], self.offset) {
                self.turn_bytes = self.turn_bytes.saturating_sub(bytes);
                frame.truncate(HEAD_BYTES + count);
                return Poll::Ready(self.came(frame));
            }
        }
        let bytes = self.piece_bytes(PIECE_BYTES_MAX);
        let (file, offset) = (&self.file, self.offset);
        let reading = self.reading.get_or_insert_with(|| {
            let file = Arc::clone(file);
            runtime.spawn_blocking(move || read(&file, bytes, offset))
        });
        let read = ready!(reading.poll_unpin(cx));
        self.reading = None;
        Poll::Ready(match read {
            Ok(Ok(frame)) => self.came(frame),
            Ok(Err(_)) | Err(_) => Came::Failed(self.handed_out),
        })
    }

    fn piece_bytes(&self, bytes_max: usize) -> usize {
        let bytes_max = match self.takes {
            Takes::Slices => SLICE_BYTES,
            Takes::WholePieces => bytes_max,
        };
        usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes_max)
    }

    fn came(&mut self, frame: Vec<u8>) -> Came {
        let bytes = (frame.len() - HEAD_BYTES) as u64;
        self.offset = self.offset.saturating_add(bytes);
        self.left = self.left.saturating_sub(bytes);
        self.handed_out = self.handed_out.saturating_add(bytes);
        if bytes == 0 { Came::End } else { Came::Piece(frame) }
    }
}

/// Reads a frame of bytes; one without any at the end.
fn read(file: &OwnedFd, bytes: usize, offset: u64) -> Result<Vec<u8>, Errno> {
    let mut frame = Vec::with_capacity(HEAD_BYTES + bytes);
    frame.extend_from_slice(&[0; HEAD_BYTES]);
    loop {
        match pread(file, spare_capacity(&mut frame), offset) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
            Ok(_) => break,
        }
    }
    // The buffer may have more room than was asked for.
    frame.truncate(HEAD_BYTES + bytes);
    Ok(frame)
}

/// Lent files that a session writes, by number.
#[derive(Default)]
pub(super) struct Uploads(Mutex<HashMap<u64, Arc<Upload>>>);

/// A lent file that is written piece by piece.
pub(super) struct Upload {
    ready: Arc<Ready>,
    /// Held over each piece by whoever writes it, to the end also if nobody waits for that.
    writing: Arc<Turns<Writing>>,
}

/// Who writes a file.
enum Writing {
    Here(File),
    /// The environment, from where this host could not go on.
    There,
    /// Nobody: bytes are lost.
    Broken,
}

impl Uploads {
    /// Holds a lent file; returns what lets go of it.
    pub(super) fn hold(self: &Arc<Self>, number: u64, lent: Lent, ready: Arc<Ready>) -> OnEnd {
        let writing = Arc::new(Turns::new(Writing::Here(lent.file.into())));
        let upload = Arc::new(Upload { ready, writing });
        self.lock().insert(number, Arc::clone(&upload));
        let own = Arc::downgrade(self);
        OnEnd::new(move || {
            let Some(own) = own.upgrade() else { return };
            let mut uploads = own.lock();
            // The number may be another's by then, of an environment that was set up anew.
            if uploads.get(&number).is_some_and(|held| Arc::ptr_eq(held, &upload)) {
                uploads.remove(&number);
            }
        })
    }

    /// Finds the one that a request names, if it is written here.
    pub(super) fn of(&self, request: &[u8]) -> Option<Arc<Upload>> {
        let FileNumber { file } = Frame::read(request).ok()?;
        let upload = Arc::clone(self.lock().get(&file)?);
        (!upload.ready.has_ended()).then_some(upload)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Upload>>> {
        self.0.lock()
    }
}

impl Upload {
    /// Writes the bytes of a request; `pass_on` has the environment do what cannot be done here.
    pub(super) async fn write<F: Future<Output = Result<Vec<u8>, Error>>>(
        &self,
        request: Vec<u8>,
        pass_on: impl FnOnce(Vec<u8>) -> F,
    ) -> Result<Vec<u8>, Error> {
        write_in_turn(&self.writing, request, pass_on).await
    }

    /// Lets go of the file, so that it can be put in its place.
    pub(super) async fn finish(&self) -> Result<(), Error> {
        let_go(&self.writing).await
    }
}

async fn write_in_turn<F: Future<Output = Result<Vec<u8>, Error>>>(
    writing: &Arc<Turns<Writing>>,
    request: Vec<u8>,
    pass_on: impl FnOnce(Vec<u8>) -> F,
) -> Result<Vec<u8>, Error> {
    let mut writing = Arc::clone(writing).lock_owned().await;
    match &*writing {
        Writing::Here(_) => {}
        Writing::There => {
            drop(writing);
            return pass_on(request).await;
        }
        Writing::Broken => return Err(has_failed()),
    }
    // The turn goes along: it is over when the bytes are written, not when nobody waits for that
    // any more.
    let written = tokio::task::spawn_blocking(move || {
        let rest = writing.write(&request);
        (writing, rest)
    });
    let lost = |_| Error::new(ErrorKind::HostBug, "a piece of a file was lost");
    let (mut writing, rest) = written.await.map_err(lost)?;
    let Some(rest) = rest? else { return Ok(Frame::empty()) };
    let answer = pass_on(rest).await?;
    *writing = Writing::There;
    Ok(answer)
}

async fn let_go(writing: &Turns<Writing>) -> Result<(), Error> {
    let mut writing = writing.lock().await;
    if let Writing::Broken = *writing {
        return Err(has_failed());
    }
    *writing = Writing::There;
    Ok(())
}

impl Writing {
    /// Writes the bytes of a request. Where that fails it is broken, and the request for the rest
    /// is given.
    fn write(&mut self, request: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let parsed = Frame::parse(request)
            .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
        let Self::Here(file) = self else { return Err(has_failed()) };
        let mut rest = parsed.bytes;
        while !rest.is_empty() {
            match file.write(rest) {
                Ok(count) if count > 0 => rest = &rest[count..],
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    *self = Self::Broken;
                    let number: Value = parsed.json().map_err(host_bug)?;
                    return Frame::write_with_bytes(&number, rest).map(Some).map_err(host_bug);
                }
            }
        }
        Ok(None)
    }
}

fn has_failed() -> Error {
    Error::new(ErrorKind::Io, "writing the file has failed before").with_hint("write it anew")
}

#[cfg(test)]
mod tests;

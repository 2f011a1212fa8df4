//! The streams that services have opened for a context, by handle.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use jaato_plugin_api::abi::abi_stable::std_types::{ROption, RResult, RVec};
use jaato_types::{Error, ErrorKind, Frame};
use parking_lot::Mutex;

use super::lent_futures::error_frame;
use crate::bounds::ResourceReservation;
use crate::bytes::FrameBytes;
use crate::fence::run_host_code;
use crate::live::LiveToken;
use crate::services::ByteStream;

/// The maximum number of bytes that one `next` returns.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;

/// The maximum number of open streams of one context: enough for all programs of a session, and
/// some more.
pub const STREAMS_MAX: usize = 160;

/// The counters of an open stream: for leak tests, and for its plugin's limit.
pub(super) type StreamCounters = (LiveToken, ResourceReservation);

/// The open streams of one context.
#[derive(Default)]
pub(super) struct OpenStreams {
    open: Vec<(u64, Arc<Mutex<StreamSlot>>)>,
}

/// One stream. Locked while its source is polled.
pub(super) struct StreamSlot {
    source: Option<Box<dyn ByteStream>>,
    /// Whether the pieces are frames, which are returned in full.
    gives_frames: bool,
    /// Bytes from the source that `next` has not yet returned, from `read` on.
    rest: Vec<u8>,
    read: usize,
    /// Whether a `next` is waiting. Only one may wait.
    busy: bool,
    reader: Option<Waker>,
    _counted: StreamCounters,
}

impl OpenStreams {
    /// Adds a stream. Returns `None` if there are too many.
    pub(super) fn open(
        &mut self,
        handle: u64,
        source: Box<dyn ByteStream>,
        counted: StreamCounters,
    ) -> bool {
        let has_room = self.open.len() < STREAMS_MAX;
        if has_room {
            let slot = StreamSlot {
                gives_frames: source.has_frames(),
                source: Some(source),
                rest: Vec::new(),
                read: 0,
                busy: false,
                reader: None,
                _counted: counted,
            };
            self.open.push((handle, Arc::new(Mutex::new(slot))));
        }
        has_room
    }

    pub(super) fn get(&self, handle: u64) -> Option<Arc<Mutex<StreamSlot>>> {
        let found = self.open.iter().find(|(number, _)| *number == handle);
        found.map(|(_, slot)| Arc::clone(slot))
    }

    pub(super) fn remove(&mut self, handle: u64) -> Option<Arc<Mutex<StreamSlot>>> {
        let index = self.open.iter().position(|(number, _)| *number == handle)?;
        Some(self.open.swap_remove(index).1)
    }
}

/// Ends a stream. A waiting `next` returns the end.
pub(super) fn end_stream(slot: &Mutex<StreamSlot>) {
    let mut slot = slot.lock();
    let source = slot.source.take();
    slot.rest = Vec::new();
    let reader = slot.reader.take();
    drop(slot);
    drop(source);
    if let Some(reader) = reader {
        reader.wake();
    }
}

impl Drop for OpenStreams {
    fn drop(&mut self) {
        for (_, slot) in self.open.drain(..) {
            end_stream(&slot);
        }
    }
}

/// The result of `next`: a frame, nothing at the end, or an error.
pub(super) type StreamPieceResult = RResult<ROption<RVec<u8>>, RVec<u8>>;

/// Waits for the next piece of a stream. Bytes that it does not return stay in the stream.
pub(super) struct StreamPieceFuture {
    slot: Arc<Mutex<StreamSlot>>,
}

impl StreamPieceFuture {
    /// Returns `None` if another `next` is already waiting.
    pub(super) fn new(slot: Arc<Mutex<StreamSlot>>) -> Option<Self> {
        let was_busy = std::mem::replace(&mut slot.lock().busy, true);
        (!was_busy).then_some(Self { slot })
    }
}

impl Drop for StreamPieceFuture {
    fn drop(&mut self) {
        let mut slot = self.slot.lock();
        slot.busy = false;
        slot.reader = None;
    }
}

impl Future for StreamPieceFuture {
    type Output = StreamPieceResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<StreamPieceResult> {
        let mut slot = self.slot.lock();
        loop {
            if slot.read < slot.rest.len() {
                return Poll::Ready(slot.take_piece());
            }
            let gives_frames = slot.gives_frames;
            let Some(source) = &mut slot.source else {
                return Poll::Ready(RResult::ROk(ROption::RNone));
            };
            // This fence is needed too, so that a source that panicked is never polled again.
            match run_host_code(|| source.poll_frame(cx)) {
                Ok(Poll::Pending) => {
                    slot.reader = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Ok(Poll::Ready(Some(Ok(frame)))) if gives_frames => {
                    return Poll::Ready(checked_piece(frame));
                }
                Ok(Poll::Ready(Some(Ok(piece)))) => {
                    (slot.rest, slot.read) = (piece.into_vec(), 0);
                }
                Ok(Poll::Ready(None)) => return Poll::Ready(slot.finish(Ok(()))),
                Ok(Poll::Ready(Some(Err(error)))) | Err(error) => {
                    return Poll::Ready(slot.finish(Err(error)));
                }
            }
        }
    }
}

/// Returns a frame, or an error if it is malformed.
fn checked_piece(frame: FrameBytes) -> StreamPieceResult {
    match Frame::parse(&frame) {
        Ok(_) => RResult::ROk(ROption::RSome(frame.0)),
        Err(error) => {
            RResult::RErr(error_frame(&Error::new(ErrorKind::HostBug, error.to_string())))
        }
    }
}

impl StreamSlot {
    /// Drops the source. Returns the end, or the error that ended the stream.
    fn finish(&mut self, ended: Result<(), Error>) -> StreamPieceResult {
        self.source = None;
        match ended {
            Ok(()) => RResult::ROk(ROption::RNone),
            Err(error) => RResult::RErr(error_frame(&error)),
        }
    }

    fn take_piece(&mut self) -> StreamPieceResult {
        let end = self.rest.len().min(self.read + PIECE_BYTES_MAX);
        let frame = Frame::from_json_text(b"", &self.rest[self.read..end]);
        self.read = end;
        if self.read == self.rest.len() {
            (self.rest, self.read) = (Vec::new(), 0);
        }
        match frame {
            Ok(frame) => RResult::ROk(ROption::RSome(frame.into())),
            Err(error) => {
                RResult::RErr(error_frame(&Error::new(ErrorKind::HostBug, error.to_string())))
            }
        }
    }
}

//! A stream of a fake service, fed by the test.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use jaato_plugin_engine::PIECE_BYTES_MAX;
use jaato_types::{Error, ErrorKind, Frame, Result};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::context::frame_bug_error;

/// The maximum number of waiting frames of a program, which is slowed down to the pace of its
/// reader.
const FRAMES_WAITING_MAX: usize = 2;

/// The stream of a fake service. Clones feed the same stream.
///
/// One `next` returns each pushed piece (or several do, if it is larger than 64 KiB), so that a
/// test can split the data anywhere.
#[derive(Clone, Default)]
pub struct FakeStream(Arc<FakeStreamShared>);

#[derive(Default)]
struct FakeStreamShared {
    state: Mutex<FakeStreamState>,
    /// Signals that a piece was taken or added, or that one side has ended the stream.
    changed: Condvar,
}

#[derive(Default)]
struct FakeStreamState {
    /// Each piece is a frame.
    pieces: VecDeque<Result<Vec<u8>>>,
    is_closed: bool,
    end: Option<Result<()>>,
    waiting: Vec<Waker>,
}

impl FakeStream {
    /// Creates an open stream. Feed it with [`FakeStream::push`].
    pub fn open() -> Self {
        Self::default()
    }

    /// Creates a stream of these pieces that then ends.
    pub fn from_pieces<P: Into<Vec<u8>>>(pieces: impl IntoIterator<Item = P>) -> Self {
        let stream = Self::open();
        for piece in pieces {
            stream.push(piece);
        }
        stream.finish();
        stream
    }

    /// Adds a piece.
    pub fn push(&self, piece: impl Into<Vec<u8>>) {
        let piece = piece.into();
        let mut state = self.lock();
        let frame = |bytes: &[u8]| Frame::from_json_text(b"", bytes).map_err(frame_bug_error);
        state.pieces.extend(piece.chunks(PIECE_BYTES_MAX).map(frame));
        self.wake(state);
    }

    /// Adds a piece that is a frame: JSON and bytes.
    pub fn push_frame(&self, json: &impl serde::Serialize, bytes: &[u8]) {
        let frame = Frame::write_with_bytes(json, bytes).map_err(frame_bug_error);
        let mut state = self.lock();
        state.pieces.push_back(frame);
        self.wake(state);
    }

    /// Ends the stream after the pieces that were pushed.
    pub fn finish(&self) {
        self.end_stream(Ok(()));
    }

    /// Breaks the stream with an error after the pieces that were pushed.
    pub fn fail(&self, error: Error) {
        self.end_stream(Err(error));
    }

    fn end_stream(&self, end: Result<()>) {
        let mut state = self.lock();
        state.end.get_or_insert(end);
        self.wake(state);
    }

    /// Waits for room. Returns false if there is none yet.
    pub(crate) fn wait_for_room(&self, time: Duration) -> bool {
        let is_full = |state: &mut FakeStreamState| {
            !state.is_closed && state.pieces.len() >= FRAMES_WAITING_MAX
        };
        let mut state = self.lock();
        self.0.changed.wait_while_for(&mut state, is_full, time);
        !is_full(&mut state)
    }

    /// Returns true if the plugin no longer reads the stream.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Records that the plugin has closed the stream, or that its call has ended.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.0.changed.notify_all();
    }

    /// Takes a piece only when it is returned, so that a dropped wait loses nothing.
    pub(crate) fn poll_next(&self, waker: &Waker) -> Poll<Result<Option<Vec<u8>>>> {
        let mut state = self.lock();
        if let Some(piece) = state.pieces.pop_front() {
            self.0.changed.notify_all();
            return Poll::Ready(piece.map(Some));
        }
        match &state.end {
            Some(Ok(())) => Poll::Ready(Ok(None)),
            Some(Err(error)) => Poll::Ready(Err(error.clone())),
            None => {
                if !state.waiting.iter().any(|known| known.will_wake(waker)) {
                    state.waiting.push(waker.clone());
                }
                Poll::Pending
            }
        }
    }

    /// Waits for the next frame on the test's thread. Returns `None` at the end.
    pub(crate) fn wait_next(&self, patience: Duration) -> Result<Option<Vec<u8>>> {
        let is_waiting =
            |state: &mut FakeStreamState| state.pieces.is_empty() && state.end.is_none();
        let mut state = self.lock();
        self.0.changed.wait_while_for(&mut state, is_waiting, patience);
        if let Some(piece) = state.pieces.pop_front() {
            self.0.changed.notify_all();
            return piece.map(Some);
        }
        let silent = || Error::new(ErrorKind::Timeout, "nothing came from the stream");
        state.end.clone().unwrap_or_else(|| Err(silent())).map(|()| None)
    }

    fn wake(&self, mut state: MutexGuard<'_, FakeStreamState>) {
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.0.changed.notify_all();
        waiting.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, FakeStreamState> {
        self.0.state.lock()
    }
}

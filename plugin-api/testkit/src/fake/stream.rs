//! A stream of a fake service, fed by the test.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use jaato_types::{Error, Result};

/// Most bytes that one `next` gives.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;

/// What a streaming service answers with. Clones feed the same stream.
///
/// Each piece that is pushed is given by one `next` (by several, if it is larger than 64 KiB), so that a
/// test can cut where it hurts.
#[derive(Clone, Default)]
pub struct FakeStream(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    pieces: VecDeque<Vec<u8>>,
    end: Option<Result<()>>,
    waiting: Vec<Waker>,
}

impl FakeStream {
    /// Makes an open stream; feed it with [`FakeStream::push`].
    pub fn open() -> Self {
        Self::default()
    }

    /// Makes a stream of these pieces that then ends.
    pub fn of<P: Into<Vec<u8>>>(pieces: impl IntoIterator<Item = P>) -> Self {
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
        state.pieces.extend(piece.chunks(PIECE_BYTES_MAX).map(<[u8]>::to_vec));
        wake(state);
    }

    /// Ends the stream: what was pushed is still given.
    pub fn finish(&self) {
        self.end(Ok(()));
    }

    /// Breaks the stream: what was pushed is still given, then the error.
    pub fn fail(&self, error: Error) {
        self.end(Err(error));
    }

    fn end(&self, end: Result<()>) {
        let mut state = self.lock();
        state.end.get_or_insert(end);
        wake(state);
    }

    /// Takes a piece only when it is given, so that a dropped wait loses nothing.
    pub(crate) fn poll_next(&self, waker: &Waker) -> Poll<Result<Option<Vec<u8>>>> {
        let mut state = self.lock();
        if let Some(piece) = state.pieces.pop_front() {
            return Poll::Ready(Ok(Some(piece)));
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut state: MutexGuard<'_, State>) {
    let waiting = std::mem::take(&mut state.waiting);
    drop(state);
    waiting.into_iter().for_each(Waker::wake);
}

//! A stream of an environment, read piece by piece for a tool.
//!
//! The next piece is asked for when the last one came, so that the environment works on it
//! meanwhile. No more than that: a program whose output nobody reads stands still.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jaato_loader::{ByteStream, Bytes, RunningCall};
use jaato_types::execution::{STREAM_NEXT, StreamNext};
use jaato_types::{Error, Frame};
use tokio::runtime::Handle;

use super::lent::{Came, LentReader};
use super::scope::{Ready, write};

/// Bytes of one frame at most, without its JSON: what a tool may be given at a time.
pub(super) const SLICE_BYTES: usize = 64 * 1024;

/// To work on a piece of so many bytes takes longer than to wake another thread for the next one.
const LARGE_BYTES: usize = 16 * 1024;

/// A reader that works for so long on a piece of a file has the next one read beside that. Else one
/// thread does both: what another processor has read is farther away than what this one has.
const LONG_WORK: Duration = Duration::from_micros(100);

/// Bytes of a frame's length.
pub(super) const HEAD_BYTES: usize = 4;

/// The JSON of a stream's end.
const END: &[u8] = b"false";

/// A piece that is on its way.
type Coming = BoxFuture<'static, Result<Bytes, Error>>;

/// How a reader takes large pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// In slices.
    Slices,
    /// As they come.
    WholePieces,
}

/// A stream of an environment. Dropping it ends what it stands for.
pub(super) struct EnvironmentStream {
    ready: Arc<Ready>,
    stream: u64,
    runtime: Handle,
    /// The piece that is on its way.
    coming: Option<Coming>,
    /// When the last piece was handed out; none while another is waited for.
    handed_out: Option<Instant>,
    /// How long the reader worked on the piece before.
    worked: Duration,
    /// Whether it is a file, which waits for its reader; a program that writes is held up by a slow
    /// one.
    is_file: bool,
    /// A large piece, and how far it was handed out.
    rest: Option<(Bytes, usize)>,
    takes: Takes,
    /// The open file, where it is read here.
    lent: Option<LentReader>,
    /// Bytes that were read here before that failed, which the environment gives once more.
    skip: u64,
    is_over: bool,
    /// Done when what it stands for has ended.
    end: Option<OnEnd>,
}

/// Something that is done when this is dropped.
pub(super) struct OnEnd(Option<Box<dyn FnOnce() + Send>>);

impl OnEnd {
    /// Takes what is to be done.
    pub(super) fn new(work: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(work)))
    }
}

impl Drop for OnEnd {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}

impl EnvironmentStream {
    /// Makes it. Must be called with the runtime entered.
    pub(super) fn new(ready: Arc<Ready>, stream: u64, takes: Takes) -> Self {
        let runtime = Handle::current();
        Self {
            ready,
            stream,
            runtime,
            coming: None,
            handed_out: None,
            worked: Duration::ZERO,
            is_file: false,
            rest: None,
            takes,
            lent: None,
            skip: 0,
            is_over: false,
            end: None,
        }
    }

    /// Makes it one of a file, whose bytes are read here where the environment lends it.
    pub(super) fn of_file(mut self, lent: Option<LentReader>) -> Self {
        self.is_file = true;
        self.lent = lent;
        self
    }

    /// Adds what is to be done when what it stands for has ended: when it is lost or dropped.
    pub(super) fn with_end(mut self, end: OnEnd) -> Self {
        self.end = Some(end);
        self
    }

    /// Asks for the next piece; the environment begins at once where the last one gives its reader
    /// work.
    fn ask(&self, last_bytes: usize) -> Result<Coming, Error> {
        let running = self.ready.begin(STREAM_NEXT, write(&StreamNext { stream: self.stream })?)?;
        if last_bytes >= LARGE_BYTES && (!self.is_file || self.worked >= LONG_WORK) {
            running.hasten();
        }
        Ok(answer(running).boxed())
    }

    /// Cuts the next slice off a large piece.
    fn slice(&mut self) -> Option<Vec<u8>> {
        let (piece, from) = self.rest.as_mut()?;
        let end = piece.len().min(*from + SLICE_BYTES);
        let mut frame = Vec::with_capacity(HEAD_BYTES + end - *from);
        frame.extend_from_slice(&[0; HEAD_BYTES]);
        frame.extend_from_slice(&piece[*from..end]);
        *from = end;
        if end == piece.len() {
            self.rest = None;
        }
        Some(frame)
    }

    /// Gives the next piece: of the file that is lent, or what the environment answers.
    fn poll_whole(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        if let Some(lent) = &mut self.lent {
            match ready!(lent.poll(&self.runtime, cx)) {
                Came::Piece(frame) => return Poll::Ready(Some(Ok(frame.into()))),
                Came::End => {
                    self.lent = None;
                    self.is_over = true;
                }
                // The environment does the same, and says what is wrong.
                Came::Failed(bytes) => (self.lent, self.skip) = (None, bytes),
            }
        }
        loop {
            let piece = match ready!(self.poll_answer(cx)) {
                Some(Ok(piece)) if self.skip > 0 => piece,
                other => return Poll::Ready(other),
            };
            if let Some(rest) = behind(piece, &mut self.skip) {
                return Poll::Ready(Some(Ok(rest)));
            }
        }
    }

    /// Waits for what the environment answers, and asks for what comes next.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if let Some(handed_out) = self.handed_out.take() {
            self.worked = handed_out.elapsed();
        }
        let mut coming = match self.coming.take().map_or_else(|| self.ask(0), Ok) {
            Ok(coming) => coming,
            Err(error) => {
                self.is_over = true;
                return Poll::Ready(Some(Err(error)));
            }
        };
        let piece = match coming.poll_unpin(cx) {
            Poll::Pending => {
                self.coming = Some(coming);
                return Poll::Pending;
            }
            Poll::Ready(Ok(piece)) => piece,
            Poll::Ready(Err(error)) => {
                self.is_over = true;
                self.end = None;
                return Poll::Ready(Some(Err(error)));
            }
        };
        if parsed(&piece).json == END {
            self.is_over = true;
            return Poll::Ready(None);
        }
        // One that cannot be asked for is told when this one was read.
        self.coming = self.ask(piece.len()).ok();
        self.handed_out = Some(Instant::now());
        Poll::Ready(Some(Ok(piece)))
    }
}

async fn answer(mut running: RunningCall) -> Result<Bytes, Error> {
    while running.next_emission().await.is_some() {}
    running.answer_bytes().await
}

/// Leaves out what comes a second time; none where that is all of it.
fn behind(piece: Bytes, skip: &mut u64) -> Option<Bytes> {
    let bytes = parsed(&piece).bytes;
    let skipped = usize::try_from(*skip).unwrap_or(usize::MAX).min(bytes.len());
    *skip -= skipped as u64;
    let rest = &bytes[skipped..];
    (!rest.is_empty()).then(|| [&[0; HEAD_BYTES], rest].concat().into())
}

fn parsed(piece: &Bytes) -> Frame<'_> {
    let Ok(parsed) = Frame::parse(piece) else { unreachable!("an answer is a checked frame") };
    parsed
}

impl ByteStream for EnvironmentStream {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        self.poll_frame(cx).map(|frame| frame.map(|frame| frame.map(Bytes::into_vec)))
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        if let Some(frame) = self.slice() {
            return Poll::Ready(Some(Ok(frame.into())));
        }
        let piece = match ready!(self.poll_whole(cx)) {
            Some(Ok(piece)) => piece,
            over => return Poll::Ready(over),
        };
        let is_large = {
            let parsed = parsed(&piece);
            parsed.json.is_empty() && parsed.bytes.len() > SLICE_BYTES
        };
        if self.takes == Takes::WholePieces || !is_large {
            return Poll::Ready(Some(Ok(piece)));
        }
        self.rest = Some((piece, HEAD_BYTES));
        Poll::Ready(self.slice().map(|frame| Ok(frame.into())))
    }

    fn gives_frames(&self) -> bool {
        true
    }
}

impl Drop for EnvironmentStream {
    fn drop(&mut self) {
        // First the piece that is on its way: the stream is free then.
        self.coming = None;
        let (ready, stream) = (Arc::clone(&self.ready), self.stream);
        self.runtime.spawn(async move { ready.close_stream(stream).await });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_is_left_out_wherever_pieces_begin() {
        let mut skip = 5;
        let mut left = Vec::new();
        for piece in [&b"moo"[..], b"n a", b"nd sun"] {
            let frame = [&[0; HEAD_BYTES], piece].concat().into();
            left.extend(behind(frame, &mut skip).map(|rest| parsed(&rest).bytes.to_vec()));
        }
        assert_eq!(left, [b"a".to_vec(), b"nd sun".to_vec()]);
        assert_eq!(skip, 0);
    }
}

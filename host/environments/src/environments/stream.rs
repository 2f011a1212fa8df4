//! A stream of an environment, read piece by piece for a tool.
//!
//! Each piece triggers the request for the next one, so that the environment works ahead by one
//! piece. It does not go further, so a program with unread output blocks.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jaato_loader::{ByteStream, FrameBytes, RunningCall};
use jaato_types::execution::{STREAM_NEXT, StreamNext};
use jaato_types::{Error, Frame};
use tokio::runtime::Handle;

use super::scope::{ReadyEnvironment, serialize_request};

/// The JSON of a stream's end.
const END: &[u8] = b"false";

/// A requested piece.
type PendingPiece = BoxFuture<'static, Result<FrameBytes, Error>>;

/// A stream of an environment. Dropping it ends what it represents.
pub(super) struct EnvironmentStream {
    ready: Arc<ReadyEnvironment>,
    stream: u64,
    runtime: Handle,
    /// The requested piece.
    coming: Option<PendingPiece>,
    is_over: bool,
    /// Runs when the stream's program or terminal has ended.
    end: Option<StreamEndHook>,
}

/// Runs a closure on drop.
pub(super) struct StreamEndHook(Option<Box<dyn FnOnce() + Send>>);

impl StreamEndHook {
    /// Creates it with the closure to run.
    pub(super) fn new(work: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(work)))
    }
}

impl Drop for StreamEndHook {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}

impl EnvironmentStream {
    /// Creates a stream. Must be called inside the runtime.
    pub(super) fn new(ready: Arc<ReadyEnvironment>, stream: u64) -> Self {
        let runtime = Handle::current();
        Self { ready, stream, runtime, coming: None, is_over: false, end: None }
    }

    /// Sets the work to do when the stream is lost or dropped, because its program or terminal has
    /// then ended.
    pub(super) fn with_end_hook(mut self, end: StreamEndHook) -> Self {
        self.end = Some(end);
        self
    }

    /// Requests the next piece.
    fn request_piece(&self) -> Result<PendingPiece, Error> {
        let running = self.ready.begin_operation(
            STREAM_NEXT,
            serialize_request(&StreamNext { stream: self.stream })?,
        )?;
        Ok(await_piece(running).boxed())
    }
}

async fn await_piece(mut running: RunningCall) -> Result<FrameBytes, Error> {
    while running.next_emission().await.is_some() {}
    running.answer_bytes().await
}

fn is_end(piece: &FrameBytes) -> bool {
    let Ok(parsed) = Frame::parse(piece) else { unreachable!("an answer is a checked frame") };
    parsed.json == END
}

impl ByteStream for EnvironmentStream {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        self.poll_frame(cx).map(|frame| frame.map(|frame| frame.map(FrameBytes::into_vec)))
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<FrameBytes, Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let mut coming = match self.coming.take().map_or_else(|| self.request_piece(), Ok) {
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
        if is_end(&piece) {
            self.is_over = true;
            return Poll::Ready(None);
        }
        // A failed request is reported after this piece was read.
        self.coming = self.request_piece().ok();
        Poll::Ready(Some(Ok(piece)))
    }

    fn has_frames(&self) -> bool {
        true
    }
}

impl Drop for EnvironmentStream {
    fn drop(&mut self) {
        // Drop the requested piece first, so that the stream is free.
        self.coming = None;
        let (ready, stream) = (Arc::clone(&self.ready), self.stream);
        self.runtime.spawn(async move { ready.close_stream(stream).await });
    }
}

//! A stream of an environment, read piece by piece for a tool.
//!
//! The next piece is asked for when the last one came, so that the environment works on it
//! meanwhile. No more than that: a program whose output nobody reads stands still.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jaato_loader::{ByteStream, Bytes, RunningCall};
use jaato_types::execution::{STREAM_NEXT, StreamNext};
use jaato_types::{Error, Frame};
use tokio::runtime::Handle;

use super::scope::{Ready, write};

/// The JSON of a stream's end.
const END: &[u8] = b"false";

/// A piece that is on its way.
type Coming = BoxFuture<'static, Result<Bytes, Error>>;

/// A stream of an environment. Dropping it ends what it stands for.
pub(super) struct EnvironmentStream {
    ready: Arc<Ready>,
    stream: u64,
    runtime: Handle,
    /// The piece that is on its way.
    coming: Option<Coming>,
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
    pub(super) fn new(ready: Arc<Ready>, stream: u64) -> Self {
        let runtime = Handle::current();
        Self { ready, stream, runtime, coming: None, is_over: false, end: None }
    }

    /// Adds what is to be done when what it stands for has ended: when it is lost or dropped.
    pub(super) fn with_end(mut self, end: OnEnd) -> Self {
        self.end = Some(end);
        self
    }

    /// Asks for the next piece.
    fn ask(&self) -> Result<Coming, Error> {
        let running = self.ready.begin(STREAM_NEXT, write(&StreamNext { stream: self.stream })?)?;
        Ok(answer(running).boxed())
    }
}

async fn answer(mut running: RunningCall) -> Result<Bytes, Error> {
    while running.next_emission().await.is_some() {}
    running.answer_bytes().await
}

fn is_end(piece: &Bytes) -> bool {
    let Ok(parsed) = Frame::parse(piece) else { unreachable!("an answer is a checked frame") };
    parsed.json == END
}

impl ByteStream for EnvironmentStream {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        self.poll_frame(cx).map(|frame| frame.map(|frame| frame.map(Bytes::into_vec)))
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let mut coming = match self.coming.take().map_or_else(|| self.ask(), Ok) {
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
        // One that cannot be asked for is told when this one was read.
        self.coming = self.ask().ok();
        Poll::Ready(Some(Ok(piece)))
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

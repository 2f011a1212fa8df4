//! The services of one context, as its engine asks for them, and what a call gives.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use jaato_plugin_engine::{ByteStream, Bytes, Caller, Outlet, Served, Work};
use jaato_types::service::{OUTPUT, OutputWrite};
use jaato_types::{Delta, Error, ErrorKind, Frame, FrameError, Result};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::host::Shared;
use super::services::Reply;
use super::stream::FakeStream;

/// Lends the services of a fake host to one context.
pub(crate) struct Lender {
    host: Arc<Shared>,
    /// What the call gives; none for an instance.
    given: Option<Arc<Given>>,
    /// The context, whose unfinished things are forgotten with it.
    pub(crate) context: OnceLock<u64>,
}

impl Lender {
    pub(crate) fn new(host: &Arc<Shared>, given: Option<&Arc<Given>>) -> Arc<Self> {
        let (host, given) = (Arc::clone(host), given.map(Arc::clone));
        Arc::new(Self { host, given, context: OnceLock::new() })
    }

    /// Shows what a call streams, where it asks for that.
    fn show_output(&self, frame: &[u8]) {
        let (Some(given), Ok(parsed)) = (&self.given, Frame::parse(frame)) else { return };
        if parsed.json::<OutputWrite>().is_ok_and(|write| write.live) {
            let text = String::from_utf8_lossy(parsed.bytes).into_owned();
            // No delta of text is too large for a frame.
            given.emitted(&Frame::write(&Delta::output(text)).unwrap_or_default());
        }
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        if let Some(context) = self.context.get() {
            self.host.services.forget(*context);
        }
    }
}

impl jaato_plugin_engine::Services for Lender {
    fn call(&self, caller: Caller, operation: &str, frame: Vec<u8>) -> Work<Result<Served>> {
        let reply = self.host.services.answer(caller.context, operation, &frame);
        if operation == OUTPUT && reply.is_ok() {
            self.show_output(&frame);
        }
        let time = self.host.time.clone();
        Box::pin(async move {
            let mut reply = reply?;
            while let Reply::Later(milliseconds, next) = reply {
                time.sleep_ms(milliseconds).await;
                reply = *next;
            }
            match reply {
                Reply::Never | Reply::Later(..) => std::future::pending().await,
                reply => serve(reply),
            }
        })
    }
}

fn serve(reply: Reply) -> Result<Served> {
    Ok(match reply {
        Reply::Json(Value::Null) | Reply::Never | Reply::Later(..) => Served::Frame(Frame::empty()),
        Reply::Json(json) => Served::Frame(Frame::write(&json).map_err(host_bug)?),
        Reply::Bytes(json, bytes) => {
            Served::Frame(Frame::write_with_bytes(&json, &bytes).map_err(host_bug)?)
        }
        Reply::Stream(stream) => Served::Stream(Box::new(Open(stream))),
        Reply::StreamWith(Value::Object(head), stream) => {
            Served::StreamWith(head, Box::new(Open(stream)))
        }
        Reply::StreamWith(..) => {
            let text = "the head of a stream's answer is no object";
            return Err(Error::new(ErrorKind::HostBug, text));
        }
    })
}

pub(crate) fn host_bug(error: FrameError) -> Error {
    Error::new(ErrorKind::HostBug, error.to_string())
}

/// A stream that a plugin has open.
struct Open(FakeStream);

impl ByteStream for Open {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>>>> {
        self.0.poll_next(cx.waker()).map(Result::transpose)
    }

    fn gives_frames(&self) -> bool {
        true
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What a call gives: frames, then its answer.
#[derive(Default)]
pub(crate) struct Given(Mutex<Gift>);

#[derive(Default)]
pub(crate) struct Gift {
    pub(crate) emitted: Vec<Vec<u8>>,
    pub(crate) answer: Option<Result<Bytes>>,
    /// The answer came, whoever has taken it.
    pub(crate) has_ended: bool,
    /// The test, while it waits.
    reader: Option<Waker>,
}

impl Given {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Gift> {
        self.0.lock()
    }

    /// Looks, and has the test woken by what comes next where nothing is there.
    pub(crate) fn poll<T>(
        &self,
        cx: &Context<'_>,
        look: impl FnOnce(&mut Gift) -> Option<T>,
    ) -> Poll<T> {
        let mut gift = self.lock();
        match look(&mut gift) {
            Some(found) => Poll::Ready(found),
            None => {
                gift.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn add(&self, add: impl FnOnce(&mut Gift)) {
        let mut gift = self.lock();
        add(&mut gift);
        let reader = gift.reader.take();
        drop(gift);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Outlet for Given {
    fn emitted(&self, frame: &[u8]) -> bool {
        self.add(|gift| gift.emitted.push(frame.to_vec()));
        true
    }

    fn answered(&self, answer: Result<Bytes>) {
        self.add(|gift| (gift.answer, gift.has_ended) = (Some(answer), true));
    }
}

//! One context of a fake host: its services, and the results of its call.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use jaato_plugin_engine::{
    BoxHostFuture, ByteStream, CallResultSink, EngineServiceAnswer, FrameBytes, ServiceCaller,
};
use jaato_types::service::{OUTPUT, OutputWrite};
use jaato_types::{Delta, Error, ErrorKind, Frame, FrameError, Result};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::host::FakeHostShared;
use super::services::FakeServiceReply;
use super::stream::FakeStream;

/// Lends the services of a fake host to one context.
pub(crate) struct ContextServices {
    host: Arc<FakeHostShared>,
    /// Receives the call's results. `None` for an instance.
    outlet: Option<Arc<CallOutlet>>,
    /// The context's number, whose unfinished work ends with it.
    pub(crate) context: OnceLock<u64>,
}

impl ContextServices {
    pub(crate) fn new(host: &Arc<FakeHostShared>, outlet: Option<&Arc<CallOutlet>>) -> Arc<Self> {
        let (host, outlet) = (Arc::clone(host), outlet.map(Arc::clone));
        Arc::new(Self { host, outlet, context: OnceLock::new() })
    }

    /// Emits streamed output as a delta if the call asks for that.
    fn show_output(&self, frame: &[u8]) {
        let (Some(outlet), Ok(parsed)) = (&self.outlet, Frame::parse(frame)) else { return };
        if parsed.json::<OutputWrite>().is_ok_and(|write| write.live) {
            let text = String::from_utf8_lossy(parsed.bytes).into_owned();
            // A text delta always fits into a frame.
            outlet.on_emission(&Frame::write(&Delta::output(text)).unwrap_or_default());
        }
    }
}

impl Drop for ContextServices {
    fn drop(&mut self) {
        if let Some(context) = self.context.get() {
            self.host.services.drop_unfinished(*context);
        }
    }
}

impl jaato_plugin_engine::EngineServices for ContextServices {
    fn call(
        &self,
        caller: ServiceCaller,
        operation: &str,
        frame: Vec<u8>,
    ) -> BoxHostFuture<Result<EngineServiceAnswer>> {
        let context = *self.context.get_or_init(|| caller.context);
        let reply = self.host.services.answer(context, operation, &frame);
        if operation == OUTPUT && reply.is_ok() {
            self.show_output(&frame);
        }
        let time = self.host.time.clone();
        Box::pin(async move {
            let mut reply = reply?;
            while let FakeServiceReply::Later(milliseconds, next) = reply {
                time.sleep_ms(milliseconds).await;
                reply = *next;
            }
            match reply {
                FakeServiceReply::Never | FakeServiceReply::Later(..) => {
                    std::future::pending().await
                }
                reply => serve_reply(reply),
            }
        })
    }
}

fn serve_reply(reply: FakeServiceReply) -> Result<EngineServiceAnswer> {
    Ok(match reply {
        FakeServiceReply::Json(Value::Null)
        | FakeServiceReply::Never
        | FakeServiceReply::Later(..) => EngineServiceAnswer::Frame(Frame::empty()),
        FakeServiceReply::Json(json) => {
            EngineServiceAnswer::Frame(Frame::write(&json).map_err(frame_bug_error)?)
        }
        FakeServiceReply::Bytes(json, bytes) => EngineServiceAnswer::Frame(
            Frame::write_with_bytes(&json, &bytes).map_err(frame_bug_error)?,
        ),
        FakeServiceReply::Stream(stream) => {
            EngineServiceAnswer::Stream(Box::new(OpenContextStream(stream)))
        }
        FakeServiceReply::StreamWith(Value::Object(head), stream) => {
            EngineServiceAnswer::StreamWith(head, Box::new(OpenContextStream(stream)))
        }
        FakeServiceReply::StreamWith(..) => {
            let text = "the head of a stream's answer is not an object";
            return Err(Error::new(ErrorKind::HostBug, text));
        }
    })
}

pub(crate) fn frame_bug_error(error: FrameError) -> Error {
    Error::new(ErrorKind::HostBug, error.to_string())
}

/// A stream that a plugin has open.
struct OpenContextStream(FakeStream);

impl ByteStream for OpenContextStream {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>>>> {
        self.0.poll_next(cx.waker()).map(Result::transpose)
    }

    fn has_frames(&self) -> bool {
        true
    }
}

impl Drop for OpenContextStream {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Collects a call's frames and its answer for the test.
#[derive(Default)]
pub(crate) struct CallOutlet(Mutex<CallState>);

#[derive(Default)]
pub(crate) struct CallState {
    pub(crate) emitted: Vec<Vec<u8>>,
    pub(crate) answer: Option<Result<FrameBytes>>,
    /// Whether the answer has arrived, even if it was taken since.
    pub(crate) has_ended: bool,
    /// The waker of the waiting test.
    reader: Option<Waker>,
}

impl CallOutlet {
    pub(crate) fn lock(&self) -> MutexGuard<'_, CallState> {
        self.0.lock()
    }

    /// Calls `look`. If it returns `None`, keeps the waker for the next event.
    pub(crate) fn poll_state<T>(
        &self,
        cx: &Context<'_>,
        look: impl FnOnce(&mut CallState) -> Option<T>,
    ) -> Poll<T> {
        let mut state = self.lock();
        match look(&mut state) {
            Some(found) => Poll::Ready(found),
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn change_state(&self, add: impl FnOnce(&mut CallState)) {
        let mut state = self.lock();
        add(&mut state);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl CallResultSink for CallOutlet {
    fn on_emission(&self, frame: &[u8]) -> bool {
        self.change_state(|state| state.emitted.push(frame.to_vec()));
        true
    }

    fn on_answer(&self, answer: Result<FrameBytes>) {
        self.change_state(|state| (state.answer, state.has_ended) = (Some(answer), true));
    }
}

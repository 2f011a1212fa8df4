//! A call into a plugin by the fake host.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use jaato_plugin_engine::{CallResultSink, CallerKind, EngineServices, FrameBytes, HostContext};
use jaato_types::{DataPart, Delta, Error, ErrorKind, Frame, FrameError, Result};
use serde_json::{Map, Value};

use super::context::{CallOutlet, CallState, ContextServices};
use super::host::FakeHostShared;

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedCall<T> {
    /// The answer, or `cancelled` if the future was dropped before it had one.
    pub result: Result<T>,
    /// The deltas that the call emitted, in order.
    pub deltas: Vec<Delta>,
    /// The output that the call wrote with the service `output`.
    pub output: Vec<u8>,
}

impl<T> FinishedCall<T> {
    /// Joins the text deltas of the answer.
    pub fn text(&self) -> String {
        let texts = self.deltas.iter().filter_map(|delta| match delta {
            Delta::Text { text, .. } => Some(text.as_str()),
            Delta::Thought { .. }
            | Delta::ToolCall(_)
            | Delta::Output { .. }
            | Delta::Notice { .. }
            | Delta::Progress { .. }
            | Delta::FileChanged(_)
            | Delta::PlanChanged(_)
            | Delta::Alive
            | Delta::Unknown => None,
        });
        texts.collect()
    }
}

/// The data that a call has sent to the host for its result.
pub(crate) struct CallSideOutput {
    pub(crate) attachments: Vec<DataPart>,
    /// Texts by key.
    pub(crate) texts: Map<String, Value>,
}

/// A running call. Dropping it cancels the call.
pub struct FakeRunningCall<T> {
    host: Arc<FakeHostShared>,
    context: Arc<HostContext>,
    outlet: Arc<CallOutlet>,
    read: fn(&[u8]) -> Result<T>,
    /// Adds the attachments and texts of the call to its answer.
    fill: fn(&mut T, CallSideOutput),
    /// The number of deltas that [`FakeRunningCall::next_delta`] has returned.
    deltas_given: usize,
}

impl<T> fmt::Debug for FakeRunningCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeRunningCall").field("context", &self.id()).finish_non_exhaustive()
    }
}

impl<T> FakeRunningCall<T> {
    /// Starts a call. `start` runs it in the context that is created for it.
    pub(crate) fn start(
        host: &Arc<FakeHostShared>,
        read: fn(&[u8]) -> Result<T>,
        start: impl FnOnce(&Arc<HostContext>, Arc<CallOutlet>) -> Result<()>,
    ) -> Self {
        let outlet = Arc::new(CallOutlet::default());
        let lent = ContextServices::new(host, Some(&outlet));
        let services: Arc<dyn EngineServices> = Arc::clone(&lent) as _;
        let context = HostContext::new(CallerKind::Call, &host.executor, &host.guest, services);
        let _ = lent.context.set(context.number());
        if let Err(error) = start(&context, Arc::clone(&outlet)) {
            outlet.on_answer(Err(error));
        }
        let (host, fill) = (Arc::clone(host), (|_, _| {}) as fn(&mut T, CallSideOutput));
        Self { host, context, outlet, read, fill, deltas_given: 0 }
    }

    /// Sets the function that adds the call's attachments and texts to its answer.
    pub(crate) fn filled_with(mut self, fill: fn(&mut T, CallSideOutput)) -> Self {
        self.fill = fill;
        self
    }

    /// Returns the number of the call's context.
    pub fn id(&self) -> u64 {
        self.context.number()
    }

    /// Waits until nothing can happen without the test, the clock or a plugin's own thread.
    ///
    /// # Errors
    /// `timeout` if the plugin keeps the executor busy.
    pub fn settle(&self) -> Result<()> {
        self.host.time.settle(self.host.patience())
    }

    /// Waits for the call's end.
    pub fn wait(self) -> FinishedCall<T> {
        let result = self.answer_frame().and_then(|frame| (self.read)(&frame)).map(|mut answer| {
            let (services, id) = (&self.host.services, self.id());
            let beside = CallSideOutput {
                attachments: services.attachments(id),
                texts: services.written_texts(id),
            };
            (self.fill)(&mut answer, beside);
            answer
        });
        let (deltas, result) = match self.deltas() {
            Ok(deltas) => (deltas, result),
            Err(error) => (Vec::new(), Err(error)),
        };
        FinishedCall { result, deltas, output: self.host.services.written_bytes(self.id()) }
    }

    /// Cancels the call like the host does: sets the flag, drops the future on the executor, and
    /// then wakes waiting futures. If the call finished before the cancel, returns its answer.
    pub fn cancel(self) -> FinishedCall<T> {
        self.begin_cancel();
        self.wait()
    }

    /// Sets the flag and lets the executor drop the future, without waiting for that.
    fn begin_cancel(&self) {
        self.context.cancel();
        self.context.wake_call();
    }

    /// Returns the deltas that the call has emitted so far.
    ///
    /// # Errors
    /// `plugin_misbehaved` if a frame is not a delta.
    pub fn deltas(&self) -> Result<Vec<Delta>> {
        self.outlet.lock().emitted.iter().map(|frame| read_delta(frame)).collect()
    }

    /// Waits for the next delta. Returns `None` when the call has ended.
    ///
    /// # Errors
    /// `timeout` if no delta arrives, `plugin_misbehaved` if a frame is not a delta.
    pub fn next_delta(&mut self) -> Result<Option<Delta>> {
        let index = self.deltas_given;
        let look = |state: &mut CallState| match state.emitted.get(index) {
            Some(frame) => Some(read_delta(frame).map(Some)),
            None => state.has_ended.then_some(Ok(None)),
        };
        let next = poll_fn(|cx| self.outlet.poll_state(cx, look));
        let delta = self.host.time.wait_for(self.host.patience(), next)??;
        self.deltas_given += usize::from(delta.is_some());
        Ok(delta)
    }

    /// Waits for the frame of the answer.
    fn answer_frame(&self) -> Result<FrameBytes> {
        let answer = poll_fn(|cx| self.outlet.poll_state(cx, |state| state.answer.take()));
        self.host.time.wait_for(self.host.patience(), answer)?
    }
}

impl<T> Drop for FakeRunningCall<T> {
    fn drop(&mut self) {
        if self.context.is_live() {
            self.begin_cancel();
        }
    }
}

fn read_delta(frame: &[u8]) -> Result<Delta> {
    Frame::read(frame).map_err(|error| invalid_frame_error("emitted a malformed delta", &error))
}

/// Parses an answer. A malformed frame is an error of the plugin.
pub(crate) fn read_answer<T: serde::de::DeserializeOwned>(frame: &[u8]) -> Result<T> {
    Frame::read(frame).map_err(|error| invalid_frame_error("sent a malformed answer", &error))
}

/// Parses an error. A malformed frame is an error of the plugin too.
pub(crate) fn read_error(frame: &[u8]) -> Error {
    let misbehaved = |error| invalid_frame_error("sent a malformed error", &error);
    Frame::read(frame).unwrap_or_else(misbehaved)
}

fn invalid_frame_error(what: &str, error: &FrameError) -> Error {
    Error::new(ErrorKind::PluginMisbehaved, format!("the plugin {what}: {error}"))
}

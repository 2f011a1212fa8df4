//! A call into a plugin, as the fake host makes it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Instant;

use jaato_plugin_api::abi::abi_stable::std_types::{RResult, RVec};
use jaato_plugin_api::abi::{Answer, ContextBox};
use jaato_types::{Data, Delta, Error, ErrorKind, Frame, FrameError, Result};
use serde_json::{Map, Value};

use super::context::{Context, Owner, Shared};
use super::executor::hung;
use super::waiting::error_frame;
use super::wanted::{Receiver, Sender, channel};
use crate::host_conformance::Ended;

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished<T> {
    /// The answer; `cancelled` when the future was dropped before it had one.
    pub result: Result<T>,
    /// What the call emitted, in order.
    pub deltas: Vec<Delta>,
    /// What the call wrote with the service `output`.
    pub output: Vec<u8>,
}

impl<T> Finished<T> {
    /// Joins the deltas that are the answer's text.
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

/// What a call has given to the host for its result.
pub(crate) struct Beside {
    pub(crate) attachments: Vec<Data>,
    /// Texts by their keys.
    pub(crate) texts: Map<String, Value>,
}

/// A call that goes on. Dropping it cancels it.
pub struct Call<T> {
    context: Arc<Context>,
    task: u64,
    end: Receiver<End>,
    read: fn(&[u8]) -> Result<T>,
    /// Adds what the call has attached and streamed.
    fill: fn(&mut T, Beside),
    /// Deltas that [`Call::next_delta`] has given.
    given: usize,
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("context", &self.context.id).finish_non_exhaustive()
    }
}

/// How a call's future ended.
enum End {
    Answer(RResult<RVec<u8>, RVec<u8>>),
    Dropped,
}

/// Makes a call's future, on the executor's thread.
pub(crate) type Make = Box<dyn FnOnce(ContextBox) -> Answer + Send>;

impl<T> Call<T> {
    /// Starts a call. What the closure owns is dropped on the executor's thread.
    pub(crate) fn start(host: &Arc<Shared>, read: fn(&[u8]) -> Result<T>, make: Make) -> Self {
        let context = Context::new(host, Owner::Call);
        let (sender, end) = channel();
        let work = CallTask {
            make: Some(make),
            future: None,
            context: Arc::clone(&context),
            end: Some(sender),
        };
        let task = host.executor.spawn(Box::pin(work));
        Self { context, task, end, read, fill: |_, _| {}, given: 0 }
    }

    /// Says where in the answer the call's attachments and texts belong.
    pub(crate) fn filled_with(mut self, fill: fn(&mut T, Beside)) -> Self {
        self.fill = fill;
        self
    }

    /// Returns the number of the call's context.
    pub fn id(&self) -> u64 {
        self.context.id
    }

    /// Waits until nothing can happen any more without the test, the clock or a plugin's own
    /// thread.
    ///
    /// # Errors
    /// `timeout` when the plugin keeps the executor busy.
    pub fn settle(&self) -> Result<()> {
        self.context.host.executor.settle(self.context.host.patience())
    }

    /// Waits for the call's end.
    pub fn wait(self) -> Finished<T> {
        let host = &self.context.host;
        let end = host.executor.receive(&self.end, host.patience());
        self.finish(end)
    }

    /// Cancels the call as the host does: sets the flag, drops the future on the executor, then
    /// wakes what waits. The answer of a call that was faster than the cancel is given.
    pub fn cancel(self) -> Finished<T> {
        self.begin_cancel();
        self.wait()
    }

    /// What the instance needs to cancel the call when it is closed.
    pub(crate) fn parts(&self) -> (Arc<Context>, u64) {
        (Arc::clone(&self.context), self.task)
    }

    /// Sets the flag and asks the executor to drop the future, without waiting for that.
    pub(crate) fn begin_cancel(&self) {
        self.context.begin_cancel();
        self.context.host.executor.cancel(self.task);
    }

    /// Returns what the call has emitted so far.
    ///
    /// # Errors
    /// `plugin_misbehaved` when a frame is no delta.
    pub fn deltas(&self) -> Result<Vec<Delta>> {
        self.context.emitted().iter().map(|frame| read_delta(frame)).collect()
    }

    /// Waits for the next delta; nothing when the call has ended.
    ///
    /// # Errors
    /// `timeout` when none comes, `plugin_misbehaved` when a frame is no delta.
    pub fn next_delta(&mut self) -> Result<Option<Delta>> {
        let patience = self.context.host.patience();
        let deadline = Instant::now() + patience;
        let mut emitted = self.context.emitted();
        loop {
            if let Some(frame) = emitted.get(self.given) {
                self.given += 1;
                return read_delta(frame).map(Some);
            }
            if self.context.phase() == super::context::Phase::Ended {
                return Ok(None);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(hung(patience));
            }
            self.context.want(self.context.host.executor.begin_wait());
            self.context.changed.wait_for(&mut emitted, left);
        }
    }

    fn finish(&self, end: Result<End>) -> Finished<T> {
        let (services, id) = (&self.context.host.services, self.context.id);
        let beside = || Beside { attachments: services.attached(id), texts: services.texts(id) };
        let result = match end {
            Ok(End::Answer(RResult::ROk(frame))) => (self.read)(&frame).map(|mut answer| {
                (self.fill)(&mut answer, beside());
                answer
            }),
            Ok(End::Answer(RResult::RErr(frame))) => Err(read_error(&frame)),
            Ok(End::Dropped) => Err(Error::cancelled()),
            Err(hung) => Err(hung),
        };
        let (deltas, result) = match self.deltas() {
            Ok(deltas) => (deltas, result),
            Err(error) => (Vec::new(), Err(error)),
        };
        Finished { result, deltas, output: self.context.host.services.written(self.context.id) }
    }

    /// Waits for the call's end and gives the frames as they are; nothing when the future was
    /// dropped.
    pub(crate) fn wait_raw(self) -> Option<Ended> {
        let host = &self.context.host;
        let answer = match host.executor.receive(&self.end, host.patience()) {
            Ok(End::Answer(RResult::ROk(frame))) => Ok(frame.into()),
            Ok(End::Answer(RResult::RErr(frame))) => Err(frame.into()),
            Ok(End::Dropped) | Err(_) => return None,
        };
        Some(Ended { emitted: self.context.emitted().clone(), answer })
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        if self.context.phase() == super::context::Phase::Open {
            self.begin_cancel();
        }
    }
}

/// A call's future on the executor.
struct CallTask {
    make: Option<Make>,
    future: Option<Answer>,
    context: Arc<Context>,
    end: Option<Sender<End>>,
}

impl CallTask {
    fn end_with(&mut self, end: End) {
        if let Some(sender) = self.end.take() {
            sender.send(end);
        }
    }
}

impl Future for CallTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let this = &mut *self;
        if let Some(make) = this.make.take() {
            this.future = Some(make(this.context.lend()));
        }
        let Some(future) = &mut this.future else { return Poll::Ready(()) };
        let Poll::Ready(answer) = Pin::new(future).poll(cx) else { return Poll::Pending };
        this.future = None;
        // Before the answer leaves: what was emitted until here is all there is.
        this.context.end();
        let fault = this.context.take_fault();
        let answer = fault.map_or(answer, |fault| RResult::RErr(error_frame(&fault)));
        this.end_with(End::Answer(answer));
        Poll::Ready(())
    }
}

impl Drop for CallTask {
    fn drop(&mut self) {
        self.make = None;
        self.future = None;
        if self.end.is_some() {
            self.context.end();
            self.end_with(End::Dropped);
        }
    }
}

fn read_delta(frame: &[u8]) -> Result<Delta> {
    Frame::read(frame).map_err(|error| misbehaved("emitted what is no delta", &error))
}

/// Reads an answer's frame; what cannot be read is the plugin's error.
pub(crate) fn read_answer<T: serde::de::DeserializeOwned>(frame: &[u8]) -> Result<T> {
    Frame::read(frame).map_err(|error| misbehaved("answered with what is no answer", &error))
}

/// Reads an error's frame; what cannot be read is the plugin's error too.
pub(crate) fn read_error(frame: &[u8]) -> Error {
    let misbehaved = |error| misbehaved("failed with what is no error", &error);
    Frame::read(frame).unwrap_or_else(misbehaved)
}

fn misbehaved(what: &str, error: &FrameError) -> Error {
    Error::new(ErrorKind::PluginMisbehaved, format!("the plugin {what}: {error}"))
}

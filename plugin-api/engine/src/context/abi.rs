//! Implements `ContextAbi` for a [`HostContext`]. Every method is fenced, because a panic here
//! would abort the process.

use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_channel::oneshot;
use jaato_plugin_api::abi::abi_stable::std_types::{ROption, RResult, RStr, RVec};
use jaato_plugin_api::abi::async_ffi::{FfiFuture, FutureExt};
use jaato_plugin_api::abi::{Answer, ContextAbi, JobBox, Maybe};
use jaato_types::{Error, ErrorKind, Frame, FrameError};
use serde_json::{Map, Value};

use super::emissions::EmissionOutcome;
use super::lent_futures::{
    HostFuture, HostFutureOutput, ServiceReply, ServiceReplyResult, error_frame,
};
use super::streams::{self, STREAMS_MAX, StreamPieceFuture};
use super::{HostContext, TASKS_MAX, next_context_number};
use crate::bounds::{STREAMS_PER_PLUGIN_MAX, check_json};
use crate::executor::{BlockingJob, HostCodeGuard, JobState};
use crate::fence::run_host_code;
use crate::runtime::BoxHostFuture;
use crate::services::{ByteStream, CallerKind, EngineServiceAnswer, EngineServices};

type FrameResult = RResult<RVec<u8>, RVec<u8>>;

/// The key of a stream's number in an answer, as in `StreamAnswer`.
const HANDLE: &str = "handle";

/// The object behind a plugin's `ContextBox`. The plugin may drop it on any thread at any time.
pub(super) struct LentContext {
    /// Present until the drop.
    core: Option<Arc<HostContext>>,
}

impl LentContext {
    pub(super) fn new(core: Arc<HostContext>) -> Self {
        Self { core: Some(core) }
    }

    fn host_context(&self) -> &Arc<HostContext> {
        match &self.core {
            Some(core) => core,
            None => unreachable!("taken only by the drop"),
        }
    }

    /// Runs a method inside the fence. After a panic, returns the result of `failed`.
    fn run_fenced<T>(
        &self,
        work: impl FnOnce(&Arc<HostContext>) -> T,
        failed: impl FnOnce(&Error) -> T,
    ) -> T {
        let _host = HostCodeGuard::enter();
        run_host_code(|| work(self.host_context())).unwrap_or_else(|error| {
            // The host's own log may be the code that panicked.
            let _ = run_host_code(|| self.host_context().report_trouble(&error.message));
            failed(&error)
        })
    }
}

impl Drop for LentContext {
    fn drop(&mut self) {
        let _host = HostCodeGuard::enter();
        let core = self.core.take();
        // This may be the last reference, so the fence covers the drop of the host's objects.
        if let Err(error) = run_host_code(move || drop(core)) {
            std::mem::forget(error);
        }
    }
}

impl ContextAbi for LentContext {
    fn id(&self) -> u64 {
        self.host_context().number
    }

    fn is_cancelled(&self) -> bool {
        !self.host_context().is_live()
    }

    fn cancelled(&self) -> FfiFuture<()> {
        self.run_fenced(
            |core| HostFuture::new(core, Some(pending())).into_ffi(),
            |_| ready_future(()),
        )
    }

    fn log(&self, level: u8, text: RStr<'_>) {
        let log = |core: &Arc<HostContext>| {
            if !core.has_ended() {
                core.executor.observer().log(core.guest.name(), level, text.as_str());
            }
        };
        self.run_fenced(log, |_| ());
    }

    fn emit(&self, frame: RVec<u8>) -> bool {
        self.run_fenced(|core| core.emit(frame.as_slice()), |_| false)
    }

    fn sleep_ms(&self, milliseconds: u64) -> FfiFuture<bool> {
        let sleep = |core: &Arc<HostContext>| {
            let time = Duration::from_millis(milliseconds);
            let work = core.is_live().then(|| -> BoxHostFuture<bool> {
                let sleep = core.executor.runtime().sleep(time);
                Box::pin(async move {
                    sleep.await;
                    true
                })
            });
            HostFuture::new(core, work).into_ffi()
        };
        self.run_fenced(sleep, |_| ready_future(false))
    }

    fn spawn_blocking(&self, job: JobBox) -> FfiFuture<bool> {
        let run = |core: &Arc<HostContext>| {
            let work = core.submit_job(job).map(|done| -> BoxHostFuture<bool> {
                Box::pin(async move { done.await.unwrap_or(false) })
            });
            HostFuture::new(core, work).into_ffi()
        };
        self.run_fenced(run, |_| ready_future(false))
    }

    fn spawn(&self, task: FfiFuture<()>) -> bool {
        self.run_fenced(|core| core.spawn(task), |_| false)
    }

    fn service(&self, operation: RStr<'_>, frame: RVec<u8>) -> Answer {
        let ask = |core: &Arc<HostContext>| {
            HostFuture::new(core, core.call_service(&operation, &frame)).into_ffi()
        };
        self.run_fenced(ask, |error| ready_future(FrameResult::host_error_output(error)))
    }

    fn next(&self, handle: u64) -> Maybe {
        let next = |core: &Arc<HostContext>| match core.next_piece(handle) {
            Ok(next) => HostFuture::new(core, next).into_ffi(),
            Err(error) => ready_future(RResult::RErr(error_frame(&error))),
        };
        self.run_fenced(next, |error| ready_future(RResult::RErr(error_frame(error))))
    }

    fn close(&self, handle: u64) {
        let close = |core: &Arc<HostContext>| core.close_stream(handle);
        self.run_fenced(close, |_| ());
    }
}

fn ready_future<T: Send + 'static>(value: T) -> FfiFuture<T> {
    std::future::ready(value).into_ffi()
}

impl HostContext {
    /// Emits a frame of the call.
    pub fn emit(&self, frame: &[u8]) -> bool {
        if !self.is_live() {
            return false;
        }
        let parsed = Frame::parse(frame).map_err(|error| {
            self.guest.misbehavior_error(format_args!("it emitted a malformed frame: {error}"))
        });
        let checked = parsed.and_then(|frame| check_json(self.guest.name(), frame.json));
        if let Err(fault) = checked {
            self.held.lock().emissions.record_fault(fault);
            return false;
        }
        let taken = self.held.lock().emissions.push(frame);
        match taken {
            EmissionOutcome::Yes(reader) => {
                if let Some(reader) = reader {
                    reader.wake();
                }
                true
            }
            EmissionOutcome::Closed => false,
            EmissionOutcome::Full => {
                let text = format!(
                    "the plugin `{}` emitted more than {} bytes before they were read",
                    self.guest.name(),
                    super::EMITTED_BYTES_MAX
                );
                let fault = Error::new(ErrorKind::LimitReached, text);
                self.held.lock().emissions.record_fault(fault);
                false
            }
        }
    }

    fn submit_job(self: &Arc<Self>, mut job: JobBox) -> Option<oneshot::Receiver<bool>> {
        if !self.is_live() {
            return None;
        }
        let (done, receiver) = oneshot::channel();
        let counted = self.executor.live_counters().jobs.new_token();
        let core = Arc::clone(self);
        let state = Arc::new(JobState::default());
        let (job_state, kept) = (Arc::clone(&state), Arc::clone(&state));
        let work = Box::new(move || {
            // Do not start a job whose call has already ended.
            let wanted = core.is_live();
            if wanted {
                job.run();
            }
            drop(job);
            drop(counted);
            job_state.finish();
            // The waiting call may have ended.
            let _ = done.send(wanted);
        });
        let mut held = self.held.lock();
        held.jobs.retain(|job| !job.is_finished());
        held.jobs.push(kept);
        drop(held);
        self.executor.submit_job(&self.guest, BlockingJob { work, state }).then_some(receiver)
    }

    fn spawn(self: &Arc<Self>, task: FfiFuture<()>) -> bool {
        if self.kind != CallerKind::Instance {
            return false;
        }
        let number = next_context_number();
        let mut held = self.held.lock();
        // The check is done under the lock, so that the end of the context includes this task.
        if !self.is_live() || held.tasks.len() >= TASKS_MAX {
            drop(held);
            return false;
        }
        let core = Arc::downgrade(self);
        let spawned = self.executor.spawn(&self.guest, async move {
            task.await;
            let own = core.upgrade().and_then(|core| core.held.lock().tasks.remove(&number));
            if let Some(own) = own {
                own.detach();
            }
        });
        held.tasks.insert(number, spawned);
        true
    }

    fn call_service(
        self: &Arc<Self>,
        operation: &str,
        frame: &RVec<u8>,
    ) -> Option<BoxHostFuture<FrameResult>> {
        let work = self.serve_operation(operation, frame)?;
        Some(Box::pin(async move {
            match work.await.0 {
                Ok(ServiceReply::Frame(frame) | ServiceReply::Stream(frame)) => {
                    RResult::ROk(frame.into())
                }
                Ok(ServiceReply::End) => RResult::ROk(Frame::empty().into()),
                Err(error) => RResult::RErr(error.into()),
            }
        }))
    }

    /// Calls a service after the session has processed everything that the call emitted before.
    fn serve_after_emissions(
        self: &Arc<Self>,
        services: Arc<dyn EngineServices>,
        operation: String,
        frame: Vec<u8>,
    ) -> BoxHostFuture<Result<EngineServiceAnswer, Error>> {
        let core = Arc::downgrade(self);
        Box::pin(async move {
            let served = {
                let core = core.upgrade().ok_or_else(Error::cancelled)?;
                core.wait_for_emissions().await;
                core.executor.enter(|| services.call(core.service_caller(), &operation, frame))
            };
            served.await
        })
    }

    /// Calls a service. Returns `None` if the context refuses everything.
    pub fn serve_operation(
        self: &Arc<Self>,
        operation: &str,
        frame: &[u8],
    ) -> Option<BoxHostFuture<ServiceReplyResult>> {
        let services = self.services().filter(|_| self.is_live())?;
        let refused = |error: Error| -> Option<BoxHostFuture<ServiceReplyResult>> {
            Some(Box::pin(std::future::ready(ServiceReplyResult::error(&error))))
        };
        let json = match Frame::parse(frame) {
            Ok(frame) => frame.json,
            Err(error) => {
                return refused(Error::new(ErrorKind::InvalidArguments, error.to_string()));
            }
        };
        if let Err(error) = check_json(self.guest.name(), json) {
            return refused(error);
        }
        let held = match self.guest.holdings.reserve_request(&self.questions, frame.len()) {
            Ok(held) => held,
            Err(error) => return refused(error),
        };
        let core = Arc::downgrade(self);
        let served = if self.has_processed_emissions() {
            self.executor.enter(|| services.call(self.service_caller(), operation, frame.to_vec()))
        } else {
            self.serve_after_emissions(services, operation.to_owned(), frame.to_vec())
        };
        Some(Box::pin(async move {
            let _held = held;
            let answer = match served.await {
                Ok(EngineServiceAnswer::Frame(frame)) => match Frame::parse(&frame) {
                    Ok(_) => Ok(ServiceReply::Frame(frame)),
                    Err(error) => Err(invalid_frame_error(&error)),
                },
                Ok(EngineServiceAnswer::Stream(stream)) => {
                    open_context_stream(&core, Map::new(), stream)
                }
                Ok(EngineServiceAnswer::StreamWith(head, stream)) => {
                    open_context_stream(&core, head, stream)
                }
                Err(error) => Err(error),
            };
            answer.map_or_else(
                |error| ServiceReplyResult::error(&error),
                |crossed| ServiceReplyResult(Ok(crossed)),
            )
        }))
    }

    /// Waits for the next piece of a stream. Returns `None` if the context refuses everything.
    ///
    /// # Errors
    /// `not_found` if the stream is not open or another call already waits for it.
    pub fn next_stream_reply(
        &self,
        handle: u64,
    ) -> Result<Option<BoxHostFuture<ServiceReplyResult>>, Error> {
        let next = self.next_piece(handle)?;
        Ok(next.map(|next| -> BoxHostFuture<ServiceReplyResult> {
            Box::pin(async move {
                ServiceReplyResult(match next.await {
                    RResult::ROk(ROption::RSome(frame)) => Ok(ServiceReply::Frame(frame.into())),
                    RResult::ROk(ROption::RNone) => Ok(ServiceReply::End),
                    RResult::RErr(error) => Err(error.into()),
                })
            })
        }))
    }

    /// Closes a stream.
    pub fn close_stream(&self, handle: u64) {
        let slot = self.held.lock().streams.remove(handle);
        if let Some(slot) = slot {
            self.executor.enter(|| streams::end_stream(&slot));
        }
    }

    fn open_stream(
        &self,
        mut head: Map<String, Value>,
        stream: Box<dyn ByteStream>,
    ) -> Result<Vec<u8>, Error> {
        let handle = next_context_number();
        let live = self.executor.live_counters().streams.new_token();
        let full = |text: String| Error::new(ErrorKind::LimitReached, text).with_hint("close some");
        let Some(share) = self.guest.holdings.streams.reserve(1, STREAMS_PER_PLUGIN_MAX) else {
            return Err(full(format!(
                "the plugin already has {STREAMS_PER_PLUGIN_MAX} open streams"
            )));
        };
        let mut held = self.held.lock();
        if !self.is_live() {
            return Err(Error::cancelled());
        }
        if !held.streams.open(handle, stream, (live, share)) {
            return Err(full(format!("the call already has {STREAMS_MAX} open streams")));
        }
        drop(held);
        head.insert(HANDLE.to_owned(), handle.into());
        Frame::write(&head).map_err(|error| invalid_frame_error(&error))
    }

    /// Returns `None` if the context refuses everything.
    fn next_piece(&self, handle: u64) -> Result<Option<StreamPieceFuture>, Error> {
        if !self.is_live() {
            return Ok(None);
        }
        let slot = self.held.lock().streams.get(handle).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("stream {handle} does not exist"))
        })?;
        let next = StreamPieceFuture::new(slot).ok_or_else(|| {
            Error::failed(format!("another `next` is already waiting for the stream {handle}"))
        })?;
        Ok(Some(next))
    }
}

fn open_context_stream(
    core: &Weak<HostContext>,
    head: Map<String, Value>,
    stream: Box<dyn ByteStream>,
) -> Result<ServiceReply, Error> {
    let core = core.upgrade().ok_or_else(Error::cancelled)?;
    core.open_stream(head, stream).map(ServiceReply::Stream)
}

fn invalid_frame_error(error: &FrameError) -> Error {
    Error::new(ErrorKind::HostBug, format!("a service's answer cannot be encoded: {error}"))
}

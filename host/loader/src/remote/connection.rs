//! The connection to one worker: its work in flight, and the handling of each message.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jaato_types::{Error, Frame};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::link::{LinkMessage, LinkReader, WorkerLink};
use super::wire::{self, LinkMessageFlag, LinkMessageKind, MalformedLinkMessage};
use super::{OVERDUE_MAX, WorkerProcess, death};
use jaato_plugin_engine::{
    HostContext, HostFuture, HostFutureOutput as _, LONG_BLOCK, Misbehavior, MisbehaviorReport,
    ServiceReply, ServiceReplyResult, check_json, run_host_code,
};

/// How long a message may stall in the middle. Shorter than one step of the instance may take, so
/// that half a message fails its own call and not the next one.
const STALL_MAX: Duration = Duration::from_millis(1500);

/// The answer of a call: a frame.
pub(super) type RemoteAnswer = Result<Vec<u8>, Error>;
/// The answer to one of the instance's steps: a frame or nothing.
pub(super) type RemoteStepAnswer = Result<Option<Vec<u8>>, Error>;

/// The host's side of one worker.
pub(super) struct WorkerConnection {
    pub(super) link: WorkerLink,
    pub(super) runtime: Handle,
    pub(super) process: Arc<dyn WorkerProcess>,
    /// The instance's own context. Its guest and executor represent the plugin.
    pub(super) core: Arc<HostContext>,
    pub(super) state: Mutex<WorkerConnectionState>,
}

#[derive(Default)]
pub(super) struct WorkerConnectionState {
    last_id: u64,
    calls: HashMap<u64, PendingRemoteCall>,
    /// Running requests, so that they can be aborted.
    asked: HashMap<u64, AbortHandle>,
    /// Waiters for `Ready` (0), `Created`, `Saved` and `Closed`, by the number of the request.
    steps: HashMap<u64, oneshot::Sender<RemoteStepAnswer>>,
    /// When the worker last reported that the plugin blocks a thread.
    last_block: Option<Instant>,
    /// Why the connection no longer works.
    ended: Option<Error>,
}

/// A call in flight.
struct PendingRemoteCall {
    core: Arc<HostContext>,
    /// `None` after a cancel, because the waiter already has its answer.
    answer: Option<oneshot::Sender<RemoteAnswer>>,
}

impl WorkerConnection {
    /// Begins a call. `send` receives its number.
    pub(super) fn begin_call(
        &self,
        core: &Arc<HostContext>,
        head: &[u8],
        frame: &[u8],
    ) -> Result<(u64, oneshot::Receiver<RemoteAnswer>), Error> {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if let Some(error) = &state.ended {
            return Err(error.clone());
        }
        state.last_id += 1;
        let id = state.last_id;
        state.calls.insert(id, PendingRemoteCall { core: Arc::clone(core), answer: Some(answer) });
        drop(state);
        // If the worker is gone, its death ends the call.
        self.link.send_message(LinkMessageKind::Call, LinkMessageFlag::Frame, id, head, frame);
        Ok((id, receiver))
    }

    /// Cancels a call. The waiter gets its answer immediately. The worker gets a cancel message,
    /// and is ended if it takes too long.
    pub(super) fn cancel(self: &Arc<Self>, id: u64) {
        let mut state = self.state.lock();
        let Some(pending) = state.calls.get_mut(&id) else { return };
        let (core, answer) = (Arc::clone(&pending.core), pending.answer.take());
        drop(state);
        core.cancel();
        if answer.is_some() {
            // Send this before the context ends: the end refuses what the call waits for, and by
            // then the worker must know about the cancel.
            self.link.send_message(LinkMessageKind::Cancel, LinkMessageFlag::Nothing, id, b"", b"");
        }
        core.end();
        let Some(answer) = answer else { return };
        // The waiter may be gone.
        let _ = answer.send(Err(Error::cancelled()));
        // A weak reference, so that an ended connection is not kept alive for this long.
        let own = Arc::downgrade(self);
        self.runtime.spawn(async move {
            tokio::time::sleep(OVERDUE_MAX).await;
            let Some(own) = own.upgrade() else { return };
            if own.state.lock().calls.contains_key(&id) {
                own.process.end_process().await;
            }
        });
    }

    /// Resumes a stopped worker and reports it.
    pub(super) async fn resume_worker(&self) {
        if self.process.resume().await {
            let plugin = self.core.guest.name();
            let text = format!("the stopped worker of plugin `{plugin}` was resumed");
            self.core.executor.observer().log_trouble(&text);
        }
    }

    /// Sends one of the instance's steps and waits for its answer.
    pub(super) async fn run_step(
        &self,
        kind: LinkMessageKind,
        flag: LinkMessageFlag,
        frame: &[u8],
    ) -> RemoteStepAnswer {
        let (reply, receiver) = oneshot::channel();
        let id = {
            let mut state = self.state.lock();
            if let Some(error) = &state.ended {
                return Err(error.clone());
            }
            state.last_id += 1;
            let id = state.last_id;
            state.steps.insert(id, reply);
            id
        };
        self.link.send_message(kind, flag, id, b"", frame);
        receiver.await.unwrap_or_else(|_| Err(Error::cancelled()))
    }

    /// Registers a waiter for the worker's first message. Call it before reading begins.
    pub(super) fn expect_first_message(&self) -> oneshot::Receiver<RemoteStepAnswer> {
        let (reply, receiver) = oneshot::channel();
        self.state.lock().steps.insert(0, reply);
        receiver
    }

    /// Returns why the worker can no longer be used.
    pub(super) fn end_error(&self) -> Option<Error> {
        self.state.lock().ended.clone()
    }

    /// Returns the number of calls that the worker has not answered, including cancelled ones.
    pub(super) fn calls_in_flight(&self) -> usize {
        self.state.lock().calls.len()
    }

    /// Cancels all calls in flight.
    pub(super) fn cancel_all(self: &Arc<Self>) {
        let ids: Vec<u64> = self.state.lock().calls.keys().copied().collect();
        ids.into_iter().for_each(|id| self.cancel(id));
    }

    /// Reads until the worker is gone, then notifies all waiters.
    pub(super) async fn serve_messages(self: Arc<Self>) {
        let mut reader = LinkReader::default();
        let talk = loop {
            match self.next_message(&mut reader).await {
                Ok(Some(message)) => {
                    if let Err(what) = self.handle_message(message) {
                        break Some(what);
                    }
                }
                Ok(None) => break None,
                Err(malformed) => break Some(malformed.0),
            }
        };
        self.link.close();
        let plugin = self.core.guest.name();
        let error = death::death_error(plugin, &self.process, talk.as_deref()).await;
        self.end_connection(&error);
    }

    /// Waits for the next message. Rejects a message that stalls in the middle, because later bytes
    /// would be taken for the rest of it.
    async fn next_message(
        &self,
        reader: &mut LinkReader,
    ) -> Result<Option<LinkMessage>, MalformedLinkMessage> {
        loop {
            if let Some(message) = reader.take_message()? {
                return Ok(Some(message));
            }
            let begun = reader.incomplete_bytes();
            let more = reader.read_more(&self.link);
            let is_over = match begun {
                0 => more.await?,
                _ => match tokio::time::timeout(STALL_MAX, more).await {
                    Ok(is_over) => is_over?,
                    // A stopped worker was resumed.
                    Err(_) if self.process.resume().await => false,
                    Err(_) => {
                        return Err(MalformedLinkMessage(format!(
                            "only {begun} bytes of a message"
                        )));
                    }
                },
            };
            if is_over {
                return Ok(None);
            }
        }
    }

    fn end_connection(&self, error: &Error) {
        let mut state = self.state.lock();
        state.ended = Some(error.clone());
        let calls = std::mem::take(&mut state.calls);
        let asked = std::mem::take(&mut state.asked);
        let steps = std::mem::take(&mut state.steps);
        drop(state);
        asked.into_values().for_each(|asked| asked.abort());
        // The instance's open resources (terminals, programs) end now, not with the next call,
        // which may never come.
        self.core.end();
        for PendingRemoteCall { core, answer } in calls.into_values() {
            core.end();
            if let Some(answer) = answer {
                // The waiter may be gone. The same applies below.
                let _ = answer.send(Err(error.clone()));
            }
        }
        for reply in steps.into_values() {
            let _ = reply.send(Err(error.clone()));
        }
    }

    /// Handles a message. The error explains why the message is invalid.
    fn handle_message(self: &Arc<Self>, message: LinkMessage) -> Result<(), String> {
        let LinkMessage { kind, flag, id, payload } = message;
        match kind {
            LinkMessageKind::Emit => self.deliver_emission(id, &payload),
            LinkMessageKind::Answer => self.deliver_answer(id, flag, payload),
            LinkMessageKind::Ask => {
                let (context, operation, frame) =
                    wire::split_service_request(&payload).ok_or("a request that cannot be read")?;
                self.handle_request(id, context, operation, frame);
            }
            LinkMessageKind::Next => {
                let (context, handle) =
                    wire::split_stream_payload(&payload).ok_or("an invalid stream number")?;
                self.handle_next_request(id, context, handle);
            }
            LinkMessageKind::CloseStream => {
                let (context, handle) =
                    wire::split_stream_payload(&payload).ok_or("an invalid stream number")?;
                if let Some(core) = self.call_context(context) {
                    core.close_stream(handle);
                }
            }
            LinkMessageKind::Forget => {
                if let Some(asked) = self.state.lock().asked.remove(&id) {
                    asked.abort();
                }
            }
            LinkMessageKind::Log => {
                let (&level, text) = payload.split_first().ok_or("a line without a level")?;
                let text = String::from_utf8_lossy(text);
                self.core.executor.observer().log(self.core.guest.name(), level, &text);
            }
            LinkMessageKind::StillBlocked => {
                let time = wire::parse_number(&payload).ok_or("a time that cannot be read")?;
                self.report_block(Duration::from_millis(time));
            }
            LinkMessageKind::Ready
            | LinkMessageKind::Created
            | LinkMessageKind::Saved
            | LinkMessageKind::Closed => {
                self.deliver_reply(id, flag, payload);
            }
            LinkMessageKind::Create
            | LinkMessageKind::Call
            | LinkMessageKind::Cancel
            | LinkMessageKind::Served
            | LinkMessageKind::Piece
            | LinkMessageKind::Save
            | LinkMessageKind::Close => {
                return Err(format!("a message that only the host may send: {kind:?}"));
            }
        }
        Ok(())
    }

    /// Passes on that the plugin blocks a thread of its worker. A worker that reports it more often
    /// than it can happen does not fill the user's notices.
    fn report_block(&self, able_to_run: Duration) {
        let last = self.state.lock().last_block.replace(Instant::now());
        if last.is_some_and(|last| last.elapsed() < LONG_BLOCK) {
            return;
        }
        let (plugin, guest) = (self.core.guest.name().clone(), &self.core.guest);
        let (strikes, disabled) = (guest.strikes(), guest.is_disabled());
        let misdeed = Misbehavior::StillBlocked { able_to_run };
        let report = MisbehaviorReport { plugin, misdeed, strikes, disabled };
        self.core.executor.observer().report_misbehavior(&report);
    }

    fn deliver_emission(&self, id: u64, frame: &[u8]) {
        // No one reads the emissions of a cancelled call.
        if let Some(core) = self.state.lock().calls.get(&id).map(|call| Arc::clone(&call.core)) {
            core.emit(frame);
        }
    }

    fn deliver_answer(&self, id: u64, flag: LinkMessageFlag, payload: Vec<u8>) {
        let Some(PendingRemoteCall { core, answer }) = self.state.lock().calls.remove(&id) else {
            return;
        };
        let fault = core.take_fault();
        core.end();
        let Some(answer) = answer else { return };
        let result = match (fault, flag) {
            (Some(fault), _) => Err(fault),
            (None, LinkMessageFlag::Error) => Err(self.read_error(&payload)),
            (None, LinkMessageFlag::Frame | LinkMessageFlag::Nothing | LinkMessageFlag::Stream) => {
                let misbehaved = |error| {
                    core.guest
                        .misbehavior_error(format_args!("its answer is not a valid frame: {error}"))
                };
                let checked = Frame::parse(&payload).map_err(misbehaved);
                checked
                    .and_then(|frame| check_json(core.guest.name(), frame.json))
                    .map(|()| payload)
            }
        };
        let _ = answer.send(result);
    }

    fn deliver_reply(&self, id: u64, flag: LinkMessageFlag, payload: Vec<u8>) {
        let Some(reply) = self.state.lock().steps.remove(&id) else { return };
        let _ = reply.send(match flag {
            LinkMessageFlag::Error => Err(self.read_error(&payload)),
            LinkMessageFlag::Nothing => Ok(None),
            LinkMessageFlag::Frame | LinkMessageFlag::Stream => Ok(Some(payload)),
        });
    }

    fn read_error(&self, frame: &[u8]) -> Error {
        let refused = |error| {
            self.core.guest.misbehavior_error(format_args!("its error cannot be read: {error}"))
        };
        Frame::read(frame).unwrap_or_else(refused)
    }

    /// Returns the context with this number. Number 0 is the instance's.
    fn call_context(&self, number: u64) -> Option<Arc<HostContext>> {
        if number == 0 {
            return Some(Arc::clone(&self.core));
        }
        self.state.lock().calls.get(&number).map(|call| Arc::clone(&call.core))
    }

    fn handle_request(self: &Arc<Self>, id: u64, context: u64, operation: &str, frame: &[u8]) {
        let Some(core) = self.call_context(context) else {
            return self.send_reply(
                LinkMessageKind::Served,
                id,
                &ServiceReplyResult::refused_output(),
            );
        };
        // A panic in a service is the host's fault and fails only this request.
        match run_host_code(|| core.serve_operation(operation, frame)) {
            Ok(work) => self.spawn_reply(LinkMessageKind::Served, id, HostFuture::new(&core, work)),
            Err(error) => {
                self.send_reply(LinkMessageKind::Served, id, &ServiceReplyResult::error(&error))
            }
        }
    }

    fn handle_next_request(self: &Arc<Self>, id: u64, context: u64, handle: u64) {
        let Some(core) = self.call_context(context) else {
            return self.send_reply(
                LinkMessageKind::Piece,
                id,
                &ServiceReplyResult::refused_output(),
            );
        };
        match core.next_stream_reply(handle) {
            Ok(next) => self.spawn_reply(LinkMessageKind::Piece, id, HostFuture::new(&core, next)),
            Err(error) => {
                self.send_reply(LinkMessageKind::Piece, id, &ServiceReplyResult::error(&error))
            }
        }
    }

    fn spawn_reply(
        self: &Arc<Self>,
        kind: LinkMessageKind,
        id: u64,
        work: impl Future<Output = ServiceReplyResult> + Send + 'static,
    ) {
        let own = Arc::clone(self);
        // Held across the spawn, so that the task finds itself registered.
        let mut state = self.state.lock();
        let task = self.runtime.spawn(async move {
            let served = work.await;
            own.state.lock().asked.remove(&id);
            own.send_reply(kind, id, &served);
        });
        state.asked.insert(id, task.abort_handle());
    }

    fn send_reply(&self, kind: LinkMessageKind, id: u64, served: &ServiceReplyResult) {
        let (flag, frame) = match &served.0 {
            Ok(ServiceReply::Frame(frame)) => (LinkMessageFlag::Frame, frame.as_slice()),
            Ok(ServiceReply::Stream(frame)) => (LinkMessageFlag::Stream, frame.as_slice()),
            Ok(ServiceReply::End) => (LinkMessageFlag::Nothing, [].as_slice()),
            Err(error) => (LinkMessageFlag::Error, error.as_slice()),
        };
        self.link.send_message(kind, flag, id, b"", frame);
    }
}

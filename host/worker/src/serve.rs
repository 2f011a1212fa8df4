//! The child process that runs one instance of one plugin for the host.
//!
//! The plugin runs as it would in the host: the same loader opens it, and the same executor polls
//! it. Only the services are elsewhere. The plugin's requests cross descriptor 3 to the host, and
//! so do its emissions, answers and log lines. When the host's end closes, the process ends.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, FutureExt as _};
use jaato_loader::remote::link::{LinkMessage, LinkReader, WorkerLink};
use jaato_loader::remote::wire::{self, LinkMessageFlag, LinkMessageKind};
use jaato_loader::{
    ByteStream, CallCanceller, CallResultSink, EMITTED_BYTES_MAX, EngineObserver,
    EngineServiceAnswer, EngineServices, Executor, FrameBytes, Instance, Misbehavior,
    MisbehaviorReport, PluginLibrary, ServiceCaller, StartedPlugin,
};
use jaato_types::{Error, ErrorKind, Frame, PluginName};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::platform;

/// The argument before the file.
pub const SERVE_ARGUMENTS: [&str; 1] = ["plugin-worker"];

/// The answer to a request.
type HostAnswer = Result<(LinkMessageFlag, Vec<u8>), Error>;

/// Opens a plugin file and runs an instance of it until the host's end of descriptor 3 closes.
///
/// Called only by the binary's hidden subcommand, because it takes over descriptor 3.
pub fn serve_main(plugin: &Path) -> ExitCode {
    let Some(socket) = platform::take_socket3() else {
        eprintln!("`plugin-worker` is started by jaato itself: there is no socket as descriptor 3");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = runtime.and_then(|runtime| {
        let served = runtime.block_on(serve_socket(socket, plugin));
        // A hanging task of the plugin must not delay the end.
        runtime.shutdown_background();
        served
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the worker cannot continue: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve_socket(socket: UnixStream, file: &Path) -> std::io::Result<()> {
    let link = Arc::new(WorkerLink::new(socket)?);
    let watch = Arc::new(HostLogLink(Arc::clone(&link)));
    let executor = Executor::new(tokio::runtime::Handle::current(), watch);
    let writing = Arc::clone(&link);
    tokio::spawn(async move { writing.write_queued_bytes().await });
    match open_plugin(&executor, file).await {
        Ok(plugin) => handle_messages(link, plugin).await,
        Err(error) => {
            send_answer(&link, LinkMessageKind::Ready, 0, Err(error));
            Ok(())
        }
    }
}

/// Reports that the plugin is open and handles the host's messages, until its end closes.
async fn handle_messages(link: Arc<WorkerLink>, plugin: StartedPlugin) -> std::io::Result<()> {
    link.send_message(LinkMessageKind::Ready, LinkMessageFlag::Frame, 0, b"", &[wire::VERSION]);
    let questions = Arc::new(HostRequests::new(&link));
    let house = Arc::new(WorkerState {
        link,
        plugin,
        questions,
        instance: Mutex::default(),
        calls: Mutex::default(),
    });
    let mut reader = LinkReader::default();
    loop {
        match reader.next_message(&house.link).await {
            Ok(Some(message)) => house.handle_message(message),
            Ok(None) => return Ok(()),
            Err(malformed) => return Err(std::io::Error::other(malformed.0)),
        }
    }
}

async fn open_plugin(executor: &Executor, file: &Path) -> Result<StartedPlugin, Error> {
    let opened = PluginLibrary::open(file).map_err(|error| crate::load_refusal(&error))?;
    StartedPlugin::start(executor, &opened).await
}

/// The worker's state.
struct WorkerState {
    link: Arc<WorkerLink>,
    plugin: StartedPlugin,
    questions: Arc<HostRequests>,
    instance: Mutex<Option<Arc<Instance>>>,
    /// The calls in flight.
    calls: Mutex<HashMap<u64, CallCanceller>>,
}

impl WorkerState {
    fn handle_message(self: &Arc<Self>, message: LinkMessage) {
        let own = Arc::clone(self);
        let LinkMessage { kind, flag, id, payload } = message;
        match kind {
            LinkMessageKind::Create => {
                let saved = (flag == LinkMessageFlag::Frame).then_some(payload);
                tokio::spawn(async move { own.create_instance(id, saved).await });
            }
            LinkMessageKind::Call => own.begin_call(id, &payload),
            LinkMessageKind::Cancel => {
                // At once, because an answer on its way to the call must find it cancelled.
                if let Some(call) = self.calls.lock().get(&id) {
                    call.cancel();
                }
            }
            LinkMessageKind::Served | LinkMessageKind::Piece => {
                self.questions.resolve_request(id, flag, payload)
            }
            LinkMessageKind::Save => {
                tokio::spawn(async move {
                    let saved = match own.current_instance() {
                        Some(instance) => instance.save().await,
                        None => Err(Error::cancelled()),
                    };
                    send_answer(&own.link, LinkMessageKind::Saved, id, saved);
                });
            }
            LinkMessageKind::Close => {
                tokio::spawn(async move {
                    let saved = match own.current_instance() {
                        Some(instance) => instance.close().await,
                        None => Err(Error::cancelled()),
                    };
                    send_answer(&own.link, LinkMessageKind::Closed, id, saved);
                });
            }
            // The host is the same executable and never sends these.
            LinkMessageKind::Ready
            | LinkMessageKind::Created
            | LinkMessageKind::Emit
            | LinkMessageKind::Answer
            | LinkMessageKind::Ask
            | LinkMessageKind::Next
            | LinkMessageKind::CloseStream
            | LinkMessageKind::Forget
            | LinkMessageKind::Log
            | LinkMessageKind::Saved
            | LinkMessageKind::Closed
            | LinkMessageKind::StillBlocked => {}
        }
    }

    fn current_instance(&self) -> Option<Arc<Instance>> {
        self.instance.lock().clone()
    }

    async fn create_instance(self: Arc<Self>, id: u64, saved: Option<Vec<u8>>) {
        let services =
            Arc::new(RemoteServices { questions: Arc::clone(&self.questions), context: 0 });
        match self.plugin.create_instance(services, saved).await {
            Ok(instance) => {
                let has = [instance.facets().bits()];
                if let Some(disabled) = instance.wait_until_disabled() {
                    // A weak reference, so that an ended worker is not kept alive.
                    let own = Arc::downgrade(&self);
                    tokio::spawn(async move {
                        let error = disabled.await;
                        if let Some(own) = own.upgrade() {
                            own.fail_all(&error);
                        }
                    });
                }
                *self.instance.lock() = Some(Arc::new(instance));
                self.link.send_message(
                    LinkMessageKind::Created,
                    LinkMessageFlag::Frame,
                    id,
                    b"",
                    &has,
                );
            }
            Err(error) => send_answer(&self.link, LinkMessageKind::Created, id, Err(error)),
        }
    }

    fn begin_call(self: Arc<Self>, id: u64, payload: &[u8]) {
        // Held during the start, so that an immediate answer finds its call.
        let mut calls = self.calls.lock();
        let begun = match (self.current_instance(), wire::split_call(payload)) {
            (Some(instance), Some((facet, name, frame))) => {
                let questions = Arc::clone(&self.questions);
                let services: Arc<dyn EngineServices> =
                    Arc::new(RemoteServices { questions, context: id });
                let outlet = Arc::new(HostCallOutlet { house: Arc::clone(&self), id });
                instance.begin_call_into(facet, name, frame.to_vec(), services, outlet)
            }
            _ => None,
        };
        match begun.unwrap_or_else(|| Err(Error::cancelled())) {
            Ok(canceller) => {
                calls.insert(id, canceller);
            }
            Err(error) => send_answer(&self.link, LinkMessageKind::Answer, id, Err(error)),
        }
    }

    /// Answers all calls in flight when the plugin is disabled, because one may hang in a poll.
    fn fail_all(&self, error: &Error) {
        let calls = std::mem::take(&mut *self.calls.lock());
        for id in calls.into_keys() {
            send_answer(&self.link, LinkMessageKind::Answer, id, Err(error.clone()));
        }
    }
}

/// Sends a call's emissions and answer to the host, from any thread.
struct HostCallOutlet {
    house: Arc<WorkerState>,
    id: u64,
}

impl CallResultSink for HostCallOutlet {
    fn on_emission(&self, frame: &[u8]) -> bool {
        let link = &self.house.link;
        // Far below the link's own limit, which leaves space for answers and requests.
        let has_room = link.queued_bytes() + frame.len() <= EMITTED_BYTES_MAX;
        if has_room {
            link.send_message(LinkMessageKind::Emit, LinkMessageFlag::Frame, self.id, b"", frame);
        }
        has_room
    }

    fn on_answer(&self, answer: Result<FrameBytes, Error>) {
        // A call has one answer, and may already have failed.
        if self.house.calls.lock().remove(&self.id).is_none() {
            return;
        }
        match answer {
            Ok(frame) => {
                self.house.link.send_message(
                    LinkMessageKind::Answer,
                    LinkMessageFlag::Frame,
                    self.id,
                    b"",
                    &frame,
                );
            }
            Err(error) => {
                send_answer(&self.house.link, LinkMessageKind::Answer, self.id, Err(error))
            }
        }
    }
}

/// Sends an answer. An error that does not fit is replaced by a short one.
fn send_answer(
    link: &WorkerLink,
    kind: LinkMessageKind,
    id: u64,
    answer: Result<Option<Vec<u8>>, Error>,
) {
    match answer {
        Ok(Some(frame)) => link.send_message(kind, LinkMessageFlag::Frame, id, b"", &frame),
        Ok(None) => link.send_message(kind, LinkMessageFlag::Nothing, id, b"", b""),
        Err(error) => {
            let short = || Frame::write(&Error::new(error.kind, "the error's text is too large"));
            let frame =
                Frame::write(&error).or_else(|_| short()).unwrap_or_else(|_| Frame::empty());
            link.send_message(kind, LinkMessageFlag::Error, id, b"", &frame)
        }
    };
}

/// The plugin's unanswered requests to the host.
struct HostRequests {
    link: Arc<WorkerLink>,
    last: AtomicU64,
    open: Mutex<HashMap<u64, oneshot::Sender<HostAnswer>>>,
}

impl HostRequests {
    fn new(link: &Arc<WorkerLink>) -> Self {
        Self { link: Arc::clone(link), last: AtomicU64::new(0), open: Mutex::default() }
    }

    /// Sends a request and returns the future of its answer. Dropping it tells the host to forget
    /// the request.
    fn send_request(
        self: &Arc<Self>,
        kind: LinkMessageKind,
        head: &[u8],
        frame: &[u8],
    ) -> PendingHostAnswer {
        let id = self.last.fetch_add(1, Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        self.open.lock().insert(id, sender);
        self.link.send_message(kind, LinkMessageFlag::Frame, id, head, frame);
        PendingHostAnswer { questions: Arc::clone(self), id, answer }
    }

    fn resolve_request(&self, id: u64, flag: LinkMessageFlag, payload: Vec<u8>) {
        let Some(sender) = self.open.lock().remove(&id) else { return };
        let misread = |error| Error::new(ErrorKind::HostBug, format!("{error}"));
        // The waiter may be gone.
        let _ = sender.send(match flag {
            LinkMessageFlag::Error => Err(Frame::read(&payload).unwrap_or_else(misread)),
            LinkMessageFlag::Frame | LinkMessageFlag::Nothing | LinkMessageFlag::Stream => {
                Ok((flag, payload))
            }
        });
    }
}

/// The future answer to a request.
struct PendingHostAnswer {
    questions: Arc<HostRequests>,
    id: u64,
    answer: oneshot::Receiver<HostAnswer>,
}

impl PendingHostAnswer {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<HostAnswer> {
        self.answer.poll_unpin(cx).map(|came| came.unwrap_or_else(|_| Err(Error::cancelled())))
    }
}

impl Drop for PendingHostAnswer {
    fn drop(&mut self) {
        if self.questions.open.lock().remove(&self.id).is_some() {
            self.questions.link.send_message(
                LinkMessageKind::Forget,
                LinkMessageFlag::Nothing,
                self.id,
                b"",
                b"",
            );
        }
    }
}

/// Provides the host's services to one context.
struct RemoteServices {
    questions: Arc<HostRequests>,
    context: u64,
}

impl EngineServices for RemoteServices {
    fn call(
        &self,
        _caller: ServiceCaller,
        operation: &str,
        frame: Vec<u8>,
    ) -> BoxFuture<'static, Result<EngineServiceAnswer, Error>> {
        let head = wire::service_request_head(self.context, operation);
        let mut asked = self.questions.send_request(LinkMessageKind::Ask, &head, &frame);
        let (questions, context) = (Arc::clone(&self.questions), self.context);
        Box::pin(async move {
            let (flag, frame) = std::future::poll_fn(|cx| asked.poll(cx)).await?;
            if flag != LinkMessageFlag::Stream {
                return Ok(EngineServiceAnswer::Frame(frame));
            }
            let wrong = |text: String| Error::new(ErrorKind::HostBug, text);
            let mut head: Map<String, Value> =
                Frame::read(&frame).map_err(|error| wrong(error.to_string()))?;
            let handle = head.remove("handle").and_then(|handle| handle.as_u64());
            let handle = handle.ok_or_else(|| wrong("a stream without a handle".to_owned()))?;
            let stream = HostStream { questions, context, handle, asked: None };
            Ok(EngineServiceAnswer::StreamWith(head, Box::new(stream)))
        })
    }
}

/// A stream of the host's, read piece by piece across the socket.
struct HostStream {
    questions: Arc<HostRequests>,
    context: u64,
    handle: u64,
    asked: Option<PendingHostAnswer>,
}

impl ByteStream for HostStream {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        let (questions, named) = (&self.questions, wire::stream_payload(self.context, self.handle));
        let asked = self
            .asked
            .get_or_insert_with(|| questions.send_request(LinkMessageKind::Next, &named, b""));
        let Poll::Ready(answer) = asked.poll(cx) else { return Poll::Pending };
        self.asked = None;
        Poll::Ready(match answer {
            Ok((LinkMessageFlag::Nothing, _)) => None,
            Ok((_, frame)) => Some(Ok(frame)),
            Err(error) => Some(Err(error)),
        })
    }

    fn has_frames(&self) -> bool {
        true
    }
}

impl Drop for HostStream {
    fn drop(&mut self) {
        let named = wire::stream_payload(self.context, self.handle);
        self.questions.link.send_message(
            LinkMessageKind::CloseStream,
            LinkMessageFlag::Nothing,
            0,
            &named,
            b"",
        );
    }
}

/// Sends the plugin's log lines and misbehaviour to the host's log.
struct HostLogLink(Arc<WorkerLink>);

impl HostLogLink {
    fn write_line(&self, level: u8, text: &str) {
        let end = text.floor_char_boundary(LINE_BYTES_MAX);
        self.0.send_message(
            LinkMessageKind::Log,
            LinkMessageFlag::Frame,
            0,
            &[level],
            &text.as_bytes()[..end],
        );
    }
}

/// Longest line to send to the host's log.
const LINE_BYTES_MAX: usize = 64 * 1024;

impl EngineObserver for HostLogLink {
    fn log(&self, _plugin: &PluginName, level: u8, text: &str) {
        self.write_line(level, text);
    }

    fn report_misbehavior(&self, report: &MisbehaviorReport) {
        match report.misdeed {
            // The host tells the user.
            Misbehavior::StillBlocked { able_to_run } => {
                let time = u64::try_from(able_to_run.as_millis()).unwrap_or(u64::MAX);
                self.0.send_message(
                    LinkMessageKind::StillBlocked,
                    LinkMessageFlag::Frame,
                    0,
                    &[],
                    &time.to_le_bytes(),
                );
            }
            Misbehavior::Blocked { .. }
            | Misbehavior::PollsWithoutEnd
            | Misbehavior::IgnoresCancel { .. } => {
                self.write_line(2, &report.to_string());
            }
        }
    }

    fn log_trouble(&self, text: &str) {
        self.write_line(1, text);
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod unusual_plugins;
#[cfg(test)]
#[path = "../../loader/tests/support/workers.rs"]
mod workers;

//! An instance in a worker, and its calls.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_types::{Error, ErrorKind, Manifest, PluginName};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::connection::{RemoteAnswer, WorkerConnection, WorkerConnectionState};
use super::link::WorkerLink;
use super::wire::{LinkMessageFlag, LinkMessageKind, VERSION, call_head};
use crate::call::RunningCall;
use crate::executor::Executor;
use jaato_plugin_engine::{
    CLOSE_STEP_MAX, CallerKind, EngineServices, Facet, FacetSet, HostContext,
};

/// How long a worker may take to open its plugin and to create the instance.
pub const CREATE_MAX: Duration = Duration::from_secs(30);
/// How long to wait for an answer before each check whether the worker was stopped.
const STOPPED_AFTER: Duration = Duration::from_secs(1);

/// How long a worker may take over a cancelled call before it is ended.
pub const OVERDUE_MAX: Duration = Duration::from_secs(2);

/// A worker's process, provided by the crate that starts processes.
pub trait WorkerProcess: Send + Sync + 'static {
    /// Waits for its end and describes it: `was killed by signal 11`, `exited with 3`.
    fn wait_for_end(&self) -> BoxFuture<'_, String>;

    /// Ends it and all its descendants. Returns once all have ended. May be called again.
    fn end_process(&self) -> BoxFuture<'_, ()>;

    /// Resumes the process if it was stopped, and returns whether it was.
    fn resume(&self) -> BoxFuture<'_, bool>;

    /// The end of its output.
    fn last_output(&self) -> String;
}

/// The parts of an instance in a worker.
pub struct WorkerStart {
    /// The plugin.
    pub manifest: Manifest,
    /// The host's end of the socket pair. The worker has the other end as descriptor 3.
    pub socket: UnixStream,
    /// The worker.
    pub process: Arc<dyn WorkerProcess>,
    /// The instance's services outside of calls.
    pub services: Arc<dyn EngineServices>,
    /// The state that an earlier instance saved.
    pub saved: Option<Vec<u8>>,
}

/// An instance in a worker.
pub(crate) struct RemoteInstance {
    connection: Arc<WorkerConnection>,
    facets: FacetSet,
    refusal: Option<Error>,
}

/// Asks the worker to create the instance from saved state, or fresh if the plugin refuses that
/// state. Returns its facets and the refusal.
async fn create_in_worker(
    connection: &WorkerConnection,
    saved: Option<&[u8]>,
) -> Result<(Vec<u8>, Option<Error>), Error> {
    let mut refusal = None;
    if let Some(saved) = saved {
        match connection.run_step(LinkMessageKind::Create, LinkMessageFlag::Frame, saved).await {
            Ok(facets) => return Ok((facets.unwrap_or_default(), None)),
            Err(error) => refusal = Some(error),
        }
    }
    // If the worker is gone, this fails with the reason.
    let facets =
        connection.run_step(LinkMessageKind::Create, LinkMessageFlag::Nothing, b"").await?;
    Ok((facets.unwrap_or_default(), refusal))
}

/// Checks the worker's version. A worker of another version gets no requests, because it would
/// misread them.
fn check_worker_version(version: &[u8]) -> Result<(), Error> {
    if version == [VERSION] {
        return Ok(());
    }
    let text = format!(
        "the worker has protocol version {version:?} instead of [{VERSION}]; \
         jaato was replaced while it runs"
    );
    Err(Error::new(ErrorKind::Unavailable, text).with_hint("start jaato again"))
}

impl RemoteInstance {
    /// Creates the instance in a freshly started worker.
    pub(crate) async fn start(executor: &Executor, start: WorkerStart) -> Result<Self, Error> {
        let WorkerStart { manifest, socket, process, services, saved } = start;
        let guest = executor.0.add_guest(manifest.name);
        let core = HostContext::new(CallerKind::Instance, &executor.0, &guest, services);
        let link = WorkerLink::new(socket).map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot use the worker's socket: {error}"))
                .with_hint("restart jaato; if it happens again, report it")
        })?;
        let state = WorkerConnectionState::default().into();
        let runtime = Handle::current();
        let connection =
            Arc::new(WorkerConnection { link, runtime: runtime.clone(), process, core, state });
        let ready = connection.expect_first_message();
        runtime.spawn(Arc::clone(&connection).serve_messages());
        runtime.spawn({
            let connection = Arc::clone(&connection);
            async move {
                if connection.link.write_queued_bytes().await {
                    connection.process.end_process().await;
                }
            }
        });
        let given_up = WorkerEndGuard(Some(&connection));
        let made = async {
            let first = ready.await.unwrap_or_else(|_| Err(Error::cancelled()))?;
            check_worker_version(first.as_deref().unwrap_or_default())?;
            create_in_worker(&connection, saved.as_deref()).await
        };
        let (facets, refusal) = match tokio::time::timeout(CREATE_MAX, made).await {
            Ok(made) => made?,
            Err(_) => {
                let text = format!(
                    "the plugin `{}` created no instance within {} s",
                    guest.name(),
                    CREATE_MAX.as_secs()
                );
                return Err(Error::new(ErrorKind::Timeout, text));
            }
        };
        given_up.disarm();
        let facets = FacetSet::from_bits(facets.first().copied().unwrap_or_default());
        Ok(Self { facets, refusal, connection })
    }

    /// Returns the plugin's error if it refused the saved state.
    pub(crate) fn refusal(&self) -> Option<&Error> {
        self.refusal.as_ref()
    }

    pub(crate) fn plugin(&self) -> &PluginName {
        self.connection.core.guest.name()
    }

    pub(crate) fn calls_in_flight(&self) -> usize {
        self.connection.calls_in_flight()
    }

    pub(crate) fn facets(&self) -> FacetSet {
        self.facets
    }

    pub(crate) fn end_error(&self) -> Option<Error> {
        self.connection.end_error()
    }

    pub(crate) fn begin_call(
        &self,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn EngineServices>,
    ) -> Result<RunningCall, Error> {
        let own = &self.connection.core;
        if !own.is_live() {
            let text = format!("the plugin `{}` is closed", self.plugin());
            return Err(Error::new(ErrorKind::Cancelled, text));
        }
        let core = HostContext::new(CallerKind::Call, &own.executor, &own.guest, services);
        let head = call_head(facet, name);
        let (id, answer) = self.connection.begin_call(&core, &head, &frame)?;
        let connection = Arc::clone(&self.connection);
        Ok(RunningCall::from_remote(core, RemoteCall { connection, id, answer, is_over: false }))
    }

    pub(crate) async fn save(&self) -> Result<Option<Vec<u8>>, Error> {
        self.connection.run_step(LinkMessageKind::Save, LinkMessageFlag::Nothing, b"").await
    }

    /// Closes the instance and ends the worker.
    pub(crate) async fn close(&self) -> Result<Option<Vec<u8>>, Error> {
        self.connection.cancel_all();
        let closing =
            self.connection.run_step(LinkMessageKind::Close, LinkMessageFlag::Nothing, b"");
        // The worker limits each of its four steps to that time.
        let closed = tokio::time::timeout(CLOSE_STEP_MAX * 5, closing).await;
        self.connection.core.cancel();
        self.connection.core.end();
        self.connection.link.close();
        self.connection.process.end_process().await;
        closed.unwrap_or_else(|_| {
            let text = format!("the plugin `{}` did not close in time", self.plugin());
            Err(Error::new(ErrorKind::Timeout, text))
        })
    }
}

impl Drop for RemoteInstance {
    fn drop(&mut self) {
        give_up_worker(&self.connection);
    }
}

/// Ends a worker if no one waits for its instance.
struct WorkerEndGuard<'a>(Option<&'a Arc<WorkerConnection>>);

impl WorkerEndGuard<'_> {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for WorkerEndGuard<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.0 {
            give_up_worker(connection);
        }
    }
}

fn give_up_worker(connection: &Arc<WorkerConnection>) {
    connection.cancel_all();
    connection.core.cancel();
    connection.core.end();
    connection.link.close();
    let process = Arc::clone(&connection.process);
    connection.runtime.spawn(async move { process.end_process().await });
}

/// The answer of a call in a worker. Dropping it cancels the call.
pub(crate) struct RemoteCall {
    connection: Arc<WorkerConnection>,
    id: u64,
    answer: oneshot::Receiver<RemoteAnswer>,
    is_over: bool,
}

impl RemoteCall {
    pub(crate) fn cancel(&self) {
        self.connection.cancel(self.id);
    }

    pub(crate) fn canceller(&self) -> RemoteCanceller {
        RemoteCanceller { connection: Arc::downgrade(&self.connection), id: self.id }
    }

    /// Waits for the call's output, and resumes its worker if it was stopped.
    pub(crate) async fn resume_while_waiting<T>(&self, given: impl Future<Output = T>) -> T {
        resume_worker_while_waiting(&self.connection, given).await
    }

    pub(crate) async fn answer(&mut self) -> RemoteAnswer {
        let answer = resume_worker_while_waiting(&self.connection, &mut self.answer).await;
        let answer = answer.unwrap_or_else(|_| Err(Error::cancelled()));
        self.is_over = true;
        answer
    }
}

async fn resume_worker_while_waiting<T>(
    connection: &WorkerConnection,
    given: impl Future<Output = T>,
) -> T {
    let mut given = std::pin::pin!(given);
    loop {
        match tokio::time::timeout(STOPPED_AFTER, &mut given).await {
            Ok(given) => return given,
            Err(_) => connection.resume_worker().await,
        }
    }
}

/// Cancels a call in a worker from anywhere.
pub(crate) struct RemoteCanceller {
    connection: Weak<WorkerConnection>,
    id: u64,
}

impl RemoteCanceller {
    pub(crate) fn cancel(&self) {
        if let Some(connection) = self.connection.upgrade() {
            connection.cancel(self.id);
        }
    }
}

impl Drop for RemoteCall {
    fn drop(&mut self) {
        if !self.is_over {
            self.cancel();
        }
    }
}

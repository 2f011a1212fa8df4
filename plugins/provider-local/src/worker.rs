//! The thread that owns the model. It processes requests one after the other.
//!
//! It is a separate thread because computing takes seconds. The host's executor and its pool for
//! short blocking work are not suitable for that.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use futures_channel::oneshot;
use jaato_plugin_sdk::types::{Completion, CompletionRequest, Error, ErrorKind, Result};
use parking_lot::Mutex;

use crate::cancel::CancelFlag;
use crate::local::{CompletionSink, LocalModel, TokenCounter};
use crate::memory::{self, WeightCopies};
use crate::state::{BYTES_MAX, ModelDigest, ModelStateStore};

/// The maximum number of waiting requests. More sessions with one small model are a mistake.
const WAITING_MAX: usize = 32;

/// The weights for a request, as found by the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightFiles {
    /// The model's name, for messages.
    pub model: String,
    /// The path of the verified file.
    pub path: PathBuf,
    /// The digest of the file.
    pub digest: ModelDigest,
    /// The folder for saved states. `None` if the host has no cache.
    pub state_folder: Option<PathBuf>,
    /// Lowers the model's own context limit.
    pub context_tokens_max: usize,
}

/// Loads a model into memory. Tests replace it.
pub type LoadModel = fn(&WeightFiles, &mut dyn CompletionSink) -> Result<LocalModel>;

/// A handle to the thread. The thread ends when the handle is stopped or dropped.
pub struct ModelWorker {
    jobs: Mutex<Option<SyncSender<ModelJob>>>,
    waiting: Arc<AtomicUsize>,
    running: Mutex<CancelFlag>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
    counter: SharedCounter,
}

/// The token counter of the model in memory, with the model's name.
type SharedCounter = Arc<Mutex<Option<(String, TokenCounter)>>>;

struct ModelJob {
    weights: WeightFiles,
    request: CompletionRequest,
    cancel: CancelFlag,
    sink: Box<dyn CompletionSink + Send>,
    answer: oneshot::Sender<Result<Completion>>,
}

impl ModelWorker {
    /// Starts the thread. The first request loads a model. `say` gets log lines that belong to no
    /// request.
    ///
    /// # Errors
    /// Kind `unavailable` if the system cannot start a thread.
    pub fn start_thread(load: LoadModel, say: impl Fn(String) + Send + 'static) -> Result<Self> {
        let (jobs, receiver) = sync_channel(WAITING_MAX);
        let (ended_sender, ended) = oneshot::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&waiting);
        let running = CancelFlag::default();
        let counter_of_model = SharedCounter::default();
        let loaded = Arc::clone(&counter_of_model);
        thread::Builder::new()
            .name("jaato-local-model".to_owned())
            .spawn(move || {
                serve_jobs(load, &receiver, &counter, &loaded, &say);
                // The receiver may have been dropped.
                let _ = ended_sender.send(());
            })
            .map_err(|error| {
                Error::new(ErrorKind::Unavailable, format!("cannot start a thread: {error}"))
            })?;
        Ok(Self {
            jobs: Mutex::new(Some(jobs)),
            waiting,
            running: Mutex::new(running),
            ended: Mutex::new(Some(ended)),
            counter: counter_of_model,
        })
    }

    /// Returns the token counter of a model that is in memory. A count never loads or downloads a
    /// model.
    pub fn token_counter(&self, model: &str) -> Option<TokenCounter> {
        let counter = self.counter.lock();
        counter.as_ref().filter(|(name, _)| name == model).map(|(_, counter)| counter.clone())
    }

    /// Sends a request to the thread and returns the receiver of the answer. `cancel` ends the
    /// request while it waits, loads or computes.
    ///
    /// # Errors
    /// Kind `unavailable` if too many requests wait or the worker was stopped.
    pub fn send_request(
        &self,
        weights: WeightFiles,
        request: CompletionRequest,
        cancel: CancelFlag,
        mut sink: Box<dyn CompletionSink + Send>,
    ) -> Result<oneshot::Receiver<Result<Completion>>> {
        let (answer, receiver) = oneshot::channel();
        if self.waiting.load(Ordering::Acquire) > 0 {
            sink.show_notice("the local model is busy with another request".to_owned());
        }
        let jobs = self.jobs.lock();
        let Some(sender) = jobs.as_ref() else {
            return Err(Error::new(ErrorKind::Unavailable, "the local model was shut down"));
        };
        *self.running.lock() = cancel.clone();
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let sent = sender.try_send(ModelJob { weights, request, cancel, sink, answer });
        if let Err(error) = sent {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            let text = match error {
                TrySendError::Full(_) => {
                    format!("{WAITING_MAX} requests are already waiting for the local model")
                }
                TrySendError::Disconnected(_) => "the local model's thread has ended".to_owned(),
            };
            return Err(Error::new(ErrorKind::Unavailable, text).temporary());
        }
        Ok(receiver)
    }

    /// Ends the thread: cancels the computation, but lets a save finish. Returns a receiver that
    /// resolves when the thread has ended.
    pub fn stop_thread(&self) -> Option<oneshot::Receiver<()>> {
        self.jobs.lock().take();
        self.running.lock().cancel();
        self.ended.lock().take()
    }
}

impl Drop for ModelWorker {
    fn drop(&mut self) {
        self.stop_thread();
    }
}

/// The model in memory and the weights that it was loaded from.
struct LoadedModel {
    weights: WeightFiles,
    model: LocalModel,
}

fn serve_jobs(
    load: LoadModel,
    jobs: &Receiver<ModelJob>,
    waiting: &AtomicUsize,
    counter: &SharedCounter,
    say: &dyn Fn(String),
) {
    let mut loaded: Option<LoadedModel> = None;
    while let Ok(job) = jobs.recv() {
        let ModelJob { weights, request, cancel, mut sink, answer } = job;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            run_job(load, &mut loaded, &weights, &request, &cancel, sink.as_mut())
        }));
        let outcome = outcome.unwrap_or_else(|_| {
            // Half-computed state is not trusted. The next request loads the model again.
            loaded = None;
            Err(Error::new(ErrorKind::PluginPanicked, "the local model panicked"))
        });
        let counting = |it: &LoadedModel| (it.weights.model.clone(), it.model.token_counter());
        *counter.lock() = loaded.as_ref().map(counting);
        // Drop the sink's context before the answer, so that nothing is emitted after it.
        drop(sink);
        waiting.fetch_sub(1, Ordering::AcqRel);
        // The caller may have cancelled and dropped the receiver.
        let _ = answer.send(outcome);
        save_state(&mut loaded, say);
    }
}

fn run_job(
    load: LoadModel,
    loaded: &mut Option<LoadedModel>,
    weights: &WeightFiles,
    request: &CompletionRequest,
    cancel: &CancelFlag,
    sink: &mut dyn CompletionSink,
) -> Result<Completion> {
    cancel.check_cancelled()?;
    let fits = loaded.as_ref().is_some_and(|loaded| loaded.weights == *weights);
    if !fits {
        // Two models at once would need the memory of both.
        *loaded = None;
    }
    let loaded = match loaded {
        Some(loaded) => loaded,
        None => {
            loaded.insert(LoadedModel { weights: weights.clone(), model: load(weights, sink)? })
        }
    };
    cancel.check_cancelled()?;
    loaded.model.complete_request(request, cancel, sink)
}

fn save_state(loaded: &mut Option<LoadedModel>, say: &dyn Fn(String)) {
    let Some(model) = loaded.as_mut().map(|loaded| &mut loaded.model) else { return };
    match catch_unwind(AssertUnwindSafe(|| model.save_prefix())) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => say(error.to_string()),
        Err(_) => {
            *loaded = None;
            say("the local model panicked while its state was saved".to_owned());
        }
    }
}

/// Loads the weights after a memory check.
///
/// # Errors
/// Kind `limit_reached` if there is too little memory, or the errors of [`LocalModel::load_model`].
pub fn load_weights(weights: &WeightFiles, sink: &mut dyn CompletionSink) -> Result<LocalModel> {
    let bytes = std::fs::metadata(&weights.path).map(|data| data.len()).map_err(|error| {
        Error::new(
            ErrorKind::Io,
            format!("cannot open the weights `{}`: {error}", weights.path.display()),
        )
    })?;
    if let Some(warning) =
        memory::check_memory(WeightCopies::detect_for_machine(), bytes, memory::available_bytes())?
    {
        sink.show_notice(warning);
    }
    sink.show_notice(format!("loading the local model `{}`", weights.model));
    let mut model = LocalModel::load_model(&weights.path, weights.context_tokens_max)?;
    if let Some(folder) = &weights.state_folder {
        let store = state_store(&model, folder, weights.digest);
        model.set_store(store);
    }
    Ok(model)
}

fn state_store(model: &LocalModel, folder: &Path, digest: ModelDigest) -> ModelStateStore {
    ModelStateStore::new(folder.to_owned(), digest, model.state_bytes_per_token(), BYTES_MAX)
}

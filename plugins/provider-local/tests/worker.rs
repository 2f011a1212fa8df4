//! Tests the thread that owns the model: the order of requests, cancels, panics, the end.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::support::{CONTEXT, GgufQuirks, completion_request, write_model};
use jaato_plugin_sdk::types::{ErrorKind, Result};
use parking_lot::Mutex;
use provider_local::cancel::CancelFlag;
use provider_local::local::{CompletionSink, LocalModel};
use provider_local::worker::{self, ModelWorker, WeightFiles};

struct UnparkWaker(Thread);

impl Wake for UnparkWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on_future<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(UnparkWaker(thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Sends each notice to a channel.
struct NoticeSender(mpsc::Sender<String>, CancelFlag);

impl CompletionSink for NoticeSender {
    fn send_text(&mut self, _text: &str) -> bool {
        true
    }
    fn show_notice(&mut self, text: String) {
        if text.starts_with("loading") {
            self.1.cancel();
        }
        self.0.send(text).unwrap();
    }
    fn log(&mut self, _text: String) {}
}

fn weight_files(path: &Path, folder: &Path) -> WeightFiles {
    WeightFiles {
        model: "tiny".to_owned(),
        path: path.to_owned(),
        digest: [3; 32],
        state_folder: Some(folder.join("states")),
        context_tokens_max: CONTEXT as usize,
    }
}

fn start_worker(load: worker::LoadModel) -> ModelWorker {
    ModelWorker::start_thread(load, |text| panic!("said `{text}`")).unwrap()
}

fn notice_sink() -> (Box<dyn CompletionSink + Send>, mpsc::Receiver<String>) {
    let (sender, receiver) = mpsc::channel();
    // The sink has its own flag, so that a notice cancels nothing.
    (Box::new(NoticeSender(sender, CancelFlag::default())), receiver)
}

#[test]
fn a_model_is_loaded_once_and_its_state_saved_before_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let weights = weight_files(&path, folder.path());
    let worker = start_worker(worker::load_weights);
    let mut told = Vec::new();
    for text in ["one", "two"] {
        let (sink, notices) = notice_sink();
        let request = completion_request(text, &[], 4);
        let answer = worker.send_request(weights.clone(), request, CancelFlag::default(), sink);
        assert_eq!(block_on_future(answer.unwrap()).unwrap().unwrap().usage.output_tokens, 4);
        told.extend(notices.iter().filter(|notice| notice.starts_with("loading")));
    }
    assert_eq!(told, ["loading the local model `tiny`"]);
    block_on_future(worker.stop_thread().unwrap()).unwrap();
    assert_eq!(std::fs::read_dir(folder.path().join("states")).unwrap().count(), 1);
    let (sink, _notices) = notice_sink();
    let refused = worker.send_request(
        weights,
        completion_request("three", &[], 4),
        CancelFlag::default(),
        sink,
    );
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Unavailable);
}

#[test]
fn a_request_cancelled_while_the_model_loads_is_not_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let worker = start_worker(worker::load_weights);
    let cancel = CancelFlag::default();
    let (sender, _notices) = mpsc::channel();
    let sink = Box::new(NoticeSender(sender, cancel.clone()));
    let answer = worker.send_request(
        weight_files(&path, folder.path()),
        completion_request("one", &[], 4),
        cancel,
        sink,
    );
    assert_eq!(block_on_future(answer.unwrap()).unwrap().unwrap_err().kind, ErrorKind::Cancelled);
}

fn panic_on_first_load(weights: &WeightFiles, sink: &mut dyn CompletionSink) -> Result<LocalModel> {
    static PANICKED: Mutex<bool> = Mutex::new(false);
    let mut panicked = PANICKED.lock();
    if !std::mem::replace(&mut *panicked, true) {
        drop(panicked);
        panic!("on purpose");
    }
    drop(panicked);
    worker::load_weights(weights, sink)
}

#[test]
fn panic_fails_only_one_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let worker = start_worker(panic_on_first_load);
    let ask = || {
        let (sink, _notices) = notice_sink();
        let weights = weight_files(&path, folder.path());
        // The receiver of the notices must live as long as the request.
        let answer = worker.send_request(
            weights,
            completion_request("one", &[], 2),
            CancelFlag::default(),
            sink,
        );
        block_on_future(answer.unwrap()).unwrap()
    };
    assert_eq!(ask().unwrap_err().kind, ErrorKind::PluginPanicked);
    assert_eq!(ask().unwrap().usage.output_tokens, 2);
}

#[test]
fn missing_weights_are_an_error_with_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let worker = start_worker(worker::load_weights);
    let (sink, _notices) = notice_sink();
    let weights = weight_files(&folder.path().join("none.gguf"), folder.path());
    let answer = worker.send_request(
        weights,
        completion_request("one", &[], 2),
        CancelFlag::default(),
        sink,
    );
    let error = block_on_future(answer.unwrap()).unwrap().unwrap_err();
    assert!(error.kind == ErrorKind::Io && error.message.contains("none.gguf"), "{error}");
}

#[test]
fn token_count_of_the_loaded_model_matches_its_prompt_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_model(folder.path(), GgufQuirks::default());
    let worker = start_worker(worker::load_weights);
    assert!(worker.token_counter("tiny").is_none(), "nothing is loaded for a count");
    let (sink, _notices) = notice_sink();
    let weights = weight_files(&path, folder.path());
    let asked = completion_request("one two three", &[], 4);
    let answer = worker.send_request(weights, asked.clone(), CancelFlag::default(), sink).unwrap();
    let usage = block_on_future(answer).unwrap().unwrap().usage;
    let counter = worker.token_counter("tiny").unwrap();
    assert_eq!(counter.count_prompt_tokens(&asked).unwrap(), usage.prompt_tokens);
    assert!(worker.token_counter("other").is_none());
    block_on_future(worker.stop_thread().unwrap()).unwrap();
}

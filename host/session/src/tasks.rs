//! Calls that take long and go on as tasks: what runs, and what came of it for the model.
//!
//! A task runs on the tokio runtime that the turn runs on, beside turns and between them, until its
//! end, its deadline or its cancellation. Its outcome waits here until the session joins it to a
//! message. Dropping the tasks ends all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jaato_types::{Error, ErrorKind, Event, Output, Part, Result, ToolCall};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::calls::Running;
use crate::events::Emitter;
use crate::hooks::{Changed, HookAsker};
use crate::output::{self, Fitting, error_content};
use crate::{Cancel, KnownTool, OutputStore};

/// The tasks of a session.
pub(crate) struct Tasks {
    set: Mutex<JoinSet<()>>,
    board: Arc<Board>,
}

/// What runs and what has ended.
#[derive(Default)]
struct Board {
    state: Mutex<State>,
    /// Wakes who waits for the last task.
    idle: Notify,
}

#[derive(Default)]
struct State {
    started: u64,
    running: BTreeMap<u64, Cancel>,
    /// Outcomes that no message holds yet, in the order in which they came.
    outcomes: Vec<Value>,
}

/// What tasks need of the session.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) emitter: Emitter,
    pub(crate) hooks: Arc<HookAsker>,
    /// The tool that was called.
    pub(crate) tool: Option<KnownTool>,
    pub(crate) outputs: Arc<dyn OutputStore>,
    pub(crate) output_bytes_max: usize,
    pub(crate) threshold_ms: u64,
}

impl Tasks {
    pub(crate) fn new() -> Self {
        Self { set: Mutex::new(JoinSet::new()), board: Arc::default() }
    }

    /// Counts those that run.
    pub(crate) fn running(&self) -> usize {
        self.board.lock().running.len()
    }

    /// Lets a running call go on as a task; returns its handle, which is the call's result.
    pub(crate) fn take_over(&self, running: Running, around: Surroundings) -> Output {
        let number = {
            let mut state = self.board.lock();
            state.started += 1;
            let number = state.started;
            state.running.insert(number, running.stop.clone());
            number
        };
        let id = format!("task_{number}");
        around.emitter.emit(Event::TaskStarted {
            task_id: id.clone(),
            call_id: running.call.id.clone(),
            name: running.call.name.clone(),
            source: running.source.clone(),
        });
        let handle = handle(&id, &running, around.threshold_ms);
        let place = Place { board: Arc::clone(&self.board), number, id, outcome: None };
        let mut set = self.set.lock();
        while set.try_join_next().is_some() {}
        set.spawn(run(running, around, place));
        handle
    }

    /// Waits until no task runs.
    pub(crate) async fn idle(&self) {
        loop {
            let idle = self.board.idle.notified();
            tokio::pin!(idle);
            // Enlists before it looks: a task that ends in between is not missed.
            idle.as_mut().enable();
            if self.running() == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Ends all that run; their outcomes say so and come within moments.
    pub(crate) fn cancel(&self) {
        self.board.lock().running.values().for_each(Cancel::cancel);
    }

    /// Tells whether an outcome waits for a message.
    pub(crate) fn has_outcomes(&self) -> bool {
        !self.board.lock().outcomes.is_empty()
    }

    /// Takes the outcomes, as parts of a message.
    pub(crate) fn take_outcomes(&self) -> Vec<Part> {
        std::mem::take(&mut self.board.lock().outcomes).into_iter().map(Part::json).collect()
    }
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// A task's place on the board. It is left with an outcome however the task ends.
struct Place {
    board: Arc<Board>,
    number: u64,
    id: String,
    outcome: Option<Value>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let outcome = self.outcome.take().unwrap_or_else(|| {
            let error = Error::new(ErrorKind::HostBug, "the task ended without an outcome");
            let status = status(Some(&error));
            json!({ "task_id": self.id, "status": status, "result": error_content(&error) })
        });
        let mut state = self.board.lock();
        state.running.remove(&self.number);
        state.outcomes.push(json!({ "task_outcome": outcome }));
        drop(state);
        self.board.idle.notify_waiters();
    }
}

async fn run(mut running: Running, around: Surroundings, mut place: Place) {
    let mut outcome = running.finish().await;
    let attachments = outcome.as_mut().map(|it| std::mem::take(&mut it.attachments));
    let attachments = attachments.unwrap_or_default();
    let (content, error) = content(outcome, &running.call, &around).await;
    let duration_ms = running.duration_ms();
    let call = &running.call;
    let mut outcome = json!({
        "task_id": place.id,
        "tool_name": call.name,
        "call_id": call.id,
        "status": status(error.as_ref()),
        "duration_seconds": seconds(duration_ms),
        "result": content,
    });
    if !attachments.is_empty() {
        outcome["attachments"] = json!(attachments);
    }
    place.outcome = Some(outcome);
    around.emitter.emit(Event::TaskFinished {
        task_id: place.id.clone(),
        call_id: call.id.clone(),
        name: call.name.clone(),
        source: running.source.clone(),
        result: content,
        is_error: error.is_some(),
        duration_ms,
    });
}

/// Makes of an outcome what the model is given: one object, within its bound.
async fn content(
    outcome: Result<Output>,
    call: &ToolCall,
    around: &Surroundings,
) -> (Map<String, Value>, Option<Error>) {
    let (bytes_max, store) = (around.output_bytes_max, &*around.outputs);
    let fitting = Fitting { call: &call.id, bytes_max, store };
    let (content, error) = match outcome {
        Ok(output) => (output::content(output, fitting).await, None),
        Err(error) => (output::fit(error_content(&error), fitting).await, Some(error)),
    };
    if error.as_ref().is_some_and(|error| error.kind == ErrorKind::Cancelled) {
        return (content, error);
    }
    let after = around.hooks.after_tool(call, around.tool.as_ref(), content, error.is_some());
    let Changed { mut content, is_changed } = after.await;
    if is_changed {
        content = output::fit(content, fitting).await;
    }
    (content, error)
}

fn status(error: Option<&Error>) -> &'static str {
    match error.map(|error| error.kind) {
        None => "completed",
        Some(ErrorKind::Cancelled) => "cancelled",
        Some(ErrorKind::Timeout) => "timeout",
        Some(_) => "failed",
    }
}

/// What the model is given in place of the result.
fn handle(id: &str, running: &Running, threshold_ms: u64) -> Output {
    let threshold = seconds(threshold_ms);
    Output::json(json!({
        "auto_backgrounded": true,
        "task_id": id,
        "plugin_name": running.source,
        "tool_name": running.call.name,
        "threshold_seconds": threshold,
        "message": format!(
            "Task exceeded {threshold}s threshold, continuing in background. Its outcome will be \
             given to you in a later message under the task_id '{id}': do not make the call again."
        ),
    }))
}

/// Seconds with three decimals; `10.0` where they are whole.
fn seconds(ms: u64) -> f64 {
    std::time::Duration::from_millis(ms).as_secs_f64()
}

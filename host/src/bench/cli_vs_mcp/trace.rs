//! The calls by a model in a run, and their results, for the trace of the run.

use jaato_runtime::session_loop::EventSink;
use jaato_runtime::types::{Event, EventEnvelope};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// How many calls and results of one run are kept. A run with more is not useful.
const KEPT_MAX: usize = 2000;

/// Records the events of a session.
#[derive(Default)]
pub struct CallTrace(Mutex<Vec<Value>>);

impl CallTrace {
    /// Returns the calls so far, and forgets them.
    pub fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock())
    }
}

impl EventSink for CallTrace {
    fn event(&self, envelope: EventEnvelope) {
        let entry = match envelope.event {
            Event::ToolCallStarted { name, arguments, parent: None, .. } => json!({
                "type": "function_call", "role": "model", "name": name, "args": arguments,
            }),
            Event::ToolCallFinished { name, result, .. } => json!({
                "type": "function_response", "role": "tool", "name": name, "response": result,
            }),
            _ => return,
        };
        let mut kept = self.0.lock();
        if kept.len() < KEPT_MAX {
            kept.push(entry);
        }
    }
}

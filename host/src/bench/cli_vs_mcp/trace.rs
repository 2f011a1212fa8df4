//! What a model called in a run, and what came back, as the trace of the run has it.

use jaato_runtime::session_loop::EventSink;
use jaato_runtime::types::{Envelope, Event};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Calls and results of one run that are kept: a run that makes more goes nowhere.
const KEPT_MAX: usize = 2000;

/// Takes the events of a session.
#[derive(Default)]
pub struct Calls(Mutex<Vec<Value>>);

impl Calls {
    /// Returns what was called so far, and forgets it.
    pub fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock())
    }
}

impl EventSink for Calls {
    fn event(&self, envelope: Envelope) {
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

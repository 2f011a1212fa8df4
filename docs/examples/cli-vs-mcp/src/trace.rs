//! The calls by a model in a run, and their results, for the trace of the run.

use jaato_library::types::Event;
use serde_json::{Value, json};

/// How many calls and results of one run are kept. A run with more is not useful.
const KEPT_MAX: usize = 2000;

/// Records the events of a turn.
#[derive(Debug, Default)]
pub struct CallTrace(Vec<Value>);

impl CallTrace {
    /// Adds an event, if it is a call or a result.
    pub fn add(&mut self, event: Event) {
        let entry = match event {
            Event::ToolCallStarted { name, arguments, parent: None, .. } => json!({
                "type": "function_call", "role": "model", "name": name, "args": arguments,
            }),
            Event::ToolCallFinished { name, result, .. } => json!({
                "type": "function_response", "role": "tool", "name": name, "response": result,
            }),
            _ => return,
        };
        if self.0.len() < KEPT_MAX {
            self.0.push(entry);
        }
    }

    /// Returns the calls and results in their order.
    pub fn entries(&self) -> &[Value] {
        &self.0
    }
}

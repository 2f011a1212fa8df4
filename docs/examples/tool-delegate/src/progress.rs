//! The progress of a child, as the user sees it. Independent of sessions, so it is tested without
//! one.

use jaato_plugin_sdk::types::Event;

/// The progress of a child.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of requests in its turn.
    pub steps: u64,
}

impl Progress {
    /// Takes an event and returns the line to show, if there is one.
    pub fn line(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::StepStarted { step } => {
                self.steps = u64::from(*step);
                Some("the delegate thinks".to_owned())
            }
            Event::ToolCallStarted { name, .. } => Some(format!("the delegate calls {name}")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::prelude::{Value, json};
    use jaato_plugin_sdk::serde_json;

    use super::*;

    fn event(json: Value) -> Event {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn steps_and_calls_are_shown_and_nothing_else() {
        let mut progress = Progress::default();
        let step = event(json!({ "event": "step_started", "step": 2 }));
        assert_eq!(progress.line(&step).as_deref(), Some("the delegate thinks"));
        assert_eq!(progress.steps, 2);
        let call = event(json!({
            "event": "tool_call_started", "call_id": "c1", "name": "moon", "source": "x", "arguments": {},
        }));
        assert_eq!(progress.line(&call).as_deref(), Some("the delegate calls moon"));
        for other in [
            json!({ "event": "text_delta", "source": "x", "text": "x" }),
            json!({ "event": "smell" }),
        ] {
            assert_eq!(progress.line(&event(other)), None);
        }
    }
}

//! Shows the sessions that plugins open: one line for each step, labelled with the session's name.
//! Their answers belong to the plugin and are not shown.

use std::collections::HashMap;

use jaato_runtime::types::{Event, EventEnvelope, Outcome, SessionId};
use serde_json::Value;

use crate::diff::{self, ChangeTense};
use crate::terminal::{exact_line, one_line};

/// The names of the sessions that plugins have opened, by id.
#[derive(Debug, Default)]
pub struct Agents(HashMap<SessionId, String>);

/// The output for an event of such a session.
#[derive(Debug, PartialEq, Eq)]
pub enum Shown {
    /// A line of text.
    Line(String),
    /// The text of a spinner.
    Spinner(String),
    /// Nothing.
    Nothing,
}

impl Agents {
    /// Handles an event. Returns `None` if no plugin opened its session, because that session is
    /// shown in full.
    pub fn take(&mut self, envelope: &EventEnvelope, columns: usize) -> Option<Shown> {
        if let Event::SessionStarted { agent: Some(agent), model, .. } = &envelope.event {
            let name = exact_line(agent, columns);
            let line = format!("[{name}] begins, with {}", exact_line(model, columns));
            self.0.insert(envelope.session.clone(), name);
            return Some(Shown::Line(line));
        }
        let name = self.0.get(&envelope.session)?;
        let label = format!("[{name}] ");
        let room = columns.saturating_sub(label.chars().count());
        let line = |text: &str| Shown::Line(format!("{label}{}", one_line(text, room)));
        Some(match &envelope.event {
            Event::StepStarted { .. } => Shown::Spinner(format!("{label}thinking…")),
            Event::ToolCallStarted { name, arguments, .. } => line(&format!("{name} {arguments}")),
            Event::ToolCallFinished { name, result, is_error: true, .. } => {
                let message = result.get("error").and_then(|it| it.get("message"));
                let message = message.and_then(Value::as_str).unwrap_or("it failed");
                line(&format!("{name}: {message}"))
            }
            Event::FileChanged { change, .. } => {
                line(&diff::change_heading(change, ChangeTense::Made))
            }
            Event::Notice { source, text } => line(&format!("{source}: {text}")),
            Event::TurnFinished { outcome: Outcome::Done, .. } => line("has its answer"),
            Event::TurnFinished { outcome: Outcome::Cancelled, .. } => line("was ended"),
            Event::TurnFinished { error, .. } => {
                line(error.as_ref().map_or("has no answer", |error| error.message.as_str()))
            }
            _ => Shown::Nothing,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn envelope(session: &str, event: Event) -> EventEnvelope {
        EventEnvelope {
            v: EventEnvelope::VERSION,
            seq: 1,
            session: SessionId::from(session),
            event,
        }
    }

    #[test]
    fn a_session_that_another_opened_is_told_line_by_line_and_says_no_answer() {
        let mut agents = Agents::default();
        let text = |session: &str| {
            envelope(session, Event::TextDelta { source: "model".into(), text: "hi".into() })
        };
        assert_eq!(agents.take(&text("c"), 80), None);
        let (model, tools) = ("moon/full".to_owned(), Vec::new());
        let (agent, opener) = (Some("helper".to_owned()), Some(SessionId::from("s")));
        let started = Event::SessionStarted { model, tools, agent, opener };
        let begins = Some(Shown::Line("[helper] begins, with moon/full".to_owned()));
        assert_eq!(agents.take(&envelope("c", started), 80), begins);
        assert_eq!(agents.take(&text("c"), 80), Some(Shown::Nothing));
        assert_eq!(agents.take(&text("s"), 80), None);
        let call = Event::ToolCallStarted {
            call_id: "1".into(),
            name: "phase".into(),
            source: "moon".to_owned(),
            arguments: json!({ "day": 1 }),
            parent: None,
            by: None,
        };
        let line = Some(Shown::Line("[helper] phase {\"day\":1}".to_owned()));
        assert_eq!(agents.take(&envelope("c", call), 80), line);
    }
}

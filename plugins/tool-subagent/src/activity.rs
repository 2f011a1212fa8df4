//! What each running agent does, from the events of its session and of those that it opens.

use std::collections::BTreeMap;

use jaato_plugin_sdk::types::{Event, EventEnvelope};
use jiff::Timestamp;
use parking_lot::Mutex;

/// The agents below one session, by the ids of their sessions.
#[derive(Default)]
pub struct AgentActivities(Mutex<BTreeMap<String, AgentActivity>>);

/// What one agent does.
#[derive(Debug, Clone)]
pub struct AgentActivity {
    /// Its name for users.
    pub agent: String,
    /// The session that opened it.
    pub opener: String,
    /// `provider/model`.
    pub model: String,
    pub phase: ActivityPhase,
    pub phase_began: Timestamp,
    /// The number of the request in the current turn.
    pub step: u32,
    pub last_tool: Option<String>,
    pub tokens: u64,
    /// The known cost of its requests, in millionths of a US dollar.
    pub cost_micro_usd: u64,
    pub last_activity: Timestamp,
}

/// The phase of an agent's turn, by the words of the original plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityPhase {
    Idle,
    WaitingForModel,
    Streaming,
    ExecutingTool,
    WaitingForUser,
}

impl ActivityPhase {
    pub fn status_word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::WaitingForModel => "waiting_for_llm",
            Self::Streaming => "streaming",
            Self::ExecutingTool => "executing_tool",
            Self::WaitingForUser => "waiting_for_user",
        }
    }

    /// Returns the phase that an event begins, if it begins one.
    fn phase_after_event(event: &Event) -> Option<Self> {
        Some(match event {
            Event::TurnFinished { .. } => Self::Idle,
            Event::StepStarted { .. } | Event::ToolCallFinished { .. } => Self::WaitingForModel,
            Event::TextDelta { .. } | Event::ThoughtDelta { .. } => Self::Streaming,
            Event::PermissionAsked(_) | Event::FormAsked { .. } => Self::WaitingForUser,
            Event::ToolCallStarted { .. } => Self::ExecutingTool,
            _ => return None,
        })
    }
}

impl AgentActivity {
    fn new(agent: &str, opener: &str, model: &str) -> Self {
        let now = Timestamp::now();
        Self {
            agent: agent.to_owned(),
            opener: opener.to_owned(),
            model: model.to_owned(),
            phase: ActivityPhase::Idle,
            phase_began: now,
            step: 0,
            last_tool: None,
            tokens: 0,
            cost_micro_usd: 0,
            last_activity: now,
        }
    }

    fn update_from_event(&mut self, event: &Event) {
        self.last_activity = Timestamp::now();
        if let Some(phase) =
            ActivityPhase::phase_after_event(event).filter(|phase| *phase != self.phase)
        {
            (self.phase, self.phase_began) = (phase, self.last_activity);
        }
        match event {
            Event::ModelChanged { model, .. } => self.model.clone_from(model),
            Event::StepStarted { step } => self.step = *step,
            Event::ToolCallStarted { name, .. } => self.last_tool = Some(name.as_str().to_owned()),
            Event::Usage { usage } => {
                self.tokens = self.tokens.saturating_add(usage.total_tokens());
                let cost = usage.cost_micro_usd.unwrap_or_default();
                self.cost_micro_usd = self.cost_micro_usd.saturating_add(cost);
            }
            _ => {}
        }
    }

    /// Returns one line for the user.
    pub fn status_line(&self) -> String {
        let mut line = format!("{} ({}): {}", self.agent, self.model, self.phase.status_word());
        if self.phase != ActivityPhase::Idle {
            line.push_str(&format!(", step {}", self.step));
        }
        if let Some(tool) = &self.last_tool {
            line.push_str(&format!(", last tool {tool}"));
        }
        line.push_str(&format!(", {} tokens", self.tokens));
        if self.cost_micro_usd > 0 {
            // A sum of money has far fewer digits than a double keeps.
            line.push_str(&format!(", ${:.4}", self.cost_micro_usd as f64 / 1e6));
        }
        line
    }
}

impl AgentActivities {
    /// Adds an agent that was opened.
    pub fn add_agent(&self, session: &str, agent: &str, opener: &str, model: &str) {
        let activity = AgentActivity::new(agent, opener, model);
        self.0.lock().insert(session.to_owned(), activity);
    }

    /// Forgets an agent and all agents below it.
    pub fn remove_agent(&self, session: &str) {
        let mut activities = self.0.lock();
        let mut gone = vec![session.to_owned()];
        while let Some(session) = gone.pop() {
            activities.remove(&session);
            let below = activities.iter().filter(|(_, it)| it.opener == session);
            gone.extend(below.map(|(id, _)| id.clone()));
        }
    }

    /// Notes an event of an agent, or of one below it.
    pub fn record_event(&self, envelope: &EventEnvelope) {
        let session = envelope.session.as_str();
        if let Event::SessionStarted { model, agent: Some(agent), opener: Some(opener), .. } =
            &envelope.event
        {
            return self.add_agent(session, agent, opener.as_str(), model);
        }
        if let Some(activity) = self.0.lock().get_mut(session) {
            activity.update_from_event(&envelope.event);
        }
    }

    /// Returns what an agent does.
    pub fn find_activity(&self, session: &str) -> Option<AgentActivity> {
        self.0.lock().get(session).cloned()
    }

    /// Returns the tree below a session as lines, each level indented by two columns.
    pub fn tree_lines(&self, opener: &str) -> Vec<String> {
        let activities = self.0.lock();
        let mut lines = Vec::new();
        add_lines(&activities, opener, 0, &mut lines);
        lines
    }
}

fn add_lines(
    activities: &BTreeMap<String, AgentActivity>,
    opener: &str,
    level: usize,
    lines: &mut Vec<String>,
) {
    for (session, activity) in activities.iter().filter(|(_, it)| it.opener == opener) {
        lines.push(format!("{}{}", "  ".repeat(level), activity.status_line()));
        add_lines(activities, session, level + 1, lines);
    }
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;
    use jaato_plugin_sdk::types::{SessionId, ToolName, Usage};

    use super::*;

    fn event_envelope(session: &str, event: Event) -> EventEnvelope {
        EventEnvelope::new(1, SessionId::from(session), event)
    }

    #[test]
    fn tree_shows_agents_below_agents_with_their_steps_tools_and_costs() {
        let activities = AgentActivities::default();
        activities.add_agent("a", "reader", "main", "p/m");
        let started = Event::SessionStarted {
            model: "p/small".to_owned(),
            tools: Vec::new(),
            agent: Some("helper".to_owned()),
            opener: Some(SessionId::from("a")),
        };
        activities.record_event(&event_envelope("b", started));
        activities.record_event(&event_envelope("b", Event::StepStarted { step: 2 }));
        let usage = Usage {
            prompt_tokens: 90,
            output_tokens: 10,
            cost_micro_usd: Some(1_500),
            ..Usage::default()
        };
        activities.record_event(&event_envelope("b", Event::Usage { usage }));
        let called = Event::ToolCallStarted {
            call_id: "c".into(),
            name: ToolName::from("readFile"),
            source: "cli".to_owned(),
            arguments: json!({}),
            parent: None,
            by: None,
        };
        activities.record_event(&event_envelope("b", called));
        activities.record_event(&event_envelope("unknown", Event::StepStarted { step: 9 }));
        assert_eq!(
            activities.tree_lines("main"),
            [
                "reader (p/m): idle, 0 tokens",
                "  helper (p/small): executing_tool, step 2, last tool readFile, 100 tokens, \
                 $0.0015",
            ]
        );
        activities.remove_agent("a");
        assert_eq!(activities.tree_lines("main"), Vec::<String>::new());
    }
}

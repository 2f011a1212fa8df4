//! A transcript, with those of its agents, as a sequence diagram: who sent what to whom, in order.
//!
//! An agent is a participant: what it got from its opener, asked its model and called. In its own
//! session it is what jaato is in the first one, and its opener is the user.
//!
//! Mermaid: <https://mermaid.js.org/syntax/sequenceDiagram.html>. PlantUML:
//! <https://plantuml.com/sequence-diagram>. No text can end its line or add an arrow.

use jaato_types::text::{one_line, truncate_chars};
use jaato_types::{Part, Role, SessionId};
use serde::Serialize;
use serde_json::{Value, json};

use super::transcript::{Transcript, TranscriptMessage};
use super::visible::visible_text;

/// The longest text of an arrow, in characters.
const LABEL_CHARS_MAX: usize = 60;

/// The participants that are in each diagram.
const USER: &str = "user";
const HOST: &str = "jaato";

/// What an arrow of a sequence diagram represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum SequenceStepKind {
    Prompt,
    Request,
    Answer,
    ToolCall,
    ToolResult,
    Text,
}

/// One arrow.
#[derive(Debug, Clone, Serialize)]
struct SequenceStep {
    at_ms: i64,
    from: String,
    to: String,
    kind: SequenceStepKind,
    text: String,
    is_error: bool,
    /// The special state of the message, for example `collected`.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The transcript of an agent: of a session that another one opened.
#[derive(Debug, Clone)]
pub struct AgentTranscript {
    /// The agent's name.
    pub agent: String,
    /// The session that opened it. The diagram has its agents directly or indirectly below the
    /// first session.
    pub opener: SessionId,
    /// Its conversation.
    pub transcript: Transcript,
}

/// Writes a transcript as the source of a Mermaid sequence diagram.
pub fn to_mermaid(transcript: &Transcript, agents: &[AgentTranscript]) -> String {
    let steps = transcript_steps(transcript, agents);
    let mut lines = vec!["sequenceDiagram".to_owned()];
    let names = participants(&steps);
    lines.extend(names.iter().map(|name| {
        format!(
            "    participant {} as {}",
            participant_id(&names, name),
            escape_mermaid(&shorten_text(name))
        )
    }));
    for step in &steps {
        let arrow = if is_reply(step.kind) { "-->>" } else { "->>" };
        let (from, to) = (participant_id(&names, &step.from), participant_id(&names, &step.to));
        lines.push(format!("    {from}{arrow}{to}: {}", escape_mermaid(&step_label(step))));
        if let Some(note) = &step.note {
            lines.push(format!(
                "    Note over {from},{to}: {}",
                escape_mermaid(&shorten_text(note))
            ));
        }
    }
    lines.join("\n") + "\n"
}

/// Writes a transcript as the source of a PlantUML sequence diagram.
pub fn to_plantuml(transcript: &Transcript, agents: &[AgentTranscript]) -> String {
    let steps = transcript_steps(transcript, agents);
    let mut lines = vec!["@startuml".to_owned()];
    lines.push(format!("title {}", escape_plantuml(&shorten_text(&transcript.name))));
    let names = participants(&steps);
    lines.extend(names.iter().map(|name| {
        format!(
            "participant \"{}\" as {}",
            escape_plantuml(&shorten_text(name).replace('"', "'")),
            participant_id(&names, name)
        )
    }));
    for step in &steps {
        let arrow = if is_reply(step.kind) { "-->" } else { "->" };
        let (from, to) = (participant_id(&names, &step.from), participant_id(&names, &step.to));
        lines.push(format!("{from} {arrow} {to}: {}", escape_plantuml(&step_label(step))));
        if let Some(note) = &step.note {
            lines.push(format!("note over {from}, {to}: {}", escape_plantuml(&shorten_text(note))));
        }
    }
    lines.push("@enduml".to_owned());
    lines.join("\n") + "\n"
}

/// Returns the steps of a transcript with their whole texts as one JSON object.
pub fn to_sequence_json(transcript: &Transcript, agents: &[AgentTranscript]) -> Value {
    let names = agent_names(agents);
    let listed = agents.iter().zip(&names).map(|(agent, name)| {
        json!({ "name": name, "session": agent.transcript.id, "opener": agent.opener })
    });
    json!({
        "session": transcript.id,
        "name": transcript.name,
        "workspace": transcript.workspace,
        "begun_ms": transcript.begun_ms,
        "agents": listed.collect::<Vec<_>>(),
        "steps": transcript_steps(transcript, agents),
    })
}

/// The participants between which a session's messages go.
#[derive(Clone, Copy)]
struct SessionParticipants<'a> {
    user: &'a str,
    host: &'a str,
}

/// Returns the steps of all sessions by time. Those of one session keep their order, also if the
/// clock was set back.
fn transcript_steps(transcript: &Transcript, agents: &[AgentTranscript]) -> Vec<SequenceStep> {
    let names = agent_names(agents);
    let host_of = |session: &SessionId| {
        let opener = agents.iter().position(|agent| agent.transcript.id == *session);
        opener.map_or(HOST, |at| names[at].as_str())
    };
    let own = (transcript, SessionParticipants { user: USER, host: HOST });
    let below = agents.iter().zip(&names).map(|(agent, name)| {
        (&agent.transcript, SessionParticipants { user: host_of(&agent.opener), host: name })
    });
    let mut timed: Vec<(i64, SequenceStep)> = Vec::new();
    for (transcript, ends) in std::iter::once(own).chain(below) {
        let mut latest = i64::MIN;
        for message in &transcript.messages {
            latest = latest.max(message.at_ms);
            timed.extend(message_steps(message, ends).into_iter().map(|step| (latest, step)));
        }
    }
    timed.sort_by_key(|(at_ms, _)| *at_ms);
    timed.into_iter().map(|(_, step)| step).collect()
}

/// Returns the participant of each agent, numbered if two have the same name.
fn agent_names(agents: &[AgentTranscript]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(agents.len());
    for AgentTranscript { agent, .. } in agents {
        let name = format!("agent {agent}");
        let numbered = (2..).map(|number| format!("{name} {number}"));
        let mut unused = std::iter::once(name.clone()).chain(numbered);
        names.extend(unused.find(|name| !names.contains(name)));
    }
    names
}

fn message_steps(message: &TranscriptMessage, ends: SessionParticipants<'_>) -> Vec<SequenceStep> {
    let SessionParticipants { user, host } = ends;
    let step = |from: &str, to: &str, kind: SequenceStepKind, text: String| SequenceStep {
        at_ms: message.at_ms,
        from: from.to_owned(),
        to: to.to_owned(),
        kind,
        text,
        is_error: false,
        note: None,
    };
    let parts = &message.message.parts;
    let text = message.message.text();
    let results = parts.iter().filter_map(Part::as_tool_result).map(|result| {
        let content = Value::Object(result.content.clone()).to_string();
        let back = step(result.name.as_str(), host, SequenceStepKind::ToolResult, content);
        SequenceStep { is_error: result.is_error, ..back }
    });
    let mut steps: Vec<SequenceStep> = Vec::new();
    match message.message.role {
        Role::Model => {
            let model = message.model.as_deref().unwrap_or("model");
            let calls: Vec<_> = message.message.tool_calls().collect();
            let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
            steps.push(step(host, model, SequenceStepKind::Request, String::new()));
            let said = if names.is_empty() { text.clone() } else { names.join(", ") };
            steps.push(step(model, host, SequenceStepKind::Answer, said));
            if !text.trim().is_empty() {
                steps.push(step(host, user, SequenceStepKind::Text, text));
            }
            steps.extend(calls.into_iter().map(|call| {
                let arguments = call.arguments.to_string();
                step(host, call.name.as_str(), SequenceStepKind::ToolCall, arguments)
            }));
        }
        _ => {
            if message.message.is_prompt() {
                steps.push(step(user, host, SequenceStepKind::Prompt, text));
            }
            steps.extend(results);
        }
    }
    if let Some(last) = steps.last_mut() {
        last.note.clone_from(&message.note);
    }
    steps
}

/// Returns the participants of the steps, the user and jaato first.
fn participants(steps: &[SequenceStep]) -> Vec<&str> {
    let mut names = vec![USER, HOST];
    for name in steps.iter().flat_map(|step| [step.from.as_str(), step.to.as_str()]) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the identifier of a participant, which has no characters with a meaning.
fn participant_id(names: &[&str], name: &str) -> String {
    format!("p{}", names.iter().position(|known| *known == name).unwrap_or_default())
}

fn is_reply(kind: SequenceStepKind) -> bool {
    matches!(kind, SequenceStepKind::Answer | SequenceStepKind::ToolResult)
}

/// Returns the text of an arrow.
fn step_label(step: &SequenceStep) -> String {
    let text = shorten_text(&step.text);
    match (step.kind, step.is_error) {
        (SequenceStepKind::Request, _) => "request".to_owned(),
        (_, true) => format!("error: {text}"),
        (_, false) if text.is_empty() => "(no text)".to_owned(),
        (_, false) => text,
    }
}

fn shorten_text(text: &str) -> String {
    truncate_chars(&one_line(&visible_text(text)), LABEL_CHARS_MAX)
}

/// Writes a text for Mermaid: what would end a statement or begin a tag or a code is a code.
fn escape_mermaid(text: &str) -> String {
    // `end` alone would close a block.
    let text = if text.eq_ignore_ascii_case("end") { format!("({text})") } else { text.to_owned() };
    let write = |sign: char| match sign {
        ';' | '#' | '<' | '>' => format!("#{};", u32::from(sign)),
        sign => sign.to_string(),
    };
    text.chars().map(write).collect()
}

/// Writes a text for PlantUML: what would begin a tag, a link, a function or markup is a code.
fn escape_plantuml(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut before = None;
    for sign in text.chars() {
        let begins_markup = match before {
            None => "*#=|".contains(sign),
            Some(before) => before == sign && "*_/-\"".contains(sign),
        };
        match begins_markup || "<\\~%[".contains(sign) {
            true => written.push_str(&format!("<U+{:04X}>", u32::from(sign))),
            false => written.push(sign),
        }
        before = Some(sign);
    }
    written
}

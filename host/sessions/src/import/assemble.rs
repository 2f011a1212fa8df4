//! Builds the messages of a conversation from the pieces of a foreign one, so that jaato accepts
//! them as a history.
//!
//! Invariants of the result: a user message comes first, and a user message follows each answer
//! without calls. Each call has one result, in call order, in the message after it. Call ids are
//! unique. No message is empty. All this also applies to the messages that are still sent.

use std::collections::{HashMap, HashSet};

use jaato_types::{CallId, Error, ErrorKind, Message, Part, Role, ToolCall, ToolName, ToolResult};
use serde_json::{Value, json};

use super::json_line::JsonObject;
use super::notes::{ImportLoss, ImportNotes, ImportRepair};
use crate::export::{TranscriptMessage, transcript_note};

/// Takes the place of an answer that was not recorded.
const NO_ANSWER: &str = "[no answer was recorded]";

/// Takes the place of a prompt that was not recorded.
const NO_PROMPT: &str = "[no prompt was recorded]";

/// A piece of a foreign conversation.
#[derive(Debug, Clone)]
pub enum ConversationPiece {
    /// A prompt.
    Prompt(Vec<Part>),
    /// Text of the user or the program that came together with tool results.
    News(Vec<Part>),
    /// A part of an answer.
    Answer {
        /// Its parts. Calls have the ids of the foreign program.
        parts: Vec<Part>,
        /// The model, as `provider/model`.
        model: Option<String>,
        /// The id of the whole answer, if the program records parts of it separately.
        response: Option<String>,
    },
    /// The result of a call.
    Result {
        /// The call's id in the foreign program.
        call_id: String,
        /// The result.
        content: JsonObject,
        /// Whether it is an error.
        is_error: bool,
    },
    /// The model no longer receives the pieces before this one.
    Compacted,
    /// A summary of those pieces, which precedes the next prompt.
    Summary(String),
}

/// A piece with its time in milliseconds since 1970.
pub type TimedPiece = (i64, ConversationPiece);

/// Builds the messages.
pub fn assemble_messages(
    pieces: Vec<TimedPiece>,
    notes: &mut ImportNotes,
) -> Vec<TranscriptMessage> {
    let mut assembly = MessageAssembly {
        drafts: Vec::new(),
        collected: 0,
        results: HashMap::new(),
        open_calls: HashMap::new(),
        call_ids: HashSet::new(),
        numbers: HashMap::new(),
        notes,
    };
    for (at_ms, piece) in pieces {
        assembly.add_piece(at_ms, piece);
    }
    assembly.finish()
}

/// A message that may still grow.
struct MessageDraft {
    role: Role,
    at_ms: i64,
    parts: Vec<Part>,
    model: Option<String>,
    response: Option<String>,
    note: Option<&'static str>,
    /// Whether it is a summary so far, which a prompt may follow.
    is_summary: bool,
    /// Text that comes with the results of the message's calls.
    news: Vec<Part>,
    /// When the first result came.
    answered_ms: Option<i64>,
}

struct MessageAssembly<'a> {
    /// User messages and answers. The messages with results follow from the calls.
    drafts: Vec<MessageDraft>,
    /// How many drafts are no longer sent.
    collected: usize,
    results: HashMap<CallId, ToolResult>,
    /// The last call with each foreign id: its draft, its id here and its tool.
    open_calls: HashMap<String, (usize, CallId, ToolName)>,
    call_ids: HashSet<CallId>,
    /// The last number of each foreign id that occurs again.
    numbers: HashMap<String, u64>,
    notes: &'a mut ImportNotes,
}

impl MessageDraft {
    fn new(role: Role, at_ms: i64, parts: Vec<Part>) -> Self {
        Self {
            role,
            at_ms,
            parts,
            model: None,
            response: None,
            note: None,
            is_summary: false,
            news: Vec::new(),
            answered_ms: None,
        }
    }

    fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| part.as_tool_call().is_some())
    }
}

impl MessageAssembly<'_> {
    fn add_piece(&mut self, at_ms: i64, piece: ConversationPiece) {
        match piece {
            ConversationPiece::Prompt(parts) => self.add_prompt(at_ms, remove_empty_texts(parts)),
            ConversationPiece::News(parts) => self.add_news(at_ms, remove_empty_texts(parts)),
            ConversationPiece::Answer { parts, model, response } => {
                self.add_answer(at_ms, remove_empty_texts(parts), model, response);
            }
            ConversationPiece::Result { call_id, content, is_error } => {
                self.add_result(at_ms, &call_id, content, is_error);
            }
            ConversationPiece::Compacted => self.mark_collected(at_ms),
            ConversationPiece::Summary(text) => {
                self.add_news(at_ms, remove_empty_texts(vec![Part::text(text)]));
                if let Some(last) = self.last_draft() {
                    last.is_summary = last.role == Role::User;
                }
            }
        }
    }

    /// Returns the last draft, unless it is no longer sent.
    fn last_draft(&mut self) -> Option<&mut MessageDraft> {
        self.drafts[self.collected..].last_mut()
    }

    fn add_prompt(&mut self, at_ms: i64, parts: Vec<Part>) {
        if parts.is_empty() {
            return;
        }
        match self.last_draft() {
            Some(last) if last.role == Role::User => {
                last.parts.extend(parts);
                if !std::mem::take(&mut last.is_summary) {
                    self.notes.count_repair(ImportRepair::MergedPrompt);
                }
            }
            Some(last) if last.has_calls() => {
                self.add_missing_answer(at_ms);
                self.drafts.push(MessageDraft::new(Role::User, at_ms, parts));
            }
            Some(_) | None => self.drafts.push(MessageDraft::new(Role::User, at_ms, parts)),
        }
    }

    fn add_news(&mut self, at_ms: i64, parts: Vec<Part>) {
        match self.last_draft() {
            Some(last) if last.role == Role::User => last.parts.extend(parts),
            Some(last) if last.has_calls() => last.news.extend(parts),
            Some(_) | None => self.add_prompt(at_ms, parts),
        }
    }

    fn add_answer(
        &mut self,
        at_ms: i64,
        parts: Vec<Part>,
        model: Option<String>,
        response: Option<String>,
    ) {
        if parts.is_empty() {
            return;
        }
        let continues = |last: &MessageDraft| {
            let is_same = response.is_some() && last.response == response;
            let is_open = last.answered_ms.is_none() && last.news.is_empty();
            last.role == Role::Model && (is_same || is_open || !last.has_calls())
        };
        if !self.last_draft().is_some_and(|last| continues(last)) {
            if self.last_draft().is_none() {
                self.notes.count_repair(ImportRepair::MissingPrompt);
                let prompt = vec![Part::text(NO_PROMPT)];
                self.drafts.push(MessageDraft::new(Role::User, at_ms, prompt));
            }
            self.drafts.push(MessageDraft::new(Role::Model, at_ms, Vec::new()));
        }
        let draft = self.drafts.len() - 1;
        let parts =
            parts.into_iter().map(|part| self.with_unique_id(part, draft)).collect::<Vec<_>>();
        let last = &mut self.drafts[draft];
        last.parts.extend(parts);
        last.model = last.model.take().or(model);
        last.response = response.or(last.response.take());
    }

    /// Gives a call an id that is unique here, and a name that providers accept.
    fn with_unique_id(&mut self, part: Part, draft: usize) -> Part {
        let Part::ToolCall(mut call) = part else { return part };
        let foreign_id = call.id.as_str().to_owned();
        if foreign_id.is_empty() || self.call_ids.contains(&call.id) {
            call.id = self.unused_id(&foreign_id);
            self.notes.count_repair(ImportRepair::RenamedCall);
        }
        if !call.name.is_valid() {
            call.name = valid_tool_name(&call.name);
            self.notes.count_repair(ImportRepair::RenamedTool);
        }
        self.call_ids.insert(call.id.clone());
        self.open_calls.insert(foreign_id, (draft, call.id.clone(), call.name.clone()));
        Part::ToolCall(call)
    }

    /// Returns the foreign id with the first free number from 2. The numbers are kept, because a
    /// program may give all calls the same id.
    fn unused_id(&mut self, foreign_id: &str) -> CallId {
        let stem = if foreign_id.is_empty() { "call" } else { foreign_id };
        let number = self.numbers.entry(stem.to_owned()).or_insert(1);
        loop {
            *number += 1;
            let id = CallId::new(format!("{stem}-{number}"));
            if !self.call_ids.contains(&id) {
                return id;
            }
        }
    }

    fn add_result(&mut self, at_ms: i64, call_id: &str, content: JsonObject, is_error: bool) {
        let Some((draft, id, name)) = self.open_calls.get(call_id).cloned() else {
            self.notes.count_loss(ImportLoss::UnpairedResult);
            return;
        };
        if self.results.contains_key(&id) {
            self.notes.count_loss(ImportLoss::SecondResult);
            return;
        }
        let result = ToolResult { is_error, ..ToolResult::new(id.clone(), name, content) };
        self.results.insert(id, result);
        self.drafts[draft].answered_ms.get_or_insert(at_ms);
    }

    /// Marks all messages as no longer sent.
    fn mark_collected(&mut self, at_ms: i64) {
        let is_complete =
            self.last_draft().is_none_or(|it| it.role == Role::Model && !it.has_calls());
        if !is_complete {
            self.add_missing_answer(at_ms);
        }
        self.collected = self.drafts.len();
    }

    fn add_missing_answer(&mut self, at_ms: i64) {
        self.notes.count_repair(ImportRepair::MissingAnswer);
        let mut answer = MessageDraft::new(Role::Model, at_ms, vec![Part::text(NO_ANSWER)]);
        answer.note = Some(transcript_note::BROKE_OFF);
        self.drafts.push(answer);
    }

    fn finish(mut self) -> Vec<TranscriptMessage> {
        let mut messages = Vec::new();
        for (number, mut draft) in std::mem::take(&mut self.drafts).into_iter().enumerate() {
            if draft.role == Role::Model && !draft.parts.iter().any(is_answer_content) {
                draft.parts.push(Part::text(NO_ANSWER));
                draft.note = Some(transcript_note::BROKE_OFF);
            }
            let is_collected = number < self.collected;
            let note = draft.note.filter(|_| !is_collected);
            let note = if is_collected { Some(transcript_note::COLLECTED) } else { note };
            let note = note.map(str::to_owned);
            let results: Vec<Part> = draft
                .parts
                .iter()
                .filter_map(Part::as_tool_call)
                .map(|it| self.take_result(it))
                .collect();
            let answered_ms = draft.answered_ms.unwrap_or(draft.at_ms);
            let message = Message { role: draft.role, parts: draft.parts };
            let (at_ms, model) = (draft.at_ms, draft.model);
            messages.push(TranscriptMessage { at_ms, message, model, note: note.clone() });
            if !results.is_empty() {
                let parts = results.into_iter().chain(draft.news).collect();
                let message = Message { role: Role::Tool, parts };
                messages.push(TranscriptMessage { at_ms: answered_ms, message, model: None, note });
            }
        }
        messages
    }

    fn take_result(&mut self, call: &ToolCall) -> Part {
        let recorded = self.results.remove(&call.id);
        Part::ToolResult(recorded.unwrap_or_else(|| {
            self.notes.count_repair(ImportRepair::MissingResult);
            let error = Error::new(ErrorKind::Failed, "no result was recorded");
            let mut content = JsonObject::new();
            content.insert("error".to_owned(), json!(error));
            let result = ToolResult::new(call.id.clone(), call.name.clone(), content);
            ToolResult { is_error: true, ..result }
        }))
    }
}

/// Removes texts that say nothing.
fn remove_empty_texts(parts: Vec<Part>) -> Vec<Part> {
    let is_empty = |part: &Part| match part {
        Part::Text { text, .. } | Part::Thought { text, .. } => text.trim().is_empty(),
        _ => false,
    };
    parts.into_iter().filter(|part| !is_empty(part)).collect()
}

/// Returns true for a part of an answer that is more than reasoning.
fn is_answer_content(part: &Part) -> bool {
    !matches!(part, Part::Thought { .. })
}

/// Changes a tool's name so that providers accept it.
fn valid_tool_name(name: &ToolName) -> ToolName {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    let name: String =
        name.as_str().chars().map(|it| if is_plain(it) { it } else { '_' }).collect();
    let end = name.len().min(ToolName::BYTES_MAX);
    ToolName::new(if end == 0 { "unknown" } else { &name[..end] })
}

/// Creates the content of a result from its text.
pub fn text_content(text: impl Into<String>) -> JsonObject {
    let mut content = JsonObject::new();
    content.insert("output".to_owned(), Value::String(text.into()));
    content
}

//! Reads the sessions of Claude Code: `~/.claude/projects/FOLDER/SESSION.jsonl`.
//!
//! Each line is a record. Those with a `uuid` form a tree through `parentUuid`, in which answers,
//! results and text that Claude Code adds follow each other. Each block of an answer is a record,
//! and the blocks share `message.id`. Results of parallel calls hang on the record of their call,
//! so the path from the last record misses all but one of them. Anthropic
//! calls the format internal.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use jaato_types::{Part, SessionId};
use serde_json::Value;

use super::assemble::{ConversationPiece, TimedPiece};
use super::claude_message::{
    COMMAND, COMMAND_OUTPUT, answer_piece, command_line, into_summary, user_parts, user_pieces,
};
use super::error::ImportError;
use super::json_line::{
    JsonLines, JsonObject, SourceLine, is_true_field, object_field, parse_time, text_field,
};
use super::notes::{ImportLoss, ImportNotes};
use super::{ForeignSession, ImportSource};
use crate::export::Transcript;

/// Records that hold no part of the conversation: states, statistics and copies.
const BOOKKEEPING: &[&str] = &[
    "agent-name",
    "agent-setting",
    "ai-title",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "attribution-snapshot",
    "cost-state",
    "custom-title",
    "file-history-delta",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "summary",
    "system",
    "tag",
    "tools-used",
    "worktree-state",
];

/// The model of an answer that Claude Code wrote itself.
const SYNTHETIC_MODEL: &str = "<synthetic>";

/// A record of the tree.
#[derive(Default)]
struct TreeRecord {
    parent: String,
    /// The record before it in the file, in case its parent is missing.
    before: Option<usize>,
    at_ms: i64,
    kind: RecordKind,
    /// Whether it is a command that the user typed.
    is_command: bool,
    /// `message.id` of an answer.
    response: Option<String>,
    pieces: Vec<ConversationPiece>,
}

#[derive(Default, PartialEq)]
enum RecordKind {
    Prompt,
    Answer,
    /// A compaction, added context, or a record without content.
    #[default]
    Other,
}

/// The facts from the whole file.
#[derive(Default)]
struct ClaudeFile {
    transcript: Transcript,
    titles: [String; 4],
    records: Vec<TreeRecord>,
    by_uuid: HashMap<String, usize>,
    has_records: bool,
}

/// Reads a session.
pub fn read_claude_session(
    path: &Path,
    notes: &mut ImportNotes,
) -> Result<ForeignSession, ImportError> {
    let mut lines = JsonLines::open(path)?;
    let mut file = ClaudeFile::default();
    while let Some((number, line)) = lines.next_line()? {
        match line {
            SourceLine::Object(record) => file.add_record(record, notes),
            SourceLine::Damaged => notes.note_damaged_line(number),
        }
    }
    if !file.has_records {
        return Err(ImportError::not_a_session(path, ImportSource::ClaudeCode));
    }
    note_subagent_files(path, notes);
    let pieces = file.current_branch(notes);
    let mut transcript = file.transcript;
    transcript.name = file.titles.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
    if transcript.id.as_str().is_empty() {
        let stem = path.file_stem().and_then(|it| it.to_str()).unwrap_or_default();
        transcript.id = SessionId::from(stem);
    }
    Ok(ForeignSession { transcript, pieces })
}

/// Returns the titles in a record by their rank: the user's, the agent's, a generated one, a
/// summary.
pub fn record_title(record: &JsonObject) -> Option<(usize, &str)> {
    let (rank, name) = match text_field(record, "type") {
        "custom-title" => (0, "customTitle"),
        "agent-name" => (1, "agentName"),
        "ai-title" => (2, "aiTitle"),
        "summary" => (3, "summary"),
        _ => return None,
    };
    Some((rank, text_field(record, name)))
}

impl ClaudeFile {
    fn add_record(&mut self, record: JsonObject, notes: &mut ImportNotes) {
        let kind = text_field(&record, "type");
        if let Some((rank, title)) = record_title(&record) {
            self.titles[rank] = jaato_types::text::one_line(title);
        }
        self.has_records |= record.contains_key("sessionId") || kind == "summary";
        let uuid = text_field(&record, "uuid").to_owned();
        if is_true_field(&record, "isSidechain") {
            if matches!(kind, "user" | "assistant") {
                notes.count_loss(ImportLoss::SubagentMessage);
            }
            return;
        }
        if uuid.is_empty() || self.by_uuid.contains_key(&uuid) {
            if !BOOKKEEPING.contains(&kind) && !matches!(kind, "user" | "assistant" | "attachment")
            {
                notes.count_unknown(kind);
            }
            return;
        }
        self.add_facts(&record);
        let mut tree_record = read_record(&record, notes);
        self.pair_with_command(&record, &mut tree_record, notes);
        tree_record.before = self.records.len().checked_sub(1);
        self.by_uuid.insert(uuid, self.records.len());
        self.records.push(tree_record);
    }

    /// Removes a command that Claude Code ran without the model, and keeps the text into which a
    /// command for the model expands.
    fn pair_with_command(
        &mut self,
        record: &JsonObject,
        read: &mut TreeRecord,
        notes: &mut ImportNotes,
    ) {
        let content = object_field(record, "message").and_then(|it| it.get("content"));
        let text = content.and_then(Value::as_str).unwrap_or_default().trim_start();
        let parent = self.by_uuid.get(&read.parent).map(|at| &mut self.records[*at]);
        let command = parent.filter(|it| it.is_command);
        if text.starts_with(COMMAND) {
            read.is_command = true;
            read.pieces = vec![ConversationPiece::Prompt(vec![Part::text(command_line(text))])];
        } else if text.starts_with(COMMAND_OUTPUT) {
            let command = command.map(|command| command.pieces.clear());
            notes.count_losses(ImportLoss::LocalCommand, u64::from(command.is_some()));
            read.pieces.clear();
        } else if is_true_field(record, "isMeta") && text_field(record, "type") == "user" {
            let expansion = content.filter(|_| command.is_some());
            notes.count_losses(ImportLoss::AddedContext, u64::from(expansion.is_none()));
            let Some(expansion) = expansion else { return };
            let (parts, _) = user_parts(expansion, notes);
            read.kind = RecordKind::Prompt;
            read.pieces = vec![ConversationPiece::News(parts)];
        }
    }

    fn add_facts(&mut self, record: &JsonObject) {
        let Transcript { id, workspace, begun_ms, .. } = &mut self.transcript;
        if id.as_str().is_empty() {
            *id = SessionId::from(text_field(record, "sessionId"));
        }
        if workspace.is_empty() {
            *workspace = text_field(record, "cwd").to_owned();
        }
        if *begun_ms == 0 {
            *begun_ms = parse_time(record.get("timestamp")).unwrap_or_default();
        }
    }

    /// Returns the pieces on the path to the last message, with the blocks and results that hang
    /// next to the path.
    fn current_branch(&mut self, notes: &mut ImportNotes) -> Vec<TimedPiece> {
        let mut path = self.path_to_last(notes);
        let responses: HashSet<&str> =
            path.iter().filter_map(|at| self.records[*at].response.as_deref()).collect();
        let is_block =
            |it: &TreeRecord| it.response.as_deref().is_some_and(|it| responses.contains(it));
        let blocks = (0..self.records.len()).filter(|at| is_block(&self.records[*at]));
        path.extend(blocks.collect::<Vec<_>>());
        let calls: HashSet<String> =
            path.iter().flat_map(|at| self.records[*at].call_ids()).collect();
        let is_result = |it: &TreeRecord| it.result_ids().any(|id| calls.contains(id));
        let results = (0..self.records.len()).filter(|at| is_result(&self.records[*at]));
        path.extend(results.collect::<Vec<_>>());
        let mut pieces = Vec::new();
        for (at, record) in self.records.iter_mut().enumerate() {
            if path.contains(&at) {
                pieces.extend(record.pieces.drain(..).map(|piece| (record.at_ms, piece)));
            } else if record.kind != RecordKind::Other && !record.pieces.is_empty() {
                notes.count_loss(ImportLoss::OtherBranch);
            }
        }
        pieces
    }

    fn path_to_last(&self, notes: &mut ImportNotes) -> HashSet<usize> {
        let mut path = HashSet::new();
        let mut is_broken = false;
        let mut next = self.records.iter().rposition(|it| it.kind != RecordKind::Other);
        while let Some(at) = next {
            if !path.insert(at) {
                break;
            }
            let record = &self.records[at];
            let parent = self.by_uuid.get(&record.parent).copied();
            next = parent.or_else(|| record.before.filter(|_| !record.parent.is_empty()));
            is_broken |= parent.is_none() && next.is_some();
        }
        if is_broken {
            notes.add_sentence(
                "A record names a record before it that is missing, so the order in the file decided.",
            );
        }
        path
    }
}

impl TreeRecord {
    fn call_ids(&self) -> Vec<String> {
        let parts = self.pieces.iter().filter_map(|piece| match piece {
            ConversationPiece::Answer { parts, .. } => Some(parts),
            _ => None,
        });
        let calls = parts.flatten().filter_map(Part::as_tool_call);
        calls.map(|call| call.id.as_str().to_owned()).collect()
    }

    fn result_ids(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            ConversationPiece::Result { call_id, .. } => Some(call_id.as_str()),
            _ => None,
        })
    }
}

fn read_record(record: &JsonObject, notes: &mut ImportNotes) -> TreeRecord {
    let parent = match text_field(record, "parentUuid") {
        // A compaction begins a new tree, and names the end of the old one.
        "" => text_field(record, "logicalParentUuid"),
        parent => parent,
    };
    let at_ms = parse_time(record.get("timestamp")).unwrap_or_default();
    let mut read = TreeRecord { parent: parent.to_owned(), at_ms, ..TreeRecord::default() };
    let message = object_field(record, "message");
    match text_field(record, "type") {
        // `pair_with_command` decides about text that Claude Code added.
        "user" if is_true_field(record, "isMeta") => {}
        "user" => {
            read.kind = RecordKind::Prompt;
            read.pieces = message.map(|it| user_pieces(it, notes)).unwrap_or_default();
            if is_true_field(record, "isCompactSummary") {
                read.pieces = read.pieces.into_iter().map(into_summary).collect();
            }
        }
        "assistant" => {
            let Some(message) = message else { return read };
            if is_true_field(record, "isApiErrorMessage")
                || text_field(message, "model") == SYNTHETIC_MODEL
            {
                notes.count_loss(ImportLoss::ProgramAnswer);
                return read;
            }
            read.kind = RecordKind::Answer;
            read.response = Some(text_field(message, "id").to_owned()).filter(|it| !it.is_empty());
            read.pieces = vec![answer_piece(message, read.response.clone(), notes)];
        }
        "attachment" => read.pieces = attachment_pieces(record, notes),
        "system" if text_field(record, "subtype") == "compact_boundary" => {
            read.pieces = vec![ConversationPiece::Compacted];
        }
        kind if BOOKKEEPING.contains(&kind) => {}
        other => notes.count_unknown(other),
    }
    read
}

/// Reads text that Claude Code added. One kind is a prompt that the user typed during a turn.
fn attachment_pieces(record: &JsonObject, notes: &mut ImportNotes) -> Vec<ConversationPiece> {
    let attachment = object_field(record, "attachment");
    let queued = attachment.filter(|it| text_field(it, "type") == "queued_command");
    let Some(prompt) = queued.and_then(|it| it.get("prompt")) else {
        notes.count_loss(ImportLoss::AddedContext);
        return Vec::new();
    };
    let (parts, _) = user_parts(prompt, notes);
    vec![ConversationPiece::News(parts)]
}

/// Counts the files of subagents, which are in a folder with the session's name.
fn note_subagent_files(path: &Path, notes: &mut ImportNotes) {
    let Ok(entries) = path.with_extension("").join("subagents").read_dir() else { return };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let files = names.filter(|name| name.ends_with(".jsonl")).count();
    notes.count_losses(ImportLoss::SubagentFile, files as u64);
}

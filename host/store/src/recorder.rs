//! Turns a session's events into records. Pure: the time is an argument, and nothing is written.

use std::collections::HashMap;

use jaato_types::{CallId, Error, ErrorKind, Event, EventEnvelope, FinishReason, SessionId, Usage};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use crate::digest::{ArgumentsDigest, DigestKey, json_bytes};
use crate::record::{LedgerRecord, LedgerStage};

/// The time of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTime {
    /// Milliseconds since 1970.
    pub wall_ms: u64,
    /// Milliseconds of a clock that never goes back.
    pub monotonic_ms: u64,
}

/// Follows one session's events.
pub struct EventRecorder {
    key: Option<DigestKey>,
    model: String,
    records: u64,
    /// Number of turns, including an open one.
    turns: u64,
    turn: Option<OpenTurn>,
    /// Arguments of the calls and commands in progress.
    open_calls: HashMap<CallId, OpenCall>,
}

/// The data of a call in progress.
struct OpenCall {
    mark: ArgumentsDigest,
    /// The call for which a plugin makes this one.
    parent: Option<CallId>,
    /// That plugin.
    by: Option<String>,
}

struct OpenTurn {
    started_ms: u64,
    step: u32,
    step_started_ms: u64,
    attempts: u32,
    usage: Option<Usage>,
    /// Whether a request failed permanently. The end of the turn gives the reason.
    failed: bool,
}

impl EventRecorder {
    /// Starts with a session's first event. Without a key, arguments are marked only by their size.
    pub fn new(key: Option<DigestKey>) -> Self {
        Self {
            key,
            model: String::new(),
            records: 0,
            turns: 0,
            turn: None,
            open_calls: HashMap::new(),
        }
    }

    /// Takes the next event and returns its records, in order.
    pub fn records_for_event(
        &mut self,
        envelope: &EventEnvelope,
        now: EventTime,
    ) -> Vec<LedgerRecord> {
        let stages = self.stages_for_event(&envelope.event, now);
        stages.into_iter().map(|stage| self.new_record(&envelope.session, stage, now)).collect()
    }

    fn new_record(
        &mut self,
        session: &SessionId,
        stage: LedgerStage,
        now: EventTime,
    ) -> LedgerRecord {
        self.records += 1;
        let is_last = matches!(stage, LedgerStage::Turn { .. });
        let turn = if self.turn.is_some() || is_last { self.turns } else { 0 };
        if is_last {
            self.turn = None;
        }
        LedgerRecord {
            v: LedgerRecord::VERSION,
            ts: format_rfc3339(now.wall_ms),
            session: session.clone(),
            turn,
            event_index: self.records,
            stage,
        }
    }

    fn stages_for_event(&mut self, event: &Event, now: EventTime) -> Vec<LedgerStage> {
        match event {
            Event::SessionStarted { model, .. } => self.model.clone_from(model),
            Event::ModelChanged { model, error, .. } => {
                // The request continues with another model.
                let failed = error.as_ref().map(|error| self.attempt_failed(error, None));
                self.model.clone_from(model);
                return failed.unwrap_or_default();
            }
            Event::TurnStarted { .. } => self.begin_turn(now),
            Event::StepStarted { step } => self.begin_step(*step, now),
            Event::Usage { usage } => {
                if let Some(turn) = &mut self.turn {
                    turn.usage = Some(*usage);
                }
            }
            Event::Retry { delay_ms, error, .. } => {
                return self.attempt_failed(error, Some(*delay_ms));
            }
            Event::StepFinished { finish_reason, .. } => {
                return self.end_step(*finish_reason, now).into_iter().collect();
            }
            Event::TurnFinished { error, .. } => return self.end_turn(event, error.as_ref(), now),
            Event::ToolCallStarted { call_id, arguments, parent, by, .. } => {
                let mark = ArgumentsDigest::from_arguments(arguments, self.key.as_ref());
                let (parent, by) = (parent.clone(), by.clone());
                self.open_calls.insert(call_id.clone(), OpenCall { mark, parent, by });
            }
            Event::CommandStarted { call_id, arguments, .. } => {
                let mark = ArgumentsDigest::from_arguments(arguments, self.key.as_ref());
                self.open_calls.insert(call_id.clone(), OpenCall { mark, parent: None, by: None });
            }
            Event::PermissionAsked(_) | Event::PermissionDecided { .. } => {
                return permission_stage(event).into_iter().collect();
            }
            other => return self.outcome_stage(other).into_iter().collect(),
        }
        Vec::new()
    }

    /// Returns the stage of a call or command that has ended.
    fn outcome_stage(&mut self, event: &Event) -> Option<LedgerStage> {
        Some(match event {
            Event::ToolCallFinished { call_id, name, source, result, is_error, duration_ms } => {
                let OpenCall { mark, parent, by } = self.open_calls.remove(call_id)?;
                LedgerStage::ToolCall {
                    parent,
                    by,
                    step: self.turn.as_ref().map_or(0, |turn| turn.step),
                    call_id: call_id.clone(),
                    tool: name.clone(),
                    source: source.clone(),
                    arguments_bytes: mark.bytes,
                    arguments_digest: mark.digest,
                    result_bytes: json_bytes(result),
                    ok: !is_error,
                    error_kind: is_error.then(|| error_kind(result)),
                    duration_ms: *duration_ms,
                }
            }
            Event::CommandFinished {
                call_id,
                name,
                source,
                result,
                is_error,
                shared,
                duration_ms,
            } => {
                let OpenCall { mark, .. } = self.open_calls.remove(call_id)?;
                LedgerStage::Command {
                    command: name.clone(),
                    source: source.clone(),
                    arguments_bytes: mark.bytes,
                    arguments_digest: mark.digest,
                    result_bytes: json_bytes(result),
                    ok: !is_error,
                    error_kind: is_error.then(|| error_kind(result)),
                    shared: *shared,
                    duration_ms: *duration_ms,
                }
            }
            other => return Self::independent_stage(other),
        })
    }

    /// Returns the stage of an event that needs no other event.
    fn independent_stage(event: &Event) -> Option<LedgerStage> {
        Some(match event {
            Event::TaskStarted { task_id, call_id, name, source, .. } => {
                LedgerStage::AutoBackground {
                    task_id: task_id.clone(),
                    call_id: call_id.clone(),
                    tool: name.clone(),
                    source: source.clone(),
                }
            }
            Event::TaskFinished {
                task_id,
                call_id,
                name,
                source,
                result,
                is_error,
                duration_ms,
            } => LedgerStage::Task {
                task_id: task_id.clone(),
                call_id: call_id.clone(),
                tool: name.clone(),
                source: source.clone(),
                result_bytes: json_bytes(result),
                ok: !is_error,
                error_kind: is_error.then(|| error_kind(result)),
                duration_ms: *duration_ms,
            },
            Event::CompletionFinished { by, model, usage, error, duration_ms, .. } => {
                LedgerStage::Completion {
                    by: by.clone(),
                    model: model.clone(),
                    prompt_tokens: usage.prompt_tokens,
                    output_tokens: usage.output_tokens,
                    cached_tokens: usage.cached_tokens,
                    cost_micro_usd: usage.cost_micro_usd,
                    cost_is_estimate: usage.cost_is_estimate,
                    ok: error.is_none(),
                    error_kind: error.as_ref().map(|error| error.kind),
                    duration_ms: *duration_ms,
                }
            }
            Event::Gc {
                reason,
                source,
                messages_removed,
                messages_cut,
                tokens_before,
                tokens_after,
                error,
                ..
            } => LedgerStage::Gc {
                reason: *reason,
                source: source.clone(),
                messages_removed: *messages_removed,
                messages_cut: *messages_cut,
                tokens_before: *tokens_before,
                tokens_after: *tokens_after,
                error_kind: error.as_ref().map(|error| error.kind),
            },
            other => return Self::ignored_event_stage(other),
        })
    }

    /// Lists the events without a stage of their own.
    fn ignored_event_stage(event: &Event) -> Option<LedgerStage> {
        match event {
            // Temporary output and conversation content do not belong in a ledger.
            Event::TextDelta { .. }
            | Event::ThoughtDelta { .. }
            | Event::Notice { .. }
            | Event::Progress { .. }
            | Event::FileChanged { .. }
            | Event::PlanChanged { .. }
            | Event::PromptAdded { .. }
            | Event::TurnContinued { .. }
            | Event::RequestChanged { .. }
            | Event::ToolCallChanged { .. }
            | Event::ToolResultChanged { .. }
            | Event::ModeChanged { .. }
            | Event::Notified { .. }
            | Event::FormAsked { .. }
            | Event::FormAnswered { .. }
            | Event::AnswerRefused { .. }
            | Event::CompletionStarted { .. }
            | Event::ToolOutput { .. }
            | Event::MessageJoined { .. }
            | Event::MessageAdded { .. }
            | Event::ObjectsAdded { .. }
            | Event::TerminalScreen { .. }
            | Event::TerminalTyped { .. }
            | Event::TerminalAsked { .. }
            | Event::TerminalAnswered { .. }
            | Event::Unknown => None,
            // Handled before.
            Event::SessionStarted { .. }
            | Event::ModelChanged { .. }
            | Event::TurnStarted { .. }
            | Event::StepStarted { .. }
            | Event::PermissionAsked(_)
            | Event::PermissionDecided { .. }
            | Event::ToolCallStarted { .. }
            | Event::CommandStarted { .. }
            | Event::Usage { .. }
            | Event::Retry { .. }
            | Event::StepFinished { .. }
            | Event::TurnFinished { .. }
            | Event::ToolCallFinished { .. }
            | Event::TaskStarted { .. }
            | Event::TaskFinished { .. }
            | Event::CommandFinished { .. }
            | Event::CompletionFinished { .. }
            | Event::Gc { .. } => None,
        }
    }

    fn begin_turn(&mut self, now: EventTime) {
        self.turns += 1;
        self.turn = Some(OpenTurn {
            started_ms: now.monotonic_ms,
            step: 0,
            step_started_ms: now.monotonic_ms,
            attempts: 1,
            usage: None,
            failed: false,
        });
    }

    fn begin_step(&mut self, step: u32, now: EventTime) {
        if let Some(turn) = &mut self.turn {
            turn.step = step;
            turn.step_started_ms = now.monotonic_ms;
            turn.attempts = 1;
            turn.usage = None;
            turn.failed = false;
        }
    }

    /// Records a failed attempt that is followed by another. The delay is set if the same model is
    /// retried.
    fn attempt_failed(&mut self, error: &Error, retry_delay_ms: Option<u64>) -> Vec<LedgerStage> {
        let Some(turn) = &mut self.turn else { return Vec::new() };
        let attempt = turn.attempts;
        turn.attempts += 1;
        vec![LedgerStage::ApiError {
            model: self.model.clone(),
            step: turn.step,
            attempt,
            error_kind: error.kind,
            transient: retry_delay_ms.is_some(),
            retry_delay_ms,
        }]
    }

    fn end_step(&mut self, finish_reason: FinishReason, now: EventTime) -> Option<LedgerStage> {
        let turn = self.turn.as_mut()?;
        if finish_reason == FinishReason::Error {
            turn.failed = true;
            return None;
        }
        let usage = turn.usage;
        Some(LedgerStage::Response {
            model: self.model.clone(),
            step: turn.step,
            attempt: turn.attempts,
            prompt_tokens: usage.map(|usage| usage.prompt_tokens),
            output_tokens: usage.map(|usage| usage.output_tokens),
            total_tokens: usage.map(|usage| usage.total_tokens()),
            cached_tokens: usage.map(|usage| usage.cached_tokens),
            cost_micro_usd: usage.and_then(|usage| usage.cost_micro_usd),
            cost_is_estimate: usage.is_some_and(|usage| usage.cost_is_estimate),
            finish_reason,
            duration_ms: now.monotonic_ms.saturating_sub(turn.step_started_ms),
        })
    }

    fn end_turn(
        &mut self,
        event: &Event,
        error: Option<&Error>,
        now: EventTime,
    ) -> Vec<LedgerStage> {
        let (Event::TurnFinished { outcome, .. }, Some(turn)) = (event, &self.turn) else {
            return Vec::new();
        };
        let failed = turn.failed.then(|| LedgerStage::ApiError {
            model: self.model.clone(),
            step: turn.step,
            attempt: turn.attempts,
            error_kind: error.map_or(ErrorKind::Other, |error| error.kind),
            transient: false,
            retry_delay_ms: None,
        });
        let ended = LedgerStage::Turn {
            model: self.model.clone(),
            outcome: *outcome,
            error_kind: error.map(|error| error.kind),
            steps: turn.step,
            duration_ms: now.monotonic_ms.saturating_sub(turn.started_ms),
        };
        failed.into_iter().chain([ended]).collect()
    }
}

/// Returns the stage of a permission prompt or decision. Contains names of rules and their places,
/// but none of the call's arguments, comments, or pattern texts.
fn permission_stage(event: &Event) -> Option<LedgerStage> {
    match event {
        Event::PermissionAsked(prompt) => Some(LedgerStage::PermissionRequest {
            call_id: prompt.call_id.clone(),
            tool: prompt.tool.clone(),
            rule: prompt.rule.clone(),
            place: prompt.place.clone(),
            agent_type: prompt.agent_type.clone(),
            agent_name: prompt.agent_name.clone(),
        }),
        Event::PermissionDecided {
            call_id,
            name,
            allowed,
            rule,
            place,
            answered_by,
            scope,
            pattern,
            agent_type,
            agent_name,
            ..
        } => Some(LedgerStage::PermissionCheck {
            call_id: call_id.clone(),
            tool: name.clone(),
            allowed: *allowed,
            rule: rule.clone(),
            place: place.clone(),
            answered_by: answered_by.clone(),
            scope: scope.clone(),
            pattern: pattern.clone(),
            agent_type: agent_type.clone(),
            agent_name: agent_name.clone(),
        }),
        _ => None,
    }
}

/// Formats a time so that texts sort by time: `2026-11-21T19:40:03.123Z`.
pub fn format_rfc3339(wall_ms: u64) -> String {
    let moment = i64::try_from(wall_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    // A clock past the year 9999 is wrong.
    format!("{:.3}", moment.unwrap_or(Timestamp::MAX))
}

/// Parses a time, in milliseconds since 1970. A time without an offset is in UTC.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let moment = text.trim().parse::<Timestamp>().ok();
    let in_utc = || {
        let moment: DateTime = text.trim().parse().ok()?;
        Some(moment.to_zoned(TimeZone::UTC).ok()?.timestamp())
    };
    Some(moment.or_else(in_utc)?.as_millisecond())
}

/// Returns the error kind from a failed call's result.
fn error_kind(result: &Map<String, Value>) -> ErrorKind {
    let kind = result.get("error").and_then(|error| error.get("kind"));
    let kind = kind.and_then(|kind| serde_json::from_value(kind.clone()).ok());
    kind.unwrap_or(ErrorKind::Other)
}

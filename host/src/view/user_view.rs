//! The view for users: the answer on standard output, everything about the work on standard error.
//!
//! A terminal shows both together: a spinner if nothing else is shown, one line for each
//! call, and each line of a tool after the label of its plugin. In a pipe, both are plain, and a
//! script that reads the output gets only complete answers: an answer that breaks off and is
//! requested again is dropped.

use std::io;

use jaato_runtime::types::ask::FormOutcome;
use jaato_runtime::types::file_change::FileChange;
use jaato_runtime::types::work_plan::WorkPlan;
use jaato_runtime::types::{
    CallId, Error, Event, EventEnvelope, FinishReason, Outcome, PluginName,
};
use jaato_runtime::visible;
use serde_json::Value;

use super::agents::{Agents, Shown};
use super::calls::{Calls, Ended, ShownEffect};
use super::plan::Plans;
use super::result::{self, Ending, Fit};
use crate::columns::{wrap_lines, wrap_prose};
use crate::diff::{self, ChangeTense};
use crate::report;
use crate::terminal::{self, Answer, Moving, Output, Text, exact_line, one_line};

/// Columns of plain lines, used without a terminal.
const PLAIN_COLUMNS: usize = 400;

/// Limit on the columns of a notice, on a terminal, too. Its end explains why and what to do, so it
/// continues in the next line.
const NOTICE_COLUMNS: usize = 600;

/// The percentage after which progress is worth another plain line.
const PLAIN_PROGRESS_PERCENT: u64 = 10;

/// Columns of a name. A valid name is shorter.
const NAME_COLUMNS: usize = 80;

/// Lines of a finished change that are shown.
const CHANGE_LINES_MAX: usize = 12;

/// The value of `answered_by` if the current user answered.
const AT_THE_TERMINAL: &str = "terminal";

/// The text of the spinner between two rows of an answer.
const ANSWERS: &str = "the model is answering";

/// Limit on the calls of one turn whose shown changes and denials are remembered. Further calls are
/// reported as if the user had not seen them.
const SEEN_CALLS_MAX: usize = 1000;

/// A step of progress that was reported as a plain line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A percentage of a known total.
    Percent(u64),
    /// How often the count has doubled, if the total is unknown.
    Doubled(u32),
}

/// Writes text for users.
pub struct People {
    is_terminal: bool,
    answer: Answer,
    output: Output,
    moving: Moving,
    /// The last step of progress that was reported as a plain line.
    told_step: Option<Step>,
    agents: Agents,
    plans: Plans,
    /// Calls whose changes a permission prompt has shown.
    seen: Vec<CallId>,
    /// Calls that the user has denied at the terminal. The prompt says so.
    denied: Vec<CallId>,
    calls: Calls,
    /// The text for the running work, or `None` if the running calls are shown.
    going_on: Option<String>,
    /// The number of attempts for each request, or 0 if it is unknown.
    attempts_max: u32,
    /// Whether finished background tasks are not reported, except for the rest of their output.
    hides_ends_of_tasks: bool,
}

impl People {
    /// Creates a view for the process's standard output and standard error.
    pub fn new() -> Self {
        let is_terminal = terminal::errors_are_terminal();
        Self {
            is_terminal,
            answer: Answer::new(),
            output: Output::default(),
            moving: Moving::default(),
            told_step: None,
            agents: Agents::default(),
            plans: Plans::default(),
            seen: Vec::new(),
            denied: Vec::new(),
            calls: Calls::new(is_terminal),
            going_on: None,
            attempts_max: 0,
            hides_ends_of_tasks: false,
        }
    }

    fn columns(&self) -> usize {
        if self.is_terminal { terminal::size().1 } else { PLAIN_COLUMNS }
    }

    /// Returns the columns after the label of a source.
    fn room(&self, source: &str) -> usize {
        self.columns().saturating_sub(visible_name(source).chars().count() + 6)
    }

    /// Records that work begins, with its text.
    fn begin(&mut self, text: &str) {
        self.going_on = Some(text.to_owned());
        self.moving.begin();
    }

    /// Shows the running work if there is a terminal and no line is open.
    fn spin(&mut self) {
        if !self.is_terminal || self.answer.line_is_open() || self.output.line_is_open() {
            return;
        }
        if let Some(coming) = self.answer.coming() {
            return self.moving.spin_end(coming);
        }
        let text = self.going_on.clone().or_else(|| self.calls.told());
        match text {
            Some(text) => self.moving.spin(&text),
            None => self.moving.rest(),
        }
    }

    /// Writes one line about the work.
    fn line(&mut self, line: &Text) -> io::Result<()> {
        self.close_lines()?;
        terminal::say(line)
    }

    fn dim_line(&mut self, text: &str) -> io::Result<()> {
        let text = match self.is_terminal {
            true => wrap_prose(text, self.columns()),
            false => text.to_owned(),
        };
        self.line(&Text::new().dim(&text))
    }

    fn close_lines(&mut self) -> io::Result<()> {
        self.moving.still();
        self.answer.end_line()?;
        self.output.end_line()
    }

    fn show_answer(&mut self, text: &str) -> io::Result<()> {
        if self.output.line_is_open() {
            self.moving.still();
            self.output.end_line()?;
        }
        self.going_on = Some(ANSWERS.to_owned());
        let shown = self.answer.piece(text);
        // The spinner stays if there is nothing to draw yet.
        if !shown.is_empty() {
            self.moving.still();
        }
        self.answer.write(&shown)
    }

    /// Writes an answer that was held until it ended.
    fn answer_ended(&mut self, is_complete: bool) -> io::Result<()> {
        let text = self.answer.release(is_complete);
        if text.is_empty() {
            return Ok(());
        }
        self.moving.still();
        self.output.end_line()?;
        self.answer.write(&text)
    }

    /// Writes tool output, each line after the label of its plugin.
    fn output(&mut self, source: &str, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.moving.still();
        if self.answer.line_is_open() || self.output.is_of_another(source) {
            self.close_lines()?;
        }
        self.output.piece(source, &label(source), text)
    }

    /// Writes the output of a call, up to its limit.
    fn call_output(&mut self, call: &CallId, source: &str, text: &str) -> io::Result<()> {
        let label = self.calls.label(call, source);
        let shown = self.calls.output(call, text);
        self.output(&label, &shown)
    }

    /// Shows how a call ended. A file does not contain the duration.
    fn show_end_of_call(
        &mut self,
        source: &str,
        ended: &Ended,
        ending: Ending<'_>,
    ) -> io::Result<()> {
        self.output(source, &ended.rest)?;
        let duration_ms = ending.duration_ms.filter(|_| self.is_terminal);
        let room = self.room(source);
        for result::Line { look, text, fit } in result::lines(Ending { duration_ms, ..ending }) {
            let rows = match fit {
                Fit::Cut => vec![one_line(&text, room)],
                Fit::Wrapped if self.is_terminal => {
                    // Further rows are indented more.
                    wrap_lines(&one_line(text.trim_end(), NOTICE_COLUMNS), room.saturating_sub(2))
                }
                Fit::Wrapped | Fit::Whole => vec![one_line(&text, NOTICE_COLUMNS)],
            };
            for (at, row) in rows.iter().enumerate() {
                let set_in = if at == 0 { "" } else { "  " };
                self.line(&label(source).with(look, &format!("{set_in}{row}")))?;
            }
        }
        Ok(())
    }

    /// Shows how a call has changed a file. Includes the changed lines, unless the permission
    /// prompt has shown them.
    fn file_changed(&mut self, call: &CallId, source: &str, change: &FileChange) -> io::Result<()> {
        self.calls.has_shown(call, ShownEffect::Change);
        let columns = self.columns();
        let source = visible_name(source);
        let heading = exact_line(&diff::change_heading(change, ChangeTense::Made), columns);
        self.dim_line(&format!("{source}: {heading}"))?;
        if self.seen.contains(call) {
            return Ok(());
        }
        let room = self.room(&source);
        for (look, line) in diff::short_change_lines(change, CHANGE_LINES_MAX) {
            self.line(&label(&source).with(look, &exact_line(&line, room)))?;
        }
        Ok(())
    }

    fn progress(&mut self, label: &str, done: u64, total: u64) -> io::Result<()> {
        if total == 0 {
            return self.progress_so_far(label, done);
        }
        if !self.is_terminal {
            let percent = (done * 100).checked_div(total).unwrap_or(0);
            let step = percent - percent % PLAIN_PROGRESS_PERCENT;
            if self.is_new_step(Step::Percent(step)) {
                return self
                    .line(&Text::new().plain(&format!("{}: {step} %", visible_name(label))));
            }
            return Ok(());
        }
        if !self.moving.is_bar_of(total) {
            self.close_lines()?;
        }
        self.moving.progress(label, done, total);
        if done >= total {
            self.moving.still();
        }
        Ok(())
    }

    /// Shows progress without a known total. Without a terminal, it is shown again when it has
    /// doubled, which limits the number of lines.
    fn progress_so_far(&mut self, label: &str, done: u64) -> io::Result<()> {
        let text = format!("{}: {done} so far", visible_name(label));
        if self.is_terminal {
            self.close_lines()?;
            self.going_on = Some(text);
            return Ok(());
        }
        let doubled = done.checked_ilog2().map_or(0, |times| times + 1);
        if self.is_new_step(Step::Doubled(doubled)) {
            return self.line(&Text::new().plain(&text));
        }
        Ok(())
    }

    /// Stores a step. Returns true if it differs from the last one.
    fn is_new_step(&mut self, step: Step) -> bool {
        self.told_step.replace(step) != Some(step)
    }

    fn show_end_of_turn(&mut self, outcome: Outcome, error: Option<&Error>) -> io::Result<()> {
        self.seen.clear();
        self.denied.clear();
        self.going_on = None;
        self.answer_ended(outcome == Outcome::Done)?;
        self.close_lines()?;
        match outcome {
            Outcome::Done => Ok(()),
            Outcome::Cancelled => self.line(&Text::new().plain("cancelled")),
            Outcome::Denied => self.dim_line("a call was denied because no user could be asked"),
            Outcome::Limit | Outcome::Failed | Outcome::Unknown => {
                let message = error.map_or("the turn ended without an answer", |it| &it.message);
                let hint = error.and_then(|error| error.hint.as_deref());
                self.line(&report::format_error(message, hint))
            }
        }
    }
}

impl super::Writer for People {
    fn event(&mut self, envelope: &EventEnvelope) -> io::Result<()> {
        if !matches!(envelope.event, Event::Progress { .. }) {
            self.moving.end_bar();
        }
        self.write(envelope)?;
        self.spin();
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        self.close_lines()
    }

    fn pause(&mut self) -> io::Result<()> {
        self.moving.still();
        if self.answer.line_is_open() {
            self.answer.end_line()?;
        }
        self.output.end_line()
    }

    fn go_on(&mut self) {
        self.spin();
    }

    fn attempts(&mut self, attempts_max: u32) {
        self.attempts_max = attempts_max;
        if attempts_max == 1 {
            self.answer.stop_holding();
        }
    }

    fn hide_ends_of_tasks(&mut self) {
        self.hides_ends_of_tasks = true;
    }
}

impl People {
    fn write(&mut self, envelope: &EventEnvelope) -> io::Result<()> {
        let columns = self.columns();
        match self.agents.take(envelope, columns) {
            Some(Shown::Line(text)) => return self.dim_line(&text),
            Some(Shown::Spinner(text)) => {
                self.going_on = Some(text);
                return Ok(());
            }
            Some(Shown::Nothing) => return Ok(()),
            None => {}
        }
        match &envelope.event {
            Event::TextDelta { text, .. } => self.show_answer(text),
            Event::ThoughtDelta { text, .. } => self.output("thought", text),
            Event::ToolOutput { call_id, source, text } => self.call_output(call_id, source, text),
            Event::Progress { label, done, total, .. } => self.progress(label, *done, *total),
            Event::ToolCallStarted { call_id, .. } if self.denied.contains(call_id) => Ok(()),
            Event::ToolCallStarted { call_id, name, source, arguments, by, .. } => {
                self.call_started(call_id, (name.as_str(), source), arguments, by.as_ref())
            }
            Event::FileChanged { call_id, source, change } => {
                self.file_changed(call_id, source, change)
            }
            Event::PermissionAsked(prompt)
                if prompt.preview.as_ref().is_some_and(|it| !it.changes.is_empty()) =>
            {
                if self.seen.len() < SEEN_CALLS_MAX {
                    self.seen.push(prompt.call_id.clone());
                }
                Ok(())
            }
            Event::PermissionDecided { call_id, allowed: false, answered_by, .. }
                if answered_by == AT_THE_TERMINAL && self.is_terminal =>
            {
                if self.denied.len() < SEEN_CALLS_MAX {
                    self.denied.push(call_id.clone());
                }
                Ok(())
            }
            Event::PlanChanged { call_id, source, plan } => {
                self.plan_changed(call_id, source, plan)
            }
            Event::ToolCallFinished { call_id, source, result, is_error, duration_ms, .. } => {
                self.call_finished(call_id, source, result, *is_error, *duration_ms)
            }
            Event::StepFinished { finish_reason: reason, .. } => {
                self.answer_ended(!matches!(reason, FinishReason::Error | FinishReason::Cancelled))
            }
            Event::TurnFinished { outcome, error, .. } => {
                self.show_end_of_turn(*outcome, error.as_ref())
            }
            Event::TaskStarted { task_id, call_id, source, .. } => {
                self.task_started(task_id, call_id, source)
            }
            Event::TaskFinished { call_id, source, result, is_error, duration_ms, .. } => {
                self.task_finished(call_id, source, result, *is_error, *duration_ms)
            }
            Event::ObjectsAdded { source, text: Some(text), .. } => {
                self.output(source, &format!("{}\n", text.trim_end()))
            }
            Event::Retry { attempt, delay_ms, error, answer_restarts } => {
                self.retry(*attempt, *delay_ms, &error.message, *answer_restarts)
            }
            // The caller of the command prints its answer.
            Event::CommandFinished { .. } => {
                self.going_on = None;
                self.moving.still();
                Ok(())
            }
            other => self.remark(other),
        }
    }

    /// Shows the changed parts of a plan.
    fn plan_changed(&mut self, call: &CallId, source: &str, plan: &WorkPlan) -> io::Result<()> {
        let lines = self.plans.lines(source, plan);
        let is_drawn = !lines.is_empty();
        let effect = if is_drawn { ShownEffect::Whole } else { ShownEffect::Change };
        self.calls.has_shown(call, effect);
        let columns = self.columns();
        lines.iter().try_for_each(|line| self.dim_line(&exact_line(line, columns)))
    }

    /// Writes an event that takes one line.
    fn remark(&mut self, event: &Event) -> io::Result<()> {
        let line = match event {
            Event::Notice { source, text } if !(self.is_terminal && text.ends_with('…')) => {
                format!("{}: {}", visible_name(source), one_line(text, NOTICE_COLUMNS))
            }
            Event::ObjectsAdded { source, tool, name, objects, .. } => {
                let name = name.as_deref().map_or(String::new(), |name| format!(" of {name}"));
                let objects = match objects.len() {
                    1 => "1 object".to_owned(),
                    count => format!("{count} objects"),
                };
                exact_line(&format!("{source}: {tool} gave {objects}{name}"), self.columns())
            }
            Event::ModelChanged { model, left_out, .. } => {
                let not_sent = match left_out.as_slice() {
                    [] => String::new(),
                    left_out => format!("; not sent on: {}", left_out.join(", ")),
                };
                format!("the model is now {}{not_sent}", visible_name(model))
            }
            Event::Notified { source, text } => {
                format!("{} says: {}", visible_name(source), one_line(text, NOTICE_COLUMNS))
            }
            Event::MessageJoined { text } => format!("you: {}", one_line(text, self.columns())),
            Event::PromptAdded { source, tokens, .. } => {
                format!("{} adds about {tokens} tokens before your prompt", visible_name(source))
            }
            Event::TurnContinued { source, text } => {
                let text = one_line(text, NOTICE_COLUMNS);
                format!("{} makes the model continue: {text}", visible_name(source))
            }
            Event::RequestChanged { source, options, tokens } => {
                request_line(source, options, *tokens)
            }
            Event::ToolCallChanged { name, source, .. } => {
                format!(
                    "{} changes the arguments of {}",
                    visible_name(source),
                    visible_name(name.as_str())
                )
            }
            Event::ToolResultChanged { name, source, .. } => {
                format!(
                    "{} changes the result of {}",
                    visible_name(source),
                    visible_name(name.as_str())
                )
            }
            event @ Event::Gc { .. } => one_line(&gc_line(event), NOTICE_COLUMNS),
            Event::TurnStarted { woken_by, .. } if !woken_by.is_empty() => {
                format!("woken by {}", visible_name(&woken_by.join(", ")))
            }
            Event::FormAnswered { source, outcome, .. } => match form_line(*outcome) {
                Some(what) => format!("{}: {what}", visible_name(source)),
                None => {
                    if *outcome == FormOutcome::Answered {
                        self.calls.form_answered(&PluginName::from(source.as_str()));
                    }
                    return Ok(());
                }
            },
            other => return self.begin_or_pass(other),
        };
        self.dim_line(&line)
    }

    /// Sets the spinner's text for an event, or ignores an event that is not shown.
    fn begin_or_pass(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::StepStarted { .. } => self.begin("waiting for the model"),
            Event::CommandStarted { name, source, .. } => {
                self.begin(&format!("{}: {}", visible_name(source), visible_name(name)));
            }
            Event::Notice { text, .. } => self.going_on = Some(text.clone()),
            // The asker shows questions on the terminal, and later events show their results.
            // Terminal events are for users who join a terminal: the result of the call says what
            // is on its screen, as the model sees it.
            Event::TurnStarted { .. }
            | Event::TerminalAsked { .. }
            | Event::TerminalAnswered { .. }
            | Event::TerminalScreen { .. }
            | Event::TerminalTyped { .. }
            | Event::FormAsked { .. }
            | Event::CompletionStarted { .. }
            | Event::CompletionFinished { .. }
            | Event::MessageAdded { .. }
            | Event::ModeChanged { .. }
            | Event::PermissionAsked(_)
            | Event::PermissionDecided { .. }
            | Event::SessionStarted { .. }
            | Event::Usage { .. }
            | Event::Unknown => {}
            // `write` and `remark` have written these events.
            Event::TextDelta { .. }
            | Event::ThoughtDelta { .. }
            | Event::ToolOutput { .. }
            | Event::Progress { .. }
            | Event::ToolCallStarted { .. }
            | Event::ToolCallFinished { .. }
            | Event::FileChanged { .. }
            | Event::PlanChanged { .. }
            | Event::StepFinished { .. }
            | Event::TurnFinished { .. }
            | Event::TaskStarted { .. }
            | Event::TaskFinished { .. }
            | Event::Retry { .. }
            | Event::CommandFinished { .. }
            | Event::ObjectsAdded { .. }
            | Event::ModelChanged { .. }
            | Event::Notified { .. }
            | Event::MessageJoined { .. }
            | Event::PromptAdded { .. }
            | Event::TurnContinued { .. }
            | Event::RequestChanged { .. }
            | Event::ToolCallChanged { .. }
            | Event::ToolResultChanged { .. }
            | Event::Gc { .. }
            | Event::FormAnswered { .. }
            | Event::AnswerRefused { .. } => {}
        }
        Ok(())
    }

    fn call_started(
        &mut self,
        call_id: &CallId,
        (name, source): (&str, &str),
        arguments: &Value,
        by: Option<&String>,
    ) -> io::Result<()> {
        let name = visible_name(name);
        let command = arguments.get("command").and_then(Value::as_str);
        self.calls.begin(call_id, source, command.unwrap_or(&name));
        self.going_on = None;
        self.moving.begin();
        let source = visible_name(&self.calls.label(call_id, source));
        // A call by a plugin is indented and begins with the plugin's name.
        let by = by.map(|by| format!("  {} calls ", visible_name(by))).unwrap_or_default();
        let taken = by.len() + name.len() + source.len() + 8;
        let room = self.columns().saturating_sub(taken);
        let arguments = exact_line(&format_arguments(arguments), room);
        let line = Text::new().dim(&format!("{by}[{source}]")).plain(" ").strong(&name);
        self.line(&match arguments.is_empty() {
            true => line,
            false => line.plain(" ").dim(&arguments),
        })
    }

    fn call_finished(
        &mut self,
        call_id: &CallId,
        source: &str,
        result: &serde_json::Map<String, Value>,
        is_error: bool,
        duration_ms: u64,
    ) -> io::Result<()> {
        let source = self.calls.label(call_id, source);
        let ended = self.calls.end_call(call_id);
        self.going_on = None;
        if let Some(at) = self.denied.iter().position(|denied| denied == call_id) {
            self.denied.swap_remove(at);
            return self.output(&source, &ended.rest);
        }
        if self.calls.is_in_background(call_id) && !is_error {
            // The row of the task has already reported this.
            return Ok(());
        }
        let ending = ending(result, is_error, &ended, duration_ms);
        self.show_end_of_call(&source, &ended, ending)
    }

    fn task_started(&mut self, task_id: &str, call_id: &CallId, source: &str) -> io::Result<()> {
        let source = self.calls.label(call_id, source);
        let so_far = self.calls.is_task(call_id);
        self.output(&source, &so_far)?;
        let text = format!("runs in the background as {}", visible_name(task_id));
        self.line(&label(&source).dim(&text))
    }

    fn task_finished(
        &mut self,
        call_id: &CallId,
        source: &str,
        result: &serde_json::Map<String, Value>,
        is_error: bool,
        duration_ms: u64,
    ) -> io::Result<()> {
        let source = self.calls.label(call_id, source);
        let ended = self.calls.end(call_id);
        if self.hides_ends_of_tasks {
            return self.output(&source, &ended.rest);
        }
        let ending = ending(result, is_error, &ended, duration_ms);
        self.show_end_of_call(&source, &ended, ending)
    }

    fn retry(
        &mut self,
        attempt: u32,
        delay_ms: u64,
        message: &str,
        answer_restarts: bool,
    ) -> io::Result<()> {
        if answer_restarts {
            self.answer.break_off();
        }
        let seconds = delay_ms as f64 / 1000.0;
        let message = one_line(message, NOTICE_COLUMNS);
        let (next, most) = (attempt + 1, self.attempts_max);
        let most = if most > 0 { format!(" of {most}") } else { String::new() };
        let tries = format!("try {next}{most}");
        let again = match answer_restarts {
            true => "the answer starts again",
            false => "trying again",
        };
        self.dim_line(&format!("{message}; {again} in {seconds:.1} s, {tries}"))?;
        self.begin(&format!("waiting {seconds:.0} s for the provider, {tries}"));
        Ok(())
    }
}

/// Collects the facts about a call that has ended.
fn ending<'a>(
    result: &'a serde_json::Map<String, Value>,
    is_error: bool,
    ended: &Ended,
    duration_ms: u64,
) -> Ending<'a> {
    let (was_shown, effect) = (ended.has_shown, ended.effect);
    Ending { result, is_error, was_shown, effect, duration_ms: Some(duration_ms) }
}

/// Returns the name of a plugin, a tool or a file as one line in which nothing is hidden.
fn visible_name(name: &str) -> String {
    exact_line(&visible::visible_name(name), NAME_COLUMNS)
}

/// Formats arguments for the user: a single text without its name, others with their names.
fn format_arguments(arguments: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let Some(named) = arguments.as_object() else { return arguments.to_string() };
    match named.iter().next() {
        None => String::new(),
        Some((_, Value::String(alone))) if named.len() == 1 => alone.clone(),
        Some(_) => {
            let named = named.iter().map(|(name, value)| format!("{name}: {}", text(value)));
            named.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Returns the label before the output of a plugin.
fn label(source: &str) -> Text {
    Text::new().plain("  ").dim(&format!("{} │", visible_name(source))).plain(" ")
}

/// Returns the line for a form that the user has neither answered nor declined.
fn form_line(outcome: FormOutcome) -> Option<&'static str> {
    match outcome {
        FormOutcome::Answered | FormOutcome::Declined => None,
        FormOutcome::Cancelled => Some("its form was withdrawn"),
        FormOutcome::Nobody | FormOutcome::Unknown => Some("no user answered its form"),
    }
}

/// Describes in one line how a plugin changed a request.
fn request_line(source: &str, options: &[String], tokens: u64) -> String {
    let mut changes: Vec<String> = options.iter().map(|name| visible_name(name)).collect();
    if tokens > 0 {
        changes.push(format!("about {tokens} tokens more"));
    }
    format!("{} changes the request: {}", visible_name(source), changes.join(", "))
}

/// Describes in one line what a gc did, or why it did nothing.
fn gc_line(event: &Event) -> String {
    let Event::Gc {
        source,
        messages_removed,
        messages_cut,
        tokens_before,
        tokens_after,
        note,
        error,
        ..
    } = event
    else {
        return String::new();
    };
    if let Some(error) = error {
        return format!("gc {source}: {error}");
    }
    let done = match (messages_removed, messages_cut) {
        (0, 0) => "nothing to leave out".to_owned(),
        (0, cut) => format!("messages shortened: {cut}"),
        (removed, _) => format!("old messages left out: {removed}"),
    };
    let note = note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
    format!(
        "gc {source}: {done}, about {tokens_before} tokens before and {tokens_after} after{note}"
    )
}

//! Lines that the user types while the model works. A message goes with the next step, or waits for
//! the end of the turn if other lines or files precede it. A command that only reads or withdraws
//! something is answered at once.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use jaato_runtime::Runtime;
use jaato_runtime::session_loop::{Cancel, Inbox, Session, SessionHandle, TurnReport};
use jaato_runtime::types::Outcome as TurnOutcome;

use super::slash::{Run, SlashCommand};
use super::{CurrentTurn, Wish, help, wish};
use crate::ask::Stage;
use crate::exit::{self, CommandFailure, Exit};
use crate::lines::{Beside, Line, Lines, UnsentLine};
use crate::terminal::{exact_line, input_is_terminal, size};
use crate::view::View;
use crate::{attach, conversation, report, tasks};

/// Columns of the text before a queued line.
const SAID_COLUMNS: usize = 50;

/// Shown if messages come back while the user edits a draft, which does not show them.
const MESSAGES_RETURNED: &str =
    "the queued messages were not sent; Enter puts them before your draft";

/// Takes lines while a turn runs, and stores those that wait for its end.
pub struct Meanwhile<'a> {
    runtime: &'a Runtime,
    view: Arc<View>,
    stage: Arc<Stage>,
    over: Cancel,
    turn: CurrentTurn,
    session: SessionHandle,
    inbox: Inbox,
    /// Lines that wait for the end of the turn, in order.
    waiting: VecDeque<String>,
    /// The drafts that were typed when Esc or Ctrl-C stopped the turn.
    drafts: Vec<String>,
    /// The reason why no more lines can be read.
    failure: Option<CommandFailure>,
    /// Tasks that were already reported to the user.
    tasks: tasks::ReportedTasks,
}

impl<'a> Meanwhile<'a> {
    pub fn new(
        runtime: &'a Runtime,
        session: &Session,
        (view, stage): (&Arc<View>, &Arc<Stage>),
        (over, turn): (&Cancel, &CurrentTurn),
    ) -> Self {
        Self {
            runtime,
            view: Arc::clone(view),
            stage: Arc::clone(stage),
            over: over.clone(),
            turn: turn.clone(),
            session: session.handle(),
            inbox: session.inbox(),
            waiting: VecDeque::new(),
            drafts: Vec::new(),
            failure: None,
            tasks: tasks::ReportedTasks::default(),
        }
    }

    /// Takes the next waiting line.
    ///
    /// # Errors
    /// If no more lines can be read, after all waiting lines are taken.
    pub fn next(&mut self) -> Result<Option<String>, CommandFailure> {
        match (self.waiting.pop_front(), self.failure.take()) {
            (None, Some(failure)) => Err(failure),
            (line, failure) => {
                self.failure = failure;
                Ok(line)
            }
        }
    }

    /// Runs a turn, which Ctrl-C stops, and takes the lines that the user types during the turn.
    pub async fn turn(
        &mut self,
        lines: &mut Lines,
        turn: impl AsyncFnOnce(&Cancel) -> TurnReport,
    ) -> Exit {
        let cancel = self.turn.begin(&self.over);
        let report = self.beside(lines, turn(&cancel)).await;
        self.turn.end();
        if report.outcome == TurnOutcome::Failed && report.is_open && input_is_terminal() {
            self.aside(|| report::print_remark("`/again` sends it again")).await;
        }
        conversation::turn_exit(&report)
    }

    async fn beside(
        &mut self,
        lines: &mut Lines,
        turn: impl Future<Output = TurnReport>,
    ) -> TurnReport {
        let (view, stage, over) =
            (Arc::clone(&self.view), Arc::clone(&self.stage), self.over.clone());
        let beside = Beside { wake: None, stage: &stage, view: &view, over: &over };
        let mut turn = pin!(turn);
        let mut listens = true;
        let report = loop {
            tokio::select! {
                biased;
                report = &mut turn => break report,
                line = lines.next_beside_turn(beside), if listens => {
                    listens = self.take(line).await;
                    if self.inbox.waiting_count() + self.waiting.len() > 0 {
                        lines.note_queued(true);
                    }
                }
            }
        };
        lines.note_queued(false);
        if self.end(&report, lines) {
            self.aside(|| report::print_remark(MESSAGES_RETURNED)).await;
        }
        if !self.waiting.is_empty() {
            // Later output follows everything that the turn has shown.
            self.view.settle().await;
        }
        if let Some(tasks) = self.tasks.new_task_ids(&self.session) {
            let text = format!("in the background: {tasks}; /tasks lists and stops");
            self.aside(|| report::print_remark(&text)).await;
        }
        report
    }

    /// Sends the messages that no request has taken as the next messages. If the turn failed, was
    /// cancelled or reached a limit, the messages return to the editor, so that the user sees them
    /// before they are sent. Returns true if a draft hides them from the user.
    fn end(&mut self, report: &TurnReport, lines: &mut Lines) -> bool {
        let said = self.inbox.take_back_messages();
        let mut is_hidden = false;
        match report.outcome {
            TurnOutcome::Done | TurnOutcome::Denied => {
                for text in said.into_iter().rev() {
                    self.waiting.push_front(message_line(text));
                }
            }
            TurnOutcome::Cancelled
            | TurnOutcome::Failed
            | TurnOutcome::Limit
            | TurnOutcome::Unknown => {
                let is_message = |line: &String| matches!(wish(line), Wish::Say(_));
                let (messages, others) = self.waiting.drain(..).partition(is_message);
                self.waiting = others;
                let messages: VecDeque<String> = messages;
                let returned: Vec<_> = said.into_iter().map(message_line).chain(messages).collect();
                // The editor that Esc or Ctrl-C has ended is about to close.
                let is_over = report.outcome == TurnOutcome::Cancelled;
                is_hidden = lines.has_draft() && !returned.is_empty() && !is_over;
                returned.into_iter().for_each(|text| lines.begin_with(text));
            }
        }
        self.drafts.drain(..).for_each(|text| lines.begin_with(text));
        is_hidden
    }

    /// Takes a line. Returns false at the end of the input.
    async fn take(&mut self, line: Result<Line, CommandFailure>) -> bool {
        match line {
            Ok(Line::Text(text)) => self.take_text(text).await,
            Ok(Line::Dropped(UnsentLine::Dropped(text))) => {
                self.drafts.push(text);
                // If Ctrl-C has already stopped the turn, it ends jaato.
                if !self.turn.stop() {
                    exit::exit_now(Exit::Cancelled as i32);
                }
            }
            Ok(Line::Dropped(UnsentLine::Kept(text))) => {
                self.drafts.push(text);
                // Unlike Ctrl-C, a second Esc does not end jaato.
                self.turn.stop();
            }
            Ok(Line::Woken) => {}
            Ok(Line::End) => {
                if !self.over.is_cancelled() {
                    self.waits("/quit").await;
                }
                return false;
            }
            Err(failure) => {
                self.failure = Some(failure);
                return false;
            }
        }
        true
    }

    async fn take_text(&mut self, text: String) {
        match wish(&text) {
            Wish::Nothing => {}
            Wish::Say(message) => {
                if !self.waiting.is_empty()
                    || !attach::mentioned_files(message).is_empty()
                    || self.inbox.send_message(message).is_err()
                {
                    self.waits(&text).await;
                } else {
                    self.print_line("queued, goes with the next step: ", &text).await;
                    let note = attach::unattached_note(message);
                    self.aside(|| report::print_problems(note.as_slice())).await;
                }
            }
            Wish::Own(SlashCommand { run: Run::Help, .. }, _) => {
                self.aside(|| help(self.runtime)).await;
            }
            Wish::Own(SlashCommand { run: Run::AtOnce(run), .. }, words) => {
                let answer = || {
                    if let Err(error) = run(&self.session, words) {
                        report::print_failure(&error.into());
                    }
                };
                self.aside(answer).await;
            }
            Wish::Own(SlashCommand { run: Run::AfterTurn(_), .. }, _) | Wish::Command(..) => {
                self.waits(&text).await;
            }
        }
    }

    /// Writes a text while the view is paused.
    async fn aside(&self, write: impl FnOnce()) {
        let _paused = self.view.paused().await;
        write();
    }

    async fn waits(&mut self, line: &str) {
        self.waiting.push_back(line.to_owned());
        self.print_line("queued, waits for the end of this turn: ", line).await;
    }

    async fn print_line(&self, what: &str, line: &str) {
        let room = size().1.saturating_sub(SAID_COLUMNS).max(SAID_COLUMNS);
        self.aside(|| report::print_remark(&format!("{what}{}", exact_line(line.trim(), room))))
            .await;
    }
}

/// Returns the line that sends a message.
fn message_line(message: String) -> String {
    if message.starts_with('/') { format!("/{message}") } else { message }
}

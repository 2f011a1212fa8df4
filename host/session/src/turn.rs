//! The turn loop: one prompt until its final answer, step by step.
//!
//! Every exit leaves a valid history. A turn that broke off after something was seen ends in an
//! answer with a mark in its text. A request that failed before its first delta adds nothing.

mod usage;

use std::collections::HashSet;
use std::ops::ControlFlow;

use jaato_types::{
    Completion, Error, ErrorKind, Event, FinishReason, Outcome, Part, PluginName, Result, ToolCall,
    Usage,
};

use crate::calls::{self, CallInitiator, CallsOutcome};
use crate::exchange::RequestOutcome;
use crate::history::ExpectedMessage;
use crate::hooks::{HookPromptAddition, is_addition};
use crate::inbox::InboxMessage;
use crate::{
    Cancel, HistoryError, MessageMark, Session, TurnReport, UserPrompt, completion, tasks,
};
use serde_json::json;

/// Ends an answer that was cancelled, or that broke off because of a failure.
pub const MARK_CANCELLED: &str = "[Generation cancelled]";
/// Replaces the answer of a turn that a limit ended.
pub const MARK_LIMIT: &str = "[Stopped: the limit of steps was reached]";
/// Replaces the answer of a turn that ended because the session reached a cap.
pub const MARK_CAP: &str = "[Stopped: a cap of the session was reached]";
/// Replaces the answer of a turn whose last request failed, once another prompt follows.
pub const MARK_FAILED: &str = "[No answer: the request failed]";
/// Replaces the answer of a turn that the end of the process interrupted.
pub const MARK_PROCESS_ENDED: &str = "[No answer: the process ended]";
/// Ends a turn whose answer reached the output limit within a call or before any text.
pub const MARK_OUTPUT_LIMIT: &str = "[Stopped: the model reached its output limit]";
/// Replaces an answer that the provider's filter withheld.
pub const MARK_FILTERED: &str = "[The provider's filter stopped the answer]";
/// Ends an answer that the model declined to give.
pub const MARK_REFUSED: &str = "[The model declined to answer]";
/// Ends an answer that filled the context window.
pub const MARK_CONTEXT_FULL: &str = "[Stopped: the context window is full]";

/// The state of a turn as it proceeds.
#[derive(Default)]
pub(crate) struct TurnProgress {
    pub(crate) steps: u32,
    empty_answers: u32,
    /// The first call that was refused because no user could be asked, unless a permitted call of a
    /// later answer succeeded.
    without_user: Option<Error>,
    /// Whether a call did its job.
    did_work: bool,
    /// Whether a call ran and failed, or its command could not be started.
    did_fail: bool,
    usage: Usage,
    /// How often plugins have made the turn continue.
    pub(crate) continuations: u32,
}

/// How a turn begins.
#[derive(Default)]
struct TurnStart {
    prompt: String,
    /// The sources that began it, if the user said nothing.
    woken_by: Vec<String>,
    /// Text that plugins add before the prompt.
    additions: Vec<HookPromptAddition>,
}

/// How a turn ended.
struct TurnEnd {
    outcome: Outcome,
    text: String,
    error: Option<Error>,
}

/// Whether the turn continues after a step.
type StepFlow = ControlFlow<TurnEnd>;

impl Session {
    /// Runs one turn: the prompt, then steps until the model is done, a limit is reached, the turn
    /// fails or it is cancelled. Dropping the future is safe too. The next turn then closes what
    /// was left open.
    pub async fn run_turn(&mut self, prompt: impl Into<UserPrompt>, cancel: &Cancel) -> TurnReport {
        let prompt = prompt.into();
        // Later messages of the user come after the prompt.
        let said_before = self.shared.inbox.waiting_count();
        let text = prompt.text.clone();
        if prompt.files.iter().any(|file| matches!(file, Part::Data(_))) {
            self.wait_for_accepted_media(cancel).await;
        }
        let is_continued = self.history.turn_count() > 0;
        let added = self.shared.hooks.ask_before_turn(&text, is_continued, cancel).await;
        let (taken, additions) = match added {
            Ok(additions) => (self.append_prompt(prompt, &additions, said_before), additions),
            Err(refused) => (Err(refused), Vec::new()),
        };
        let begun = TurnStart { prompt: text, additions, ..TurnStart::default() };
        self.run_started_turn(begun, taken, cancel).await
    }

    /// Sends the last request again: a prompt that was kept unsent, tool results without an answer,
    /// or the request of the last answer, complete or not. Later requests omit that answer, and the
    /// record keeps it. Fails before the first message.
    pub async fn repeat_last_turn(&mut self, cancel: &Cancel) -> TurnReport {
        let taken = self.reopen_last_turn();
        let prompt = self.history.last_prompt().unwrap_or_default();
        let begun = TurnStart { prompt, ..TurnStart::default() };
        self.run_started_turn(begun, taken, cancel).await
    }

    /// Runs a turn triggered by background events instead of a user message: ends of tasks and
    /// notifications of plugins. Fails if there were none.
    pub async fn run_woken_turn(&mut self, cancel: &Cancel) -> TurnReport {
        let woken_by = [
            self.shared.tasks.board().tasks_with_outcomes(),
            self.shared.inbox.notifying_plugins(),
        ]
        .concat();
        let taken = self.begin_woken_turn();
        self.run_started_turn(TurnStart { woken_by, ..TurnStart::default() }, taken, cancel).await
    }

    /// Forgets the user's permissions for the turn. A turn of a session that shares its opener's
    /// rules is a part of its opener's turn.
    fn forget_turn_answers(&self) {
        if !self.shared.agent.lock().as_ref().is_some_and(|agent| agent.shares_rules) {
            self.shared.rules.change_rules(jaato_policy::Rules::forget_turn_answers);
        }
    }

    async fn run_started_turn(
        &mut self,
        begun: TurnStart,
        taken: Result<()>,
        cancel: &Cancel,
    ) -> TurnReport {
        let clock = self.shared.ports.clock.clone();
        let (started_at_ms, started_ms) = (clock.wall_ms(), clock.monotonic_ms());
        let TurnStart { prompt, woken_by, additions } = begun;
        self.shared.emitter.emit(Event::TurnStarted { prompt, woken_by });
        for addition in additions.iter().filter(|_| taken.is_ok()) {
            self.shared.emitter.emit(addition.to_event());
        }
        self.renew_tools(cancel).await;
        self.conditions.begin_turn();
        self.shared.beside.begin_turn();
        self.forget_turn_answers();
        let mut progress = TurnProgress::default();
        let end = match taken {
            Ok(()) => self.run_steps(&mut progress, cancel).await,
            Err(error) => Err(error),
        };
        let end = end.unwrap_or_else(TurnEnd::from_error).with_cancel_limit(cancel);
        let TurnEnd { outcome, text, error } = end;
        self.forget_turn_answers();
        self.make_room_after_turn(cancel).await;
        self.shared.facts.update_facts(|facts| facts.turns = self.history.turn_count());
        self.publish_record();
        self.shared.emitter.emit(Event::TurnFinished {
            outcome,
            text: text.clone(),
            error: error.clone(),
        });
        let TurnProgress { steps, usage, did_work, did_fail, .. } = progress;
        let no_call_worked = did_fail && !did_work;
        let duration_ms = clock.monotonic_ms().saturating_sub(started_ms);
        let is_open = self.has_open_turn();
        TurnReport {
            outcome,
            text,
            usage,
            error,
            steps,
            started_at_ms,
            duration_ms,
            is_open,
            no_call_worked,
        }
    }

    /// Begins a turn with a prompt. The first `said_before` messages of the inbox go before it, the
    /// others after it.
    fn append_prompt(
        &mut self,
        prompt: UserPrompt,
        additions: &[HookPromptAddition],
        said_before: usize,
    ) -> Result<()> {
        if prompt.text.trim().is_empty() {
            let error = Error::new(ErrorKind::InvalidArguments, "the prompt is empty");
            return Err(error.with_hint("say what to do"));
        }
        self.close_open_turn().map_err(host_bug_error)?;
        // Outcomes from a prompt that was never sent go with this one.
        let unsent = self.history.unsent_host_data().filter(|part| !is_addition(part));
        let mut parts: Vec<Part> = unsent.cloned().collect();
        let mut messages = self.shared.inbox.take_messages();
        let said_after = messages.split_off(said_before.min(messages.len()));
        parts.extend(self.combine_messages_and_news(messages));
        parts.extend(additions.iter().map(HookPromptAddition::to_part));
        self.report_unviewable_files(&prompt.files);
        self.retry_files(&prompt.files);
        parts.extend(prompt.into_parts());
        parts.extend(self.announce_messages(said_after));
        self.history.append_prompt(parts).map_err(host_bug_error)
    }

    fn reopen_last_turn(&mut self) -> Result<()> {
        self.paused.clear();
        self.answer_open_calls().map_err(host_bug_error)?;
        if !self.history.is_open() {
            self.history.stop_sending_answer().map_err(host_bug_error)?;
        }
        if !self.history.is_open() {
            let text = "there is no request to send again";
            return Err(Error::new(ErrorKind::InvalidArguments, text).with_hint("say something"));
        }
        self.history.mark_sent();
        Ok(())
    }

    fn begin_woken_turn(&mut self) -> Result<()> {
        self.close_open_turn().map_err(host_bug_error)?;
        let mut parts: Vec<Part> = self.history.unsent_host_data().cloned().collect();
        parts.extend(self.take_news());
        if parts.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArguments, "no event woke the session"));
        }
        self.history.append_prompt(parts).map_err(host_bug_error)
    }

    /// Lists the files that the model gets only as words, so that its answer does not surprise the
    /// user.
    fn report_unviewable_files(&self, files: &[Part]) {
        for file in files {
            let Part::Data(file) = file else { continue };
            if self.takes.accepts_media(&file.mime_type) {
                continue;
            }
            let (name, kind) = (file.name.as_deref().unwrap_or("a file"), &file.mime_type);
            let model = &self.model;
            self.shared.emitter.emit_notice(format!(
                "`{model}` cannot look at {name} ({kind}): it gets only a note"
            ));
        }
    }

    async fn run_steps(&mut self, progress: &mut TurnProgress, cancel: &Cancel) -> Result<TurnEnd> {
        self.shared.facts.update_facts(|facts| facts.turns = self.history.turn_count());
        while progress.steps < self.shared.limits.steps_max {
            progress.steps += 1;
            if let StepFlow::Break(end) = self.run_step(progress, cancel).await? {
                return Ok(end);
            }
        }
        self.end_at_limit()
    }

    /// Runs one request and handles its answer.
    async fn run_step(&mut self, progress: &mut TurnProgress, cancel: &Cancel) -> Result<StepFlow> {
        let step = progress.steps;
        if let Some(end) = self.check_caps(cancel).await? {
            progress.steps -= 1;
            return Ok(StepFlow::Break(end));
        }
        if step > 1 {
            self.take_new_tools(cancel).await;
        }
        let without_user = self.update_conditional_tools(cancel).await.map_err(host_bug_error)?;
        self.publish_record();
        self.wait_until_written().await;
        progress.without_user = progress.without_user.take().or(without_user);
        if let Some(refused) = self.ask_before_request(cancel).await.map_err(host_bug_error)? {
            progress.steps -= 1;
            self.shared.spent.lock().steps -= 1;
            return Ok(StepFlow::Break(self.end_failed(None, refused)?));
        }
        let mut reserved = match self.reserve_budget(cancel).await? {
            ControlFlow::Continue(reserved) => reserved,
            ControlFlow::Break(end) => {
                progress.steps -= 1;
                return Ok(StepFlow::Break(end));
            }
        };
        self.shared.emitter.emit(Event::StepStarted { step });
        let mut came = self.exchange_with_room(step, cancel).await;
        while self.switch_to_fallback(&came) {
            drop(reserved.take());
            match self.admit_fallback(cancel).await? {
                ControlFlow::Continue(again) => reserved = again,
                ControlFlow::Break(end) => {
                    let finish_reason = FinishReason::Error;
                    self.shared.emitter.emit(Event::StepFinished { step, finish_reason });
                    return Ok(StepFlow::Break(end));
                }
            }
            came = self.exchange_with_room(step, cancel).await;
        }
        completion::record_maker(&self.model, came.parts_mut());
        let finish_reason = match &came {
            RequestOutcome::Complete(completion) => {
                self.account_usage(completion.usage, &completion.parts, progress);
                completion.finish_reason
            }
            // The server bills the partial answer, but does not report its tokens.
            RequestOutcome::Failed { partial, .. } => {
                self.account_estimate(partial.as_deref().unwrap_or_default());
                FinishReason::Error
            }
            RequestOutcome::Cancelled { partial } => {
                self.account_estimate(partial);
                FinishReason::Cancelled
            }
        };
        drop(reserved);
        self.shared.emitter.emit(Event::StepFinished { step, finish_reason });
        match came {
            RequestOutcome::Complete(completion) => {
                self.handle_answer(completion, progress, cancel).await
            }
            RequestOutcome::Failed { partial, error } => {
                Ok(StepFlow::Break(self.end_failed(partial, error)?))
            }
            RequestOutcome::Cancelled { partial } => {
                Ok(StepFlow::Break(self.end_cancelled(partial)?))
            }
        }
    }

    async fn handle_answer(
        &mut self,
        answer: Completion,
        progress: &mut TurnProgress,
        cancel: &Cancel,
    ) -> Result<StepFlow> {
        let finish_reason = answer.finish_reason;
        let taken: HashSet<_> =
            self.paused.iter().filter_map(Part::as_tool_call).map(|call| call.id.clone()).collect();
        let ids = &*self.shared.ports.ids;
        let parts = completion::sanitize_parts(answer.parts, taken, &self.history, ids);
        let parts = [std::mem::take(&mut self.paused), parts].concat();
        if finish_reason == FinishReason::Paused {
            self.paused = parts;
            return Ok(StepFlow::Continue(()));
        }
        if let Some(why) = WithheldAnswerReason::from_finish_reason(finish_reason) {
            return self.end_withheld(completion::remove_calls(parts), why).map(StepFlow::Break);
        }
        let is_cut = is_truncated(finish_reason);
        if !completion::has_answer(&parts) {
            if is_cut {
                // The same request would reach the same limit, because all of the output was
                // thoughts.
                let text = self.append_broken_answer(parts, truncation_mark(finish_reason))?;
                return Ok(StepFlow::Break(TurnEnd::from_cut_answer(text, finish_reason)));
            }
            return self.repeat_after_empty_answer(parts, progress);
        }
        self.shared.objects.count_mentions(&parts);
        let (text, calls) = text_and_calls(&parts);
        self.history.append_model_answer(&self.model, parts, None).map_err(host_bug_error)?;
        if is_cut && !calls.is_empty() {
            return self.end_with_cut_calls(&calls, finish_reason).map(StepFlow::Break);
        }
        if calls.is_empty() {
            return self.finish_answer(text, finish_reason, progress, cancel).await;
        }
        self.run_calls(&calls, progress, cancel).await
    }

    /// Ends the turn after a final answer, unless tasks run or the user has said more. Then the
    /// turn continues with their outcomes and the user's messages.
    async fn finish_answer(
        &mut self,
        text: String,
        finish_reason: FinishReason,
        progress: &mut TurnProgress,
        cancel: &Cancel,
    ) -> Result<StepFlow> {
        if self.lets_tasks_go_on {
            self.shared.tasks.board().release_turn_tasks();
        }
        let is_over = self.shared.tasks.board().running_count() == 0 && !self.has_news();
        if is_over
            && !is_truncated(finish_reason)
            && self.ask_to_continue(&text, progress, cancel).await?
        {
            return Ok(StepFlow::Continue(()));
        }
        if is_over || is_truncated(finish_reason) {
            return Ok(StepFlow::Break(TurnEnd::from_answer(text, finish_reason, progress)));
        }
        if progress.steps >= self.shared.limits.steps_max {
            // No request is left to tell the model. The next prompt does.
            let error = Some(self.limit_error());
            return Ok(StepFlow::Break(TurnEnd { outcome: Outcome::Limit, text, error }));
        }
        self.wait_for_tasks(cancel).await;
        let news = self.take_news();
        self.history.append_prompt(news).map_err(host_bug_error)?;
        if cancel.is_cancelled() {
            return self.end_cancelled(Vec::new()).map(StepFlow::Break);
        }
        Ok(StepFlow::Continue(()))
    }

    /// Waits until no task runs or the user says something. A cancellation ends the tasks.
    async fn wait_for_tasks(&self, cancel: &Cancel) {
        let running = self.shared.tasks.board().running_count();
        if running > 0 && self.shared.inbox.waiting_count() == 0 {
            let tasks = if running == 1 { "task" } else { "tasks" };
            self.shared.emitter.emit_notice(format!("waiting for {running} background {tasks}…"));
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                self.shared.tasks.board().cancel_turn_tasks();
                self.shared.tasks.board().wait_until_idle().await;
            }
            () = self.shared.inbox.wait_for_message() => {}
            () = self.shared.tasks.board().wait_until_idle() => {}
        }
    }

    /// Returns true if there is something that the model does not know yet.
    fn has_news(&self) -> bool {
        self.shared.tasks.board().has_due_outcome() || self.shared.inbox.waiting_count() > 0
    }

    /// Takes plugins' instructions about tools that they have set.
    pub(crate) fn take_late_instructions(&self) -> Vec<Part> {
        let late = std::mem::take(&mut *self.shared.late_instructions.lock());
        self.shared.told_instructions.lock().extend(late.clone());
        let tools = self.shared.current_tools();
        let instruct = |(from, text): (PluginName, String)| {
            let told = json!({ "instructions": { "from": from, "text": text } });
            tools.can_use_plugin(&from).then(|| Part::json(told))
        };
        late.into_iter().filter_map(instruct).collect()
    }

    /// Takes the news for the model's next request: outcomes of tasks, answers of commands, objects
    /// that it has not seen, then the user's messages.
    fn take_news(&self) -> Vec<Part> {
        self.combine_messages_and_news(self.shared.inbox.take_messages())
    }

    fn combine_messages_and_news(&self, messages: Vec<InboxMessage>) -> Vec<Part> {
        let mut news = self.take_late_instructions();
        news.extend(tasks::outcome_parts(self.shared.tasks.board().take_outcomes()));
        news.extend(self.take_command_answers());
        news.extend(self.shared.objects.unseen_objects(self.shared.limits.objects_tokens_max));
        news.extend(self.announce_messages(messages));
        news
    }

    /// Announces messages that go with the next request.
    fn announce_messages(&self, messages: Vec<InboxMessage>) -> Vec<Part> {
        let part = |message| match message {
            InboxMessage::Said(text) => {
                self.shared.emitter.emit(Event::MessageJoined { text: text.clone() });
                Part::text(text)
            }
            InboxMessage::Notified { from, text } => {
                Part::json(json!({ "notification": { "from": from, "text": text } }))
            }
        };
        messages.into_iter().map(part).collect()
    }

    async fn run_calls(
        &mut self,
        calls: &[ToolCall],
        progress: &mut TurnProgress,
        cancel: &Cancel,
    ) -> Result<StepFlow> {
        let cap = self.shared.spent.lock().reached_cap_error(&self.shared.caps);
        if progress.steps >= self.shared.limits.steps_max || cap.is_some() {
            // No request is left that could give the model their results.
            let error = cap.unwrap_or_else(|| self.limit_error());
            let results = calls.iter().map(|call| calls::failed_result(call, &error)).collect();
            self.history.append_results(results, Vec::new()).map_err(host_bug_error)?;
            return Ok(StepFlow::Continue(()));
        }
        self.publish_record();
        self.await_called_tools(calls, cancel).await;
        let CallsOutcome { results, without_user, did_permitted, activated, .. } =
            self.shared.call_runner(CallInitiator::Model, cancel).run_calls(calls).await;
        progress.did_work |= results.iter().any(calls::is_success);
        progress.did_fail |= results.iter().any(calls::has_failed);
        if results.iter().any(|result| !result.attachments.is_empty()) {
            self.wait_for_accepted_media(cancel).await;
        }
        self.offer_view_tool();
        self.history.append_results(results, self.take_news()).map_err(host_bug_error)?;
        if did_permitted {
            // The model knew of the earlier refusal and continued in a permitted way.
            progress.without_user = None;
        }
        progress.without_user = progress.without_user.take().or(without_user);
        self.activate_tools(&activated);
        if cancel.is_cancelled() {
            return self.end_cancelled(Vec::new()).map(StepFlow::Break);
        }
        Ok(StepFlow::Continue(()))
    }

    /// Repeats the request after an empty answer, up to a limit. An empty answer is never kept.
    fn repeat_after_empty_answer(
        &mut self,
        parts: Vec<Part>,
        progress: &mut TurnProgress,
    ) -> Result<StepFlow> {
        progress.empty_answers += 1;
        let times = progress.empty_answers;
        if times < self.shared.limits.empty_answers_max {
            self.shared.emitter.emit_notice("the model sent an empty answer: asking again");
            return Ok(StepFlow::Continue(()));
        }
        let error =
            Error::new(ErrorKind::Provider, format!("the model sent {times} empty answers"))
                .with_hint("rephrase the task, or use another model");
        // In an empty answer, only thoughts have content.
        let is_thought = |part: &Part| matches!(part, Part::Thought { .. });
        let thoughts: Vec<Part> = parts.into_iter().filter(is_thought).collect();
        let partial = (!thoughts.is_empty()).then_some(thoughts);
        self.end_failed(partial, error).map(StepFlow::Break)
    }

    fn end_failed(&mut self, partial: Option<Vec<Part>>, error: Error) -> Result<TurnEnd> {
        let paused = std::mem::take(&mut self.paused);
        let partial = match partial {
            Some(parts) => Some([paused, parts].concat()),
            None => (!paused.is_empty()).then_some(paused),
        };
        let partial = partial.map(completion::remove_calls);
        let text = match partial {
            Some(parts) => self.append_broken_answer(parts, MARK_CANCELLED)?,
            None => {
                // Tool results stay as they are, because the calls ran, and they can be sent again.
                self.history.mark_unsent();
                String::new()
            }
        };
        Ok(TurnEnd { outcome: Outcome::Failed, text, error: Some(error) }.with_error_limit())
    }

    fn end_cancelled(&mut self, partial: Vec<Part>) -> Result<TurnEnd> {
        self.shared.tasks.board().cancel_turn_tasks();
        let partial =
            completion::remove_calls([std::mem::take(&mut self.paused), partial].concat());
        let text = self.append_broken_answer(partial, MARK_CANCELLED)?;
        Ok(TurnEnd { outcome: Outcome::Cancelled, text, error: None })
    }

    fn end_withheld(&mut self, parts: Vec<Part>, why: WithheldAnswerReason) -> Result<TurnEnd> {
        let text = self.append_broken_answer(parts, why.mark)?;
        let error = Error::new(ErrorKind::Provider, why.text).with_hint("rephrase the task");
        Ok(TurnEnd { outcome: Outcome::Failed, text, error: Some(error) })
    }

    fn end_at_limit(&mut self) -> Result<TurnEnd> {
        let paused = completion::remove_calls(std::mem::take(&mut self.paused));
        let text = self.append_broken_answer(paused, MARK_LIMIT)?;
        Ok(TurnEnd { outcome: Outcome::Limit, text, error: Some(self.limit_error()) })
    }

    /// Ends the turn without running the calls. Which of them are complete is unknown, and
    /// truncated arguments may be valid and mean something else.
    fn end_with_cut_calls(&mut self, calls: &[ToolCall], reason: FinishReason) -> Result<TurnEnd> {
        let limit = match reason {
            FinishReason::ContextExceeded => "when the context window was full",
            _ => "at the output limit",
        };
        let text = format!("it did not run: the answer was cut off {limit}, and this call with it");
        let error = Error::new(ErrorKind::LimitReached, text).with_hint("ask for a shorter answer");
        let results = calls.iter().map(|call| calls::failed_result(call, &error)).collect();
        self.history.append_results(results, Vec::new()).map_err(host_bug_error)?;
        let text = self.append_broken_answer(Vec::new(), truncation_mark(reason))?;
        Ok(TurnEnd::from_cut_answer(text, reason))
    }

    fn limit_error(&self) -> Error {
        let text = format!("the turn reached its limit of {} steps", self.shared.limits.steps_max);
        Error::new(ErrorKind::LimitReached, text)
            .with_hint("say `continue`, or raise the limit in the configuration")
    }

    /// Appends the partial answer and the mark that says that it broke off. Returns its text.
    fn append_broken_answer(&mut self, mut parts: Vec<Part>, mark: &str) -> Result<String> {
        let (said, _) = text_and_calls(&parts);
        let gap = if said.is_empty() { "" } else { "\n\n" };
        parts.push(Part::text(format!("{gap}{mark}")));
        let text = format!("{said}{gap}{mark}");
        let mark = Some(MessageMark::Partial);
        self.history.append_model_answer(&self.model, parts, mark).map_err(host_bug_error)?;
        Ok(text)
    }

    /// Adds an error to each open call, because its result is unknown.
    fn answer_open_calls(&mut self) -> std::result::Result<(), HistoryError> {
        if self.history.expected_message() == ExpectedMessage::Results {
            let open: Vec<ToolCall> = self.history.open_calls().cloned().collect();
            let error = Error::new(ErrorKind::Cancelled, "interrupted: the result is unknown");
            let results = open.iter().map(|call| calls::failed_result(call, &error)).collect();
            self.history.append_results(results, Vec::new())?;
        }
        Ok(())
    }

    /// Closes a turn that was left open, so that a prompt may follow.
    pub(crate) fn close_open_turn(&mut self) -> std::result::Result<(), HistoryError> {
        self.close_turn(MARK_FAILED)
    }

    /// Closes a turn that was left open. An answer that is missing becomes the mark.
    pub(crate) fn close_turn(&mut self, mark: &str) -> std::result::Result<(), HistoryError> {
        self.answer_open_calls()?;
        if self.history.expected_message() == ExpectedMessage::Answer {
            let mut parts = completion::remove_calls(std::mem::take(&mut self.paused));
            parts.push(Part::text(mark));
            self.history.append_model_answer(&self.model, parts, Some(MessageMark::Partial))?;
        }
        Ok(())
    }
}

impl TurnEnd {
    fn from_answer(text: String, finish_reason: FinishReason, progress: &mut TurnProgress) -> Self {
        if is_truncated(finish_reason) {
            return Self::from_cut_answer(text, finish_reason);
        }
        let error = progress.without_user.take();
        let outcome = if error.is_some() { Outcome::Denied } else { Outcome::Done };
        Self { outcome, text, error }
    }

    fn from_cut_answer(text: String, reason: FinishReason) -> Self {
        let (what, hint) = match reason {
            FinishReason::ContextExceeded => (
                "the context window was full before the model's answer was complete",
                "`/gc` makes room in a chat; then say `continue`",
            ),
            _ => (
                "the model reached its output limit: its answer is truncated",
                "say `continue`, ask for a shorter answer, or raise the limit at the model's server",
            ),
        };
        let error = Error::new(ErrorKind::LimitReached, what).with_hint(hint);
        Self { outcome: Outcome::Limit, text, error: Some(error) }
    }

    fn from_error(error: Error) -> Self {
        Self { outcome: Outcome::Failed, text: String::new(), error: Some(error) }
    }

    /// Sets the outcome of a turn that a limit has cancelled to that limit.
    fn with_cancel_limit(self, cancel: &Cancel) -> Self {
        let is_cancelled = self.outcome == Outcome::Cancelled
            || self.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Cancelled);
        match cancel.limit_error().filter(|_| is_cancelled) {
            Some(limit) => Self { outcome: Outcome::Limit, error: Some(limit.clone()), ..self },
            None => self,
        }
    }

    /// Sets the outcome of a failure that reached a limit to that limit.
    fn with_error_limit(mut self) -> Self {
        if self.error.as_ref().is_some_and(|error| error.kind == ErrorKind::LimitReached) {
            self.outcome = Outcome::Limit;
        }
        self
    }
}

/// Why an answer was withheld.
struct WithheldAnswerReason {
    mark: &'static str,
    text: &'static str,
}

impl WithheldAnswerReason {
    fn from_finish_reason(reason: FinishReason) -> Option<Self> {
        match reason {
            FinishReason::Safety => {
                let text = "the provider's filter stopped the answer";
                Some(Self { mark: MARK_FILTERED, text })
            }
            FinishReason::Refused => {
                Some(Self { mark: MARK_REFUSED, text: "the model declined to answer" })
            }
            FinishReason::Stop
            | FinishReason::MaxTokens
            | FinishReason::ToolUse
            | FinishReason::Error
            | FinishReason::Cancelled
            | FinishReason::Paused
            | FinishReason::ContextExceeded
            | FinishReason::Unknown => None,
        }
    }
}

/// Returns true if an answer was truncated because it had no more room.
fn is_truncated(reason: FinishReason) -> bool {
    matches!(reason, FinishReason::MaxTokens | FinishReason::ContextExceeded)
}

fn truncation_mark(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::ContextExceeded => MARK_CONTEXT_FULL,
        _ => MARK_OUTPUT_LIMIT,
    }
}

fn text_and_calls(parts: &[Part]) -> (String, Vec<ToolCall>) {
    let mut text = String::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            Part::Text { text: piece, .. } => text.push_str(piece),
            Part::ToolCall(call) => calls.push(call.clone()),
            Part::ToolResult(_)
            | Part::Data(_)
            | Part::Thought { .. }
            | Part::Opaque(_)
            | Part::ToolsChanged(_)
            | Part::Unknown(_) => {}
        }
    }
    (text, calls)
}

/// Converts a history error. The turn loop appends only valid messages, so any error is a bug of
/// this crate.
pub(crate) fn host_bug_error(error: HistoryError) -> Error {
    Error::new(ErrorKind::HostBug, format!("the history refused a message: {error}"))
        .with_hint("please report this")
}

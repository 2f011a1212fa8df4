//! One task of a batch: a session from its prompt, or from the point at which an earlier process
//! left it, to its result.

use std::sync::Arc;
use std::time::Instant;

use jaato_runtime::SessionOptions;
use jaato_runtime::saved::SaveMode;
use jaato_runtime::session_loop::{Session, SessionUsage, SharedBudget, UserPrompt};
use jaato_runtime::types::{Error, Outcome, Role, SessionId, ToolName};

use super::BatchRun;
use super::input::BatchTask;
use super::results::{TaskError, TaskResult};
use crate::args::{SavingArgs, SessionArgs};
use crate::attach;
use crate::conversation::{self, SessionObservers};
use crate::deadline::start_deadline;
use crate::environment::DiscardingEventSink;
use crate::exit::{CommandFailure, Exit};
use crate::sessions::resume::{self, SessionChoice};

/// How a task ended.
pub(super) enum TaskEnd {
    /// It has a result.
    Finished(TaskResult),
    /// It did not begin, or the user or a limit of the batch stopped it, which has an error.
    Unfinished(Option<TaskError>),
    /// Its session cannot be recorded.
    Unwritable(CommandFailure),
}

/// The last answer of a task, and how it came.
struct TaskAnswer {
    outcome: Outcome,
    exit: Exit,
    text: String,
    error: Option<TaskError>,
}

impl BatchRun<'_> {
    /// Runs a task, unless the batch is over.
    pub(super) async fn run_task(&self, task: &BatchTask) -> TaskEnd {
        let used_up = self.budget.as_ref().and_then(SharedBudget::exhausted_error);
        if self.cancel.is_cancelled() || used_up.is_some() {
            return TaskEnd::Unfinished(used_up.map(TaskError::from));
        }
        let begun = Instant::now();
        let earlier = self.earlier.sessions.get(&task.id);
        let result = |answer: TaskAnswer| TaskResult {
            id: task.id.clone(),
            outcome: answer.outcome,
            exit_code: answer.exit as u8,
            text: answer.text,
            error: answer.error,
            model: None,
            session: None,
            continued: false,
            usage: SessionUsage::default(),
            duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            task: task.task.clone(),
        };
        let (mut session, continued) = match self.open_session(task, earlier) {
            Ok(opened) => opened,
            Err(failure) => return TaskEnd::Finished(result(TaskAnswer::from_failure(failure))),
        };
        if session.is_saved() && !continued {
            let begun = self.output.lock().record_start(&task.id, session.id());
            if let Err(failure) = begun {
                self.runtime.close_session(session.id()).await;
                return TaskEnd::Unwritable(failure);
            }
        }
        let answer = self.run_turn(&mut session, task).await;
        session.end_forms().await;
        session.end_tasks().await;
        session.wait_until_written().await;
        self.runtime.close_session(session.id()).await;
        let has_no_budget =
            self.budget.as_ref().is_some_and(|budget| budget.has_refused(session.id()));
        if answer.exit == Exit::Cancelled || (answer.outcome == Outcome::Limit && has_no_budget) {
            return TaskEnd::Unfinished(answer.error);
        }
        TaskEnd::Finished(TaskResult {
            model: Some(session.facts().model),
            session: session.is_saved().then(|| session.id().clone()),
            continued,
            usage: session.usage(),
            ..result(answer)
        })
    }

    /// Opens the session that an earlier process left, or a new one. Returns whether it continues.
    fn open_session(
        &self,
        task: &BatchTask,
        earlier: Option<&SessionId>,
    ) -> Result<(Session, bool), CommandFailure> {
        let args = &self.args.session;
        let not_asked = SessionOptions::unattended(Arc::new(DiscardingEventSink));
        let watch = SessionObservers { events: not_asked.events, asker: not_asked.asker };
        let choice = match earlier.filter(|id| resume::has_messages(self.runtime, id)) {
            Some(id) => SessionChoice::Saved(id.clone()),
            None => SessionChoice::New,
        };
        let saving = (args, &SavingArgs::default());
        let saving = resume::open_saving(self.runtime, &choice, saving, task.model.as_deref())?;
        let continued = matches!(saving, SaveMode::Continue(_));
        let mut options = conversation::session_options(self.runtime, args, saving, watch)?;
        options.model = task.model.clone();
        options.system = task.system.clone().or(options.system);
        options.caps.cost = task.caps.cost.or(options.caps.cost);
        options.caps.tokens = task.caps.tokens.or(options.caps.tokens);
        options.caps.steps = task.caps.steps.or(options.caps.steps);
        options.budget = self.budget.clone();
        options.tools = task.tools.as_ref().map(|tools| {
            let is_none = tools.iter().all(|tool| tool == jaato_runtime::registry::NO_TOOLS);
            let tools = tools.iter().filter(|_| !is_none);
            tools.map(|tool| ToolName::from(tool.as_str())).collect()
        });
        let session = self.runtime.open_session(options).map_err(conversation::start_failure)?;
        Ok((session, continued))
    }

    /// Runs the turn, or the rest of it.
    async fn run_turn(&self, session: &mut Session, task: &BatchTask) -> TaskAnswer {
        let cancel = self.cancel.child_token();
        let _deadline =
            task.deadline.or(self.args.deadline).map(|after| start_deadline(after, &cancel));
        let tools = task.tools.clone().or_else(|| self.args.session.tools.clone());
        let named = SessionArgs { tools, ..self.args.session.clone() };
        conversation::await_tools(session, &named, &cancel).await;
        let report = if session.history().turn_count() == 0 {
            match self.build_prompt(session, task).await {
                Ok(prompt) => session.run_turn(prompt, &cancel).await,
                Err(failure) => return TaskAnswer::from_failure(failure),
            }
        } else if session.has_open_turn() {
            session.repeat_last_turn(&cancel).await
        } else {
            return TaskAnswer::from_history(session);
        };
        let exit = conversation::turn_exit(&report);
        let (outcome, text) = (report.outcome, report.text);
        let error = report.error.map(TaskError::from);
        match (exit, error) {
            (Exit::Failed, None) => {
                let message = "every tool call of the task failed".to_owned();
                let hint = Some("check the answer: it may claim success".to_owned());
                let error = Some(TaskError { message, hint });
                TaskAnswer { outcome: Outcome::Failed, exit, text, error }
            }
            (_, error) => TaskAnswer { outcome, exit, text, error },
        }
    }

    async fn build_prompt(
        &self,
        session: &Session,
        task: &BatchTask,
    ) -> Result<UserPrompt, CommandFailure> {
        // `@FILE` attaches nothing, because the user need not have written the tasks.
        let prompt = UserPrompt::from(task.task.as_str());
        attach::attach_listed(self.runtime, session, prompt, &task.attach).await
    }
}

impl TaskAnswer {
    fn from_failure(failure: CommandFailure) -> Self {
        let CommandFailure { exit, message, hint } = failure;
        let error = Some(TaskError { message, hint });
        Self { outcome: Outcome::Failed, exit, text: String::new(), error }
    }

    /// Returns the answer that an earlier process got and did not write.
    fn from_history(session: &Session) -> Self {
        let messages = session.history().entries().iter().map(|entry| &entry.message);
        let last = messages.rev().find(|message| message.role == Role::Model);
        let text = last.map(|message| message.text()).unwrap_or_default();
        Self { outcome: Outcome::Done, exit: Exit::Done, text, error: None }
    }
}

impl From<Error> for TaskError {
    fn from(error: Error) -> Self {
        Self { message: error.message, hint: error.hint }
    }
}

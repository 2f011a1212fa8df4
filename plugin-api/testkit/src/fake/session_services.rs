//! The parts of a fake session that a plugin may use: other tools, models, the conversation, the
//! user, child sessions. The test defines their answers. Parts that the test does not define are
//! missing.

use std::collections::BTreeMap;
use std::sync::Arc;

use jaato_types::ask::{ASK, Form, FormAnswer};
use jaato_types::child::{
    ChildEmptyAnswer, ChildOpen, ChildRef, ChildSend, ChildState, ChildTurn, ChildWait,
    OpenedChild, SESSION_CANCEL, SESSION_CLOSE, SESSION_EVENTS, SESSION_OPEN, SESSION_SEND,
    SESSION_WAIT,
};
use jaato_types::history::{HistoryMessage, HistoryRead, SESSION_HISTORY};
use jaato_types::model::{MODEL_COMPLETE, ModelAnswer, ModelComplete, ModelPiece};
use jaato_types::notify::{
    NOTIFICATION_BYTES_MAX, NOTIFICATIONS_PER_MINUTE_MAX, NOTIFY, NotifyAnswer, NotifyRequest,
};
use jaato_types::tasks::{
    TASKS_CANCEL, TASKS_LIST, TASKS_READ, TASKS_START, TaskCancel, TaskFacts, TaskRead,
    TaskReadAnswer, TaskStart, TaskStartAnswer, TaskStatus, TasksAnswer,
};
use jaato_types::tool_calls::{TOOLS_CALL, ToolsCall, ToolsCallAnswer};
use jaato_types::tools_list::{TOOLS_LIST, ToolFacts, ToolsListAnswer};
use jaato_types::tools_set::{TOOLS_SET, ToolsSet, ToolsSetAnswer};
use jaato_types::{Completion, Delta, Error, ErrorKind, Output, Part, Result};
use serde_json::{Value, json};

use super::services::{FakeServiceReply, ServiceRequest};
use super::stream::FakeStream;

type FakeSessionTool = Arc<dyn Fn(Value) -> Result<Output> + Send + Sync>;
type FakeSessionModel = Arc<dyn Fn(&ModelComplete) -> Result<String> + Send + Sync>;
type FakeSessionUser = Arc<dyn Fn(&Form) -> FormAnswer + Send + Sync>;
type FakeChildHandler = Arc<dyn Fn(&ChildOpen, &str) -> ChildTurn + Send + Sync>;

/// The parts of a fake session.
#[derive(Default)]
pub(crate) struct FakeSessionParts {
    tools: BTreeMap<String, FakeSessionTool>,
    model: Option<FakeSessionModel>,
    person: Option<FakeSessionUser>,
    child: Option<FakeChildHandler>,
    record: Vec<HistoryMessage>,
    notified: Vec<String>,
    set: Option<ToolsSet>,
    tasks: Vec<TaskFacts>,
    children: BTreeMap<u64, FakeChildSession>,
    opened: u64,
}

/// A child session.
struct FakeChildSession {
    open: ChildOpen,
    state: ChildState,
}

impl FakeSessionParts {
    pub(super) fn is_operation(operation: &str) -> bool {
        let names =
            [ASK, SESSION_HISTORY, MODEL_COMPLETE, NOTIFY, TOOLS_CALL, TOOLS_LIST, TOOLS_SET];
        let is_group = operation.starts_with("session.") || operation.starts_with("tasks.");
        names.contains(&operation) || is_group
    }

    pub(super) fn add_tool(&mut self, name: &str, tool: FakeSessionTool) {
        self.tools.insert(name.to_owned(), tool);
    }

    pub(super) fn set_model(&mut self, model: FakeSessionModel) {
        self.model = Some(model);
    }

    pub(super) fn set_user(&mut self, person: FakeSessionUser) {
        self.person = Some(person);
    }

    pub(super) fn set_child_handler(&mut self, child: FakeChildHandler) {
        self.child = Some(child);
    }

    pub(super) fn set_history(&mut self, record: Vec<HistoryMessage>) {
        self.record = record;
    }

    pub(super) fn notifications(&self) -> Vec<String> {
        self.notified.clone()
    }

    pub(super) fn tools_set(&self) -> Option<ToolsSet> {
        self.set.clone()
    }

    pub(super) fn answer(&mut self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        match request.operation.as_str() {
            TOOLS_CALL => {
                let ToolsCall { name, arguments, .. } = request.read()?;
                let Output { content, bytes, attachments, .. } =
                    self.call_tool(name.as_str(), arguments)?;
                let answer = ToolsCallAnswer::new(content, attachments);
                Ok(FakeServiceReply::Bytes(json!(answer), bytes))
            }
            TOOLS_LIST => {
                let facts = |name: &String| {
                    let mut facts = ToolFacts::default();
                    facts.name = name.as_str().into();
                    facts.source = "fake".to_owned();
                    facts
                };
                FakeServiceReply::from_value(&ToolsListAnswer::new(
                    self.tools.keys().map(facts).collect(),
                ))
            }
            TOOLS_SET => {
                let set: ToolsSet = request.read()?;
                let count = set.tools.len() as u64;
                self.set = Some(set);
                FakeServiceReply::from_value(&ToolsSetAnswer::new(count, Vec::new()))
            }
            ASK => {
                let form: Form = request.read()?;
                FakeServiceReply::from_value(&match &self.person {
                    Some(person) => person(&form),
                    None => FormAnswer::without_user("a fake host has no user"),
                })
            }
            NOTIFY => self.record_notification(request),
            SESSION_HISTORY => self.read_history(request),
            MODEL_COMPLETE => self.complete_request(request),
            operation if operation.starts_with("tasks.") => self.answer_tasks(request),
            _ => self.answer_children(request),
        }
    }

    fn call_tool(&self, name: &str, arguments: Value) -> Result<Output> {
        let unknown = || {
            let text = format!("there is no tool `{name}`");
            Error::new(ErrorKind::UnknownTool, text)
        };
        self.tools.get(name).ok_or_else(unknown)?(arguments)
    }

    fn record_notification(&mut self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let NotifyRequest { text, .. } = request.read()?;
        if text.trim().is_empty() || text.len() > NOTIFICATION_BYTES_MAX {
            let text = format!("a notification has 1 to {NOTIFICATION_BYTES_MAX} bytes of text");
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        // All of a fake host's time counts as one minute.
        if self.notified.len() >= NOTIFICATIONS_PER_MINUTE_MAX as usize {
            let text = format!(
                "a plugin notifies a session at most {NOTIFICATIONS_PER_MINUTE_MAX} times a minute"
            );
            return Err(Error::new(ErrorKind::LimitReached, text).temporary());
        }
        self.notified.push(text);
        FakeServiceReply::from_value(&NotifyAnswer::default())
    }

    fn read_history(&self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let asked: HistoryRead = request.read::<Option<_>>()?.unwrap_or_default();
        let all = self.record.len() as u64;
        let first = asked.from.max(asked.last.map_or(0, |last| all.saturating_sub(last)));
        let stream = FakeStream::open();
        for message in self.record.iter().filter(|message| message.number >= first) {
            if !asked.only_collected || message.is_collected || message.is_shortened {
                stream.push_frame(message, &[]);
            }
        }
        stream.finish();
        Ok(FakeServiceReply::StreamWith(json!({ "messages": all }), stream))
    }

    fn complete_request(&self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let asked: ModelComplete = request.read()?;
        let Some(model) = &self.model else {
            let text = "the fake host has no model: set one with `FakeHost::with_model`";
            return Err(Error::new(ErrorKind::Unavailable, text));
        };
        let text = model(&asked)?;
        let name = asked.model.unwrap_or_else(|| "fake/model".to_owned());
        let parts = vec![Part::text(text.clone())];
        let answer = ModelAnswer::new(name, Completion { parts, ..Completion::default() });
        if !asked.stream {
            return FakeServiceReply::from_value(&answer);
        }
        let stream = FakeStream::open();
        stream.push_frame(&ModelPiece::delta(Delta::text(text)), &[]);
        stream.push_frame(&ModelPiece::answer(answer), &[]);
        stream.finish();
        Ok(FakeServiceReply::Stream(stream))
    }

    /// A task of a fake host ends before the call that starts it continues.
    fn answer_tasks(&mut self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        match request.operation.as_str() {
            TASKS_START => {
                let TaskStart { name, arguments, .. } = request.read()?;
                if !self.tools.contains_key(name.as_str()) {
                    let text = format!("there is no tool `{name}`");
                    return Err(Error::new(ErrorKind::UnknownTool, text));
                }
                let mut facts = TaskFacts::default();
                facts.task_id = format!("task_{}", self.tasks.len() + 1);
                facts.tool = name.clone();
                facts.is_detached = true;
                match self.call_tool(name.as_str(), arguments) {
                    Ok(output) => {
                        facts.status = TaskStatus::Completed;
                        facts.result = Some(output.content);
                    }
                    Err(error) => {
                        facts.status = TaskStatus::Failed;
                        let content = json!({ "error": { "message": error.message } });
                        facts.result = content.as_object().cloned();
                    }
                }
                self.tasks.push(facts.clone());
                FakeServiceReply::from_value(&TaskStartAnswer::new(facts.task_id))
            }
            TASKS_LIST => FakeServiceReply::from_value(&TasksAnswer::new(self.tasks.clone())),
            TASKS_READ => {
                let asked: TaskRead = request.read()?;
                let mut answer = TaskReadAnswer::default();
                answer.task = self.find_task(&asked.task_id)?;
                FakeServiceReply::from_value(&answer)
            }
            TASKS_CANCEL => FakeServiceReply::from_value(
                &self.find_task(&request.read::<TaskCancel>()?.task_id)?,
            ),
            _ => super::services::default_answer(request),
        }
    }

    fn find_task(&self, id: &str) -> Result<TaskFacts> {
        let found = self.tasks.iter().find(|task| task.task_id == id).cloned();
        let text = format!("the session has no task `{id}`");
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, text))
    }

    /// A turn of a child ends before the message that starts it is answered.
    fn answer_children(&mut self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        match request.operation.as_str() {
            SESSION_OPEN => {
                let open: ChildOpen = request.read()?;
                if self.child.is_none() {
                    let text =
                        "the fake host opens no sessions: define one with `FakeHost::with_child`";
                    return Err(Error::new(ErrorKind::Unavailable, text));
                }
                self.opened += 1;
                let model = open.model.clone().unwrap_or_else(|| "fake/model".to_owned());
                let opened = OpenedChild::new(self.opened, format!("child_{}", self.opened), model);
                self.children
                    .insert(self.opened, FakeChildSession { open, state: ChildState::default() });
                FakeServiceReply::from_value(&opened)
            }
            SESSION_SEND => {
                let ChildSend { session, text, .. } = request.read()?;
                let said = self.child.clone();
                let child = self.find_child(session)?;
                if let Some(said) = said {
                    child.state.last = Some(said(&child.open, &text));
                    child.state.turns += 1;
                }
                FakeServiceReply::from_value(&ChildEmptyAnswer::default())
            }
            SESSION_WAIT => {
                let asked: ChildWait = request.read()?;
                FakeServiceReply::from_value(&self.find_child(asked.session)?.state)
            }
            SESSION_EVENTS => {
                self.find_child(request.read::<ChildRef>()?.session)?;
                Ok(FakeServiceReply::Stream(FakeStream::from_pieces(Vec::<Vec<u8>>::new())))
            }
            SESSION_CANCEL => {
                self.find_child(request.read::<ChildRef>()?.session)?;
                FakeServiceReply::from_value(&ChildEmptyAnswer::default())
            }
            SESSION_CLOSE => {
                let session = request.read::<ChildRef>()?.session;
                self.find_child(session)?;
                self.children.remove(&session);
                FakeServiceReply::from_value(&ChildEmptyAnswer::default())
            }
            _ => super::services::default_answer(request),
        }
    }

    fn find_child(&mut self, number: u64) -> Result<&mut FakeChildSession> {
        let text = format!("unknown child session {number}");
        self.children.get_mut(&number).ok_or_else(|| Error::new(ErrorKind::NotFound, text))
    }
}

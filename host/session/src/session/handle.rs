//! What the calls of a session share, behind one handle: its tools, its rules and its ports.
//!
//! The session itself is lent out while a turn runs. A handle is not: who has one calls a tool of
//! the session meanwhile, by the same gate, the same bounds and the same events as the model does.

use std::sync::{Arc, Weak};

use jaato_policy::Rules;
use jaato_types::{Error, ErrorKind, Output, Result, SessionId, ToolCall, ToolName};
use parking_lot::Mutex;

use crate::calls::{CallRunner, Initiative};
use crate::events::Emitter;
use crate::hooks::HookAsker;
use crate::pace::Pace;
use crate::tasks::Tasks;
use crate::{Cancel, Limits, Ports, SharedFacts, SharedObjects, Toolbox};

/// What the calls of a session share.
pub(crate) struct Shared {
    pub(crate) id: SessionId,
    pub(crate) ports: Ports,
    pub(crate) hooks: Arc<HookAsker>,
    pub(crate) limits: Limits,
    pub(crate) pace: Pace,
    pub(crate) emitter: Emitter,
    /// Changed between the calls of a turn; a call keeps what it began with.
    pub(crate) toolbox: Mutex<Arc<Toolbox>>,
    pub(crate) rules: Mutex<Rules>,
    pub(crate) facts: SharedFacts,
    pub(crate) objects: SharedObjects,
    pub(crate) tasks: Tasks,
}

/// A handle on a session, for who calls its tools while a turn runs. It does not keep the session.
#[derive(Clone)]
pub struct SessionHandle(Weak<Shared>);

impl SessionHandle {
    pub(crate) fn of(shared: &Arc<Shared>) -> Self {
        Self(Arc::downgrade(shared))
    }

    /// Calls a tool for a plugin, and waits for its whole output. The rules decide and a person is
    /// asked as if the model had called; nothing of it joins the history, events tell of it.
    ///
    /// # Errors
    /// `unavailable` when the session is over; what the gate says, what the tool comes to.
    pub async fn call_tool(
        &self,
        name: &ToolName,
        arguments: serde_json::Value,
        cancel: &Cancel,
    ) -> Result<Output> {
        let over = || Error::new(ErrorKind::Unavailable, "the session is over");
        let shared = self.0.upgrade().ok_or_else(over)?;
        shared.call(name, arguments, Initiative::Plugin, cancel).await
    }
}

impl Shared {
    /// Returns the tools as they are at this moment.
    pub(crate) fn tools(&self) -> Arc<Toolbox> {
        Arc::clone(&self.toolbox.lock())
    }

    /// Changes the tools. Calls that run keep those that they began with.
    pub(crate) fn change_tools<T>(&self, change: impl FnOnce(&mut Toolbox) -> T) -> T {
        change(Arc::make_mut(&mut self.toolbox.lock()))
    }

    /// Runs one call to its whole output.
    pub(crate) async fn call(
        &self,
        name: &ToolName,
        arguments: serde_json::Value,
        initiative: Initiative,
        cancel: &Cancel,
    ) -> Result<Output> {
        let call = ToolCall::new(self.ports.ids.call(), name.clone(), arguments);
        self.runner(initiative, cancel).run_whole(&call).await
    }

    pub(crate) fn runner<'a>(
        &'a self,
        initiative: Initiative,
        cancel: &'a Cancel,
    ) -> CallRunner<'a> {
        CallRunner {
            session: &self.id,
            ports: &self.ports,
            hooks: &self.hooks,
            emitter: &self.emitter,
            toolbox: self.tools(),
            tasks: &self.tasks,
            rules: &self.rules,
            initiative,
            limits: &self.limits,
            facts: &self.facts,
            objects: &self.objects,
            cancel,
        }
    }
}

//! Runs functions as tools without a model: with permission checks, a ledger, and in the background
//! if they take long.

use std::sync::Arc;
use std::time::Duration;

use jaato_runtime::SessionOptions;
use jaato_runtime::session_loop::{CallOrigin, Session};
use jaato_runtime::types::tasks::{TaskRead, TaskStart, TaskStatus};
use serde_json::{Value, json};

use super::permissions::PermissionPlugin;
use super::tokens::TokenLedger;
use crate::blocking::BlockingJaato;
use crate::events::SessionEvents;
use crate::ledger::LedgerTap;
use crate::ports::{Cancel, SystemClock};
use crate::types::{Error, PluginName, Result, ToolName};
use crate::{Jaato as Host, Tool};

/// Maps the names of tools to functions. All functions are registered before the first call.
#[derive(Default)]
pub struct ToolExecutor {
    tools: Vec<Tool>,
    permission_plugin: Option<PermissionPlugin>,
    ledger: Option<Arc<TokenLedger>>,
    threshold: Option<Duration>,
    started: Option<(BlockingJaato, Session)>,
}

impl ToolExecutor {
    /// Creates an executor without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    pub fn register(&mut self, tool: Tool) {
        self.tools.push(tool);
        self.close_session();
    }

    /// Asks before a tool runs that is not [allowed](Tool::allowed). Without a permission plugin,
    /// such a tool is denied.
    pub fn set_permission_plugin(&mut self, plugin: PermissionPlugin) {
        self.permission_plugin = Some(plugin);
        self.close_session();
    }

    /// Records calls and decisions.
    pub fn set_ledger(&mut self, ledger: Arc<TokenLedger>) {
        self.ledger = Some(ledger);
        self.close_session();
    }

    /// Returns a handle for calls that take longer than this, which continue in the background.
    pub fn set_auto_background_threshold(&mut self, threshold: Option<Duration>) {
        self.threshold = threshold;
    }

    /// Runs a tool. Returns true and its result, or false and an object with `error`. A call that
    /// continues in the background returns true and an object with `auto_backgrounded` and
    /// `task_id`.
    pub fn execute(&mut self, name: &str, arguments: Value) -> (bool, Value) {
        match self.run_tool(name, arguments) {
            Ok(result) => (true, result),
            Err(error) => (false, json!({ "error": error.to_string() })),
        }
    }

    fn run_tool(&mut self, name: &str, arguments: Value) -> Result<Value> {
        let threshold = self.threshold;
        let (jaato, session) = self.start_session()?;
        let (handle, cancel) = (session.handle(), Cancel::new());
        let origin = CallOrigin::outside_of_calls(PluginName::from(jaato_runtime::PROGRAM));
        let Some(threshold) = threshold else {
            let name = ToolName::from(name);
            let called = jaato.wait(handle.call_tool(&name, arguments, &origin, &cancel));
            return Ok(Value::Object(called?.content));
        };
        let asked = TaskStart { name: name.into(), arguments, ..TaskStart::default() };
        let wait_ms = u64::try_from(threshold.as_millis()).unwrap_or(u64::MAX);
        jaato.wait(async {
            let task_id = handle.start_task(asked, &origin, &cancel).await?;
            let ended = async {
                loop {
                    let read = TaskRead {
                        task_id: task_id.clone(),
                        offset: u64::MAX,
                        wait_ms: 1000,
                        ..TaskRead::default()
                    };
                    let task = handle.read_task(&read).await?.task;
                    if task.status != TaskStatus::Running {
                        return Ok::<_, Error>(task);
                    }
                }
            };
            match tokio::time::timeout(Duration::from_millis(wait_ms), ended).await {
                Ok(task) => {
                    let task = task?;
                    let result = Value::Object(task.result.unwrap_or_default());
                    match task.status {
                        TaskStatus::Completed => Ok(result),
                        _ => Err(Error::failed(
                            result["error"].as_str().unwrap_or("the call failed"),
                        )),
                    }
                }
                Err(_) => Ok(json!({
                    "auto_backgrounded": true,
                    "task_id": task_id,
                    "tool_name": name,
                    "threshold_seconds": threshold.as_secs_f64(),
                })),
            }
        })
    }

    fn start_session(&mut self) -> Result<(&BlockingJaato, &Session)> {
        if self.started.is_none() {
            let builder = self
                .tools
                .iter()
                .cloned()
                .fold(Host::builder(), |builder, tool| builder.tool(tool));
            let jaato = BlockingJaato::start(builder)?;
            let ledger = self.ledger.clone();
            let ledger = ledger.map(|to| LedgerTap::new(Arc::new(SystemClock::new()), to));
            let events = SessionEvents::new(Vec::new(), ledger, None);
            let mut options = SessionOptions::unattended(events);
            if let Some(permission) = &self.permission_plugin {
                options.asker = Arc::clone(&permission.0);
            }
            let runtime = jaato.inner().runtime();
            let session = jaato.wait(async { runtime.open_session_for_calls(options) })?;
            self.started = Some((jaato, session));
        }
        match &self.started {
            Some((jaato, session)) => Ok((jaato, session)),
            None => unreachable!("it was just started"),
        }
    }

    /// Ends the host, so that the next call starts one with all tools.
    fn close_session(&mut self) {
        if let Some((jaato, session)) = self.started.take() {
            jaato.wait(jaato.inner().runtime().close_session(session.id()));
        }
    }
}

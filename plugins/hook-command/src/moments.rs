//! The plugin's state, and its answers to the host's hooks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jaato_plugin_sdk::hooks::{
    AfterTool, BeforeGc, BeforeGcAnswer, BeforePrompt, BeforeRequest, BeforeTool, EventBatch,
    GuardAnswer, Hook, Hooks, PromptAddition, RequestChange, ResultChange, SessionEnd,
    SessionStart, SessionText, TurnEnd, TurnEndAnswer,
};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::command_hooks::SETTINGS_FILES;
use jaato_plugin_sdk::types::{Event, GcReason};
use jaato_plugin_sdk::{schemars, serde_json};
use parking_lot::Mutex;

use crate::outcome::{HookDecision, HookOutcome};
use crate::session::{DEADLINE_MS, HookSession};
use crate::settings::HookLocations;
use crate::tool_input::{ToolInput, tool_inputs};
use crate::user_command;

/// The key of a result with the texts of hooks.
const FEEDBACK: &str = "hook_feedback";
/// The maximum number of calls whose texts wait for a result.
const WAITING_MAX: usize = 64;

/// `[plugins.hook-command]`.
#[tool_type]
#[serde(default)]
struct Config {
    /// Hooks by event, as in `.claude/settings.json`: `[[plugins.hook-command.hooks.PreToolUse]]`.
    hooks: Map<String, Value>,
    /// Run the hooks of a trusted workspace's `.claude/settings.json` and
    /// `.claude/settings.local.json`.
    workspace: bool,
    /// Also run the hooks of your own `~/.claude/settings.json`.
    home: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { hooks: Map::new(), workspace: true, home: false }
    }
}

/// The hooks of one session.
pub struct CommandHooks {
    locations: HookLocations,
    /// The folder for transcripts, if the host gives the plugin one.
    transcripts: Option<PathBuf>,
    session: Mutex<Option<Arc<HookSession>>>,
    has_told: AtomicBool,
    /// Texts of hooks before a call, which its result gets.
    waiting: Mutex<BTreeMap<String, Vec<String>>>,
    /// The reason for which a hook ends the turn.
    stop: Mutex<Option<String>>,
}

impl State for CommandHooks {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        let config: Config = home.config().await?;
        let user_home = std::env::var_os("HOME").map(PathBuf::from);
        let locations = HookLocations {
            configured: config.hooks,
            uses_workspace: config.workspace,
            home: user_home.filter(|home| home.is_absolute()),
            uses_home: config.home,
            ..HookLocations::default()
        };
        let transcripts = home.store().folder().await.ok().map(PathBuf::from);
        Ok(Self {
            locations,
            transcripts,
            session: Mutex::default(),
            has_told: AtomicBool::new(false),
            waiting: Mutex::default(),
            stop: Mutex::default(),
        })
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.services = ["host_process", "session.history"].map(str::to_owned).to_vec();
        description.only_with_files =
            SETTINGS_FILES.map(|name| format!("{{workspace}}/{name}")).to_vec();
        description.commands = vec![user_command::hooks_command_spec()];
    }

    async fn command(cx: &Cx<Self>, name: &str, arguments: Value) -> Result<Output> {
        if name != user_command::NAME {
            let text = format!("unknown command `{name}`");
            return Err(Error::new(ErrorKind::UnknownOperation, text));
        }
        // Read again, because the user may have changed the files.
        let state = cx.state();
        let (locations, transcripts) = (state.locations.clone(), state.transcripts.as_deref());
        let session = HookSession::load_session(cx, locations, transcripts).await?;
        user_command::run_hooks_command(cx, &session, &arguments).await
    }
}

impl CommandHooks {
    /// Returns the session, and tells the user once what does not run.
    async fn load_session(cx: &Cx<Self>, may_tell: bool) -> Result<Arc<HookSession>> {
        let state = cx.state();
        let known = state.session.lock().clone();
        let session = match known {
            Some(session) => session,
            None => {
                let (locations, folder) = (state.locations.clone(), state.transcripts.as_deref());
                let read = HookSession::load_session(cx, locations, folder).await?;
                Arc::clone(state.session.lock().get_or_insert(Arc::new(read)))
            }
        };
        if may_tell && !state.has_told.swap(true, Relaxed) {
            show_lines(cx, session.first_notices());
        }
        Ok(session)
    }

    /// Runs the hooks of an event, and shows their notices.
    async fn run_event_hooks(
        cx: &Cx<Self>,
        moment: Hook,
        event: &str,
        names: &[&str],
        more: Value,
    ) -> Result<HookOutcome> {
        let session = Self::load_session(cx, true).await?;
        let mut outcome = session.run_event(cx, moment, event, names, more).await;
        show_lines(cx, std::mem::take(&mut outcome.notices));
        Ok(outcome)
    }

    fn keep_context_for_result(&self, call: &str, context: Vec<String>) {
        let mut waiting = self.waiting.lock();
        if !context.is_empty() && waiting.len() < WAITING_MAX {
            waiting.insert(call.to_owned(), context);
        }
    }
}

fn show_lines(host: &Reporter, lines: Vec<String>) {
    for line in lines {
        host.notice(line);
    }
}

fn join_texts(texts: Vec<String>) -> String {
    texts.join("\n\n")
}

impl Hooks for CommandHooks {
    type State = Self;

    const ASKED: &'static [Hook] = &[
        Hook::SessionStart,
        Hook::BeforePrompt,
        Hook::BeforeRequest,
        Hook::BeforeTool,
        Hook::AfterTool,
        Hook::TurnEnd,
        Hook::BeforeGc,
        Hook::SessionEnd,
        Hook::Event,
    ];

    const DEADLINES_MS: &'static [(Hook, u64)] = &[
        (Hook::SessionStart, DEADLINE_MS),
        (Hook::BeforePrompt, DEADLINE_MS),
        (Hook::BeforeTool, DEADLINE_MS),
        (Hook::AfterTool, DEADLINE_MS),
        (Hook::TurnEnd, DEADLINE_MS),
        (Hook::BeforeGc, DEADLINE_MS),
        (Hook::SessionEnd, DEADLINE_MS),
        (Hook::Event, DEADLINE_MS),
    ];

    async fn session_start(cx: &Cx<Self>, asked: SessionStart) -> Result<SessionText> {
        if Self::load_session(cx, true).await?.is_subagent {
            return Ok(SessionText::nothing());
        }
        let source = if asked.is_continued { "resume" } else { "startup" };
        let more = json!({ "source": source, "model": asked.context.model });
        let outcome =
            Self::run_event_hooks(cx, Hook::SessionStart, "SessionStart", &[source], more).await?;
        Ok(SessionText::text(join_texts(outcome.context)))
    }

    async fn before_prompt(cx: &Cx<Self>, asked: BeforePrompt) -> Result<PromptAddition> {
        *cx.state().stop.lock() = None;
        if Self::load_session(cx, true).await?.is_subagent {
            return Ok(PromptAddition::nothing());
        }
        let more = json!({ "prompt": asked.prompt });
        let outcome =
            Self::run_event_hooks(cx, Hook::BeforePrompt, "UserPromptSubmit", &[], more).await?;
        Ok(match (outcome.stop, outcome.decision) {
            (_, HookDecision::Block(reason)) | (Some(reason), _) => PromptAddition::refuse(reason),
            _ => PromptAddition::text(join_texts(outcome.context)),
        })
    }

    async fn before_request(cx: &Cx<Self>, _asked: BeforeRequest) -> Result<RequestChange> {
        Ok(match cx.state().stop.lock().take() {
            Some(reason) => RequestChange::refuse(reason),
            None => RequestChange::nothing(),
        })
    }

    async fn before_tool(cx: &Cx<Self>, asked: BeforeTool) -> Result<GuardAnswer> {
        let session = Self::load_session(cx, true).await?;
        if let Some(why) = session.loaded.broken.first() {
            let text = format!("hooks cannot be read, so no call may run: {why}");
            return Ok(GuardAnswer::deny(text));
        }
        let inputs = tool_inputs(asked.tool.as_str(), &asked.arguments, &session.folder);
        let mut all = HookOutcome::default();
        let mut arguments = asked.arguments.clone();
        for (number, outcome) in run_for_tool(cx, &session, &inputs, &asked).await {
            if let Some(changed) = &outcome.updated_input {
                match inputs[number].changed_arguments(&arguments, changed) {
                    Ok(changed) => arguments = changed,
                    Err(why) => {
                        let text = format!("a hook wants to change the call, but {why}");
                        all.combine(HookOutcome {
                            decision: HookDecision::Block(text),
                            ..HookOutcome::default()
                        });
                    }
                }
            }
            all.combine(outcome);
        }
        show_lines(cx, all.notices);
        if let Some(reason) = all.stop {
            *cx.state().stop.lock() = Some(reason.clone());
            return Ok(GuardAnswer::deny(reason));
        }
        let is_changed = arguments != asked.arguments;
        if !matches!(all.decision, HookDecision::Block(_)) {
            cx.state().keep_context_for_result(asked.call_id.as_str(), all.context);
        }
        Ok(match all.decision {
            HookDecision::Block(reason) => GuardAnswer::deny(reason),
            HookDecision::Ask(reason) if is_changed => {
                GuardAnswer::rewrite_and_ask(arguments, reason)
            }
            HookDecision::Ask(reason) => GuardAnswer::ask(reason),
            _ if is_changed => GuardAnswer::rewrite(arguments),
            _ => GuardAnswer::GoOn,
        })
    }

    async fn after_tool(cx: &Cx<Self>, asked: AfterTool) -> Result<ResultChange> {
        let session = Self::load_session(cx, true).await?;
        let waiting = cx.state().waiting.lock().remove(asked.call_id.as_str());
        let mut texts = waiting.unwrap_or_default();
        let mut change = ResultChange::nothing();
        if !asked.is_error {
            let outcome = run_after_tool(cx, &session, &asked).await;
            show_lines(cx, outcome.notices);
            if let HookDecision::Block(reason) = outcome.decision {
                texts.push(reason);
            }
            texts.extend(outcome.context);
            change.replace = outcome.updated_output.map(|output| match output {
                Value::Object(result) => result,
                other => Map::from_iter([("result".to_owned(), other)]),
            });
            if outcome.stop.is_some() {
                *cx.state().stop.lock() = outcome.stop;
            }
        }
        Ok(if texts.is_empty() { change } else { change.with_entry(FEEDBACK, join_texts(texts)) })
    }

    async fn turn_end(cx: &Cx<Self>, asked: TurnEnd) -> Result<TurnEndAnswer> {
        cx.state().waiting.lock().clear();
        let session = Self::load_session(cx, true).await?;
        let more = json!({
            "stop_hook_active": asked.continuations > 0,
            "last_assistant_message": asked.text,
        });
        let (event, names) = match session.is_subagent {
            true => ("SubagentStop", vec![session.agent_type.as_str()]),
            false => ("Stop", Vec::new()),
        };
        let outcome = Self::run_event_hooks(cx, Hook::TurnEnd, event, &names, more).await?;
        Ok(match outcome.decision {
            HookDecision::Block(reason) if outcome.stop.is_none() => {
                TurnEndAnswer::continue_with(reason)
            }
            _ => TurnEndAnswer::end(),
        })
    }

    async fn before_gc(cx: &Cx<Self>, asked: BeforeGc) -> Result<BeforeGcAnswer> {
        let trigger = if asked.reason == GcReason::Manual { "manual" } else { "auto" };
        let more = json!({ "trigger": trigger, "custom_instructions": "" });
        let outcome =
            Self::run_event_hooks(cx, Hook::BeforeGc, "PreCompact", &[trigger], more).await?;
        Ok(match outcome.decision {
            HookDecision::Block(reason) => BeforeGcAnswer::refuse(reason),
            _ => BeforeGcAnswer::proceed(),
        })
    }

    async fn session_end(cx: &Cx<Self>, _asked: SessionEnd) -> Result<()> {
        let session = Self::load_session(cx, true).await?;
        if !session.is_subagent {
            let more = json!({ "reason": "other" });
            Self::run_event_hooks(cx, Hook::SessionEnd, "SessionEnd", &["other"], more).await?;
        }
        session.remove_transcript(cx).await;
        Ok(())
    }

    async fn events(cx: &Cx<Self>, told: EventBatch) -> Result<()> {
        let notifications: Vec<Value> =
            told.events.iter().filter_map(|told| notification_input(&told.event)).collect();
        if notifications.is_empty() {
            // The first events come while the host does not know yet whose session it is.
            return Ok(());
        }
        // Nothing that this hook tells would be shown.
        let session = Self::load_session(cx, false).await?;
        for notification in notifications {
            let kind = notification["notification_type"].as_str().unwrap_or_default().to_owned();
            let outcome =
                session.run_event(cx, Hook::Event, "Notification", &[&kind], notification).await;
            for line in outcome.notices {
                cx.log(LogLevel::Warn, line);
            }
        }
        Ok(())
    }
}

/// Returns the input about an event that needs the user, without the common fields.
fn notification_input(event: &Event) -> Option<Value> {
    let (kind, message) = match event {
        Event::PermissionAsked(prompt) => {
            ("permission_prompt", format!("jaato needs your permission: {}", prompt.title))
        }
        Event::FormAsked { .. } => ("elicitation_dialog", "jaato has a question".to_owned()),
        _ => return None,
    };
    Some(json!({ "message": message, "title": "jaato", "notification_type": kind }))
}

/// Runs the hooks before a call, for each of its inputs.
async fn run_for_tool(
    host: &Reporter,
    session: &HookSession,
    inputs: &[ToolInput],
    asked: &BeforeTool,
) -> Vec<(usize, HookOutcome)> {
    let mut jobs = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let more = json!({
            "tool_name": input.name,
            "tool_input": input.input,
            "tool_use_id": asked.call_id,
        });
        let names = [input.name.as_str(), asked.tool.as_str()];
        jobs.extend(session.event_jobs("PreToolUse", &names, more, number));
    }
    session.run_jobs(host, Hook::BeforeTool, "PreToolUse", jobs).await
}

/// Runs the hooks after a call, for each of its inputs whose file still exists.
async fn run_after_tool(host: &Reporter, session: &HookSession, asked: &AfterTool) -> HookOutcome {
    let mut jobs = Vec::new();
    let inputs = tool_inputs(asked.tool.as_str(), &asked.arguments, &session.folder);
    for input in inputs.iter().filter(|input| !input.is_removal) {
        let mut response = Value::Object(asked.result.clone());
        if let Some(path) = input.input.get("file_path") {
            response["filePath"] = path.clone();
        }
        let more = json!({
            "tool_name": input.name,
            "tool_input": input.input,
            "tool_response": response,
            "tool_use_id": asked.call_id,
        });
        let names = [input.name.as_str(), asked.tool.as_str()];
        jobs.extend(session.event_jobs("PostToolUse", &names, more, 0));
    }
    let mut all = HookOutcome::default();
    for (_, outcome) in session.run_jobs(host, Hook::AfterTool, "PostToolUse", jobs).await {
        all.combine(outcome);
    }
    all
}

//! `tool-delegate`: gives a piece of work to another session, with few tools and few steps.
//!
//! Shows a child session: the tools that it may use, how to follow its progress, and how it ends.
#![forbid(unsafe_code)]

mod progress;

use jaato_plugin_sdk::child::{ChildOpen, ChildSession, ChildTurn, ObjectSharing};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::{Event, Outcome, SessionId, ToolName};
use jaato_plugin_sdk::{schemars, serde_json};

pub use progress::Progress;

/// The maximum number of tools of a child. A task that needs more of them is not small.
pub const TOOLS_MAX: usize = 8;

/// The longest task, in bytes.
pub const TASK_BYTES_MAX: usize = 16 * 1024;

/// The instructions for the child, in addition to its task.
const INSTRUCTIONS: &str = "Another model has given you this task and reads nothing but your last answer. Do what it asks, no more, \
    and answer briefly with what you found or did, and what you could not do.";

/// `[plugins.tool-delegate]` of the user's configuration.
#[tool_type]
#[serde(default)]
struct Config {
    /// The model of the children, by any name that `--model` takes. The default is the session's
    /// own model.
    #[schemars(extend("x-jaato-variables" = ["DELEGATE_MODEL"]))]
    model: Option<String>,
    /// The tools of a child if the model does not name any.
    tools: Vec<String>,
    /// Maximum number of requests of a child.
    steps_max: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { model: None, tools: vec!["cli_based_tool".to_owned()], steps_max: 12 }
    }
}

/// Gives a piece of work to another model in a session of its own, which sees nothing of this
/// conversation, and returns its answer. Use it for work with much to read and a short answer.
#[tool_fn(example(
    "let another model find the callers of `parse`",
    task = "Which functions call `parse`? Name file and line of each."
))]
async fn delegate(
    cx: &Cx<Delegate>,
    /// The whole task, with everything the other model must know, and what to answer.
    task: String,
    /// The tools that the task needs, at most 8; an empty list for none. The default is the user's
    /// choice.
    tools: Option<Vec<String>>,
    /// Maximum number of requests; never more than the user allows.
    steps_max: Option<u32>,
    /// Whether the other model also gets the objects that tools have shown you.
    #[serde(default)]
    share_objects: bool,
) -> Result<Output> {
    let Config { model, tools: usual, steps_max: allowed } = &cx.state().settings;
    let tools = tools.unwrap_or_else(|| usual.clone());
    check(&task, &tools)?;
    let open = ChildOpen {
        name: "delegate".to_owned(),
        model: model.clone(),
        tools: Some(tools.into_iter().map(ToolName::from).collect()),
        instructions: Some(INSTRUCTIONS.to_owned()),
        steps_max: Some(steps_max.unwrap_or(*allowed).clamp(1, (*allowed).max(1))),
        objects: if share_objects { ObjectSharing::Share } else { ObjectSharing::None },
        ..ChildOpen::default()
    };
    // If this call is cancelled, the host ends the child, which belongs to the call.
    let child = cx.open_session(&open).await?;
    let turn = work(cx, &child, task).await?;
    let model = child.opened().model.clone();
    child.close().await?;
    if matches!(turn.outcome, Outcome::Failed | Outcome::Cancelled) {
        let text = format!("the task ended without an answer ({:?})", turn.outcome).to_lowercase();
        return Err(turn.error.unwrap_or_else(|| Error::failed(text)));
    }
    Ok(Output::json(json!({
        "answer": turn.text,
        "outcome": turn.outcome,
        "steps": turn.steps,
        "model": model,
    })))
}

/// Sends the child its task, shows its progress, and waits for the end of its turn.
async fn work(cx: &Cx<Delegate>, child: &ChildSession, task: String) -> Result<ChildTurn> {
    let mut events = child.events().await?;
    child.send(task).await?;
    let own = SessionId::from(child.opened().session_id.as_str());
    let mut progress = Progress::default();
    while let Some(envelope) = events.next().await? {
        if envelope.session != own {
            continue;
        }
        if matches!(envelope.event, Event::TurnFinished { .. }) {
            break;
        }
        if let Some(line) = progress.line(&envelope.event) {
            cx.emit(&Delta::progress_so_far(line, progress.steps));
        }
    }
    // Events show the progress. The outcome is read separately, because a slow reader may miss
    // events.
    loop {
        let state = child.state(0).await?;
        match state.last {
            Some(turn) if !state.is_running => return Ok(turn),
            _ if cx.is_cancelled() => return Err(Error::cancelled()),
            _ => {}
        }
    }
}

fn check(task: &str, tools: &[String]) -> Result<()> {
    let bad = |text: String| Err(Error::new(ErrorKind::InvalidArguments, text));
    if task.trim().is_empty() || task.len() > TASK_BYTES_MAX {
        return bad(format!("a task has 1 to {TASK_BYTES_MAX} bytes"));
    }
    if tools.len() > TOOLS_MAX {
        return bad(format!("a task is given at most {TOOLS_MAX} tools"));
    }
    Ok(())
}

/// The settings of one session.
pub struct Delegate {
    settings: Config,
}

impl State for Delegate {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self { settings: home.config().await? })
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.services = vec!["session.open".to_owned()];
    }
}

export_plugin! { state: Delegate, tools }

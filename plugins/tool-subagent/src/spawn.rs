//! The tool `spawn_subagent`.

use jaato_plugin_sdk::child::ChildOpen;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::touches::KEYWORD as TOUCHES;
use serde::Deserialize;

use crate::agents::Subagents;
use crate::profile::{Isolation, Profile};
use crate::profiles::Profiles;
use crate::worktree::Worktree;

/// The longest task with its context, in bytes.
const TASK_BYTES_MAX: usize = 256 * 1024;

/// The instructions for every subagent, before those of its profile.
const INSTRUCTIONS: &str = "You are a subagent: another model has given you a task, and it reads nothing but the last answer of each \
    of your turns. Do what the task asks, no more. Answer with what you found or did, and what you could not do.";

/// What the model may set for one subagent, over its profile.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct InlineConfig {
    plugins: Option<Vec<String>>,
    tools: Option<Vec<String>>,
    system_instructions: Option<String>,
    model: Option<String>,
    max_turns: Option<u32>,
    gc: Option<Map<String, Value>>,
    isolation: Option<ModelIsolation>,
}

/// What the model knows already.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum SharedContext {
    Text(String),
    /// `files`, `findings` and `notes`.
    Parts(Map<String, Value>),
}

impl Default for SharedContext {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// Where the model wants a subagent to work.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModelIsolation {
    None,
    Worktree,
}

/// Give a task to a subagent, which works in parallel. You get its answer as a message: end your
/// turn when you have no other work.
#[tool_fn(
    name = "spawn_subagent",
    category = "coordination",
    destructive = false,
    open_world = false,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "task": { "type": "string", TOUCHES: { "text": "a task for another model" }, "description": "The whole task, with all that the subagent must know, and what to answer." },
            "name": { "type": "string", TOUCHES: { "text": "a name" }, "description": "Its name: `researcher`." },
            "profile": { "type": "string", TOUCHES: { "text": "the name of a profile" }, "description": "Its profile." },
            "context": {
                "type": ["string", "object"],
                TOUCHES: { "text": "text for another model" },
                "description": "Text, or {files: {path: content}, findings: [], notes}.",
            },
            "inline_config": {
                "type": "object",
                "additionalProperties": false,
                "description": "Replaces parts of the profile.",
                TOUCHES: { "text": "settings of a subagent, which has at most the tools of this session" },
                "properties": {
                    "plugins": { "type": "array", "items": { "type": "string" }, "description": "Only the tools of these plugins." },
                    "tools": { "type": "array", "items": { "type": "string" }, "description": "Only these tools." },
                    "system_instructions": { "type": "string", "description": "Further instructions." },
                    "model": { "type": "string", "description": "Its model, if not yours." },
                    "max_turns": { "type": "integer", "minimum": 1, "description": "Maximum number of requests of a turn." },
                    "gc": { "type": "object", "description": "Its gc: `{type: \"truncate\"}`." },
                    "isolation": { "enum": ["none", "worktree"], "description": "`worktree`: it works in a git worktree of its own, and you accept its changes." },
                },
            },
        },
        "required": ["task"],
    }),
    example(
        "let a subagent find the callers of `parse`",
        task = "Which functions call `parse`? Name file and line of each."
    )
)]
async fn spawn_subagent(
    cx: &Cx<Subagents>,
    task: String,
    #[serde(default)] name: String,
    #[serde(default)] profile: String,
    #[serde(default)] context: SharedContext,
    #[serde(default)] inline_config: InlineConfig,
) -> Result<Output> {
    if task.trim().is_empty() {
        return Err(Error::new(ErrorKind::InvalidArguments, "No task provided"));
    }
    let task = add_context_to_task(task, context)?;
    let given = |text: String| Some(text).filter(|text| !text.trim().is_empty());
    let (name, profile) = (given(name), given(profile));
    let mut chosen = match &profile {
        Some(name) => Profiles::load_profiles(cx).await?.find_profile(name)?.clone(),
        None => Profile::default(),
    };
    inline_config.apply_to(&mut chosen);
    let agents = cx.state();
    let id = agents.new_id(name.as_deref().or(profile.as_deref()));
    let (mut open, missing) = prepare_child(cx, &chosen, id).await?;
    let worktree = match chosen.isolation {
        Isolation::Worktree => Some(Worktree::create_worktree(cx, &open.name).await?),
        Isolation::None => None,
    };
    open.directory = worktree.as_ref().map(|worktree| worktree.directory.clone());
    let spawned = match agents.spawn_subagent(profile, open, worktree.clone(), task).await {
        Ok(spawned) => spawned,
        Err(error) => {
            if let Some(worktree) = worktree {
                worktree.remove_worktree(cx).await?;
            }
            return Err(error);
        }
    };
    let mut answer = json!({
        "success": true,
        "subagent_id": spawned.id,
        "session_id": spawned.session_id,
        "status": "spawned",
        "message": format!(
            "Subagent '{}' works on the task. END YOUR TURN NOW unless you have other work: its \
             answer comes as a message. Do not poll.",
            spawned.id
        ),
    });
    if !missing.is_empty() {
        answer["missing_tools"] = json!(missing);
    }
    Ok(Output::json(answer))
}

/// Returns how to open a subagent with a profile, and the tools of the profile that this session
/// does not have.
async fn prepare_child(
    cx: &Cx<Subagents>,
    profile: &Profile,
    id: String,
) -> Result<(ChildOpen, Vec<String>)> {
    let tools = profile.tools.select_tools(&cx.tools().await?);
    let own = profile.instructions.as_ref();
    let instructions =
        own.map_or_else(|| INSTRUCTIONS.to_owned(), |own| format!("{INSTRUCTIONS}\n\n{own}"));
    let limits = profile.limits;
    let gc = profile.gc.as_ref().and_then(|gc| gc.get("type")).and_then(Value::as_str);
    let open = ChildOpen {
        name: id,
        model: profile.model.clone(),
        tools: tools.names,
        instructions: Some(instructions),
        steps_max: limits.steps_max,
        tokens_max: limits.tokens_max,
        cost_max: limits.cost_max,
        turn_ms_max: limits.seconds_max.map(|seconds| seconds.saturating_mul(1000)),
        gc: gc.map(str::to_owned),
        ..ChildOpen::default()
    };
    Ok((open, tools.missing))
}

impl InlineConfig {
    /// Replaces what the profile sets by what the model sets. Instructions are added.
    fn apply_to(self, profile: &mut Profile) {
        if self.plugins.is_some() || self.tools.is_some() {
            profile.tools.plugins = self.plugins;
            profile.tools.names = self.tools;
        }
        if let Some(text) = self.system_instructions {
            let before = profile.instructions.take();
            profile.instructions =
                Some(before.map_or_else(|| text.clone(), |before| format!("{before}\n\n{text}")));
        }
        if let Some(isolation) = self.isolation {
            profile.isolation = match isolation {
                ModelIsolation::None => Isolation::None,
                ModelIsolation::Worktree => Isolation::Worktree,
            };
        }
        profile.model = self.model.or(profile.model.take());
        profile.limits.steps_max = self.max_turns.or(profile.limits.steps_max);
        profile.gc = self.gc.or(profile.gc.take());
    }
}

/// Puts the context before the task, as data.
fn add_context_to_task(task: String, context: SharedContext) -> Result<String> {
    let bad = |text: &str| Error::new(ErrorKind::InvalidArguments, text.to_owned());
    let shared = match context {
        SharedContext::Text(text) => text,
        SharedContext::Parts(parts) => format_context(&parts).ok_or_else(|| {
            bad("context.files must be a dict mapping file paths to content, and context.findings a list")
        })?,
    };
    let whole = match shared.trim().is_empty() {
        true => task,
        false => format!("<shared_context>\n{shared}\n</shared_context>\n\n{task}"),
    };
    match whole.len() > TASK_BYTES_MAX {
        true => Err(bad(&format!("a task has at most {TASK_BYTES_MAX} bytes with its context"))
            .with_hint("write long texts to files, and name the files in the task")),
        false => Ok(whole),
    }
}

/// Returns `None` if a key has the wrong type.
fn format_context(context: &Map<String, Value>) -> Option<String> {
    let mut text = String::new();
    if let Some(files) = context.get("files") {
        for (path, content) in files.as_object()? {
            text.push_str(&format!("<file path={path:?}>\n{}\n</file>\n", content.as_str()?));
        }
    }
    if let Some(findings) = context.get("findings") {
        for finding in findings.as_array()? {
            let plain = finding.as_str().map(str::to_owned);
            text.push_str(&format!("- {}\n", plain.unwrap_or_else(|| finding.to_string())));
        }
    }
    if let Some(notes) = context.get("notes") {
        let plain = notes.as_str().map(str::to_owned);
        text.push_str(&plain.unwrap_or_else(|| notes.to_string()));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_precedes_the_task_as_data() {
        let parts = |value: Value| serde_json::from_value::<SharedContext>(value).unwrap();
        let context = json!({ "files": { "a.rs": "fn a" }, "findings": ["x", 1], "notes": "n" });
        let text = add_context_to_task("Do it.".to_owned(), parts(context)).unwrap();
        let expected = "<shared_context>\n<file path=\"a.rs\">\nfn a\n</file>\n- x\n- 1\nn\n\
                        </shared_context>\n\nDo it.";
        assert_eq!(text, expected);
        assert_eq!(
            add_context_to_task("Do it.".to_owned(), SharedContext::default()).unwrap(),
            "Do it."
        );
        for context in [json!({ "files": ["a"] }), json!({ "findings": "x" })] {
            assert!(add_context_to_task("Do it.".to_owned(), parts(context)).is_err());
        }
        assert!(serde_json::from_value::<SharedContext>(json!(null)).is_err());
    }
}

//! `tool-memory`: facts that a model should know in later sessions, in this workspace or
//! everywhere.
//!
//! [`record`] is a memory and its limits, [`words`] compares tags and words, [`file`] is the
//! database on disk, [`queries`] are its operations, [`scopes`] combines the workspace's file and
//! the user's file, and [`people`] is the command. The tools have the names and answers of the
//! original plugin.
#![forbid(unsafe_code)]

mod file;
mod queries;
mod record;
mod scopes;
mod search_terms;
mod user_commands;

use std::sync::Arc;

use jaato_plugin_sdk::hooks::{BeforePrompt, Hook, Hooks, PromptAddition};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::touches::KEYWORD as TOUCHES;

use record::{MATURITY, MemoryScope, NewMemory, check_tags, format_tag_list};
use scopes::{MemoryScopes, ScopesResult};

/// The instructions for the model while one of the tools is active.
const INSTRUCTIONS: &str = "Store what later sessions should know with `store_memory`: decisions, conventions, locations. Call `retrieve_memories` before you explore.";

/// The maximum number of memories that one search returns. More would distract the model from its
/// task.
const RETRIEVED_MAX: u32 = 20;

/// Remember a fact for later sessions.
#[tool_fn(
    name = "store_memory",
    category = "memory",
    destructive = false,
    open_world = false,
    auto_approval,
    example(
        "keep in mind that the door code is 4711",
        content = "The door code is 4711.",
        description = "door code",
        tags = ["door"]
    ),
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "content": { "type": "string", TOUCHES: { "text": "a fact to remember" }, "description": "The fact, at most 64 KiB." },
            "description": { "type": "string", TOUCHES: { "text": "a fact to remember" }, "description": "One line to choose it by later." },
            "tags": { "type": "array", "items": { "type": "string" }, TOUCHES: { "text": "words to search by" }, "description": "Words to find it by." },
            "confidence": { "type": "number", "default": 0.5, "description": "How certain it is, 0 to 1." },
            "scope": { "enum": ["project", "universal"], "default": "project", "description": "This workspace or all." },
            "evidence": { "type": "string", TOUCHES: { "text": "how a fact is known" }, "description": "How you know it." },
        },
        "required": ["content", "description", "tags"],
    })
)]
async fn store_memory(
    cx: &Cx<Memories>,
    content: String,
    description: String,
    tags: Vec<String>,
    #[serde(default = "default_confidence")] confidence: f64,
    #[serde(default)] scope: MemoryScope,
    #[serde(default)] evidence: String,
) -> Result<Output> {
    let new = NewMemory::from_model(content, &description, &tags, confidence, evidence)?;
    let scopes = Arc::clone(&cx.state().0);
    let stored = move |_: &Reporter| scopes.store_memory(scope, &new).map(|id| (id, new));
    let (id, new) = cx.blocking(stored).await??;
    Ok(Output::json(json!({
        "status": "success",
        "memory_id": id,
        "message": format!("Stored memory: {}", new.description),
        "tags": new.tags,
        "maturity": MATURITY,
        "confidence": new.confidence,
        "scope": scope.scope_name(),
    })))
}

/// Get memories of earlier sessions by tags or words, ignoring case, best first.
#[tool_fn(
    name = "retrieve_memories",
    category = "memory",
    destructive = false,
    open_world = false,
    auto_approval,
    example("what do we know about releases?", tags = ["release"]),
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "tags": { "type": "array", "items": { "type": "string" }, TOUCHES: { "text": "words to search by" }, "description": "Any of these." },
            "limit": { "type": "integer", "minimum": 1, "maximum": 20, "default": 3, "description": "Maximum results." },
        },
        "required": ["tags"],
    })
)]
async fn retrieve_memories(
    cx: &Cx<Memories>,
    tags: Vec<String>,
    #[serde(default = "default_limit")] limit: u32,
) -> Result<Output> {
    let wanted = check_tags(&tags)?;
    let scopes = Arc::clone(&cx.state().0);
    let count = limit.clamp(1, RETRIEVED_MAX);
    let work = move |_: &Reporter| scopes.retrieve_memories(&wanted, count);
    let ScopesResult { found, failed } = cx.blocking(work).await??;
    let told = if found.is_empty() {
        let message = format!("No memories found for tags: {}", format_tag_list(&tags));
        json!({ "status": "no_results", "message": message })
    } else {
        let memories: Vec<Value> = found.iter().map(|(scope, it)| it.to_json(*scope)).collect();
        json!({ "status": "success", "count": memories.len(), "memories": memories })
    };
    Ok(output_with_warnings(told, &failed))
}

/// List the tags of all memories.
#[tool_fn(
    name = "list_memory_tags",
    category = "memory",
    read_only,
    idempotent,
    open_world = false,
    auto_approval,
    example("what do you remember?"),
    schema = json!({ "type": "object", "additionalProperties": false, "properties": {} })
)]
async fn list_memory_tags(cx: &Cx<Memories>) -> Result<Output> {
    let scopes = Arc::clone(&cx.state().0);
    let ScopesResult { found: (memories, tags), failed } =
        cx.blocking(move |_| scopes.count_tags()).await??;
    let told = json!({
        "status": "success",
        "count": tags.len(),
        "tags": tags,
        "memory_count": memories,
    });
    Ok(output_with_warnings(told, &failed))
}

/// The memories that a session can access. They are all in files, so an instance has no state.
pub struct Memories(Arc<MemoryScopes>);

impl State for Memories {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self(Arc::new(MemoryScopes::open_scopes(home).await)))
    }

    fn describe(description: &mut Description) {
        description.instructions = Some(INSTRUCTIONS.to_owned());
        // Without memories, no titles can be put before a prompt.
        description.only_with_files = ["{store}", "{workspace_store}"]
            .map(|folder| format!("{folder}/{}", file::FILE_NAME))
            .to_vec();
        description.commands = vec![user_commands::memory_command_spec()];
    }

    async fn command(cx: &Cx<Self>, name: &str, arguments: Value) -> Result<Output> {
        if name != user_commands::NAME {
            let text = format!("unknown command `{name}`");
            return Err(Error::new(ErrorKind::UnknownOperation, text));
        }
        let scopes = Arc::clone(&cx.state().0);
        let text =
            cx.blocking(move |_| user_commands::run_memory_command(&scopes, &arguments)).await??;
        Ok(Output::text(text))
    }
}

impl Hooks for Memories {
    type State = Self;

    const ASKED: &'static [Hook] = &[Hook::BeforePrompt];

    async fn before_prompt(cx: &Cx<Self>, asked: BeforePrompt) -> Result<PromptAddition> {
        let scopes = Arc::clone(&cx.state().0);
        let text = cx.blocking(move |_| scopes.relevant_titles(&asked.prompt)).await??;
        Ok(PromptAddition::text(text))
    }
}

/// Adds warnings about files that cannot be used.
fn output_with_warnings(mut told: Value, failed: &[Error]) -> Output {
    if !failed.is_empty() {
        let warnings: Vec<&str> = failed.iter().map(|error| error.message.as_str()).collect();
        told["warnings"] = json!(warnings);
    }
    Output::json(told)
}

fn default_confidence() -> f64 {
    0.5
}

fn default_limit() -> u32 {
    3
}

export_plugin! { state: Memories, tools, hook: Memories }

//! `tool-checklist`: a to-do list that the model keeps during a session.
//!
//! Shows configuration, saved state, tools that share it, and a command for the user.
#![forbid(unsafe_code)]

mod list;

use std::sync::{Mutex, MutexGuard, PoisonError};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::CommandSpec;
use jaato_plugin_sdk::{schemars, serde_json};

pub use list::{Checklist, RefusedItem};

/// The instructions for the model while one of the tools is active.
const INSTRUCTIONS: &str = "For work of several steps, put them on the list with `todo_add` first, and tick off each with `todo_done`.";

/// `[plugins.tool-checklist]` of the user's configuration.
#[tool_type]
#[serde(default)]
struct Config {
    /// How many items there may be, done ones too.
    items_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { items_max: 50 }
    }
}

/// The list of one session.
pub struct Todo {
    list: Mutex<Checklist>,
    items_max: usize,
}

impl Todo {
    fn lock_list(&self) -> MutexGuard<'_, Checklist> {
        // A panic leaves the list valid, because the lock is only held to change one item.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State for Todo {
    async fn create(home: &Home, saved: Option<Value>) -> Result<Self> {
        let Config { items_max } = home.config().await?;
        let list = saved.map(serde_json::from_value).transpose();
        let list = list.map_err(|error| Error::failed(format!("the saved list: {error}")))?;
        Ok(Self { list: Mutex::new(list.unwrap_or_default()), items_max })
    }

    async fn save(&self) -> Result<Option<Value>> {
        Ok(serde_json::to_value(&*self.lock_list()).ok())
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.instructions = Some(INSTRUCTIONS.to_owned());
        description.commands = vec![CommandSpec {
            name: "todo".to_owned(),
            description: "Shows what is left to do".to_owned(),
            ..CommandSpec::default()
        }];
    }

    async fn command(cx: &Cx<Self>, name: &str, _arguments: Value) -> Result<Output> {
        match name {
            "todo" => Ok(Output::text(cx.state().lock_list().to_user_text())),
            other => {
                let text = format!("there is no command `{other}`");
                Err(Error::new(ErrorKind::UnknownOperation, text))
            }
        }
    }
}

/// Puts an item on the to-do list of this session. Returns its number and how many are open.
#[tool_fn(
    destructive = false,
    open_world = false,
    auto_approval,
    example("note that the tests must be run", text = "run the tests")
)]
async fn todo_add(
    cx: &Cx<Todo>,
    /// What is to be done, in a few words.
    text: String,
) -> Result<Output> {
    let todo = cx.state();
    let mut list = todo.lock_list();
    let number = list.add(&text, todo.items_max).map_err(refusal_error)?;
    Ok(Output::json(json!({ "number": number, "open": list.open_count() })))
}

/// Ticks off an item of the to-do list by its number. Returns what it was and how many are open.
#[tool_fn(destructive = false, idempotent, open_world = false, auto_approval)]
async fn todo_done(
    cx: &Cx<Todo>,
    /// The number that `todo_add` gave.
    number: usize,
) -> Result<Output> {
    let mut list = cx.state().lock_list();
    let done = list.finish(number).map_err(refusal_error)?.to_owned();
    Ok(Output::json(json!({ "done": done, "open": list.open_count() })))
}

/// Lists the to-do items of this session with their numbers and whether they are done.
#[tool_fn(read_only, idempotent, open_world = false, example("what is left to do?"))]
async fn todo_list(cx: &Cx<Todo>) -> Result<Output> {
    let list = cx.state().lock_list();
    Ok(Output::json(json!({ "items": list.to_model_json(), "open": list.open_count() })))
}

/// Converts a refusal to an error with a hint for the model.
fn refusal_error(refused: RefusedItem) -> Error {
    match refused {
        RefusedItem::Empty => Error::new(ErrorKind::InvalidArguments, "an item needs a text")
            .with_hint("say what to do"),
        RefusedItem::Full(items_max) => {
            Error::failed(format!("the list is full: {items_max} items"))
                .with_hint("join small steps into one item")
        }
        RefusedItem::NoSuchItem { number, count } => {
            let text = format!("item {number} does not exist: the list has {count}");
            Error::new(ErrorKind::InvalidArguments, text).with_hint("`todo_list` shows them all")
        }
    }
}

export_plugin! { state: Todo, tools }

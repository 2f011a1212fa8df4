//! `tool-recipes`: prompts that lie in a folder as tools. A file that is added, changed or taken
//! away changes the tools while the plugin runs.
//!
//! Shows `tools: dynamic`, `set_tools`, and reading files of the session's environment.
#![forbid(unsafe_code)]

mod recipe;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jaato_plugin_sdk::dynamic::ToolsSet;
use jaato_plugin_sdk::files::{FileFind, FileOrder, FileReadText, FoundFile};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::CommandSpec;
use jaato_plugin_sdk::types::tools_set::TOOLS_SET_INTERVAL_MS;
use jaato_plugin_sdk::{schemars, serde_json};

pub use recipe::{RECIPE_CHARACTERS_MAX, Recipe};

/// Most recipes that are read: each is a tool that the model reads about.
const RECIPES_MAX: usize = 50;

/// How long the host wants between two changes of the tools.
const INTERVAL: Duration = Duration::from_millis(TOOLS_SET_INTERVAL_MS);

/// `[plugins.tool-recipes]` of the person's configuration.
#[tool_type]
#[serde(default)]
struct Config {
    /// The folder with the recipes, as the session's environment names it.
    folder: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { folder: "recipes".to_owned() }
    }
}

/// The recipes of one session, by the names of their tools.
pub struct Recipes {
    folder: String,
    by_name: Mutex<BTreeMap<String, Recipe>>,
}

/// What stands in a folder.
#[derive(Default)]
struct Found {
    by_name: BTreeMap<String, Recipe>,
    /// Files that are no recipe, each with the reason.
    refused: Vec<String>,
}

/// Reads the folder. One that is not there holds no recipe.
async fn find(host: &Reporter, folder: &str) -> Result<Found> {
    let files = host.files();
    let find = FileFind {
        pattern: "*.recipe.toml".to_owned(),
        path: folder.to_owned(),
        order: FileOrder::Path,
        limit: Some(RECIPES_MAX),
        ..FileFind::default()
    };
    let mut found = Found::default();
    let files_found = match files.find(find).await {
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(found),
        pages => pages?.collect().await?,
    };
    if files_found.count > files_found.files.len() as u64 {
        let text = format!("{} files, of which {RECIPES_MAX} are read", files_found.count);
        found.refused.push(text);
    }
    for FoundFile { path, .. } in files_found.files {
        let length = Some(RECIPE_CHARACTERS_MAX);
        let whole = format!("{folder}/{path}");
        let read = FileReadText { path: whole.clone(), length, ..FileReadText::default() };
        let recipe = match files.read_text(read).await {
            Ok(file) if file.has_more => Err("it is too long".to_owned()),
            Ok(file) => Recipe::parse(&file.text),
            Err(error) => Err(error.message),
        };
        match recipe {
            Err(why) => found.refused.push(format!("{whole}: {why}")),
            Ok(recipe) if found.by_name.contains_key(&recipe.name) => {
                found.refused.push(format!("{whole}: another recipe is called `{}`", recipe.name));
            }
            Ok(recipe) => {
                found.by_name.insert(recipe.name.clone(), recipe);
            }
        }
    }
    Ok(found)
}

/// Offers what was found; says what the host does not take.
async fn offer(host: &Reporter, found: &mut Found) -> Result<()> {
    let tools = found.by_name.values().map(Recipe::spec).collect();
    let set = ToolsSet { tools, ..ToolsSet::default() };
    let answer = match host.set_tools(&set).await {
        // Twice within a second: the person has just begun, or types fast.
        Err(error) if error.kind == ErrorKind::LimitReached => {
            host.sleep(INTERVAL).await?;
            host.set_tools(&set).await?
        }
        answer => answer?,
    };
    for refused in answer.refused {
        found.by_name.remove(&refused.name);
        found.refused.push(format!("{}: {}", refused.name, refused.why));
    }
    Ok(())
}

impl Recipes {
    fn keep(&self, by_name: BTreeMap<String, Recipe>) {
        *self.by_name.lock().unwrap_or_else(PoisonError::into_inner) = by_name;
    }

    fn get(&self, name: &str) -> Option<Recipe> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn list(&self) -> String {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if by_name.is_empty() {
            return format!("there are no recipes in `{}`", self.folder);
        }
        let lines = by_name.values().map(|it| format!("{}: {}", it.name, it.description));
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl State for Recipes {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        let Config { folder } = home.config().await?;
        // Without the folder the plugin still starts, only its tools are missing.
        let mut found = find(home, &folder).await.unwrap_or_else(|error| Found {
            refused: vec![format!("{folder}: {}", error.message)],
            ..Found::default()
        });
        if let Err(error) = offer(home, &mut found).await {
            found.by_name.clear();
            found.refused.push(error.message);
        }
        for line in &found.refused {
            home.log(Level::Warn, line);
        }
        Ok(Self { folder, by_name: Mutex::new(found.by_name) })
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        // Opened when a session begins: else nobody would know of its tools.
        description.at_start = true;
        description.commands = vec![CommandSpec {
            name: "recipes".to_owned(),
            description: "Lists the recipes; `reload` reads their folder again".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "what": { "enum": ["reload"], "description": "What to do besides." },
                },
                "additionalProperties": false,
            }),
            ..CommandSpec::default()
        }];
    }

    async fn command(cx: &Cx<Self>, name: &str, arguments: Value) -> Result<Output> {
        if name != "recipes" {
            let text = format!("there is no command `{name}`");
            return Err(Error::new(ErrorKind::UnknownOperation, text));
        }
        let recipes = cx.state();
        let mut refused = Vec::new();
        if arguments["what"] == "reload" {
            let mut found = find(cx, &recipes.folder).await?;
            offer(cx, &mut found).await?;
            recipes.keep(found.by_name);
            refused = found.refused;
        }
        refused.insert(0, recipes.list());
        Ok(Output::text(refused.join("\n")))
    }

    async fn call_tool(cx: &Cx<Self>, name: &str, arguments: Value) -> Result<Output> {
        // A file may have gone since the model read of its tool.
        let recipe = cx.state().get(name).ok_or_else(|| {
            let text = format!("there is no recipe `{name}` any more");
            Error::new(ErrorKind::UnknownTool, text)
        })?;
        Ok(Output::text(recipe.fill(&arguments)))
    }
}

export_plugin! { state: Recipes, tools: dynamic }

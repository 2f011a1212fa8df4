//! `tool-recipes`: offers prompts from a folder as tools. When a file is added, changed or removed,
//! the tools change while the plugin runs.
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

/// The maximum number of recipes to read, because the model reads the description of each tool.
const RECIPES_MAX: usize = 50;

/// The shortest time that the host requires between two changes of the tools.
const INTERVAL: Duration = Duration::from_millis(TOOLS_SET_INTERVAL_MS);

/// `[plugins.tool-recipes]` of the user's configuration.
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

/// The recipes of one session, by tool name.
pub struct Recipes {
    folder: String,
    by_name: Mutex<BTreeMap<String, Recipe>>,
}

/// The content of a folder.
#[derive(Default)]
struct FoundRecipes {
    by_name: BTreeMap<String, Recipe>,
    /// Files that are not valid recipes, each with the reason.
    refused: Vec<String>,
}

/// Reads the folder. A missing folder contains no recipes.
async fn find_recipes(host: &Reporter, folder: &str) -> Result<FoundRecipes> {
    let files = host.files();
    let find = FileFind {
        pattern: "*.recipe.toml".to_owned(),
        path: folder.to_owned(),
        order: FileOrder::Path,
        limit: Some(RECIPES_MAX),
        ..FileFind::default()
    };
    let mut found = FoundRecipes::default();
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

/// Offers the recipes as tools, and records those that the host rejects.
async fn offer_recipes(host: &Reporter, found: &mut FoundRecipes) -> Result<()> {
    let tools = found.by_name.values().map(Recipe::spec).collect();
    let set = ToolsSet { tools, ..ToolsSet::default() };
    let answer = match host.set_tools(&set).await {
        // Twice within a second: the plugin has just started, or the user reloads quickly.
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
    fn set_recipes(&self, by_name: BTreeMap<String, Recipe>) {
        *self.by_name.lock().unwrap_or_else(PoisonError::into_inner) = by_name;
    }

    fn get(&self, name: &str) -> Option<Recipe> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn list_text(&self) -> String {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if by_name.is_empty() {
            return format!("`{}` contains no recipes", self.folder);
        }
        let lines = by_name.values().map(|it| format!("{}: {}", it.name, it.description));
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl State for Recipes {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        let Config { folder } = home.config().await?;
        // If the folder cannot be read, the plugin still starts, but without its tools.
        let mut found = find_recipes(home, &folder).await.unwrap_or_else(|error| FoundRecipes {
            refused: vec![format!("{folder}: {}", error.message)],
            ..FoundRecipes::default()
        });
        if let Err(error) = offer_recipes(home, &mut found).await {
            found.by_name.clear();
            found.refused.push(error.message);
        }
        for line in &found.refused {
            home.log(LogLevel::Warn, line);
        }
        Ok(Self { folder, by_name: Mutex::new(found.by_name) })
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        // Start with the session. Otherwise the session would not know the tools.
        description.at_start = true;
        description.commands = vec![CommandSpec {
            name: "recipes".to_owned(),
            description: "Lists the recipes; `reload` reads their folder again".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "what": { "enum": ["reload"], "description": "The action to run first." },
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
            let mut found = find_recipes(cx, &recipes.folder).await?;
            offer_recipes(cx, &mut found).await?;
            recipes.set_recipes(found.by_name);
            refused = found.refused;
        }
        refused.insert(0, recipes.list_text());
        Ok(Output::text(refused.join("\n")))
    }

    async fn call_tool(cx: &Cx<Self>, name: &str, arguments: Value) -> Result<Output> {
        // The file may have been removed since the model read about its tool.
        let recipe = cx.state().get(name).ok_or_else(|| {
            let text = format!("the recipe `{name}` no longer exists");
            Error::new(ErrorKind::UnknownTool, text)
        })?;
        Ok(Output::text(recipe.fill(&arguments)))
    }
}

export_plugin! { state: Recipes, tools: dynamic }

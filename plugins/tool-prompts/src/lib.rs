//! `tool-prompts`: prompts and skills from folders. The user runs each as a command, and the model
//! uses them with the tool `use_prompt`.
//!
//! [`scan`] finds the files, `front_matter` parses them, [`rules`] knows the Agent Skills
//! format, [`library`] contains a session's prompts and skills, [`fill`] inserts arguments, and
//! [`people`] contains the commands. Everything is read once, when a session starts. Later changes
//! appear in the next session.
#![forbid(unsafe_code)]

mod fill;
mod library;
mod rules;
mod scan;
mod user_commands;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use jaato_plugin_sdk::dynamic::ToolsSet;
use jaato_plugin_sdk::hooks::{CompleteWords, WordChoice, WordChoices};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::text::truncate_chars;
use jaato_plugin_sdk::types::touches::KEYWORD as TOUCHES;
use jaato_plugin_sdk::{schemars, serde_json};

use library::{Prompt, PromptLibrary};

/// The approximate number of bytes per token.
const BYTES_PER_TOKEN: usize = 4;

/// The maximum number of tokens that the setting may allow for names and descriptions. The host
/// accepts 64 KiB.
const CATALOG_TOKENS_MAX: usize = 16_000;

/// The maximum number of names in a hint.
const NAMES_TOLD_MAX: usize = 20;

/// Get a prompt or skill by name, then follow it.
#[derive(ToolInput)]
#[tool(
    name = "use_prompt",
    core,
    category = "prompt",
    read_only,
    idempotent,
    open_world = false,
    auto_approval,
    example("use the skill tidy", name = "tidy"),
    available_if(asked, reason = "when there are prompts or skills"),
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string", TOUCHES: { "text": "the name of a prompt" }, "description": "Its name." },
            "arguments": { "type": "string", TOUCHES: { "text": "words for the prompt" }, "description": "Placeholder values, or NAME=VALUE." },
            "file": { "type": "string", TOUCHES: { "text": "a file in the folder of the skill, which the plugin checks" }, "description": "Get this file of the skill instead." },
        },
        "required": ["name"],
    })
)]
struct UsePrompt {
    name: String,
    #[serde(default)]
    arguments: String,
    #[serde(default)]
    file: String,
}

impl Tool for UsePrompt {
    type State = Prompts;

    async fn call(self, cx: &Cx<Prompts>) -> Result<Output> {
        let prompt = find_prompt(&cx.state().0, &self.name, |prompt| prompt.is_for_model)?;
        if !self.file.trim().is_empty() {
            let (prompt, file) = (prompt.clone(), self.file);
            return cx.blocking(move |_| read_skill_file(&prompt, file.trim())).await?;
        }
        let content = fill_prompt(prompt, &self.arguments)?;
        let mut told = json!({
            "name": prompt.name,
            "content": content,
            "source": prompt.source.source_name(),
        });
        told["instruction"] = match &prompt.skill_path {
            None => json!("Follow the content."),
            Some(path) => {
                told["skill_path"] = json!(path.display().to_string());
                json!(
                    "Follow the content. Read other skill files with readFile, or use_prompt and `file`."
                )
            }
        };
        Ok(Output::json(told))
    }

    async fn available_if(cx: &Cx<Prompts>) -> Result<ConditionAnswer> {
        Ok(match cx.state().0.model_prompts().next() {
            Some(_) => ConditionAnswer::yes(),
            None => ConditionAnswer::no(),
        })
    }
}

tool!(UsePrompt);

/// `[plugins.tool-prompts]`.
#[tool_type]
#[serde(default)]
struct Config {
    /// Approximate token limit for the names and descriptions that the model gets when a session
    /// starts.
    #[schemars(extend("x-jaato-workspace" = true))]
    catalog_tokens_max: usize,
    /// The folder with the user's `.jaato`, `.agents` and `.claude`. The default is the home
    /// folder.
    #[schemars(extend("x-jaato-path" = "file"))]
    home: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { catalog_tokens_max: 1000, home: String::new() }
    }
}

/// The prompts and skills of a session.
pub struct Prompts(Arc<PromptLibrary>);

impl State for Prompts {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        let config: Config = home.config().await?;
        let workspace = home.session().await?.trusted_workspace.map(PathBuf::from);
        let folder = match config.home.is_empty() {
            true => std::env::var_os("HOME").map(PathBuf::from),
            false => Some(PathBuf::from(config.home)),
        };
        let folder = folder.filter(|folder| folder.is_absolute());
        let read = move |_: &Reporter| {
            PromptLibrary::read_folders(workspace.as_deref(), folder.as_deref())
        };
        let mut library = home.blocking(read).await?;
        let set = ToolsSet {
            commands: library
                .all_prompts()
                .filter(|it| it.is_for_people)
                .map(user_commands::prompt_command_spec)
                .collect(),
            instructions: library.format_catalog(
                config.catalog_tokens_max.min(CATALOG_TOKENS_MAX) * BYTES_PER_TOKEN,
            ),
            ..ToolsSet::default()
        };
        if !set.commands.is_empty() || set.instructions.is_some() {
            match home.set_tools(&set).await {
                Ok(answer) => library.lines.extend(
                    answer
                        .refused
                        .into_iter()
                        .map(|it| format!("use it with `/prompt {}`: {}", it.name, it.why)),
                ),
                // `use_prompt` and `/prompt` work without them.
                Err(error) => library.lines.push(error.message),
            }
        }
        for line in &library.lines {
            home.log(LogLevel::Warn, line);
        }
        Ok(Self(Arc::new(library)))
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        // The plugin is opened when a session starts, so that its commands are known.
        description.at_start = true;
        description.only_with_files = PromptLibrary::folder_names();
        description.commands = user_commands::fixed_command_specs();
    }

    async fn command(cx: &Cx<Self>, name: &str, arguments: Value) -> Result<Output> {
        user_commands::run_prompts_command(&cx.state().0, name, &arguments)
    }

    async fn complete_words(cx: &Cx<Self>, asked: CompleteWords) -> Result<WordChoices> {
        let is_name = asked.command == user_commands::USE && asked.words.is_empty();
        let all = cx.state().0.all_prompts().filter(|it| is_name && it.is_for_people);
        let choices = all.map(|it| WordChoice::new(it.name.as_str(), it.description.as_str()));
        Ok(WordChoices { choices: choices.collect() })
    }
}

/// Finds a prompt that the caller may use.
fn find_prompt<'a>(
    library: &'a PromptLibrary,
    name: &str,
    may_use: impl Fn(&Prompt) -> bool,
) -> Result<&'a Prompt> {
    let name = name.trim().trim_start_matches('/');
    if let Some(prompt) = library.get_prompt(name).filter(|prompt| may_use(prompt)) {
        return Ok(prompt);
    }
    let names = library.all_prompts().filter(|prompt| may_use(prompt)).map(|it| it.name.as_str());
    let names: Vec<&str> = names.take(NAMES_TOLD_MAX).collect();
    let text = match library.get_prompt(name) {
        Some(_) => format!("the author of `{name}` does not let models use it"),
        None => format!("there is no prompt or skill `{}`", truncate_chars(name, 80)),
    };
    let error = Error::new(ErrorKind::NotFound, text);
    Err(match names.is_empty() {
        true => error,
        false => error.with_hint(format!("there are: {}", names.join(", "))),
    })
}

/// Fills a prompt with arguments.
fn fill_prompt(prompt: &Prompt, arguments: &str) -> Result<String> {
    fill::fill_placeholders(&prompt.body, arguments, prompt.syntax)
        .map_err(|why| Error::new(ErrorKind::InvalidArguments, format!("`{}`: {why}", prompt.name)))
}

/// Reads another file from a skill's folder.
fn read_skill_file(prompt: &Prompt, file: &str) -> Result<Output> {
    let refused = |why: &str| {
        let text = format!("`{}` of `{}`: {why}", truncate_chars(file, 200), prompt.name);
        Err(Error::new(ErrorKind::NotFound, text))
    };
    let Some(folder) = &prompt.skill_path else {
        return refused("it is a prompt, and only skills have files");
    };
    let path = Path::new(file);
    let is_inside =
        path.components().all(|it| matches!(it, Component::Normal(_) | Component::CurDir));
    // A link out of the folder is refused like `..`.
    match folder.join(path).canonicalize() {
        Ok(path) if is_inside && path.starts_with(folder) => {
            match front_matter::read_text(&path, scan::SKILL_BYTES_MAX) {
                Ok(content) => Ok(Output::json(
                    json!({ "name": prompt.name, "file": file, "content": content }),
                )),
                Err(why) => refused(&why),
            }
        }
        _ => refused("the skill has no such file"),
    }
}

export_plugin! { state: Prompts, tools }

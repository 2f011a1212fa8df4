//! The commands: `/prompts` lists prompts, `/prompt NAME` and `/NAME` use one. The answer of a use
//! becomes the user's next message to the model.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::CommandSpec;
use jaato_plugin_sdk::types::text::truncate_chars;

use crate::library::{Prompt, PromptLibrary};
use crate::{fill, fill_prompt, find_prompt};

/// Lists the prompts.
const LIST: &str = "prompts";
/// Uses a prompt by its name, even if another command has the same name.
pub const USE: &str = "prompt";

/// The maximum length of a description in a list, in characters.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// Returns the commands that always exist.
pub fn fixed_command_specs() -> Vec<CommandSpec> {
    let name = json!({ "type": "string", "description": "Which." });
    let nothing = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    vec![
        CommandSpec {
            name: LIST.to_owned(),
            description: "Lists the prompts and skills, and what is wrong with some".to_owned(),
            parameters: nothing,
            ..CommandSpec::default()
        },
        CommandSpec {
            name: USE.to_owned(),
            description: "Sends a prompt or a skill to the model".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "name": name, "arguments": arguments_schema("For its placeholders."),
                },
                "required": ["name"],
                "additionalProperties": false,
            }),
            completes: true,
            as_prompt: true,
            ..CommandSpec::default()
        },
    ]
}

/// Returns the command of a prompt.
pub fn prompt_command_spec(prompt: &Prompt) -> CommandSpec {
    let usage = match prompt.hint.is_empty() {
        true => fill::format_usage(&prompt.body, prompt.syntax),
        false => prompt.hint.clone(),
    };
    let usage =
        if usage.is_empty() { "Words for it.".to_owned() } else { truncate_chars(&usage, 200) };
    CommandSpec {
        name: prompt.name.clone(),
        description: truncate_chars(&prompt.description, DESCRIPTION_CHARS_MAX),
        parameters: json!({
            "type": "object",
            "properties": { "arguments": arguments_schema(&usage) },
            "additionalProperties": false,
        }),
        as_prompt: true,
        ..CommandSpec::default()
    }
}

/// Runs a command.
///
/// # Errors
/// An error if the prompt does not exist or the arguments are too long.
pub fn run_prompts_command(library: &PromptLibrary, name: &str, given: &Value) -> Result<Output> {
    let text = |key: &str| given[key].as_str().unwrap_or_default();
    match name {
        LIST => Ok(Output::text(list_prompts(library))),
        USE => expand_command(library, text("name"), text("arguments")),
        name => expand_command(library, name, text("arguments")),
    }
}

fn expand_command(library: &PromptLibrary, name: &str, arguments: &str) -> Result<Output> {
    let prompt = find_prompt(library, name, |prompt| prompt.is_for_people)?;
    let content = fill_prompt(prompt, arguments)?;
    Ok(Output::text(match &prompt.skill_path {
        None => content,
        Some(path) => format!(
            "Use the skill `{}`, whose other files are in `{}`:\n\n{content}",
            prompt.name,
            path.display()
        ),
    }))
}

fn arguments_schema(description: &str) -> Value {
    json!({ "type": "string", "x-capture-rest": true, "description": description })
}

fn list_prompts(library: &PromptLibrary) -> String {
    let line = |prompt: &Prompt| {
        let kind = if prompt.skill_path.is_some() { "skill" } else { "prompt" };
        let who = match (prompt.is_for_people, prompt.is_for_model) {
            (true, true) => "",
            (true, false) => ", not for the model",
            (false, _) => ", only for the model",
        };
        let description = truncate_chars(&prompt.description, DESCRIPTION_CHARS_MAX);
        format!("/{}  {description} ({} {kind}{who})", prompt.name, prompt.source.source_name())
    };
    let mut lines: Vec<String> = library.all_prompts().map(line).collect();
    if lines.is_empty() {
        lines.push("no prompts and no skills".to_owned());
    }
    lines.extend(library.lines.iter().map(|line| format!("! {line}")));
    lines.join("\n")
}

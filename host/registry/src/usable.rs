//! Removes from a description what cannot be offered to models and users. One bad tool affects only
//! that tool.
//!
//! A description is untrusted, even if it comes from the cache. Model servers refuse a whole
//! request because of one invalid name or schema, and a name that looks like another one deceives
//! users. So names must be ASCII and unique within the plugin, and schemas must be readable for
//! every server.

use std::collections::BTreeSet;
use std::fmt;

use jaato_types::text::truncate_chars;
use jaato_types::{CommandSpec, Description, ProviderPreset, ToolName, ToolSpec};

use crate::schema;

/// Maximum number of tools of one plugin. With more, no one finds one.
pub const TOOLS_MAX: usize = 1_000;

/// Maximum number of commands of one plugin.
pub const COMMANDS_MAX: usize = 200;

/// Longest description of a tool, in bytes, because it is part of each request.
pub const TOOL_TEXT_BYTES_MAX: usize = 16 * 1024;

/// Longest schema of a tool or a command, in bytes of JSON.
pub const SCHEMA_BYTES_MAX: usize = 128 * 1024;

/// Maximum number of servers that a provider may know by name.
pub const PRESETS_MAX: usize = 200;

/// Longest line that describes a command or a provider, in bytes.
pub const LINE_BYTES_MAX: usize = 1024;

/// Longest part of the prompt, in bytes.
pub const INSTRUCTIONS_BYTES_MAX: usize = 64 * 1024;

/// Longest part of a name to repeat in a line.
const SHOWN_CHARS_MAX: usize = 40;

/// A removed part of a description, and why. Its text is safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptionOmission {
    /// The part: `tool "a b"`.
    pub what: String,
    /// The name of the part, if it has one of its own.
    pub name: Option<String>,
    /// Why.
    pub why: String,
}

impl DescriptionOmission {
    /// Creates the line about an offer whose name is valid.
    pub(crate) fn for_offer(kind: &str, name: &str, why: String) -> Self {
        Self { what: format!("{kind} `{name}`"), name: Some(name.to_owned()), why }
    }

    /// Creates the line about an offer whose name may deceive.
    fn for_unusable_name(kind: &str, name: &str, why: String) -> Self {
        let name = escape_name(name);
        Self { what: format!("{kind} \"{name}\""), name: Some(name), why }
    }

    fn for_part(what: impl Into<String>, why: String) -> Self {
        Self { what: what.into(), name: None, why }
    }
}

/// How thoroughly schemas are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaCheck {
    /// Only the outline, because compiling all schemas of shipped plugins would slow each start
    /// down. Their tests compile them.
    Outline,
    /// They are compiled too.
    Compile,
}

impl fmt::Display for DescriptionOmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is left out: {}", self.what, self.why)
    }
}

/// Removes the parts of a description that cannot be offered, and returns them.
pub fn keep_usable(description: &mut Description, check: SchemaCheck) -> Vec<DescriptionOmission> {
    let mut left_out = Vec::new();
    let mut names = BTreeSet::new();
    retain_usable(&mut description.tools, "tool", TOOLS_MAX, &mut left_out, |tool: &ToolSpec| {
        let why = tool_problem(tool, &names, check);
        names.insert(tool.name.clone());
        (tool.name.as_str().to_owned(), why)
    });
    let command = |command: &CommandSpec| (command.name.clone(), command_problem(command, check));
    retain_usable(&mut description.commands, "command", COMMANDS_MAX, &mut left_out, command);
    if let Some(provider) = &description.provider
        && let Some(why) =
            name_problem(&provider.name).or_else(|| length_problem(&provider.title, LINE_BYTES_MAX))
    {
        left_out.push(DescriptionOmission::for_unusable_name("provider", &provider.name, why));
        description.provider = None;
    }
    if let Some(provider) = &mut description.provider {
        let preset = |preset: &ProviderPreset| (preset.name.clone(), preset_problem(preset));
        retain_usable(&mut provider.presets, "preset", PRESETS_MAX, &mut left_out, preset);
    }
    if let Some(environment) = &description.environment
        && let Some(why) = name_problem(&environment.name)
    {
        left_out.push(DescriptionOmission::for_unusable_name(
            "environment",
            &environment.name,
            why,
        ));
        description.environment = None;
    }
    let instructions = description.instructions.as_deref().unwrap_or_default();
    if let Some(why) = length_problem(instructions, INSTRUCTIONS_BYTES_MAX) {
        left_out.push(DescriptionOmission::for_part("its part of the prompt", why));
        description.instructions = None;
    }
    left_out
}

/// Keeps the items of a list that have no problem, up to a maximum.
fn retain_usable<T>(
    list: &mut Vec<T>,
    what: &str,
    max: usize,
    left_out: &mut Vec<DescriptionOmission>,
    mut judge: impl FnMut(&T) -> (String, Option<String>),
) {
    let count = list.len();
    if count > max {
        list.truncate(max);
        let why = format!("a plugin may have {max}");
        left_out.push(DescriptionOmission::for_part(
            format!("each {what} from the {}th on", max + 1),
            why,
        ));
    }
    list.retain(|item| {
        let (name, why) = judge(item);
        let is_usable = why.is_none();
        left_out.extend(why.map(|why| DescriptionOmission::for_unusable_name(what, &name, why)));
        is_usable
    });
}

fn preset_problem(preset: &ProviderPreset) -> Option<String> {
    name_problem(&preset.name).or_else(|| length_problem(&preset.title, LINE_BYTES_MAX)).or_else(
        || {
            let is_http = ["https://", "http://"].iter().any(|it| preset.base_url.starts_with(it));
            (!is_http).then(|| "its `base_url` is not an http url".to_owned())
        },
    )
}

fn tool_problem(tool: &ToolSpec, names: &BTreeSet<ToolName>, check: SchemaCheck) -> Option<String> {
    name_problem(tool.name.as_str())
        .or_else(|| {
            names
                .contains(&tool.name)
                .then(|| "the plugin has another one with this name".to_owned())
        })
        .or_else(|| length_problem(&tool.description, TOOL_TEXT_BYTES_MAX))
        .or_else(|| schema::schema_refusal(&tool.parameters, SCHEMA_BYTES_MAX, check))
}

/// Returns why a command cannot be offered. The registry refuses a name that cannot be typed, and
/// lists it as refused.
fn command_problem(command: &CommandSpec, check: SchemaCheck) -> Option<String> {
    length_problem(&command.description, LINE_BYTES_MAX).or_else(|| {
        // Without a schema, it takes no parameters.
        let parameters = Some(&command.parameters).filter(|parameters| !parameters.is_null());
        parameters.and_then(|it| schema::schema_refusal(it, SCHEMA_BYTES_MAX, check))
    })
}

fn name_problem(name: &str) -> Option<String> {
    let is_valid = ToolName::from(name).is_valid();
    (!is_valid).then(|| "a name has 1 to 64 letters (a to z), digits, `_` and `-`".to_owned())
}

fn length_problem(text: &str, max: usize) -> Option<String> {
    let has = text.len();
    (has > max).then(|| format!("its text has {has} bytes, but the limit is {max}"))
}

/// Escapes a name so that every deceptive character is visible.
fn escape_name(name: &str) -> String {
    truncate_chars(name, SHOWN_CHARS_MAX)
        .chars()
        .map(|sign| {
            if sign.is_ascii() {
                sign.escape_debug().to_string()
            } else {
                sign.escape_unicode().to_string()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use jaato_types::Annotations;
    use serde_json::{Value, json};

    use super::*;

    fn tool_spec(name: &str, parameters: Value) -> ToolSpec {
        let spec = json!({ "name": name, "description": "d", "parameters": parameters,
                           "annotations": Annotations::default() });
        serde_json::from_value(spec).unwrap()
    }

    #[track_caller]
    fn check_omissions(tools: Vec<ToolSpec>, kept: &[&str], told: &[&str]) {
        let mut description = Description { tools, ..Description::default() };
        let left_out = keep_usable(&mut description, SchemaCheck::Compile);
        let names: Vec<&str> = description.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, kept);
        assert_eq!(left_out.iter().map(ToString::to_string).collect::<Vec<_>>(), told);
    }

    fn empty_schema() -> Value {
        json!({ "type": "object", "properties": {} })
    }

    #[test]
    fn tool_with_an_invalid_or_lookalike_name_alone_is_left_out() {
        let bad = |name: &str| {
            format!(
                "tool {name} is left out: a name has 1 to 64 letters (a to z), digits, `_` and `-`"
            )
        };
        let names = ["", "bad name!", "a\nb", "a\u{202e}b", "cli_based_t\u{43e}\u{43e}l"];
        let long = "x".repeat(65);
        let mut tools: Vec<_> = names.iter().map(|name| tool_spec(name, empty_schema())).collect();
        tools.extend([tool_spec(&long, empty_schema()), tool_spec("good", empty_schema())]);
        let told = [
            bad("\"\""),
            bad("\"bad name!\""),
            bad("\"a\\nb\""),
            bad("\"a\\u{202e}b\""),
            bad("\"cli_based_t\\u{43e}\\u{43e}l\""),
            bad(&format!("\"{}\\u{{2026}}\"", "x".repeat(40))),
        ];
        check_omissions(tools, &["good"], &told.each_ref().map(String::as_str));
    }

    #[test]
    fn only_the_tool_whose_schema_does_not_compile_is_left_out() {
        let broken =
            json!({ "type": "object", "properties": { "a": { "$ref": "#/components/X" } } });
        let pattern = json!({ "type": "object", "properties": { "a": { "pattern": "(" } } });
        let bound = json!({ "type": "object", "properties": { "a": { "minimum": "one" } } });
        let told = [
            "tool \"broken\" is left out: its schema does not compile: Pointer '/components/X' does not exist",
            "tool \"pattern\" is left out: its schema does not compile: \"(\" is not a \"regex\"",
            "tool \"bound\" is left out: its schema does not compile: \"one\" is not of type \"number\"",
        ];
        let tools = vec![
            tool_spec("broken", broken.clone()),
            tool_spec("pattern", pattern),
            tool_spec("good", empty_schema()),
            tool_spec("bound", bound),
        ];
        check_omissions(tools, &["good"], &told);
        // Tests of shipped plugins compile their schemas.
        let tools = vec![tool_spec("broken", broken)];
        let mut shipped = Description { tools, ..Description::default() };
        assert!(keep_usable(&mut shipped, SchemaCheck::Outline).is_empty());
    }

    #[test]
    fn second_tool_with_the_same_name_is_left_out() {
        let told = ["tool \"twice\" is left out: the plugin has another one with this name"];
        check_omissions(
            vec![tool_spec("twice", empty_schema()), tool_spec("twice", empty_schema())],
            &["twice"],
            &told,
        );
    }

    #[test]
    fn tool_text_and_tool_count_beyond_the_limits_are_left_out() {
        let long = |bytes: usize| {
            let mut spec = tool_spec("long", empty_schema());
            spec.description = "x".repeat(bytes);
            spec
        };
        check_omissions(vec![long(TOOL_TEXT_BYTES_MAX)], &["long"], &[]);
        let told = "tool \"long\" is left out: its text has 16385 bytes, but the limit is 16384";
        check_omissions(vec![long(TOOL_TEXT_BYTES_MAX + 1)], &[], &[told]);
        let tools = (0..=TOOLS_MAX)
            .map(|number| tool_spec(&format!("t{number}"), empty_schema()))
            .collect();
        let mut description = Description { tools, ..Description::default() };
        let told = keep_usable(&mut description, SchemaCheck::Compile);
        assert_eq!(
            told[0].to_string(),
            "each tool from the 1001th on is left out: a plugin may have 1000"
        );
        assert_eq!((told.len(), description.tools.len()), (1, TOOLS_MAX));
    }

    #[test]
    fn commands_providers_environments_and_the_prompt_have_bounds_too() {
        let description = json!({
            "commands": [
                { "name": "good", "description": "d" },
                { "name": "bad", "description": "d", "parameters": ["a"] },
                { "name": "long", "description": "x".repeat(LINE_BYTES_MAX + 1) },
            ],
            "provider": { "name": "o\u{440}enai" },
            "environment": { "name": "loc al", "title": "t" },
            "instructions": "x".repeat(INSTRUCTIONS_BYTES_MAX + 1),
        });
        let mut description: Description = serde_json::from_value(description).unwrap();
        let left_out = keep_usable(&mut description, SchemaCheck::Compile);
        let what: Vec<&str> = left_out.iter().map(|it| it.what.as_str()).collect();
        let expected = [
            "command \"bad\"",
            "command \"long\"",
            "provider \"o\\u{440}enai\"",
            "environment \"loc al\"",
            "its part of the prompt",
        ];
        assert_eq!(what, expected);
        assert!(description.provider.is_none() && description.environment.is_none());
        assert!(description.instructions.is_none());
        assert_eq!(description.commands.len(), 1);
    }
}

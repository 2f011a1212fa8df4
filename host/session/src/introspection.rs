//! The host's own two tools: `list_tools` finds tools that are not in requests, and
//! `get_tool_schemas` shows their full schemas and activates them. They are offered only if there
//! is something to find.

use std::collections::BTreeMap;

use jaato_types::text::truncate_chars;
use jaato_types::touches::KEYWORD;
use jaato_types::{
    Annotations, Availability, Condition, Error, ErrorKind, Offer, Output, PluginName, Result,
    ToolCall, ToolName, ToolSpec,
};
use serde_json::{Map, Value, json};

use crate::conditions::mark_withheld;
use crate::{KnownTool, ToolState, Toolbox};

/// The name of the tool that finds tools.
pub const LIST_TOOLS: &str = "list_tools";
/// The name of the tool that shows and activates tools.
pub const GET_TOOL_SCHEMAS: &str = "get_tool_schemas";

/// The plugin name of these tools: the host's own.
const HOST_PLUGIN: &str = "jaato";
/// The maximum number of tools that a list describes. A longer list has only their names.
const DESCRIBED_MAX: usize = 100;
/// The longest description in a list, in characters, if its first sentence is longer.
const SUMMARY_CHARS_MAX: usize = 97;
/// The maximum number of names that are suggested for an unknown one.
const SUGGESTIONS_MAX: usize = 3;

/// The standard categories and what they contain.
const CATEGORIES: [(&str, &str); 11] = [
    ("MCP", "tools of MCP servers"),
    ("code", "code analysis and editing"),
    ("communication", "talking to users and services"),
    ("coordination", "plans, tasks and other agents"),
    ("filesystem", "files and folders"),
    ("knowledge", "facts and references"),
    ("memory", "remembering across sessions"),
    ("prompt", "prompts and templates"),
    ("search", "searching text and code"),
    ("system", "this machine and its commands"),
    ("web", "the web"),
];

/// The category of tools whose authors named none.
const NO_CATEGORY: (&str, &str) = ("other", "tools without a category");

/// Returns the host's tools with which a model finds tools that are not in requests.
pub fn discovery_tools() -> [ToolSpec; 2] {
    introspection_tools().map(|tool| tool.spec)
}

/// Creates the two tools.
pub(crate) fn introspection_tools() -> [KnownTool; 2] {
    let words: Vec<&str> = CATEGORIES.iter().chain([&NO_CATEGORY]).map(|it| it.0).collect();
    // Every request carries them, so nothing repeats what the names already say.
    let category = json!({ "type": "string", "enum": words });
    let query = json!({ "type": "string", KEYWORD: { "text": "words about tools" } });
    let verbose = json!({ "type": "boolean" });
    let names = json!({
        "type": "array", "items": { "type": "string" }, "minItems": 1,
        KEYWORD: { "text": "names of tools" },
    });
    [
        host_tool(
            LIST_TOOLS,
            "Find more tools. Without category or query, lists the categories.",
            json!({ "category": category, "query": query, "verbose": verbose }),
            &[],
        ),
        host_tool(
            GET_TOOL_SCHEMAS,
            "Show tools with their arguments. Then you can call them.",
            json!({ "names": names }),
            &["names"],
        ),
    ]
}

pub(crate) fn host_tool(
    name: &str,
    description: &str,
    properties: Value,
    required: &[&str],
) -> KnownTool {
    let mut parameters = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        parameters["required"] = json!(required);
    }
    let annotations = Annotations {
        read_only: true,
        destructive: false,
        idempotent: true,
        open_world: false,
        parallel_safe: true,
    };
    let spec = ToolSpec {
        name: ToolName::from(name),
        description: description.to_owned(),
        parameters,
        annotations,
        category: "system".to_owned(),
        availability: Availability::Core,
        auto_approval: true,
        auto_background: false,
        traits: Vec::new(),
        examples: Vec::new(),
        available_if: None,
        foreign: false,
        origin: String::new(),
        run_if: None,
        previews: false,
    };
    KnownTool::new(spec, PluginName::from(HOST_PLUGIN), true)
}

/// Returns the schema that calls are checked against, if it accepts more than the model sees.
/// Plugins have their own categories, which may appear while a session runs, and a single name is
/// accepted for a list of it.
pub(crate) fn accepted_spec(spec: &ToolSpec) -> Option<ToolSpec> {
    let mut accepted = spec.clone();
    let properties = &mut accepted.parameters["properties"];
    match spec.name.as_str() {
        LIST_TOOLS => {
            let text = json!({ "type": ["string", "null"] });
            (properties["category"], properties["query"]) = (text.clone(), text);
        }
        GET_TOOL_SCHEMAS => {
            let list = properties["names"].take();
            let one = json!({ "type": "string", "minLength": 1 });
            properties["names"] = json!({ "anyOf": [list, one] });
        }
        _ => return None,
    }
    Some(accepted)
}

/// Returns true if a tool is the host's own.
pub(crate) fn is_host_tool(tool: &KnownTool) -> bool {
    tool.plugin.as_str() == HOST_PLUGIN
}

/// Returns the plugin that a tool comes from. Returns an empty name for the host's own tools, and
/// for no tool.
pub(crate) fn tool_owner(tool: Option<&KnownTool>) -> PluginName {
    let of_plugin = tool.filter(|tool| !is_host_tool(tool));
    of_plugin.map(|tool| tool.plugin.clone()).unwrap_or_default()
}

/// Answers a call of one of the two tools. Pure: the session activates the tools, see
/// [`tools_to_activate`].
pub(crate) fn answer_discovery_call(toolbox: &Toolbox, call: &ToolCall) -> Result<Output> {
    match call.name.as_str() {
        LIST_TOOLS => Ok(list_tools(toolbox, &call.arguments)),
        GET_TOOL_SCHEMAS => Ok(list_schemas(toolbox, &requested_tool_names(call))),
        other => {
            Err(Error::new(ErrorKind::HostBug, format!("`{other}` is not a tool of the host")))
        }
    }
}

/// Lists the tools that a call to `get_tool_schemas` activates.
pub(crate) fn tools_to_activate(toolbox: &Toolbox, call: &ToolCall) -> Vec<ToolName> {
    if call.name.as_str() != GET_TOOL_SCHEMAS {
        return Vec::new();
    }
    requested_tool_names(call)
        .into_iter()
        .filter(|name| toolbox.find_tool(name).is_ok_and(|it| !it.active))
        .collect()
}

pub(crate) fn requested_tool_names(call: &ToolCall) -> Vec<ToolName> {
    let names = match call.arguments.get("names") {
        Some(Value::Array(names)) => names.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    names.iter().filter_map(Value::as_str).map(ToolName::from).collect()
}

/// Lists the tools that a model may use, without these two, because a model that asks knows them.
fn usable_tools(toolbox: &Toolbox) -> impl Iterator<Item = &KnownTool> {
    toolbox.tools().filter(|tool| !is_host_tool(tool) && may_be_offered(tool))
}

/// Returns true if the model may ever be offered a tool: it is not disabled, and its condition may
/// hold.
pub(crate) fn may_be_offered(tool: &KnownTool) -> bool {
    let never = |offer: &Offer| offer.condition == Condition::Unknown;
    !matches!(tool.state, ToolState::Disabled { .. })
        && !tool.spec.available_if.as_ref().is_some_and(never)
}

/// Returns a tool's category, so that every tool can be found by one.
fn tool_category(tool: &KnownTool) -> &str {
    match tool.spec.category.as_str() {
        "" => NO_CATEGORY.0,
        category => category,
    }
}

/// Returns true if a tool belongs to a requested category. The words that the model sees reach
/// every tool: `MCP` covers all servers, and `other` covers all categories without such a word.
fn is_in_category(tool: &KnownTool, category: &str) -> bool {
    let own = tool_category(tool);
    let is_word = |word: &str| CATEGORIES.iter().any(|(known, _)| known.eq_ignore_ascii_case(word));
    let family = own.split_once(": ").map_or(own, |(family, _)| family);
    own.eq_ignore_ascii_case(category)
        || family.eq_ignore_ascii_case(category)
        || (NO_CATEGORY.0.eq_ignore_ascii_case(category) && !is_word(family))
}

/// Keeps the tools that match the most words of a query, in name, category or description.
fn matching_tools<'a>(tools: Vec<&'a KnownTool>, query: &str) -> Vec<&'a KnownTool> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query.split(|c: char| !c.is_alphanumeric()).collect();
    let hits = |tool: &KnownTool| {
        let ToolSpec { name, description, category, .. } = &tool.spec;
        let text = format!("{name} {category} {description}").to_lowercase();
        words.iter().filter(|word| !word.is_empty() && text.contains(**word)).count()
    };
    let rated: Vec<_> = tools.into_iter().map(|tool| (hits(tool), tool)).collect();
    let most = rated.iter().map(|(hits, _)| *hits).max().unwrap_or_default().max(1);
    rated.into_iter().filter(|(hits, _)| *hits == most).map(|(_, tool)| tool).collect()
}

fn list_tools(toolbox: &Toolbox, arguments: &Value) -> Output {
    let given = |key: &str| arguments.get(key).and_then(Value::as_str);
    let (category, query) = (given("category"), given("query").filter(|it| !it.trim().is_empty()));
    if category.is_none() && query.is_none() {
        return list_categories(toolbox);
    }
    let is_verbose = arguments.get("verbose") == Some(&Value::Bool(true));
    let is_asked =
        |tool: &&KnownTool| category.is_none_or(|category| is_in_category(tool, category));
    let mut tools: Vec<_> = usable_tools(toolbox).filter(is_asked).collect();
    if let Some(query) = query {
        tools = matching_tools(tools, query);
    }
    tools.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
    if tools.is_empty() {
        let mut content = list_categories(toolbox).content;
        content.insert("category".to_owned(), category.into());
        content.insert("tool_count".to_owned(), 0.into());
        content.insert("tools".to_owned(), json!([]));
        let hint = match (category, query) {
            (Some(category), None) => {
                format!("no tool is in `{category}`; `categories` lists all categories")
            }
            (_, query) => format!("no tool matches `{}`", query.unwrap_or_default()),
        };
        content.insert("hint".to_owned(), hint.into());
        return Output { content, ..Output::default() };
    }
    let is_long = tools.len() > DESCRIBED_MAX;
    let described = |spec: &ToolSpec| match is_verbose {
        true => spec.description.clone(),
        false => summarize_description(&spec.description),
    };
    let listed: Vec<_> = tools
        .iter()
        .map(|tool| {
            if is_long {
                return json!({ "name": tool.spec.name });
            }
            let mut told = json!({
                "name": tool.spec.name,
                "plugin_source": tool.source(),
                "enabled": true,
                "description": described(&tool.spec),
            });
            mark_withheld(&mut told, toolbox.withheld_reason(&tool.spec.name));
            told
        })
        .collect();
    let hint = match is_long {
        true => "many tools: narrow the list with a `query` to see descriptions".to_owned(),
        false => format!("call `{GET_TOOL_SCHEMAS}` with names to use them"),
    };
    let content = json!({
        "category": category,
        "tool_count": listed.len(),
        "tools": listed,
        "hint": hint,
    });
    with_missing_tools(toolbox, content)
}

/// Adds the tools to an answer that are missing because their source failed.
fn with_missing_tools(toolbox: &Toolbox, mut content: Value) -> Output {
    let missing = toolbox.missing_sources().iter();
    let missing: Vec<Value> =
        missing.map(|source| format!("{} {}", source.label, source.note).into()).collect();
    if !missing.is_empty() {
        content["missing"] = missing.into();
    }
    Output::json(content)
}

fn list_categories(toolbox: &Toolbox) -> Output {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in usable_tools(toolbox) {
        *counts.entry(tool_category(tool)).or_default() += 1;
    }
    let total: usize = counts.values().sum();
    let categories: Vec<_> = counts
        .into_iter()
        .map(|(name, count)| {
            let mut known = CATEGORIES.iter().chain([&NO_CATEGORY]);
            let about = known.find(|(known, _)| *known == name).map(|(_, about)| *about);
            json!({ "name": name, "tool_count": count, "description": about.unwrap_or("") })
        })
        .collect();
    let content = json!({
        "categories": categories,
        "total_tools": total,
        "hint": format!("call `{LIST_TOOLS}` with a category or a query to see tools"),
    });
    with_missing_tools(toolbox, content)
}

fn list_schemas(toolbox: &Toolbox, names: &[ToolName]) -> Output {
    let (mut schemas, mut not_found, mut activated) = (Vec::new(), Vec::new(), Vec::new());
    let mut suggestions = Map::new();
    for name in names {
        match toolbox.find_tool(name) {
            Ok(found) => {
                let spec = &found.tool.spec;
                let mut told = json!({
                    "name": spec.name,
                    "description": spec.description,
                    "plugin_source": found.tool.source(),
                    "enabled": true,
                    "category": tool_category(found.tool),
                    "parameters": spec.parameters,
                });
                let withheld = toolbox.withheld_reason(name);
                mark_withheld(&mut told, withheld);
                schemas.push(told);
                if !found.active && withheld.is_none() {
                    activated.push(name.as_str());
                }
            }
            Err(_) => {
                let mut near = toolbox.similar_names(name);
                near.truncate(SUGGESTIONS_MAX);
                if !near.is_empty() {
                    suggestions.insert(name.to_string(), near.into());
                }
                not_found.push(name.as_str());
            }
        }
    }
    let mut content = json!({ "schemas": schemas, "count": schemas.len() });
    if !not_found.is_empty() {
        content["not_found"] = not_found.into();
        content["hint"] = format!("`{LIST_TOOLS}` lists the tools").into();
    }
    if !suggestions.is_empty() {
        content["suggestions"] = Value::Object(suggestions);
    }
    if !activated.is_empty() {
        content["activated"] = activated.into();
        content["activation_note"] = "you can call these tools now".into();
    }
    Output::json(content)
}

/// Returns the first sentence, truncated if it is long.
fn summarize_description(description: &str) -> String {
    let sentence = description.split_once(". ").map_or(description, |(first, _)| first);
    let sentence = sentence.lines().next().unwrap_or_default().trim_end_matches('.');
    truncate_chars(sentence, SUMMARY_CHARS_MAX)
}

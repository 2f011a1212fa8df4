//! `jaato tool`: lists and shows tools.

use std::sync::Arc;

use jaato_runtime::registry::{ToolEntry, ToolStatus};
use jaato_runtime::session_loop::{Cancel, host_tools};
use jaato_runtime::types::tools_set::ToolSource;
use jaato_runtime::types::touches::{self, ArgumentUse};
use jaato_runtime::types::{Annotations, Availability, Offer, PluginName, ToolSpec};
use serde_json::{Value, json};

use jaato_runtime::{OfferedTools, Runtime, problem_line};

use crate::args::{GlobalArgs, OutputForm};
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::signals::cancel_on_signals;
use crate::view::View;
use crate::{report, start};

/// The host's own tools, which belong to no plugin.
struct HostTools {
    plugin: PluginName,
    specs: Vec<ToolSpec>,
}

impl HostTools {
    const PLUGIN: &str = "jaato";

    fn new() -> Self {
        Self { plugin: PluginName::from(Self::PLUGIN), specs: host_tools() }
    }

    fn entries(&self) -> impl Iterator<Item = ToolEntry<'_>> {
        let status = ToolStatus::Enabled;
        let entry = move |spec| ToolEntry {
            spec,
            plugin: &self.plugin,
            is_shipped: true,
            status,
            is_set: false,
        };
        self.specs.iter().map(entry)
    }
}

/// Lists the tools.
pub async fn list_tools(global: GlobalArgs, as_json: bool) -> CommandResult {
    let runtime = start::lasting_runtime(start::setup_arguments(global)).await?;
    report::print_problems(&start::list_problems(runtime));
    let offered = list_offered_tools(runtime, Vec::new()).await?;
    let own = HostTools::new();
    let mut tools: Vec<_> = offered.offer.entries().collect();
    tools.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
    // Without tools, there is nothing to find.
    if !tools.is_empty() {
        tools.extend(own.entries());
    }
    let missing = offered.missing.iter().map(missing_source_line);
    report::print_problems(&missing.collect::<Vec<_>>());
    if as_json {
        return report::print_exact_json(&tools.iter().map(tool_to_json).collect());
    }
    if tools.is_empty() {
        report::print_line("no tools")?;
        return Ok(Exit::Done);
    }
    let rows: Vec<_> = tools
        .iter()
        .map(|tool| {
            vec![
                tool.spec.name.to_string(),
                tool.plugin.to_string(),
                status_with_conditions(tool),
                describe_annotations(tool.spec.annotations),
                first_sentence(&tool.spec.description).to_owned(),
            ]
        })
        .collect();
    report::print_table(&["tool", "plugin", "status", "promises", "description"], &rows)?;
    Ok(Exit::Done)
}

/// Shows one tool.
pub async fn show_tool(global: GlobalArgs, name: &str, as_json: bool) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    let registry = runtime.registry();
    let own = HostTools::new();
    let of_host = || own.entries().find(|tool| tool.spec.name.as_str() == name);
    let offered = match registry.tool(name).or_else(of_host) {
        Some(_) => None,
        None => Some(list_offered_tools(&runtime, vec![name.to_owned()]).await?),
    };
    let set = || offered.as_ref().and_then(|offered| offered.offer.tool(name));
    let found = registry.tool(name).or_else(of_host).or_else(set);
    let Some(tool) = found else {
        report::print_problems(&start::list_problems(&runtime));
        if let Some(source) = offered.as_ref().and_then(|offered| offered.missing.first()) {
            return Err(missing_tool_failure(name, source));
        }
        let all = registry.tools().chain(own.entries());
        let set = offered.iter().flat_map(|offered| offered.offer.entries());
        let known = all.chain(set).map(|tool| tool.spec.name.as_str());
        return Err(CommandFailure::unknown("tool", name, known));
    };
    if as_json {
        return report::print_exact_json(&tool_to_json(&tool));
    }
    let spec = tool.spec;
    let mut text = format!(
        "{} of {} ({}, {}; {})\n\n{}\n\narguments:\n{:#}\n",
        spec.name,
        tool.plugin,
        tool_status(&tool),
        describe_availability(&tool),
        describe_annotations(spec.annotations),
        spec.description,
        touches::without_use_keyword(&spec.parameters)
    );
    text.push_str(&describe_declarations(&tool));
    for line in describe_conditions(&tool) {
        text.push_str(&format!("\n{line}\n"));
    }
    if !spec.examples.is_empty() {
        text.push_str("\nexamples:\n");
    }
    for example in &spec.examples {
        let arguments = Value::Object(example.arguments.clone());
        text.push_str(&format!(
            "  \"{}\"\n    jaato call {} '{arguments}'\n",
            example.phrase, spec.name
        ));
    }
    report::print_line(text.trim_end())?;
    Ok(Exit::Done)
}

/// Lists the tools, including those that plugins set while they run. A line says which ones it
/// waits for.
pub async fn list_offered_tools(
    runtime: &Runtime,
    names: Vec<String>,
) -> Result<OfferedTools, CommandFailure> {
    let cancel = Cancel::new();
    cancel_on_signals(cancel.clone());
    let view = View::start(OutputForm::Text, cancel.clone());
    let offered = runtime.offered_tools(names, Arc::clone(&view) as _, &cancel).await;
    view.finish(&cancel).await?;
    if cancel.is_cancelled() {
        return Err(CommandFailure::new(Exit::Cancelled, ""));
    }
    Ok(offered?)
}

/// Explains why a tool is missing.
pub fn missing_tool_failure(name: &str, source: &ToolSource) -> CommandFailure {
    let text = format!("there is no tool `{name}`: {} {}", source.label, source.note);
    CommandFailure::new(Exit::Plugin, text).maybe_hint(source.hint.clone())
}

fn missing_source_line(source: &ToolSource) -> String {
    problem_line(&format!("{} {}", source.label, source.note), source.hint.as_deref())
}

/// Describes what a shipped tool does with its string arguments.
fn describe_declarations(tool: &ToolEntry<'_>) -> String {
    let is_known = tool.is_shipped && !tool.spec.foreign;
    let mut text = String::new();
    for (place, kind) in
        touches::declared_strings(&tool.spec.parameters).iter().filter(|_| is_known)
    {
        let says = match kind {
            Some(ArgumentUse::Text(reason)) => format!("text ({reason})"),
            Some(kind) => kind.use_word().to_owned(),
            None => "not declared".to_owned(),
        };
        text.push_str(&format!("  {place}: {says}\n"));
    }
    match text.is_empty() {
        true => text,
        false => format!("\nfor the permission check:\n{text}"),
    }
}

fn tool_status(tool: &ToolEntry<'_>) -> &'static str {
    match tool.status {
        ToolStatus::Enabled => "enabled",
        ToolStatus::Disabled => "disabled",
        ToolStatus::NotEnabled => "not enabled",
    }
}

/// Returns the status for a list. A model is not always offered a tool that has a condition.
fn status_with_conditions(tool: &ToolEntry<'_>) -> String {
    let mut text = tool_status(tool).to_owned();
    if let Some(offer) = &tool.spec.available_if {
        text.push_str(&format!(", if {}", offer.condition));
    }
    if let Some(condition) = &tool.spec.run_if {
        text.push_str(&format!(", runs automatically if {condition}"));
    }
    text
}

/// Returns a sentence for each condition.
fn describe_conditions(tool: &ToolEntry<'_>) -> Vec<String> {
    let offer = tool.spec.available_if.as_ref().map(|offer| {
        let Offer { condition, reason } = offer;
        format!("it is offered to a model if {condition} ({reason})")
    });
    let run = tool.spec.run_if.as_ref();
    let run = run.map(|condition| format!("it runs automatically if {condition}"));
    offer.into_iter().chain(run).collect()
}

fn describe_availability(tool: &ToolEntry<'_>) -> &'static str {
    match tool.spec.availability {
        _ if tool.plugin.as_str() == HostTools::PLUGIN => {
            "while there is something to find with it"
        }
        Availability::Core => "in every request",
        Availability::Discoverable => "found on demand",
    }
}

fn describe_annotations(annotations: Annotations) -> String {
    let promises = [
        (annotations.read_only, "read-only"),
        (!annotations.read_only && annotations.destructive, "destructive"),
        (annotations.open_world, "open-world"),
    ];
    let kept: Vec<_> =
        promises.into_iter().filter(|(holds, _)| *holds).map(|(_, word)| word).collect();
    if kept.is_empty() { "changes things".to_owned() } else { kept.join(", ") }
}

fn first_sentence(text: &str) -> &str {
    let end = text.find(". ").map(|at| at + 1).or_else(|| text.find('\n'));
    &text[..end.unwrap_or(text.len())]
}

fn tool_to_json(tool: &ToolEntry<'_>) -> Value {
    let mut value = serde_json::to_value(tool.spec).unwrap_or_default();
    value["plugin"] = json!(tool.plugin);
    value["status"] = json!(tool_status(tool).replace(' ', "_"));
    value
}

//! `jaato permission`: lists, explains and tests the rules about tool calls.

mod change;
mod log;

pub use change::{RuleArgs, add_rule_command, remove_rule_command};
pub use log::show_decision_log;

use std::path::Path;

use clap::Args;
use jaato_runtime::config::permissions::{RuleCase, RuleFiles, read_cases};
use jaato_runtime::policy::shell::Doubt;
use jaato_runtime::policy::{
    AllowedTool, CallingAgent, Decision, DenyRuleHandling, Evaluation, PolicyCall, RuleEvaluation,
    RuleFile, RuleLayer, RuleOutcome as Ruling, Rules, ToolDefinition, TouchedTarget,
    evaluate_call,
};
use jaato_runtime::registry::ToolEntry;
use jaato_runtime::types::ToolName;
use jaato_runtime::{PluginSource, Runtime, Setup, call_place, rule_files, visible};
use serde_json::{Value, json};

use crate::args::{GlobalArgs, OutputForm};
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::{report, start, tool};

/// The arguments of `permission explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The tool
    pub tool: String,

    /// The arguments of the tool, a JSON object
    #[arg(default_value = "{}")]
    pub arguments: String,

    /// Decide as in a session with `--allow TOOL`; repeatable
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub allow: Vec<String>,

    /// Decide as in a session with `--yes`
    #[arg(long)]
    pub yes: bool,

    /// Decide as in a session with `--ignore-deny-rules`
    #[arg(long)]
    pub ignore_deny_rules: bool,

    /// The output format
    #[arg(long, value_enum, default_value_t = OutputForm::Text)]
    pub output: OutputForm,
}

/// Lists the rules of all files, highest precedence first.
pub fn list_rules(global: GlobalArgs, as_json: bool, shipped: bool) -> CommandResult {
    let setup = start::read_setup(start::setup_arguments(global))?;
    let RuleFiles { files, warnings, .. } = rule_files(&setup);
    report::print_problems(&warnings);
    let broken: Vec<String> = files
        .iter()
        .filter_map(|file| {
            let (line, what) = file.broken.as_ref()?;
            let path = visible::visible_name(&file.path).into_owned();
            Some(format!("`{path}:{line}` cannot be parsed, so every call is denied: {what}"))
        })
        .collect();
    if as_json {
        let listed = files.iter().map(|file| {
            let rules = file.rules.iter().enumerate().map(|(at, rule)| {
                json!({
                    "number": at + 1,
                    "decision": rule.outcome.name(),
                    "rule": rule.to_string(),
                    "line": rule.line,
                    "why": rule.why,
                })
            });
            json!({
                "layer": file.layer.name(),
                "file": &*file.path,
                "default": file.default.map(|(outcome, _)| outcome.name()),
                "rules": rules.collect::<Vec<_>>(),
                "broken": file.broken.as_ref().map(|(_, what)| what),
            })
        });
        report::print_exact_json(&listed.collect())?;
    } else {
        print_rules(&setup, &files, shipped)?;
    }
    if broken.is_empty() {
        return Ok(Exit::Done);
    }
    report::print_problems(&broken);
    Ok(Exit::Configuration)
}

fn print_rules(setup: &Setup, files: &[RuleFile], shipped: bool) -> Result<(), CommandFailure> {
    let mut rows = Vec::new();
    for file in files {
        let path = visible::visible_name(&file.path).into_owned();
        if file.layer == RuleLayer::Shipped && !shipped {
            let count = file.rules.len();
            let text = format!("allow {count} commands that only read; `--shipped` lists them");
            let layer = file.layer.name().to_owned();
            rows.push(vec![layer, "-".to_owned(), text, path, String::new()]);
            continue;
        }
        for (at, rule) in file.rules.iter().enumerate() {
            let why = rule.why.as_deref().map(visible::visible_name).unwrap_or_default();
            let place = format!("{path}:{}", rule.line);
            let text = visible::visible_name(&rule.to_string()).into_owned();
            rows.push(vec![
                file.layer.name().to_owned(),
                (at + 1).to_string(),
                text,
                place,
                why.into_owned(),
            ]);
        }
        if let Some((outcome, line)) = file.default {
            let text = format!("{} by default", outcome.name());
            rows.push(vec![
                file.layer.name().to_owned(),
                "-".to_owned(),
                text,
                format!("{path}:{line}"),
                String::new(),
            ]);
        }
    }
    if !rows.is_empty() {
        report::print_table(&["layer", "number", "rule", "place", "why"], &rows)?;
    }
    let root = setup.workspace.root();
    let names = ["permissions.toml", "permissions.json"];
    let unread = names.iter().map(|name| root.join(".jaato").join(name)).find(|path| path.exists());
    match (unread, setup.trusted_workspace()) {
        (Some(path), None) => report::print_line(&format!(
            "`{}` is not used: the workspace is not trusted",
            visible::visible_name(&path.display().to_string())
        )),
        _ => Ok(()),
    }
}

/// Explains the decision about one call.
pub async fn explain_call(global: GlobalArgs, args: ExplainArgs) -> CommandResult {
    let arguments: Value = serde_json::from_str(&args.arguments).map_err(|error| {
        CommandFailure::new(Exit::Usage, format!("the arguments are not valid JSON: {error}"))
    })?;
    let runtime = start::lasting_runtime(start::setup_arguments(global)).await?;
    let files = rule_files(runtime.setup());
    report::print_problems(&files.warnings);
    let rules = rules_with_options(runtime.setup(), files, &args);
    let asked =
        ExplainedCall { tool: &args.tool, arguments: &arguments, agent: CallingAgent::MAIN };
    let answer = asked.evaluate_call(runtime, |call| {
        let evaluation = evaluate_call(&rules, call);
        let (why, hint) =
            (evaluation.decision.explain(call), evaluation.decision.refusal_hint(call));
        (evaluation, why, hint)
    });
    let answer = answer.await?;
    let (evaluation, why, mut hint) = answer;
    if evaluation.waits_for_trust {
        let text =
            "it runs code from the workspace, and your rule allows that only after `jaato trust`";
        hint = Some(text.to_owned());
    }
    match args.output {
        OutputForm::Json => report::print_exact_json(&evaluation_to_json(&evaluation, &why)),
        OutputForm::Text => {
            let text = format_evaluation(&evaluation, &why, hint);
            report::print_sentence(visible::visible_text(&text).trim_end())?;
            Ok(Exit::Done)
        }
    }
}

fn rules_with_options(setup: &Setup, files: RuleFiles, args: &ExplainArgs) -> Rules {
    let mut rules = Rules::default();
    let disabled = setup.config.tools_disabled.iter();
    rules.disabled = disabled.map(|name| ToolName::from(name.as_str())).collect();
    rules.allowed = args.allow.iter().map(|text| AllowedTool::parse(text)).collect();
    rules.allow_all = args.yes;
    rules.files = files.files;
    if args.ignore_deny_rules {
        rules.deny_rules = DenyRuleHandling::Ignored;
    }
    rules
}

/// A call to explain; it does not run.
struct ExplainedCall<'a> {
    tool: &'a str,
    arguments: &'a Value,
    agent: CallingAgent<'a>,
}

impl ExplainedCall<'_> {
    /// Evaluates the call with the facts of its tool.
    async fn evaluate_call<T>(
        &self,
        runtime: &Runtime,
        show: impl FnOnce(&PolicyCall<'_>) -> T,
    ) -> Result<T, CommandFailure> {
        let registry = runtime.registry();
        let offered = match registry.tool(self.tool) {
            Some(_) => None,
            None => Some(tool::list_offered_tools(runtime, vec![self.tool.to_owned()]).await?),
        };
        let set = || offered.as_ref().and_then(|offered| offered.offer.tool(self.tool));
        let found = registry.tool(self.tool).or_else(set);
        let Some(ToolEntry { spec, plugin, is_shipped, .. }) = found else {
            if let Some(source) = offered.as_ref().and_then(|offered| offered.missing.first()) {
                return Err(tool::missing_tool_failure(self.tool, source));
            }
            let text = format!("there is no tool `{}`", self.tool);
            let hint = "`jaato tool list` lists them";
            return Err(CommandFailure::new(Exit::Plugin, text).hint(hint));
        };
        let place = call_place(runtime.setup());
        let source = PluginSource::from_origin(is_shipped, spec.foreign);
        let call = PolicyCall {
            source,
            definition: ToolDefinition::from_spec(spec, source),
            schema: &spec.parameters,
            annotations: spec.annotations,
            auto_approval: spec.auto_approval,
            agent: self.agent,
            directory: place.directory.as_deref(),
            home: place.home.as_deref(),
            workspace: place.workspace,
            root: place.root.as_deref(),
            own_folders: &place.own_folders,
            ..PolicyCall::new(&spec.name, plugin, self.arguments)
        };
        let resolved = runtime.resolve_paths(&call).await;
        let repository_is_plain = runtime.repository_is_plain(&call);
        Ok(show(&PolicyCall { resolved: resolved.as_ref(), repository_is_plain, ..call }))
    }
}

fn rule_to_json(decision: &Decision) -> Value {
    let written = decision.rule.written.as_ref();
    json!({
        "name": decision.rule.name(),
        "layer": decision.rule.layer.name(),
        "text": written.map(|written| &written.rule),
        "file": written.map(|written| &*written.file),
        "line": written.map(|written| written.line),
    })
}

fn evaluation_to_json(evaluation: &Evaluation, why: &str) -> Value {
    let tried = evaluation.tried.iter().map(|tried| {
        json!({
            "rule": tried.rule.written.as_ref().map(|written| &written.rule),
            "place": tried.rule.file_and_line(),
            "decision": tried.outcome.name(),
            "matched": tried.matched,
        })
    });
    let touches = evaluation.touches.iter();
    let touches = touches.map(|touch| json!({ "kind": touch.kind, "name": touch.name }));
    json!({
        "outcome": evaluation.decision.outcome.name(),
        "rule": rule_to_json(&evaluation.decision),
        "why": why,
        "touches": touches.collect::<Vec<_>>(),
        "commands": evaluation.commands,
        "waits_for_trust": evaluation.waits_for_trust,
        "doubts": evaluation.doubts.iter().map(Doubt::description).collect::<Vec<_>>(),
        "tried": tried.collect::<Vec<_>>(),
    })
}

fn format_evaluation(evaluation: &Evaluation, why: &str, hint: Option<String>) -> String {
    let Evaluation { decision, tried, touches, commands, doubts, .. } = evaluation;
    let mut text = format!("{}: {why} (rule `{}`)\n", decision.outcome.name(), decision.rule);
    if let Some(hint) = hint {
        text += &format!("  hint: {hint}\n");
    }
    if !touches.is_empty() {
        text += "\nthe call touches:\n";
    }
    for TouchedTarget { kind, name } in touches {
        text += &format!("  {kind:11} {}\n", name.replace('\n', " "));
    }
    if !commands.is_empty() {
        text += "\nthe call runs:\n";
        commands.iter().for_each(|command| text += &format!("  {}\n", command.replace('\n', " ")));
    }
    if !doubts.is_empty() {
        text += "\nno rule allows the command, because:\n";
        doubts.iter().for_each(|doubt| text += &format!("  {}\n", doubt.description()));
    }
    if !tried.is_empty() {
        text += "\nrules from files:\n";
    }
    let is_other =
        |one: &RuleEvaluation| one.rule.layer == RuleLayer::Shipped && one.matched == Some(false);
    for one in tried.iter().filter(|one| !is_other(one)) {
        let matched = match one.matched {
            Some(true) => "matches",
            Some(false) => "-",
            None => "unclear",
        };
        let rule = one.rule.written.as_ref().map_or("", |written| written.rule.as_str());
        let place = one.rule.file_and_line().unwrap_or_default();
        text += &format!("  {matched:8} {rule}   ({}, {place})\n", layer_name(one.rule.layer));
    }
    let others = tried.iter().filter(|one| is_other(one)).count();
    if others > 0 {
        text += &format!(
            "  {:8} {others} other shipped rules; `jaato permission list --shipped` lists them\n",
            "-"
        );
    }
    text
}

fn layer_name(layer: RuleLayer) -> &'static str {
    layer.name()
}

/// Runs the cases of a file against the rules, and prints those with an unexpected decision.
pub async fn test_rules(global: GlobalArgs, file: &Path) -> CommandResult {
    let failed = |error| CommandFailure::new(Exit::Configuration, format!("{error}"));
    let cases = read_cases(file).map_err(failed)?;
    let runtime = start::lasting_runtime(start::setup_arguments(global)).await?;
    let files = rule_files(runtime.setup());
    report::print_problems(&files.warnings);
    let mut rules = Rules::default();
    let disabled = runtime.setup().config.tools_disabled.iter();
    rules.disabled = disabled.map(|name| ToolName::from(name.as_str())).collect();
    rules.files = files.files;
    let mut wrong = Vec::new();
    for case in &cases {
        let RuleCase { line, tool, arguments, expected, agent_type, agent_name } = case;
        let agent = CallingAgent { agent_type, agent_name };
        let asked = ExplainedCall { tool, arguments, agent };
        let decided = asked.evaluate_call(runtime, |call| {
            let decision = evaluate_call(&rules, call).decision;
            let why = decision.explain(call);
            (decision.outcome, why)
        });
        let (outcome, why) = decided.await.map_err(|failure| {
            let text = format!("line {line}: {}", failure.message);
            CommandFailure::new(failure.exit, text)
        })?;
        if outcome.name() != expected {
            wrong.push(format!("line {line}: {} and not {expected}: {why}", ruling_name(outcome)));
        }
    }
    report::print_problems(&wrong);
    let (all, bad) = (cases.len(), wrong.len());
    report::print_sentence(&format!(
        "{} of {all} calls get the decision that the file expects",
        all - bad
    ))?;
    Ok(if bad == 0 { Exit::Done } else { Exit::Failed })
}

fn ruling_name(outcome: Ruling) -> &'static str {
    outcome.name()
}

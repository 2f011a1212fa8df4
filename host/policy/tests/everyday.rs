//! The corpus of everyday commands: which of them run without a prompt by the shipped rules.

use std::collections::BTreeMap;
use std::path::Path;

use jaato_policy::{
    PluginSource, PolicyCall, PolicyMode, RuleOutcome, Rules, WorkspaceTrust, decide, shipped_rules,
};
use jaato_types::{PluginName, ToolName};
use serde_json::json;

use crate::corpus::resolved_paths;

const EVERYDAY: &str = include_str!("everyday.txt");

/// The highest allowed percentage of reading commands that cause a prompt.
const ASKED_PERCENT_MAX: usize = 5;

fn outcome_of_line(line: &str, mode: PolicyMode) -> RuleOutcome {
    let (tool, plugin) = (ToolName::from("cli_based_tool"), PluginName::from("tool-cli"));
    let arguments = json!({ "command": line });
    let schema =
        json!({ "properties": { "command": { "type": "string", "x-jaato-touches": "command" } } });
    let call = PolicyCall {
        source: PluginSource::Shipped,
        directory: Some(Path::new("/srv")),
        home: Some(Path::new("/home/ann")),
        schema: &schema,
        repository_is_plain: true,
        workspace: WorkspaceTrust::Trusted,
        ..PolicyCall::new(&tool, &plugin, &arguments)
    };
    let mut rules = Rules::from_files(vec![shipped_rules()]);
    rules.mode = mode;
    let resolved = resolved_paths(&call);
    decide(&rules, &PolicyCall { resolved: Some(&resolved), ..call }).outcome
}

fn everyday_commands() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = EVERYDAY.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' '))
}

/// For each kind, the number of commands that are asked about or denied, and their total.
pub(crate) fn asked_by_kind() -> BTreeMap<&'static str, (usize, usize)> {
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (kind, line) in everyday_commands() {
        let (asked, all) = kinds.entry(kind).or_default();
        *all += 1;
        *asked += usize::from(outcome_of_line(line, PolicyMode::Ask) != RuleOutcome::Allow);
    }
    kinds
}

#[test]
fn most_read_only_commands_run_without_a_prompt_and_no_others_do() {
    let mut wrong = String::new();
    for (kind, line) in everyday_commands()
        .filter(|(_, line)| outcome_of_line(line, PolicyMode::Ask) == RuleOutcome::Allow)
    {
        if kind != "reads" {
            wrong += &format!("{kind}: {line}\n");
        } else if outcome_of_line(line, PolicyMode::ReadOnly) != RuleOutcome::Allow {
            wrong += &format!("not in mode read-only: {line}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let kinds = asked_by_kind();
    assert!(kinds.values().map(|(_, all)| all).sum::<usize>() >= 1000, "{kinds:?}");
    let (asked, all) = kinds["reads"];
    assert!(asked * 100 <= all * ASKED_PERCENT_MAX, "{asked} of {all}");
}

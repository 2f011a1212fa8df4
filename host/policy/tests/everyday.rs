//! The corpus of everyday commands: which of them run without a question by the shipped rules.

use std::collections::BTreeMap;
use std::path::Path;

use jaato_policy::{
    Call, Mode, Outcome, PluginSource, Rules, WorkspaceTrust, decide, shipped_rules,
};
use jaato_types::{PluginName, ToolName};
use serde_json::json;

use crate::corpus::without_links;

const EVERYDAY: &str = include_str!("everyday.txt");

/// The most reading commands that may be asked, in a hundred.
const ASKED_PERCENT_MAX: usize = 5;

fn decided(line: &str, mode: Mode) -> Outcome {
    let (tool, plugin) = (ToolName::from("cli_based_tool"), PluginName::from("tool-cli"));
    let arguments = json!({ "command": line });
    let schema =
        json!({ "properties": { "command": { "type": "string", "x-jaato-touches": "command" } } });
    let call = Call {
        source: PluginSource::Shipped,
        directory: Some(Path::new("/srv")),
        home: Some(Path::new("/home/ann")),
        schema: &schema,
        repository_is_plain: true,
        workspace: WorkspaceTrust::Trusted,
        ..Call::new(&tool, &plugin, &arguments)
    };
    let mut rules = Rules::of_files(vec![shipped_rules()]);
    rules.mode = mode;
    let resolved = without_links(&call);
    decide(&rules, &Call { resolved: Some(&resolved), ..call }).outcome
}

fn commands() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = EVERYDAY.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' '))
}

#[test]
fn commands_that_only_read_are_seldom_asked_and_no_others_run() {
    let mut asked: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let (mut asked_reads, mut wrong) = (String::new(), String::new());
    for (kind, line) in commands() {
        let outcome = decided(line, Mode::Ask);
        let (of_kind, all) = asked.entry(kind).or_default();
        *all += 1;
        *of_kind += usize::from(outcome != Outcome::Allow);
        match (kind, outcome) {
            ("reads", Outcome::Allow) => {
                if decided(line, Mode::ReadOnly) != Outcome::Allow {
                    wrong += &format!("not in mode read-only: {line}\n");
                }
            }
            ("reads", _) => asked_reads += &format!("{line}\n"),
            (_, Outcome::Allow) => wrong += &format!("{kind}: {line}\n"),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let all: usize = asked.values().map(|(_, all)| all).sum();
    assert!(all >= 1000, "{all}");
    let (of_reads, reads) = asked["reads"];
    assert!(of_reads * 100 <= reads * ASKED_PERCENT_MAX, "{of_reads} of {reads}:\n{asked_reads}");
}

//! Detects rules that allow nothing.

use std::path::Path;

use jaato_types::{PluginName, ToolName};
use serde_json::json;

use crate::{
    CommandPattern, PluginSource, PolicyCall, Rule, RuleConditions, RuleFile, RuleLayer,
    RuleOutcome, Rules, WorkspaceTrust, decide,
};

impl CommandPattern {
    /// Returns true if a rule that allows this command allows its simplest calls in a trusted
    /// workspace.
    pub fn can_allow(&self) -> bool {
        let when = RuleConditions { command: Some(self.clone()), ..RuleConditions::default() };
        let rule = Rule { outcome: RuleOutcome::Allow, when, line: 1, why: None };
        let file = RuleFile {
            layer: RuleLayer::User,
            path: "".into(),
            rules: vec![rule],
            default: None,
            broken: None,
        };
        let rules = Rules::from_files(vec![file]);
        let (tool, plugin) = (ToolName::from("cli_based_tool"), PluginName::from("tool-cli"));
        let schema = json!({ "type": "object", "properties": {
            "command": { "type": "string", "x-jaato-touches": "command" },
        } });
        [self.to_string(), format!("{self} x")].iter().any(|line| {
            let arguments = json!({ "command": line });
            let call = PolicyCall {
                source: PluginSource::Shipped,
                workspace: WorkspaceTrust::Trusted,
                directory: Some(Path::new("/")),
                schema: &schema,
                ..PolicyCall::new(&tool, &plugin, &arguments)
            };
            decide(&rules, &call).outcome == RuleOutcome::Allow
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RestOfCommand;

    #[test]
    fn a_rule_that_allows_no_call_is_recognised() {
        let can_allow = |command: &str, rest| {
            CommandPattern::parse(command, rest).is_some_and(|pattern| pattern.can_allow())
        };
        for command in ["git status", "git log *", "ls", "cargo test", "make"] {
            assert!(can_allow(command, RestOfCommand::SafeOptions), "{command}");
        }
        for command in ["python3", "sh"] {
            assert!(!can_allow(command, RestOfCommand::SafeOptions), "{command}");
        }
        assert!(can_allow("python3", RestOfCommand::AnyOptions));
    }
}

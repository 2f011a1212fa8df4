//! The rules that jaato ships: commands that only read.

use serde::Deserialize;

use crate::{
    CommandPattern, RestOfCommand, Rule, RuleConditions, RuleFile, RuleLayer, RuleOutcome,
};

/// The source of the rules, as users see it.
pub const SHIPPED_RULES: &str = "(shipped) read_only.toml";

/// The rules, in the form of `permissions.toml`.
pub const SHIPPED_RULES_TEXT: &str = include_str!("../data/read_only.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShippedRulesFile {
    #[serde(rename = "version")]
    _version: u8,
    rules: Vec<ShippedRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShippedRule {
    #[serde(rename = "decision")]
    _decision: ShippedAllow,
    #[serde(rename = "options")]
    _options: ShippedRead,
    command: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ShippedAllow {
    Allow,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ShippedRead {
    Read,
}

/// Returns the rules as a file of the lowest layer.
pub fn shipped_rules() -> RuleFile {
    let file: ShippedRulesFile = toml::from_str(SHIPPED_RULES_TEXT)
        .unwrap_or_else(|error| unreachable!("a test reads the file: {error}"));
    let lines = SHIPPED_RULES_TEXT.lines().enumerate();
    let mut begins = lines.filter(|(_, line)| *line == "[[rules]]").map(|(at, _)| at + 2);
    let rules = file.rules.iter().map(|written| {
        let when = RuleConditions {
            command: CommandPattern::parse(&written.command, RestOfCommand::Reading),
            ..RuleConditions::default()
        };
        Rule {
            outcome: RuleOutcome::Allow,
            when,
            line: begins.next().unwrap_or_default(),
            why: None,
        }
    });
    RuleFile {
        layer: RuleLayer::Shipped,
        path: SHIPPED_RULES.into(),
        default: None,
        rules: rules.collect(),
        broken: None,
    }
}

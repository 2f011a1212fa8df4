//! `permissions.toml`: a list of rules, each with the line at which it begins.

use jaato_policy::{
    AnnotationKind, CommandPattern, ExactCall, Glob, RestOfCommand, Rule, RuleConditions, RuleFile,
    RuleLayer, RuleOutcome,
};

use super::edit::DEFINITION_KEY;
use super::{ParsedRuleFile, RuleFileOrigin};
use crate::error::ConfigError;
use crate::nearest::nearest_name;
use crate::toml_tree::{self, TomlNode, TomlValue};

/// The version of the file that this host understands.
const VERSION: i64 = 1;

/// Every key of a rule.
const KEYS: [&str; 21] = [
    "decision",
    "tool",
    "plugin",
    "command",
    "options",
    "path",
    "outside",
    "host",
    "argument",
    "exactly",
    "call",
    DEFINITION_KEY,
    "workspace",
    "agent_type",
    "agent_name",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "compound",
    "why",
];

type RuleLineError = (usize, String);

pub(super) fn parse_toml_rules(
    origin: &RuleFileOrigin<'_>,
    text: &str,
) -> Result<ParsedRuleFile, RuleLineError> {
    let entries = toml_tree::parse_toml(origin.path, text).map_err(|error| match error {
        ConfigError::Syntax { line, message, .. } => (line, message),
        other => (0, other.to_string()),
    })?;
    let (mut file, mut without_shipped) = (origin.empty_file(), false);
    for (name, node) in entries {
        match (name.as_str(), &node.value) {
            ("version", TomlValue::Integer(Ok(VERSION))) => {}
            ("version", other) => {
                let text = format!("`version` is {}, this jaato knows {VERSION}", other.describe());
                return Err((node.line, text));
            }
            ("default", value) => {
                let outcome = parse_outcome(value, "default").map_err(|what| (node.line, what))?;
                if outcome == RuleOutcome::Allow && origin.layer == RuleLayer::Workspace {
                    let what = "the file of a workspace cannot set `default` to `allow`";
                    return Err((node.line, what.to_owned()));
                }
                file.default = Some((outcome, node.line));
            }
            ("shipped_rules", TomlValue::Boolean(counts)) => without_shipped = !counts,
            ("shipped_rules", other) => {
                let text =
                    format!("`shipped_rules` is {}, not `true` or `false`", other.describe());
                return Err((node.line, text));
            }
            ("rules", TomlValue::Array(items)) => parse_rules(origin, items, &mut file)?,
            ("rules", other) => {
                let text = format!("`rules` is {}; write `[[rules]]` above each", other.describe());
                return Err((node.line, text));
            }
            (other, _) => {
                return Err((
                    node.line,
                    unknown_key_message(other, ["version", "default", "shipped_rules", "rules"]),
                ));
            }
        }
    }
    Ok(ParsedRuleFile { file, without_shipped, channel: None, warnings: Vec::new() })
}

fn parse_rules(
    origin: &RuleFileOrigin<'_>,
    items: &[TomlNode],
    file: &mut RuleFile,
) -> Result<(), RuleLineError> {
    for item in items {
        let TomlValue::Table(entries) = &item.value else {
            return Err((item.line, format!("a rule is a section, not {}", item.value.describe())));
        };
        // The tree sorts keys alphabetically, so the rule begins at the smallest line number.
        let first = entries.iter().map(|(_, node)| node.line).min();
        file.rules.push(parse_rule(origin, entries, first.unwrap_or(item.line))?);
    }
    Ok(())
}

fn parse_rule(
    origin: &RuleFileOrigin<'_>,
    entries: &[(String, TomlNode)],
    line: usize,
) -> Result<Rule, RuleLineError> {
    let mut when = RuleConditions::default();
    let (mut decision, mut why, mut options, mut command) = (None, None, None, None);
    let (mut digest, mut call) = (None, None);
    for (name, node) in entries {
        let wrong = |what: String| (node.line, what);
        let value = &node.value;
        match name.as_str() {
            "decision" => decision = Some(parse_outcome(value, "decision").map_err(wrong)?),
            "why" => why = Some(parse_text(value, name).map_err(wrong)?.to_owned()),
            "tool" => when.tool = Some(parse_glob(value, name).map_err(wrong)?),
            "plugin" => when.plugin = Some(parse_glob(value, name).map_err(wrong)?),
            "host" => when.host = Some(parse_glob(value, name).map_err(wrong)?),
            "agent_type" => when.agent_type = Some(parse_glob(value, name).map_err(wrong)?),
            "agent_name" => when.agent_name = Some(parse_glob(value, name).map_err(wrong)?),
            "command" => command = Some(parse_text(value, name).map_err(wrong)?),
            "options" => options = Some(parse_rest(value).map_err(wrong)?),
            "path" => {
                let written = parse_text(value, name).map_err(wrong)?;
                when.path = Some(origin.path_pattern(written).map_err(wrong)?);
            }
            "outside" => {
                let TomlValue::Array(folders) = value else {
                    return Err(wrong(format!("`outside` is {}, not a list", value.describe())));
                };
                for folder in folders {
                    let written = parse_text(&folder.value, name).map_err(wrong)?;
                    when.outside.push(origin.path_pattern(written).map_err(wrong)?);
                }
            }
            "argument" => add_arguments(node, &mut when)?,
            "exactly" => {
                let written = parse_text(value, name).map_err(wrong)?;
                digest = Some(written.parse().map_err(|what: &str| wrong(what.to_owned()))?);
            }
            DEFINITION_KEY => {
                let written = parse_text(value, name).map_err(wrong)?;
                let read = written.parse().map_err(|what: &str| wrong(what.to_owned()))?;
                when.definition = Some(read);
            }
            "call" => call = Some(parse_text(value, name).map_err(wrong)?.to_owned()),
            "workspace" => {
                let written = parse_text(value, name).map_err(wrong)?;
                when.workspace = Some(origin.path_pattern(written).map_err(wrong)?);
            }
            "compound" => when.compound = parse_flag(value, name).map_err(wrong)?,
            other => {
                let known = AnnotationKind::ALL.into_iter().find(|known| known.name() == other);
                let Some(annotation) = known else {
                    return Err(wrong(unknown_key_message(other, KEYS)));
                };
                when.annotations.push((annotation, parse_flag(value, name).map_err(wrong)?));
            }
        }
    }
    let wrong = |what: &str| (line, what.to_owned());
    let outcome = decision.ok_or_else(|| wrong("the rule has no `decision`"))?;
    if let Some(command) = command {
        let rest = options.unwrap_or_default();
        let pattern = CommandPattern::parse(command, rest);
        when.command = Some(pattern.ok_or_else(|| wrong("`command` is empty"))?);
    } else if options.is_some() {
        return Err(wrong("`options` needs a `command`"));
    }
    if call.is_some() && digest.is_none() {
        return Err(wrong("`call` needs `exactly`"));
    }
    when.exactly = digest.map(|digest| ExactCall { digest, text: call });
    check_allow(outcome, &when).map_err(wrong)?;
    origin.check_allow_of_workspace(outcome, &when).map_err(|what| (line, what))?;
    Ok(Rule { outcome, when, line, why })
}

fn add_arguments(node: &TomlNode, when: &mut RuleConditions) -> Result<(), RuleLineError> {
    let TomlValue::Table(arguments) = &node.value else {
        let text = format!("`argument` is {}; write `argument.NAME`", node.value.describe());
        return Err((node.line, text));
    };
    for (name, node) in arguments {
        let glob = parse_glob(&node.value, name).map_err(|what| (node.line, what))?;
        when.arguments.push((name.clone(), glob));
    }
    Ok(())
}

/// Refuses rules that would allow less, or more, than they seem to.
fn check_allow(outcome: RuleOutcome, when: &RuleConditions) -> Result<(), &'static str> {
    if outcome != RuleOutcome::Allow {
        return Ok(());
    }
    if (RuleConditions { workspace: None, ..when.clone() }) == RuleConditions::default() {
        return Err("a rule that allows must say what it allows; `default` is for all calls");
    }
    if when.compound || !when.outside.is_empty() {
        return Err("`compound` and `outside` are for rules that ask or deny");
    }
    let Some(command) = &when.command else { return Ok(()) };
    if when.path.is_some() || when.host.is_some() {
        return Err("a rule cannot allow a command by `path` or `host`: a program reaches further");
    }
    if command.program.contains(['*', '?']) || command.words.iter().any(|word| word.contains('*')) {
        return Err("a rule that allows a command names its words; only the last may be `*`");
    }
    Ok(())
}

fn parse_outcome(value: &TomlValue, name: &str) -> Result<RuleOutcome, String> {
    let written = parse_text(value, name)?;
    let all = [RuleOutcome::Allow, RuleOutcome::Ask, RuleOutcome::Deny];
    let found = all.into_iter().find(|outcome| outcome.name() == written);
    found.ok_or_else(|| format!("`{name}` is `{written}`; it must be `allow`, `ask` or `deny`"))
}

fn parse_rest(value: &TomlValue) -> Result<RestOfCommand, String> {
    match parse_text(value, "options")? {
        "safe" => Ok(RestOfCommand::SafeOptions),
        "any" => Ok(RestOfCommand::AnyOptions),
        "none" => Ok(RestOfCommand::Nothing),
        "read" => Ok(RestOfCommand::Reading),
        other => Err(format!("`options` is `{other}`; it must be `safe`, `read`, `any` or `none`")),
    }
}

fn parse_glob(value: &TomlValue, name: &str) -> Result<Glob, String> {
    Ok(Glob::new(parse_text(value, name)?))
}

fn parse_text<'a>(value: &'a TomlValue, name: &str) -> Result<&'a str, String> {
    match value {
        TomlValue::Text(text) if !text.is_empty() => Ok(text),
        TomlValue::Text(_) => Err(format!("`{name}` is empty")),
        other => Err(format!("`{name}` is {}, not a text", other.describe())),
    }
}

fn parse_flag(value: &TomlValue, name: &str) -> Result<bool, String> {
    match value {
        TomlValue::Boolean(flag) => Ok(*flag),
        other => Err(format!("`{name}` is {}, not `true` or `false`", other.describe())),
    }
}

fn unknown_key_message<const N: usize>(name: &str, known: [&str; N]) -> String {
    match nearest_name(name, known.into_iter()) {
        Some(near) => format!("`{name}` is unknown; did you mean `{near}`?"),
        None => format!("`{name}` is unknown; use one of {}", known.join(", ")),
    }
}

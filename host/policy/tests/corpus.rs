//! The corpus of command lines: rules, lines and the expected decisions.

use std::path::{Component, Path, PathBuf};

use jaato_policy::{
    CallPaths, CommandPattern, Glob, PathPattern, PluginSource, PolicyCall, ResolvedCallPaths,
    RestOfCommand, Rule, RuleConditions, RuleFile, RuleLayer, RuleOutcome, Rules, WorkspaceTrust,
    decide, shipped_rules,
};
use jaato_types::files::ResolvedPath;
use jaato_types::{PluginName, ToolName};
use serde_json::json;

const CORPUS: &str = include_str!("corpus.txt");

/// The rules of a section, and whether the workspace is trusted.
struct CorpusSection {
    rules: Rules,
    workspace: WorkspaceTrust,
}

impl CorpusSection {
    fn parse(text: &str) -> Self {
        let mut rules = Rules::default();
        let mut workspace = WorkspaceTrust::Trusted;
        let mut of_file = Vec::new();
        for (at, part) in text.split(" | ").enumerate() {
            let (word, command) = part.trim().split_once(' ').unwrap_or((part.trim(), ""));
            let (outcome, rest) = match word {
                "untrusted" => {
                    workspace = WorkspaceTrust::Untrusted;
                    continue;
                }
                "yes" => {
                    rules.allow_all = true;
                    continue;
                }
                "shipped" => {
                    rules.files.push(shipped_rules());
                    continue;
                }
                "denypath" | "denyhost" => {
                    let mut when = RuleConditions::default();
                    if word == "denyhost" {
                        when.host = Some(Glob::new(command));
                    } else {
                        let path = Path::new(command).to_owned();
                        when.path = Some(PathPattern { written: command.to_owned(), path });
                    }
                    of_file.push(Rule {
                        outcome: RuleOutcome::Deny,
                        when,
                        line: at + 1,
                        why: None,
                    });
                    continue;
                }
                "allow" => (RuleOutcome::Allow, RestOfCommand::SafeOptions),
                "read" => (RuleOutcome::Allow, RestOfCommand::Reading),
                "any" => (RuleOutcome::Allow, RestOfCommand::AnyOptions),
                "ask" => (RuleOutcome::Ask, RestOfCommand::SafeOptions),
                "deny" => (RuleOutcome::Deny, RestOfCommand::SafeOptions),
                other => panic!("unknown word {other}"),
            };
            let command = Some(CommandPattern::parse(command, rest).unwrap());
            let when = RuleConditions { command, ..RuleConditions::default() };
            of_file.push(Rule { outcome, when, line: at + 1, why: None });
        }
        let path = "permissions.toml".into();
        let (default, broken) = (None, None);
        let own = RuleFile { layer: RuleLayer::User, path, default, rules: of_file, broken };
        rules.files.insert(0, own);
        Self { rules, workspace }
    }

    fn decide(&self, line: &str) -> RuleOutcome {
        let (tool, plugin) = (ToolName::from("cli_based_tool"), PluginName::from("tool-cli"));
        let arguments = json!({ "command": line });
        let schema = json!({ "properties": { "command": { "type": "string", "x-jaato-touches": "command" } } });
        let call = PolicyCall {
            source: PluginSource::Shipped,
            directory: Some(Path::new("/srv")),
            home: Some(Path::new("/home/ann")),
            workspace: self.workspace,
            schema: &schema,
            ..PolicyCall::new(&tool, &plugin, &arguments)
        };
        let resolved = resolved_paths(&call);
        decide(&self.rules, &PolicyCall { resolved: Some(&resolved), ..call }).outcome
    }
}

/// The only links that exist, and their targets.
const LINKS: [(&str, &str); 2] =
    [("/srv/deeplink", "/srv/a/b/c"), ("/srv/vaultlink", "/home/ann/vault")];

/// Resolves the paths of a call with these links.
pub(crate) fn resolved_paths(call: &PolicyCall<'_>) -> ResolvedCallPaths {
    let paths = CallPaths::from_call(call, |_| Some(Vec::new()));
    let resolved = paths.all.iter().map(|path| {
        let mut whole = PathBuf::new();
        path.components().for_each(|part| {
            match part {
                Component::ParentDir => _ = whole.pop(),
                Component::CurDir => {}
                other => whole.push(other),
            }
            if let Some((_, target)) = LINKS.iter().find(|(link, _)| whole == Path::new(link)) {
                whole = PathBuf::from(target);
            }
        });
        let path = whole.display().to_string();
        Some(ResolvedPath { path: path.clone(), entry: path, ..ResolvedPath::default() })
    });
    let resolved = resolved.collect();
    paths.with_targets(resolved)
}

/// Inserts letters that the file cannot contain.
fn spell_out(text: &str) -> String {
    let text = text.replace('␤', "\n").replace('␉', "\t").replace('␍', "\r");
    let mut parts = text.split('⟦');
    let mut spelled = parts.next().unwrap().to_owned();
    for part in parts {
        let (number, rest) = part.split_once('⟧').unwrap();
        spelled.push(char::from_u32(u32::from_str_radix(number, 16).unwrap()).unwrap());
        spelled.push_str(rest);
    }
    spelled
}

/// A line of the corpus.
pub(crate) struct CorpusCase {
    number: usize,
    wanted: &'static str,
    command: &'static str,
    decided: RuleOutcome,
}

impl CorpusCase {
    /// Returns true if a line that must not run without a prompt is allowed.
    pub(crate) fn passes(&self) -> bool {
        self.wanted != "allow" && self.decided == RuleOutcome::Allow
    }

    /// Returns true if the line must not run without a prompt.
    pub(crate) fn is_bypass(&self) -> bool {
        self.wanted != "allow"
    }

    fn is_right(&self) -> bool {
        match self.wanted {
            "held" => self.decided != RuleOutcome::Allow,
            wanted => self.decided.name() == wanted,
        }
    }
}

/// Decides about each line of the corpus.
pub(crate) fn corpus_cases() -> Vec<CorpusCase> {
    let mut section = CorpusSection::parse("yes");
    let mut cases = Vec::new();
    for (at, line) in CORPUS.lines().enumerate() {
        if let Some(rules) = line.strip_prefix("= ") {
            section = CorpusSection::parse(rules);
            continue;
        }
        let Some((wanted, command)) = line.split_once(' ').filter(|(it, _)| *it != "#") else {
            continue;
        };
        let decided = section.decide(&spell_out(command));
        cases.push(CorpusCase { number: at + 1, wanted, command, decided });
    }
    cases
}

#[test]
fn every_line_of_the_corpus_is_decided_as_it_says() {
    let cases = corpus_cases();
    let mut wrong = String::new();
    for case in cases.iter().filter(|case| !case.is_right()) {
        let CorpusCase { number, wanted, command, decided } = case;
        wrong += &format!("line {number}: {}, not {wanted} {command}\n", decided.name());
    }
    assert!(wrong.is_empty(), "{} cases:\n{wrong}", cases.len());
    let bypasses = cases.iter().filter(|case| case.is_bypass());
    assert!(bypasses.clone().count() > 1500, "{}", bypasses.clone().count());
    assert!(!bypasses.clone().any(|case| case.passes()));
}

/// Appending to a line could make it safer only by removing a doubt, which never happens.
#[test]
fn command_appended_to_an_allowed_line_is_never_allowed() {
    let section = CorpusSection::parse("allow ls");
    for join in [";", "&", "&&", "||", "|", "|&", "\n", "\r\n", " ; ", "`", "$(", "(", "<(", ">("] {
        for program in ["rm", "sh -c x", "./x", "env rm", "LS", "$x"] {
            let line = format!("ls{join}{program}");
            assert_ne!(section.decide(&line), RuleOutcome::Allow, "{line:?}");
        }
    }
}

/// Lines that were written to keep a reader busy, or to crash it.
#[test]
fn hostile_command_lines_are_analysed_without_hanging() {
    let rules = CorpusSection::parse("deny rm | allow ls | yes");
    for piece in [
        "(",
        "((",
        "{ ",
        "$(",
        "`",
        "\"$(",
        "<(",
        "if ",
        "for x in ",
        "case x in x) ",
        "while ",
        "[[ ",
        "${x:-",
        "$((",
        "sh -c '",
        "env ",
        "eval ",
        "\\",
        "'",
        "\"",
        "<<x\n",
        "x() ",
        "! ",
        "ls|",
        "ls;",
        "a=",
        "a=(",
        "@(",
        "{a,",
        "[",
        "*",
        "~",
        "!",
        "((a=",
        "\u{0}",
        "é",
    ] {
        for times in [1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 60, 3000] {
            for closing in ["", ")", "}", "'", "\"", " fi", " done"] {
                let line = piece.repeat(times) + &closing.repeat(times.min(200));
                let _ = rules.decide(&line);
            }
        }
    }
    assert_ne!(rules.decide(&"ls;".repeat(100_000)), RuleOutcome::Allow);
    assert_ne!(rules.decide(&format!("ls {}", "a".repeat(1 << 20))), RuleOutcome::Allow);
}

//! Saves kept answers in the user's `permissions.toml`, each for the workspace in which the user
//! gave it.

use std::path::PathBuf;
use std::time::Duration;

use jaato_config::permissions::{DEFINITION_KEY, NewRule, RULES_FILE, add_rule};
use jaato_config::{CONFIG_BYTES_MAX, replace_file};
use jaato_places::{lock_own_file, make_own_folder, read_own_file};
use jaato_policy::{CallPattern, SessionRule};
use jaato_types::{Error, ErrorKind};

use crate::AnswerStore;

/// The longest wait for the file's lock. Another process holds it only while it writes.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// Saves answers in the user's file.
pub struct FileAnswerStore {
    /// The folder with `config.toml`.
    folder: PathBuf,
}

impl FileAnswerStore {
    /// Creates it for the folder with the user's configuration, without accessing it.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }
}

impl AnswerStore for FileAnswerStore {
    fn save_answer(&self, rule: &SessionRule) -> Result<String, Error> {
        let new = rule_for_file(rule)?;
        let path = self.folder.join(RULES_FILE);
        let failed = |text: String| Error::new(ErrorKind::Io, text);
        make_own_folder(&self.folder).map_err(|error| failed(error.to_string()))?;
        let _locked = lock_own_file(&path.with_extension("lock"), LOCK_WAIT)
            .map_err(|error| failed(error.to_string()))?
            .ok_or_else(|| failed(format!("another process is writing `{}`", path.display())))?;
        let bytes =
            read_own_file(&path, CONFIG_BYTES_MAX).map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8(bytes.unwrap_or_default())
            .map_err(|_| failed(format!("`{}` is not utf-8", path.display())))?;
        let wrong =
            |what: String| failed(format!("`{}` cannot be changed: {what}", path.display()));
        if let Some(text) = add_rule(&text, &new).map_err(wrong)? {
            replace_file(&path, &text).map_err(|error| wrong(error.to_string()))?;
        }
        let written = format!("saved in `{}` for this workspace", path.display());
        Ok(match rule.answer_origin().waits_for_trust {
            true => written + "; it applies after you run `jaato trust`",
            false => written,
        })
    }
}

/// Writes an answer as a rule.
fn rule_for_file(rule: &SessionRule) -> Result<NewRule, Error> {
    let decision = if rule.decision().can_run() { "allow" } else { "deny" };
    let tool = [("tool", rule.tool().to_string()), ("plugin", rule.plugin().to_string())];
    let mut keys: Vec<(String, String)> =
        tool.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
    // A star in a name would make it a pattern.
    if keys.iter().any(|(_, text)| has_stars(text)) {
        return Err(cannot_save_error("its tool"));
    }
    match rule.pattern() {
        CallPattern::Exact { digest, text } => {
            keys.push(("call".to_owned(), text.clone()));
            keys.push(("exactly".to_owned(), digest.to_string()));
        }
        CallPattern::Command { program, words } => {
            let words: Vec<&str> =
                std::iter::once(program).chain(words).map(String::as_str).collect();
            let is_plain = |word: &&str| {
                !word.is_empty() && !has_stars(word) && !word.contains(char::is_whitespace)
            };
            if !words.iter().all(is_plain) {
                return Err(cannot_save_error("such a command"));
            }
            keys.push(("command".to_owned(), words.join(" ")));
        }
        CallPattern::Path(path) => match path.to_str().filter(|path| !has_stars(path)) {
            Some(path) => keys.push(("path".to_owned(), path.to_owned())),
            None => return Err(cannot_save_error("such a path")),
        },
        CallPattern::Host(host) if !has_stars(host) => keys.push(("host".to_owned(), host.clone())),
        CallPattern::Host(_) => return Err(cannot_save_error("such a host")),
        CallPattern::Terminal(_) => {
            return Err(cannot_save_error("a terminal, which ends with the session"));
        }
        CallPattern::Tool => {}
    }
    if let Some(definition) = rule.definition() {
        keys.push((DEFINITION_KEY.to_owned(), definition.to_string()));
    }
    let root = rule
        .answer_origin()
        .root
        .as_deref()
        .ok_or_else(|| cannot_save_error("a call outside this machine"))?;
    let root =
        root.to_str().ok_or_else(|| cannot_save_error("a workspace whose path is not UTF-8"))?;
    keys.push(("workspace".to_owned(), root.to_owned()));
    Ok(NewRule { decision: decision.to_owned(), keys })
}

fn has_stars(text: &str) -> bool {
    text.contains(['*', '?', '[', '\\'])
}

fn cannot_save_error(what: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, format!("a rule in a file cannot name {what}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use jaato_config::permissions::{RuleSources, load_rules};
    use jaato_policy::{
        PluginSource, PolicyCall, RuleOutcome, Rules, ToolDefinition, WorkspaceTrust,
        changes_since_allowed, decide, propose_patterns,
    };
    use jaato_types::permission_prompt::PermissionDecision;
    use jaato_types::{PluginName, ToolName, ToolSpec};
    use serde_json::{Value, json};

    use super::*;

    const ROOT: &str = "/project";

    /// Decides about a call to a tool by the rules in a folder, after the user permanently allowed
    /// such a call with this pattern.
    fn decide_after_permanent_allow(kept: &Value, pattern: usize, call: &Value) -> RuleOutcome {
        decide_with_trust(kept, pattern, call, (ROOT, WorkspaceTrust::Trusted))
    }

    fn decide_with_trust(
        kept: &Value,
        pattern: usize,
        call: &Value,
        (root, trust): (&str, WorkspaceTrust),
    ) -> RuleOutcome {
        let (tool, plugin) = (ToolName::from("cli_based_tool"), PluginName::from("tool-cli"));
        let call_at = |arguments, root, trust| PolicyCall {
            source: PluginSource::Shipped,
            directory: Some(Path::new("/project")),
            workspace: trust,
            root: Some(Path::new::<str>(root)),
            ..PolicyCall::new(&tool, &plugin, arguments)
        };
        let call_of = |arguments| call_at(arguments, ROOT, WorkspaceTrust::Trusted);
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("jaato");
        let pattern = propose_patterns(&Rules::default(), &call_of(kept)).swap_remove(pattern);
        let rule = SessionRule::new(&call_of(kept), PermissionDecision::AllowAlways, pattern);
        let keeper = FileAnswerStore::in_folder(place.clone());
        // Saving twice has no further effect.
        for _ in 0..2 {
            let said = keeper.save_answer(&rule).unwrap();
            assert!(said.ends_with("jaato/permissions.toml` for this workspace"), "{said}");
        }
        decide(&load_single_rule(&place), &call_at(call, root, trust)).outcome
    }

    /// Loads the rules of a folder, which has one rule.
    fn load_single_rule(place: &Path) -> Rules {
        let text = fs::read_to_string(place.join(RULES_FILE)).unwrap();
        assert_eq!(text.matches("[[rules]]").count(), 1, "{text}");
        let sources = RuleSources {
            enterprise: None,
            user: Some(place),
            home: None,
            named: None,
            workspace: None,
            root: Path::new(ROOT),
        };
        let rules = Rules::from_files(load_rules(&sources).files);
        assert_eq!(rules.files[0].broken, None, "{text}");
        rules
    }

    #[test]
    fn saved_answer_for_an_mcp_tool_is_dropped_when_the_tool_changes() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("jaato");
        let (tool, plugin) = (ToolName::from("mcp__moon__echo"), PluginName::from("tool-mcp"));
        let arguments = json!({ "text": "x" });
        let spec = ToolSpec {
            description: "echo".to_owned(),
            parameters: json!({ "type": "object" }),
            origin: "an entry".to_owned(),
            ..ToolSpec::default()
        };
        let call_of = |spec: &ToolSpec| PolicyCall {
            source: PluginSource::Relayed,
            definition: ToolDefinition::from_spec(spec, PluginSource::Relayed),
            directory: Some(Path::new(ROOT)),
            root: Some(Path::new(ROOT)),
            ..PolicyCall::new(&tool, &plugin, &arguments)
        };
        let keep = |spec: &ToolSpec| {
            let rule = SessionRule::new(
                &call_of(spec),
                PermissionDecision::AllowAlways,
                CallPattern::Tool,
            );
            FileAnswerStore::in_folder(place.clone()).save_answer(&rule).unwrap();
            let mut kept = load_single_rule(&place);
            let mut in_session = Rules::default();
            in_session.remember_answer(rule.clone());
            for rules in [&kept, &in_session] {
                assert_eq!(decide(rules, &call_of(spec)).outcome, RuleOutcome::Allow);
                assert_eq!(changes_since_allowed(rules, &call_of(spec)), [""; 0]);
            }
            // A denial holds even if the tool changes.
            kept.remember_answer(rule.with_decision(PermissionDecision::DenyInSession));
            let other = ToolSpec { origin: "another".to_owned(), ..spec.clone() };
            assert_eq!(decide(&kept, &call_of(&other)).outcome, RuleOutcome::Deny);
            kept.forget_answers();
            [kept, in_session]
        };
        let now = [
            (ToolSpec { origin: "another".to_owned(), ..spec.clone() }, "the server's entry"),
            (ToolSpec { description: "echo!".to_owned(), ..spec.clone() }, "its description"),
            (ToolSpec { parameters: json!({}), ..spec.clone() }, "its arguments"),
        ];
        for (now, change) in now {
            for rules in keep(&spec) {
                assert_eq!(decide(&rules, &call_of(&now)).outcome, RuleOutcome::Ask, "{change}");
                assert_eq!(changes_since_allowed(&rules, &call_of(&now)), [change]);
            }
            keep(&now);
        }
    }

    #[test]
    fn saved_answer_applies_only_in_its_workspace_and_if_trust_allows_it() {
        let (make, date) = (json!({ "command": "make" }), json!({ "command": "date -u" }));
        let (trusted, untrusted) = (WorkspaceTrust::Trusted, WorkspaceTrust::Untrusted);
        for (call, place, expected) in [
            (&make, (ROOT, trusted), RuleOutcome::Allow),
            (&make, (ROOT, untrusted), RuleOutcome::Ask),
            (&make, ("/other", trusted), RuleOutcome::Ask),
            (&make, ("/project/inner", trusted), RuleOutcome::Ask),
            (&date, (ROOT, untrusted), RuleOutcome::Allow),
            (&date, ("/other", untrusted), RuleOutcome::Ask),
        ] {
            assert_eq!(decide_with_trust(call, 0, call, place), expected, "{call} {place:?}");
        }
        for line in ["pytest", "./run", "python3 setup.py", "sh run.sh", "npm test", "git status"] {
            let call = json!({ "command": line });
            assert_eq!(
                decide_with_trust(&call, 0, &call, (ROOT, untrusted)),
                RuleOutcome::Ask,
                "{line}"
            );
        }
        let hidden = json!({ "command": "$x" });
        assert_eq!(decide_with_trust(&hidden, 0, &hidden, (ROOT, trusted)), RuleOutcome::Allow);
        assert_eq!(decide_with_trust(&hidden, 0, &hidden, (ROOT, untrusted)), RuleOutcome::Ask);
    }

    #[test]
    fn saved_answer_is_readable_in_the_permissions_file() {
        let (tool, plugin) = (ToolName::from("cli_based_tool"), PluginName::from("tool-cli"));
        let arguments = json!({ "command": "make -j4" });
        let call = PolicyCall {
            source: PluginSource::Shipped,
            directory: Some(Path::new(ROOT)),
            root: Some(Path::new(ROOT)),
            ..PolicyCall::new(&tool, &plugin, &arguments)
        };
        let (pattern, decision) = (CallPattern::exact_call(&call), PermissionDecision::AllowAlways);
        let rule = SessionRule::new(&call, decision, pattern);
        let new = rule_for_file(&rule).unwrap();
        let value = |key: &str| new.keys.iter().find(|(name, _)| name == key).unwrap().1.clone();
        assert_eq!((value("call").as_str(), value("workspace").as_str()), ("make -j4", ROOT));
        let folder = tempfile::tempdir().unwrap();
        let said = FileAnswerStore::in_folder(folder.path().to_owned()).save_answer(&rule).unwrap();
        assert!(said.ends_with("it applies after you run `jaato trust`"), "{said}");
    }

    #[test]
    fn saved_answer_decides_the_same_in_later_sessions() {
        let (one, two) =
            (json!({ "command": "cargo test" }), json!({ "command": "cargo test -q" }));
        assert_eq!(decide_after_permanent_allow(&one, 0, &one), RuleOutcome::Allow);
        assert_eq!(decide_after_permanent_allow(&one, 0, &two), RuleOutcome::Ask);
        let (ls, other) = (json!({ "command": "ls a" }), json!({ "command": "ls b; rm b" }));
        let last = 1;
        assert_eq!(decide_after_permanent_allow(&ls, last, &ls), RuleOutcome::Allow);
        assert_eq!(decide_after_permanent_allow(&ls, last, &other), RuleOutcome::Ask);
    }
}

//! Tables of rules and calls, and the decisions. Rules and calls are written as a user would.

use expect_test::{Expect, expect};
use jaato_policy::{
    AllowedTool, CallPattern, Caller, CallingAgent, Decision, PluginSource, PolicyCall, Rules,
    SessionRule, WorkspaceTrust, decide, propose_patterns,
};
use jaato_types::permission_prompt::PermissionDecision;
use jaato_types::{Annotations, PluginName, ToolName};
use serde_json::Value;

/// A call as text: a tool, then words: `shipped`, `read_only`, `destructive`, `open_world`,
/// `auto_approval`, `person`, `plugin=NAME`, `args=TEXT`. A property whose word is missing is
/// false.
struct ParsedCall {
    tool: ToolName,
    plugin: PluginName,
    words: Vec<String>,
    arguments: Value,
}

impl ParsedCall {
    fn parse(text: &str) -> Self {
        let mut words = text.split(' ').map(str::to_owned);
        let tool = ToolName::new(words.next().unwrap());
        let words: Vec<_> = words.collect();
        let plugin = words.iter().find_map(|word| word.strip_prefix("plugin=")).unwrap_or("tool-x");
        let known =
            ["shipped", "read_only", "destructive", "open_world", "auto_approval", "person"];
        for word in &words {
            assert!(known.contains(&word.as_str()) || word.contains('='), "unknown word {word}");
        }
        let plugin = PluginName::from(plugin);
        let arguments = words.iter().find_map(|word| word.strip_prefix("args="));
        let arguments = Value::from(arguments.unwrap_or("none"));
        Self { tool, plugin, words, arguments }
    }

    fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|known| known == word)
    }

    fn policy_call(&self) -> PolicyCall<'_> {
        PolicyCall {
            tool: &self.tool,
            plugin: &self.plugin,
            source: if self.has_word("shipped") {
                PluginSource::Shipped
            } else {
                PluginSource::Elsewhere
            },
            annotations: Annotations {
                read_only: self.has_word("read_only"),
                destructive: self.has_word("destructive"),
                idempotent: false,
                open_world: self.has_word("open_world"),
                parallel_safe: false,
            },
            auto_approval: self.has_word("auto_approval"),
            caller: if self.has_word("person") { Caller::Person } else { Caller::Model },
            arguments: &self.arguments,
            schema: &Value::Null,
            definition: None,
            agent: CallingAgent::MAIN,
            directory: None,
            home: None,
            resolved: None,
            repository_is_plain: false,
            workspace: WorkspaceTrust::Trusted,
            root: None,
            own_folders: &[],
            typed_into: None,
        }
    }
}

/// The answer to a call: a permission for the widest pattern that a shipped tool's prompt offers,
/// or for exactly this call to other tools, or a denial for the tool.
fn session_answer(call: &str, decision: PermissionDecision) -> SessionRule {
    let scene = ParsedCall::parse(call);
    let call = scene.policy_call();
    let pattern = match (decision.can_run(), call.source) {
        (true, PluginSource::Shipped) => propose_patterns(&Rules::default(), &call).pop().unwrap(),
        (true, PluginSource::Relayed | PluginSource::Elsewhere) => CallPattern::exact_call(&call),
        (false, _) => CallPattern::Tool,
    };
    SessionRule::new(&call, decision, pattern)
}

/// Parses one rule per line: `disable TOOL`, `allow TOOL`, `yes`, `always CALL`, `never CALL`.
fn parse_rules(text: &str) -> Rules {
    let mut rules = Rules::default();
    for line in text.lines() {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("disable", tool) => _ = rules.disabled.insert(tool.into()),
            ("allow", tool) => _ = rules.allowed.insert(AllowedTool::parse(tool)),
            ("yes", "") => rules.allow_all = true,
            ("always", call) => {
                rules.remember_answer(session_answer(call, PermissionDecision::AllowInSession));
            }
            ("never", call) => {
                rules.remember_answer(session_answer(call, PermissionDecision::DenyInSession));
            }
            other => panic!("unknown rule {other:?}"),
        }
    }
    rules
}

fn decide_call(rules: &str, call: &str) -> Decision {
    decide(&parse_rules(rules), &ParsedCall::parse(call).policy_call())
}

#[track_caller]
fn check_decision(rules: &str, call: &str, expected: Expect) {
    let Decision { outcome, rule } = decide_call(rules, call);
    expected.assert_eq(&format!("{outcome:?} by {rule}"));
}

#[test]
fn call_without_a_matching_rule_is_asked() {
    check_decision("", "shell", expect!["Ask by ask.silence"]);
    check_decision("", "shell shipped", expect!["Ask by ask.silence"]);
    check_decision("", "shell shipped destructive open_world", expect!["Ask by ask.silence"]);
    check_decision("allow other", "shell", expect!["Ask by ask.silence"]);
}

#[test]
fn read_only_tools_of_shipped_plugins_are_granted() {
    check_decision("", "look shipped read_only", expect!["Allow by shipped.read_only"]);
    check_decision("", "look shipped read_only open_world", expect!["Allow by shipped.read_only"]);
    check_decision("", "look shipped auto_approval", expect!["Allow by shipped.auto_approval"]);
    check_decision(
        "",
        "look shipped read_only auto_approval",
        expect!["Allow by shipped.read_only"],
    );
}

#[test]
fn annotations_of_foreign_plugins_grant_nothing() {
    check_decision("", "look read_only", expect!["Ask by ask.unproven_promise"]);
    check_decision("", "look auto_approval", expect!["Ask by ask.unproven_promise"]);
    check_decision("", "look read_only auto_approval", expect!["Ask by ask.unproven_promise"]);
}

#[test]
fn allow_and_yes_options_allow_calls() {
    check_decision("allow shell", "shell shipped destructive", expect!["Allow by option.allow"]);
    check_decision("yes", "shell destructive", expect!["Allow by option.yes"]);
    check_decision("allow shell\nyes", "shell shipped", expect!["Allow by option.allow"]);
}

#[test]
fn foreign_tool_is_allowed_only_together_with_its_plugin_name() {
    check_decision("allow shell", "shell", expect!["Ask by ask.silence"]);
    check_decision("allow tool-x:shell", "shell", expect!["Allow by option.allow"]);
    check_decision("allow tool-x:shell", "shell shipped", expect!["Allow by option.allow"]);
    check_decision("allow tool-x:shell", "shell plugin=tool-y", expect!["Ask by ask.silence"]);
    check_decision(
        "allow tool-x:shell",
        "shell shipped plugin=tool-y",
        expect!["Ask by ask.silence"],
    );
    check_decision("allow tool-x:shell", "shell2", expect!["Ask by ask.silence"]);
    check_decision("allow tool-x:", "shell", expect!["Ask by ask.silence"]);
}

#[test]
fn allow_option_matches_a_whole_name_or_a_prefix_of_three_letters() {
    check_decision("allow she*", "shell shipped", expect!["Allow by option.allow"]);
    check_decision("allow she*", "shell", expect!["Ask by ask.silence"]);
    check_decision("allow sh*", "shell shipped", expect!["Ask by ask.silence"]);
    check_decision("allow shell", "shell2 shipped", expect!["Ask by ask.silence"]);
    check_decision("allow shell", "Shell shipped", expect!["Ask by ask.silence"]);
    check_decision("allow *", "shell shipped", expect!["Ask by ask.silence"]);
}

#[test]
fn disabled_beats_everything() {
    let all = "disable look\nallow look\nyes\nalways look shipped read_only";
    check_decision(all, "look shipped read_only auto_approval", expect!["Deny by tools.disabled"]);
    check_decision(all, "look person", expect!["Deny by tools.disabled"]);
}

#[test]
fn session_deny_overrides_every_allow() {
    check_decision("never shell\nallow shell\nyes", "shell", expect!["Deny by session.never"]);
    check_decision(
        "never look shipped",
        "look shipped read_only",
        expect!["Deny by session.never"],
    );
    check_decision(
        "always shell args=a destructive\nnever shell args=b destructive",
        "shell args=a destructive",
        expect!["Deny by session.never"],
    );
}

#[test]
fn call_that_the_user_makes_is_not_asked() {
    check_decision("", "shell person destructive", expect!["Allow by own_call"]);
    check_decision("", "shell destructive", expect!["Ask by ask.silence"]);
}

#[test]
fn session_allow_covers_any_arguments_of_a_harmless_tool() {
    let always = "always note shipped args=a";
    check_decision(always, "note shipped args=b", expect!["Allow by session.always"]);
    check_decision(
        "always look shipped read_only destructive open_world args=a",
        "look shipped auto_approval read_only args=b",
        expect!["Allow by session.always"],
    );
}

#[test]
fn session_allow_of_destructive_or_open_world_tool_is_for_same_arguments() {
    for words in ["shipped destructive", "shipped open_world"] {
        let decided = |args| {
            let call = format!("shell {words} args={args}");
            let Decision { outcome, rule } =
                decide_call(&format!("always shell {words} args=a"), &call);
            format!("{outcome:?} by {rule}")
        };
        assert_eq!(decided("a"), "Allow by session.always");
        assert_eq!(decided("b"), "Ask by ask.silence");
    }
}

#[test]
fn session_allow_of_a_foreign_tool_covers_only_the_same_arguments() {
    for words in ["", " read_only", " destructive", " auto_approval"] {
        let always = format!("always look{words} args=a");
        let same = decide_call(&always, &format!("look{words} args=a"));
        assert_eq!(same.rule.name(), "session.always", "{words}");
        let other = decide_call(&always, &format!("look{words} args=b"));
        assert_eq!(other.outcome, jaato_policy::RuleOutcome::Ask, "{words}");
    }
}

#[test]
fn session_allow_for_same_arguments_stays_valid_if_annotations_change() {
    let always = "always note shipped args=a";
    check_decision(always, "note shipped destructive args=a", expect!["Allow by session.always"]);
    // So does a tool whose name moved to a plugin from elsewhere.
    check_decision(always, "note args=a", expect!["Allow by session.always"]);
}

#[test]
fn session_answer_does_not_apply_to_another_plugin_or_tool() {
    check_decision(
        "always note plugin=tool-a",
        "note plugin=tool-b",
        expect!["Ask by ask.silence"],
    );
    check_decision(
        "never note plugin=tool-a\nyes",
        "note plugin=tool-b",
        expect!["Allow by option.yes"],
    );
    check_decision("always note", "note2", expect!["Ask by ask.silence"]);
}

#[test]
fn the_latest_answer_counts() {
    check_decision(
        "always note shipped\nnever note",
        "note shipped",
        expect!["Deny by session.never"],
    );
    check_decision(
        "never note\nalways note shipped",
        "note shipped",
        expect!["Allow by session.always"],
    );
}

#[test]
fn every_decision_explains_itself() {
    let table = [
        ("disable shell", "shell"),
        ("never shell", "shell"),
        ("", "shell person"),
        ("allow shell", "shell shipped"),
        ("allow tool-x:shell", "shell"),
        ("yes", "shell"),
        ("always shell", "shell"),
        ("", "shell shipped read_only"),
        ("", "shell shipped auto_approval"),
        ("", "shell read_only"),
        ("", "shell"),
    ];
    let mut texts = String::new();
    for (rules, call) in table {
        let decision = decide_call(rules, call);
        let scene = ParsedCall::parse(call);
        texts += &format!("{}: {}\n", decision.rule, decision.explain(&scene.policy_call()));
        if let Some(hint) = decision.refusal_hint(&scene.policy_call()) {
            texts += &format!("  hint: {hint}\n");
        }
    }
    expect![[r#"
        tools.disabled: tool `shell` is disabled by `[tools] disabled`
          hint: remove `shell` from `[tools] disabled`; `jaato config show` shows where it is set
        session.never: the user denied calls to `shell` like this one for this session
        own_call: the user typed this call
        option.allow: `--allow shell` was given
        option.allow: `--allow tool-x:shell` was given
        option.yes: `--yes` was given
        session.always: the user allowed tool `shell` for this session
        shipped.read_only: tool `shell` is read-only, and plugin `tool-x` is shipped with jaato
        shipped.auto_approval: tool `shell` needs no permission, and plugin `tool-x` is shipped with jaato
        ask.unproven_promise: tool `shell` needs permission: it claims to need none, but plugin `tool-x` is not shipped with jaato, so the claim does not count
          hint: allow it with `--allow tool-x:shell`, or everything with `--yes`
        ask.silence: tool `shell` needs permission
          hint: allow it with `--allow tool-x:shell`, or everything with `--yes`
    "#]].assert_eq(&texts);
}

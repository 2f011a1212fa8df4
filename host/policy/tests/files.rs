//! Rules in files: layers, order, precedence, paths, hosts, agents, approvals and modes.

use std::path::{Path, PathBuf};

use jaato_policy::{
    AllowedTool, AnnotationKind, CallPattern, Caller, CallingAgent, CommandPattern, Decision,
    DenyRuleHandling, Glob, PathPattern, PluginSource, PolicyCall, PolicyMode, ResolvedCallPaths,
    RestOfCommand, Rule, RuleConditions, RuleFile, RuleLayer, RuleOutcome, Rules, SessionRule,
    TypingTarget, WorkspaceTrust, decide, evaluate_call, propose_patterns,
};
use jaato_types::files::{FileIdentity, RESOLVE_PATHS_MAX, ResolvedPath};
use jaato_types::permission_prompt::PermissionDecision;
use jaato_types::touches::KEYWORD;
use jaato_types::{Annotations, PluginName, ToolName};
use serde_json::{Value, json};

/// A call to decide about. Fields that a test does not set are those of a shell command.
pub struct TestCall {
    tool: ToolName,
    pub plugin: PluginName,
    pub arguments: Value,
    pub schema: Value,
    annotations: Annotations,
    caller: Caller,
    agent: CallingAgent<'static>,
    resolved: Option<ResolvedCallPaths>,
    pub source: PluginSource,
    typed_into: Option<TypingTarget>,
}

impl TestCall {
    pub fn new(tool: &str, arguments: Value) -> Self {
        Self {
            tool: tool.into(),
            plugin: "tool-file-edit".into(),
            arguments,
            schema: tool_schema(),
            annotations: Annotations { open_world: false, ..Annotations::default() },
            caller: Caller::Model,
            agent: CallingAgent::MAIN,
            resolved: None,
            source: PluginSource::Shipped,
            typed_into: None,
        }
    }

    fn shell_call(command: &str) -> Self {
        Self::new("cli_based_tool", json!({ "command": command }))
    }

    pub fn policy_call(&self) -> PolicyCall<'_> {
        PolicyCall {
            tool: &self.tool,
            plugin: &self.plugin,
            source: self.source,
            annotations: self.annotations,
            auto_approval: false,
            caller: self.caller,
            arguments: &self.arguments,
            definition: None,
            schema: &self.schema,
            agent: self.agent,
            directory: Some(Path::new("/project")),
            home: Some(Path::new("/home/ann")),
            resolved: self.resolved.as_ref(),
            repository_is_plain: false,
            workspace: WorkspaceTrust::Trusted,
            root: Some(Path::new("/project")),
            own_folders: &[],
            typed_into: self.typed_into,
        }
    }
}

/// Resolves a path to a target. Without one, the target is unknown.
fn resolved_target(written: &str, place: Option<&str>) -> ResolvedCallPaths {
    let resolved = place.map(|place| ResolvedPath {
        asked: written.to_owned(),
        path: place.to_owned(),
        entry: place.to_owned(),
        identity: Some(FileIdentity::new(1, 2)),
        ..ResolvedPath::default()
    });
    ResolvedCallPaths::new(vec![written.into()], vec![resolved])
}

/// The arguments of all tools here, declared like those of shipped tools.
fn tool_schema() -> Value {
    let string = |touches: Value| json!({ "type": "string", KEYWORD: touches });
    let many =
        |touches: &str| json!({ "type": "array", "items": { "type": "string" }, KEYWORD: touches });
    let text = || string(json!({ "text": "a test" }));
    let operation = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "path": string(json!("write")), "from": string(json!("write")),
            "to": string(json!("write")), "content": text(),
        },
    });
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "path": string(json!("write")), "source_path": string(json!("write")),
            "destination_path": string(json!("write")), "root": string(json!("search_root")),
            "pattern": string(json!("pattern")), "url": string(json!("host")),
            "insecure": { "type": "boolean" }, "no_proxy": { "type": "boolean" },
            "command": string(json!("command")), "args": many("command"),
            "input": string(json!("command")), "session_id": text(), "text": text(),
            "operations": { "type": "array", "items": operation },
        },
    })
}

/// Parses one rule per line, `DECISION KEY VALUE`, as the file of a layer.
fn rule_file(layer: RuleLayer, text: &str) -> RuleFile {
    let mut rules = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let mut parts = line.splitn(3, ' ');
        let (decision, key, value) =
            (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let outcome = match decision {
            "allow" => RuleOutcome::Allow,
            "ask" => RuleOutcome::Ask,
            "deny" => RuleOutcome::Deny,
            other => panic!("{other}"),
        };
        let path = |text: &str| {
            let path = text.replace('~', "/home/ann");
            PathPattern { written: text.to_owned(), path: Path::new("/project").join(path) }
        };
        let mut when = RuleConditions::default();
        match key {
            "tool" => when.tool = Some(Glob::new(value)),
            "command" => when.command = CommandPattern::parse(value, RestOfCommand::SafeOptions),
            "path" => when.path = Some(path(value)),
            "outside" => when.outside = vec![path(value)],
            "host" => when.host = Some(Glob::new(value)),
            "agent" => when.agent_type = Some(Glob::new(value)),
            "text" => when.arguments = vec![("text".to_owned(), Glob::new(value))],
            "compound" => when.compound = true,
            "plugin" => when.plugin = Some(Glob::new(value)),
            "read_only" => when.annotations = vec![(AnnotationKind::ReadOnly, value == "true")],
            "destructive" => {
                when.annotations = vec![(AnnotationKind::Destructive, value == "true")]
            }
            other => panic!("{other}"),
        }
        rules.push(Rule { outcome, when, line: at + 1, why: None });
    }
    let path = format!("{}.toml", layer.name()).into();
    RuleFile { layer, path, default: None, rules, broken: None }
}

pub fn user_rules(text: &str) -> Rules {
    Rules::from_files(vec![rule_file(RuleLayer::User, text)])
}

#[track_caller]
pub fn check_outcome(rules: &Rules, scene: &TestCall, expected: &str) {
    let call = scene.policy_call();
    let decision = decide(rules, &call);
    let place = decision.rule.file_and_line().unwrap_or_default();
    let shown = format!("{} {} {place}", decision.outcome.name(), decision.rule);
    assert_eq!(shown.trim_end(), expected, "{}", decision.explain(&call));
    assert_eq!(evaluate_call(rules, &call).decision, decision);
}

#[test]
fn a_deny_beats_every_allow() {
    let note = TestCall::new("note", json!({}));
    let mut rules = user_rules("allow tool note\nask tool note\ndeny tool no*");
    rules.allow_all = true;
    rules.allowed.insert(AllowedTool::parse("note"));
    rules.remember_answer(SessionRule::new(
        &note.policy_call(),
        PermissionDecision::AllowInSession,
        CallPattern::Tool,
    ));
    check_outcome(&rules, &note, "deny file.deny user.toml:3");
    let typed = TestCall { caller: Caller::Person, ..TestCall::new("note", json!({})) };
    check_outcome(&rules, &typed, "deny file.deny user.toml:3");
    rules.deny_rules = DenyRuleHandling::Ignored;
    check_outcome(&rules, &note, "allow option.allow");
    check_outcome(&rules, &typed, "allow own_call");
}

#[test]
fn ignoring_deny_rules_keeps_disabled_tools_and_session_denials() {
    let note = TestCall::new("note", json!({}));
    let mut rules = user_rules("deny tool note");
    rules.deny_rules = DenyRuleHandling::Ignored;
    rules.remember_answer(SessionRule::new(
        &note.policy_call(),
        PermissionDecision::DenyInSession,
        CallPattern::Tool,
    ));
    check_outcome(&rules, &note, "deny session.never");
    rules.disabled.insert("note".into());
    check_outcome(&rules, &note, "deny tools.disabled");
}

#[test]
fn a_later_file_only_tightens() {
    let note = TestCall::new("note", json!({}));
    let rules = |one: &str, other: &str| {
        Rules::from_files(vec![
            rule_file(RuleLayer::Enterprise, one),
            rule_file(RuleLayer::Workspace, other),
        ])
    };
    check_outcome(
        &rules("ask tool note", "allow tool note"),
        &note,
        "ask file.ask enterprise.toml:1",
    );
    check_outcome(
        &rules("allow tool note", "ask tool note"),
        &note,
        "ask file.ask workspace.toml:1",
    );
    check_outcome(
        &rules("deny tool note", "allow tool note"),
        &note,
        "deny file.deny enterprise.toml:1",
    );
    check_outcome(
        &rules("allow tool note", "deny tool note"),
        &note,
        "deny file.deny workspace.toml:1",
    );
    check_outcome(
        &rules("allow tool note", "allow tool x"),
        &note,
        "allow file.allow enterprise.toml:1",
    );
}

#[test]
fn yes_option_overrides_ask_rules_of_the_user_but_not_the_enterprise() {
    let note = TestCall::new("note", json!({}));
    let mut rules = user_rules("ask tool note");
    rules.allow_all = true;
    check_outcome(&rules, &note, "allow option.yes");
    rules.files = vec![rule_file(RuleLayer::Enterprise, "ask tool note")];
    check_outcome(&rules, &note, "ask file.ask enterprise.toml:1");
    rules.remember_answer(SessionRule::new(
        &note.policy_call(),
        PermissionDecision::AllowInSession,
        CallPattern::Tool,
    ));
    check_outcome(&rules, &note, "allow option.yes");
}

#[test]
fn a_broken_file_denies_everything_and_says_so() {
    let mut rules = user_rules("allow tool look");
    rules.files[0].broken = Some((7, "`x` is unknown".to_owned()));
    rules.allow_all = true;
    let mut look = TestCall::new("look", json!({}));
    look.annotations.read_only = true;
    check_outcome(&rules, &look, "deny file.broken user.toml:7");
    let call = look.policy_call();
    assert!(decide(&rules, &call).explain(&call).contains("`x` is unknown"));
}

#[test]
fn default_applies_if_no_rule_matches_and_the_strictest_default_wins() {
    let note = TestCall::new("note", json!({}));
    let mut look = TestCall::new("look", json!({}));
    look.annotations.read_only = true;
    let mut rules = user_rules("allow tool other");
    rules.files[0].default = Some((RuleOutcome::Allow, 1));
    check_outcome(&rules, &note, "allow file.default_allow user.toml:1");
    rules.files.push(RuleFile {
        default: Some((RuleOutcome::Deny, 2)),
        ..rule_file(RuleLayer::Workspace, "")
    });
    check_outcome(&rules, &note, "deny file.default_deny workspace.toml:2");
    check_outcome(&rules, &look, "allow shipped.read_only");
    rules.files[1].default = Some((RuleOutcome::Allow, 2));
    rules.files[0].default = None;
    check_outcome(&rules, &note, "ask ask.silence");
}

#[test]
fn path_rules_match_whole_components_and_resolved_symlinks() {
    let rules = user_rules("deny path ~/.ssh\nallow path src");
    let at = |path: &str| TestCall::new("updateFile", json!({ "path": path }));
    check_outcome(&rules, &at("src/a.rs"), "allow file.allow user.toml:2");
    check_outcome(&rules, &at("/project/src"), "allow file.allow user.toml:2");
    for outside in ["srcx/a.rs", "src/../b", "/src", "../project2/src", "~/src", ""] {
        check_outcome(&rules, &at(outside), "ask ask.silence");
    }
    for denied in [
        "~/.ssh/id",
        "~/.ssh",
        "/home/ann/.ssh/x",
        "../home/ann/.ssh",
        "src/../../home/ann/.ssh/id",
        "file:///home/ann/.ssh/id",
    ] {
        check_outcome(&rules, &at(denied), "deny file.deny user.toml:1");
    }
    let mut linked = at("src/link");
    linked.resolved = Some(resolved_target("/project/src/link", Some("/home/ann/.ssh/id")));
    check_outcome(&rules, &linked, "deny file.deny user.toml:1");
    linked.resolved = Some(resolved_target("/project/src/link", Some("/etc/passwd")));
    check_outcome(&rules, &linked, "ask ask.silence");
    let mut dotted = at("src/link/../key");
    dotted.resolved = Some(resolved_target("/project/src/link/../key", Some("/home/ann/.ssh/key")));
    check_outcome(&rules, &dotted, "deny file.deny user.toml:1");
    dotted.resolved =
        Some(resolved_target("/project/src/link/../key", Some("/project/src/deep/key")));
    check_outcome(&rules, &dotted, "allow file.allow user.toml:2");
    let mut unknown = at("src/a");
    unknown.resolved = Some(resolved_target("/project/src/a", None));
    check_outcome(&rules, &unknown, "ask ask.silence");
    let paths: Vec<PathBuf> = (0..=RESOLVE_PATHS_MAX).map(|it| it.to_string().into()).collect();
    unknown.resolved = Some(ResolvedCallPaths::new(paths, Vec::new()));
    check_outcome(&rules, &unknown, "ask file.unclear user.toml:1");
    let many = TestCall::new(
        "multiFileEdit",
        json!({ "operations": [{ "path": "src/a" }, { "path": "b" }] }),
    );
    check_outcome(&rules, &many, "ask ask.silence");
    let many = TestCall::new(
        "moveFile",
        json!({ "source_path": "src/a", "destination_path": "~/.ssh/id" }),
    );
    check_outcome(&rules, &many, "deny file.deny user.toml:1");
    check_outcome(&rules, &TestCall::new("note", json!({})), "ask ask.silence");
}

#[test]
fn path_rules_deny_paths_in_commands_but_never_allow_commands() {
    let mut rules = user_rules("deny path ~/.ssh\nallow path src\nallow command cat");
    check_outcome(&rules, &TestCall::shell_call("cat src/a"), "allow file.allow user.toml:3");
    check_outcome(&rules, &TestCall::shell_call("head src/a"), "ask ask.silence");
    rules.allow_all = true;
    for denied in [
        "cat ~/.ssh/id",
        "cat /home/ann/.ssh/id",
        "x --in=~/.ssh/id",
        "cat < ~/.ssh/id",
        "x > ~/.ssh/a",
        "cd ~ && cat .ssh/id",
        "cd /home/ann/.ssh; cat id",
        "rm -r ~",
        "tar c /home/ann",
        "sh -c 'cat ~/.ssh/id'",
    ] {
        check_outcome(&rules, &TestCall::shell_call(denied), "deny file.deny user.toml:1");
    }
    for unclear in ["cat $x", "cat $(echo x)", "cat ~bob/x"] {
        check_outcome(&rules, &TestCall::shell_call(unclear), "ask file.unclear user.toml:1");
    }
    check_outcome(&rules, &TestCall::shell_call("ls ~"), "allow option.yes");
}

/// A call of the shipped tool that reads from the web.
fn web_fetch_call(arguments: Value) -> TestCall {
    let annotations = Annotations { read_only: true, ..Annotations::default() };
    TestCall { annotations, ..TestCall::new("web_fetch", arguments) }
}

#[test]
fn host_that_is_new_to_the_session_asks_until_the_user_allows_it() {
    let fetch = |url: &str| web_fetch_call(json!({ "url": url }));
    let mut rules = user_rules("allow host docs.rs\ndeny host evil.org");
    check_outcome(&rules, &fetch("https://docs.rs/x"), "allow file.allow user.toml:1");
    check_outcome(&rules, &fetch("https://evil.org/x"), "deny file.deny user.toml:2");
    check_outcome(&rules, &fetch("https://a.example/x"), "ask ask.new_host");
    let scene = fetch("https://a.example/x");
    let [exact, host] = &propose_patterns(&rules, &scene.policy_call())[..] else { panic!() };
    assert!(matches!(exact, CallPattern::Exact { .. }));
    assert_eq!(*host, CallPattern::Host("a.example".to_owned()));
    let answer = PermissionDecision::AllowInSession;
    rules.remember_answer(SessionRule::new(&scene.policy_call(), answer, host.clone()));
    check_outcome(&rules, &fetch("https://a.example/other?x=1"), "allow session.always");
    check_outcome(&rules, &fetch("https://b.example/"), "ask ask.new_host");
    rules.allow_all = true;
    check_outcome(&rules, &fetch("https://b.example/"), "allow option.yes");
}

#[test]
fn web_read_without_checks_asks_whatever_is_allowed_about_its_host() {
    let mut rules = user_rules("allow host docs.rs");
    let plain = web_fetch_call(json!({ "url": "https://docs.rs/" }));
    let host = CallPattern::Host("docs.rs".to_owned());
    rules.remember_answer(SessionRule::new(
        &plain.policy_call(),
        PermissionDecision::AllowInSession,
        host,
    ));
    check_outcome(&rules, &plain, "allow session.always");
    for argument in ["insecure", "no_proxy"] {
        let unchecked = web_fetch_call(json!({ "url": "https://docs.rs/", argument: true }));
        check_outcome(&rules, &unchecked, "ask ask.unchecked_read");
        assert_eq!(propose_patterns(&rules, &unchecked.policy_call()).len(), 1);
        let checked = web_fetch_call(json!({ "url": "https://docs.rs/", argument: false }));
        check_outcome(&rules, &checked, "allow session.always");
    }
}

#[test]
fn hosts_are_found_in_urls_and_command_lines() {
    let mut rules = user_rules("deny host *.evil.org\nallow host docs.rs");
    let fetch = |url: &str| TestCall::new("web_fetch", json!({ "url": url }));
    check_outcome(&rules, &fetch("https://docs.rs/x"), "allow file.allow user.toml:2");
    check_outcome(&rules, &fetch("https://DOCS.rs:443/x"), "allow file.allow user.toml:2");
    for other in [
        "https://docs.rs.evil.com",
        "https://docs.rs@evil.com/",
        "https://evil.com/docs.rs",
        "https://evil.com#docs.rs",
        "docs.rs.evil.com",
    ] {
        check_outcome(&rules, &fetch(other), "ask ask.silence");
    }
    for denied in [
        "https://a.evil.org/",
        "https://x@a.evil.org:8/",
        "HTTPS://A.EVIL.ORG",
        "https://a.evil.org./",
    ] {
        check_outcome(&rules, &fetch(denied), "deny file.deny user.toml:1");
    }
    rules.allow_all = true;
    check_outcome(
        &rules,
        &TestCall::shell_call("curl https://a.evil.org/x"),
        "deny file.deny user.toml:1",
    );
    check_outcome(
        &rules,
        &TestCall::shell_call("git clone git@a.evil.org:x"),
        "deny file.deny user.toml:1",
    );
    check_outcome(&rules, &TestCall::shell_call("curl $x"), "ask file.unclear user.toml:1");
}

#[test]
fn rules_match_agents_arguments_compound_commands_and_outside_paths() {
    let mut rules = user_rules("deny agent subagent");
    let mut note = TestCall::new("note", json!({ "text": "hello" }));
    check_outcome(&rules, &note, "ask ask.silence");
    note.agent = CallingAgent { agent_type: "subagent", agent_name: "scout" };
    check_outcome(&rules, &note, "deny file.deny user.toml:1");
    rules = user_rules("allow text hel*");
    check_outcome(&rules, &note, "allow file.allow user.toml:1");
    check_outcome(&rules, &TestCall::new("note", json!({ "text": "x hello" })), "ask ask.silence");
    check_outcome(&rules, &TestCall::new("note", json!({})), "ask ask.silence");
    rules = user_rules("deny compound true");
    rules.allow_all = true;
    check_outcome(&rules, &TestCall::shell_call("ls -l"), "allow option.yes");
    check_outcome(&rules, &TestCall::shell_call("ls | ls"), "deny file.deny user.toml:1");
    check_outcome(&rules, &TestCall::shell_call("ls > x"), "deny file.deny user.toml:1");
    rules = user_rules("deny outside /project");
    rules.allow_all = true;
    check_outcome(&rules, &TestCall::shell_call("cat src/a > /dev/null"), "allow option.yes");
    check_outcome(&rules, &TestCall::shell_call("cat /etc/passwd"), "deny file.deny user.toml:1");
    check_outcome(&rules, &TestCall::shell_call("cat ../x"), "deny file.deny user.toml:1");
}

#[test]
fn command_allow_rule_does_not_apply_to_foreign_tools() {
    let mut scene = TestCall::new("run", json!({ "command": "ls" }));
    check_outcome(&user_rules("allow command ls"), &scene, "allow file.allow user.toml:1");
    scene.source = PluginSource::Elsewhere;
    check_outcome(&user_rules("allow command ls"), &scene, "ask ask.silence");
    let mut rules = user_rules("deny command ls");
    rules.allow_all = true;
    check_outcome(&rules, &scene, "deny file.deny user.toml:1");
}

#[test]
fn foreign_tool_is_allowed_only_by_its_exact_plugin_name() {
    let mut scene = TestCall::new("note", json!({}));
    scene.plugin = "tool-moon".into();
    scene.annotations = Annotations { read_only: true, destructive: false, ..scene.annotations };
    let rules = [
        ("allow tool note", "file.allow user.toml:1", "ask.unproven_promise"),
        ("allow tool *", "file.allow user.toml:1", "ask.unproven_promise"),
        ("allow read_only true", "file.allow user.toml:1", "ask.unproven_promise"),
        ("allow destructive false", "file.allow user.toml:1", "ask.unproven_promise"),
        ("allow plugin tool-*", "file.allow user.toml:1", "ask.unproven_promise"),
        ("allow plugin tool-moon", "file.allow user.toml:1", "file.allow user.toml:1"),
    ];
    for (rule, shipped, elsewhere) in rules {
        for (source, expected) in
            [(PluginSource::Shipped, shipped), (PluginSource::Elsewhere, elsewhere)]
        {
            scene.source = source;
            let outcome = if expected.starts_with("ask") { "ask" } else { "allow" };
            check_outcome(&user_rules(rule), &scene, &format!("{outcome} {expected}"));
        }
    }
}

#[test]
fn annotations_of_a_foreign_tool_cannot_evade_a_deny_rule() {
    let mut scene = TestCall::new("note", json!({}));
    scene.annotations = Annotations { read_only: true, destructive: false, ..scene.annotations };
    let mut rules = user_rules("deny destructive true");
    rules.allow_all = true;
    check_outcome(&rules, &scene, "allow option.yes");
    scene.source = PluginSource::Elsewhere;
    check_outcome(&rules, &scene, "ask file.unclear user.toml:1");
    scene.annotations.destructive = true;
    check_outcome(&rules, &scene, "deny file.deny user.toml:1");
    // Annotations that admit harm are accepted.
    check_outcome(&user_rules("ask read_only false"), &scene, "ask file.ask user.toml:1");
    check_outcome(&user_rules("deny read_only true"), &scene, "deny file.deny user.toml:1");
    scene.annotations.read_only = false;
    check_outcome(&user_rules("deny read_only true"), &scene, "ask ask.silence");
}

#[test]
fn typed_terminal_input_is_a_command_only_at_a_shell_prompt() {
    let mut rules = user_rules("allow command ls");
    let mut typed = TestCall::new("shell_input", json!({ "session_id": "s", "input": "ls -l\n" }));
    check_outcome(&rules, &typed, "ask ask.silence");
    typed.typed_into = Some(TypingTarget::Unknown);
    check_outcome(&rules, &typed, "ask ask.silence");
    typed.typed_into = Some(TypingTarget::ShellPrompt);
    check_outcome(&rules, &typed, "allow file.allow user.toml:1");
    typed.arguments = json!({ "input": "l\ts\n" });
    check_outcome(&rules, &typed, "ask ask.silence");
    typed.arguments = json!({ "input": "ls -l\n" });
    rules = user_rules("deny command rm");
    rules.allow_all = true;
    typed.typed_into = None;
    check_outcome(&rules, &typed, "ask file.unclear user.toml:1");
    typed.arguments = json!({ "input": "rm x\n" });
    check_outcome(&rules, &typed, "deny file.deny user.toml:1");
}

#[test]
fn command_given_as_words_is_a_single_command() {
    let words = |words: &[&str]| {
        TestCall::new("cli_based_tool", json!({ "command": words[0], "args": words[1..] }))
    };
    let mut rules = user_rules("allow command ls");
    check_outcome(&rules, &words(&["ls", "-l", "; rm x", "$(rm)"]), "allow file.allow user.toml:1");
    check_outcome(&rules, &words(&["ls; rm", "x"]), "ask ask.silence");
    check_outcome(&rules, &words(&["ls", "--unknown"]), "ask ask.silence");
    rules = user_rules("deny command rm");
    rules.allow_all = true;
    check_outcome(&rules, &words(&["rm", "x"]), "deny file.deny user.toml:1");
    check_outcome(&rules, &words(&["sh", "-c", "rm x"]), "deny file.deny user.toml:1");
}

#[test]
fn exact_session_allow_overrides_a_doubt_but_not_a_deny_rule() {
    let scene = TestCall::shell_call("ls $x");
    let mut rules = user_rules("deny command rm\ndeny path ~/.ssh");
    rules.allow_all = true;
    check_outcome(&rules, &scene, "ask file.unclear user.toml:2");
    let exact = CallPattern::exact_call(&scene.policy_call());
    rules.remember_answer(SessionRule::new(
        &scene.policy_call(),
        PermissionDecision::AllowInSession,
        exact,
    ));
    check_outcome(&rules, &scene, "allow option.yes");
    let denied = TestCall::shell_call("rm x");
    let exact = CallPattern::exact_call(&denied.policy_call());
    rules.remember_answer(SessionRule::new(
        &denied.policy_call(),
        PermissionDecision::AllowInSession,
        exact,
    ));
    check_outcome(&rules, &denied, "deny file.deny user.toml:1");
}

#[test]
fn an_answer_for_a_turn_ends_with_it() {
    let scene = TestCall::shell_call("git status");
    let mut rules = Rules::default();
    let pattern = CallPattern::Command { program: "git".into(), words: vec!["status".into()] };
    let rule = |decision| SessionRule::new(&scene.policy_call(), decision, pattern.clone());
    rules.remember_answer(rule(PermissionDecision::AllowOnce));
    check_outcome(&rules, &scene, "ask ask.silence");
    rules.remember_answer(rule(PermissionDecision::AllowInTurn));
    check_outcome(&rules, &TestCall::shell_call("git status -s"), "allow session.always");
    check_outcome(&rules, &TestCall::shell_call("git status; rm x"), "ask ask.silence");
    check_outcome(&rules, &TestCall::shell_call("git push"), "ask ask.silence");
    rules.forget_turn_answers();
    check_outcome(&rules, &scene, "ask ask.silence");
    rules.remember_answer(rule(PermissionDecision::AllowInSession));
    rules.forget_turn_answers();
    check_outcome(&rules, &scene, "allow session.always");
    rules.forget_answers();
    check_outcome(&rules, &scene, "ask ask.silence");
}

#[track_caller]
fn check_proposals(rules: &Rules, scene: &TestCall, expected: &[&str]) {
    let call = scene.policy_call();
    let shown: Vec<String> = propose_patterns(rules, &call)
        .iter()
        .map(|pattern| pattern.describe_calls(call.tool))
        .collect();
    assert_eq!(shown, expected);
}

#[track_caller]
fn check_command_proposal(rules: &Rules, line: &str, expected: Option<&str>) {
    let exact = format!("exactly `{line}`");
    let expected: Vec<&str> = [Some(exact.as_str()), expected].into_iter().flatten().collect();
    check_proposals(rules, &TestCall::shell_call(line), &expected);
}

#[test]
fn a_useful_pattern_is_offered_for_a_command_line() {
    let none = Rules::default();
    for (line, pattern) in [
        ("cargo test", "any `cargo test`"),
        ("cargo test -q", "any `cargo test`"),
        ("git status -s", "any `git status`"),
        ("npm run build", "any `npm run build`"),
        ("make test", "any `make test`"),
        ("pytest -q", "any `pytest`"),
        ("ls -la src", "any `ls`"),
        ("python3 script.py a", "any `python3 script.py`"),
        ("python3 -m unittest -q", "any `python3 -m unittest`"),
        ("python3 -m unittest tests.test_a", "any `python3 -m unittest`"),
        ("python3 -m http.server 80", "any `python3 -m http.server 80`"),
        ("cargo test && cargo test -q", "any `cargo test`"),
    ] {
        check_command_proposal(&none, line, Some(pattern));
    }
    for line in [
        "rm -rf build",
        "git status; rm x",
        "cargo test; cargo build",
        "sh -c ls",
        "python3 -m unittest discover -s /tmp",
        "cargo test $x",
        "cd /tmp/evil && cargo test",
        "curl -X POST https://a.example",
    ] {
        check_command_proposal(&none, line, None);
    }
}

#[test]
fn a_pattern_leaves_out_the_commands_of_a_pipeline_that_rules_allow() {
    let line = "python3 -m unittest -q 2>&1 | tail -5";
    check_command_proposal(&Rules::default(), line, None);
    let mut rules = user_rules("allow command tail\nallow command grep");
    check_command_proposal(&rules, line, Some("any `python3 -m unittest`"));
    let scene = TestCall::shell_call(line);
    check_outcome(&rules, &scene, "ask ask.silence");
    let pattern = propose_patterns(&rules, &scene.policy_call()).swap_remove(1);
    let decision = PermissionDecision::AllowInSession;
    rules.remember_answer(SessionRule::new(&scene.policy_call(), decision, pattern));
    check_outcome(&rules, &scene, "allow session.always");
    check_outcome(
        &rules,
        &TestCall::shell_call("python3 -m unittest -v | grep FAIL"),
        "allow session.always",
    );
    check_outcome(&rules, &TestCall::shell_call("python3 -m unittest -v"), "allow session.always");
    check_outcome(
        &rules,
        &TestCall::shell_call("python3 -m unittest -q | rm x"),
        "ask ask.silence",
    );
    check_outcome(
        &rules,
        &TestCall::shell_call("python3 -m unittest -s /tmp | tail"),
        "ask ask.silence",
    );
    rules.files.extend(user_rules("ask command tail").files);
    check_outcome(&rules, &scene, "ask file.ask user.toml:1");
}

#[test]
fn allow_patterns_by_path_host_or_tool_are_proposed_for_other_calls() {
    let none = Rules::default();
    check_proposals(
        &none,
        &TestCall::new("updateFile", json!({ "path": "src/a.rs" })),
        &[
            "exactly `updateFile(path=src/a.rs)`",
            "`updateFile` in `/project/src/a.rs`",
            "`updateFile` in `/project/src`",
        ],
    );
    check_proposals(
        &none,
        &TestCall::new("web_fetch", json!({ "url": "https://docs.rs/x" })),
        &["exactly `web_fetch(url=https://docs.rs/x)`", "`web_fetch` with `docs.rs`"],
    );
    let mut foreign = TestCall::new("note", json!({ "path": "x" }));
    foreign.source = PluginSource::Elsewhere;
    check_proposals(&none, &foreign, &["exactly `note(path=x)`", "any `note`"]);
}

#[test]
fn modes_deny_changes_or_accept_edits_in_the_workspace() {
    let mut rules = Rules::default();
    rules.mode = PolicyMode::ReadOnly;
    rules.allow_all = true;
    let edit = |path: &str| TestCall::new("updateFile", json!({ "path": path }));
    check_outcome(&rules, &edit("a"), "deny mode.read_only");
    let mut look = TestCall::new("readFile", json!({ "path": "a" }));
    look.annotations.read_only = true;
    check_outcome(&rules, &look, "allow option.yes");
    look.source = PluginSource::Elsewhere;
    check_outcome(&rules, &look, "deny mode.read_only");
    rules = Rules::default();
    rules.mode = PolicyMode::AcceptEdits;
    check_outcome(&rules, &edit("src/a.rs"), "allow mode.accept_edits");
    for kept in [
        "../x",
        "/etc/passwd",
        ".git/hooks/x",
        ".jaato/config.toml",
        "sub/.GIT/config",
        "AGENTS.md",
        ".env",
    ] {
        check_outcome(&rules, &edit(kept), "ask ask.silence");
    }
    let told = |path: &str| {
        let scene = edit(path);
        let call = scene.policy_call();
        decide(&rules, &call).explain(&call)
    };
    let explained = |what: &str| {
        format!("tool `updateFile` needs permission: {what}, even in mode `accept-edits`")
    };
    assert_eq!(told(".env"), explained("`/project/.env` is protected"));
    assert_eq!(told("../x"), explained("`/x` is outside this folder"));
    assert_eq!(told("src/a.rs"), "mode `accept-edits` allows changes to files in the workspace");
    check_outcome(&rules, &TestCall::shell_call("rm x"), "ask ask.silence");
    rules.files = vec![rule_file(RuleLayer::User, "deny path src\nask path doc")];
    check_outcome(&rules, &edit("src/a"), "deny file.deny user.toml:1");
    check_outcome(&rules, &edit("doc/a"), "ask file.ask user.toml:2");
}

#[test]
fn the_mode_plan_allows_reading_and_planning_and_asks_before_it_ends() {
    let mut rules = Rules::default();
    rules.mode = PolicyMode::Plan;
    rules.allow_all = true;
    rules.files = vec![rule_file(RuleLayer::User, "allow tool startPlan")];
    check_outcome(&rules, &TestCall::new("updateFile", json!({ "path": "a" })), "deny mode.plan");
    check_outcome(&rules, &TestCall::shell_call("rm x"), "deny mode.plan");
    let mut look = TestCall::new("readFile", json!({ "path": "a" }));
    look.annotations.read_only = true;
    check_outcome(&rules, &look, "allow option.yes");
    let planning = |tool| {
        let mut scene = TestCall::new(tool, json!({}));
        scene.plugin = "tool-todo".into();
        scene.annotations =
            Annotations { destructive: false, open_world: false, ..scene.annotations };
        scene
    };
    check_outcome(&rules, &planning("createPlan"), "allow option.yes");
    check_outcome(&rules, &planning("startPlan"), "ask mode.start_plan");
    // The names and annotations of other plugins' tools do not count.
    for tool in ["createPlan", "startPlan"] {
        let mut foreign = planning(tool);
        foreign.source = PluginSource::Elsewhere;
        check_outcome(&rules, &foreign, "deny mode.plan");
        let mut other = planning(tool);
        other.plugin = "tool-x".into();
        check_outcome(&rules, &other, "deny mode.plan");
        let mut destructive = planning(tool);
        destructive.annotations.destructive = true;
        check_outcome(&rules, &destructive, "deny mode.plan");
    }
    // A rule that denies holds, and in other modes starting a plan is a call like any other.
    rules.files = vec![rule_file(RuleLayer::User, "deny tool startPlan")];
    check_outcome(&rules, &planning("startPlan"), "deny file.deny user.toml:1");
    rules.files = Vec::new();
    rules.mode = PolicyMode::Ask;
    check_outcome(&rules, &planning("startPlan"), "allow option.yes");
}

#[test]
fn an_explanation_shows_every_rule_and_what_runs() {
    let rules = user_rules("deny command rm\nallow command ls\nallow command cat");
    let scene = TestCall::shell_call("ls | cat -n; x=$y");
    let evaluation = evaluate_call(&rules, &scene.policy_call());
    let matched: Vec<_> = evaluation.tried.iter().map(|tried| tried.matched).collect();
    assert_eq!(matched, [Some(false), Some(false), Some(false)]);
    assert_eq!(evaluation.commands, ["ls", "cat -n"]);
    assert!(!evaluation.doubts.is_empty());
    let Decision { outcome, rule } = evaluation.decision;
    assert_eq!((outcome, rule.name()), (RuleOutcome::Ask, "ask.silence"));
    let evaluation = evaluate_call(&rules, &TestCall::shell_call("ls | cat -n").policy_call());
    let matched: Vec<_> = evaluation.tried.iter().map(|tried| tried.matched).collect();
    assert_eq!(matched, [Some(false), Some(true), Some(true)]);
}

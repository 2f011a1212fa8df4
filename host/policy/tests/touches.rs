//! Rules and the declarations of tools: what counts as a path, host or command of a call.

use jaato_policy::{
    CallPattern, PluginSource, PolicyMode, Rules, SessionRule, evaluate_call, propose_patterns,
};
use jaato_types::permission_prompt::PermissionDecision;
use serde_json::{Value, json};

use crate::files::{TestCall, check_outcome, user_rules};

const DENIED: &str = "deny file.deny user.toml:1";
const UNCLEAR: &str = "ask file.unclear user.toml:1";
const SILENCE: &str = "ask ask.silence";

fn edit_call(operations: Value) -> TestCall {
    TestCall::new("multiFileEdit", json!({ "operations": operations }))
}

/// A call to a tool that jaato did not write.
fn foreign_call(source: PluginSource, arguments: Value) -> TestCall {
    let mut scene = TestCall::new("mcp__moon__do", arguments);
    scene.plugin = "tool-mcp".into();
    scene.source = source;
    // Whatever its author declares does not count.
    scene.schema = json!({ "type": "object", "x-jaato-touches": { "text": "harmless" } });
    scene
}

#[test]
fn path_rules_match_declared_path_arguments_of_any_name() {
    let mut rules = user_rules("deny path secret\nallow path src");
    check_outcome(
        &rules,
        &edit_call(json!([{ "from": "src/a", "to": "src/b" }])),
        "allow file.allow user.toml:2",
    );
    check_outcome(&rules, &edit_call(json!([{ "from": "src/a", "to": "Makefile" }])), SILENCE);
    check_outcome(&rules, &edit_call(json!([{ "from": "secret/key", "to": "src/b" }])), DENIED);
    // Text is not a path.
    let note = TestCall::new("note", json!({ "text": "secret/key" }));
    check_outcome(&rules, &note, SILENCE);
    rules.allow_all = true;
    check_outcome(&rules, &note, "allow option.yes");
    rules = Rules::default();
    rules.mode = PolicyMode::AcceptEdits;
    check_outcome(
        &rules,
        &edit_call(json!([{ "from": "a", "to": "b" }])),
        "allow mode.accept_edits",
    );
    check_outcome(&rules, &edit_call(json!([{ "from": "a", "to": ".git/config" }])), SILENCE);
    check_outcome(&rules, &edit_call(json!([{ "from": "../a", "to": "b" }])), SILENCE);
    check_outcome(&rules, &edit_call(json!([{ "path": "b", "unknown": "x" }])), SILENCE);
}

#[test]
fn path_rules_match_the_base_folder_of_a_search_pattern() {
    let rules = user_rules("deny path secret\nallow path src");
    let allowed = "allow file.allow user.toml:2";
    let find = |pattern: &str| TestCall::new("find", json!({ "pattern": pattern }));
    for (pattern, expected) in [
        ("secret/*", DENIED),
        ("secret/key", DENIED),
        ("./x/../secret/**", DENIED),
        ("/project/secret/*", DENIED),
        // The files tool leaves out denied files.
        ("**/*", SILENCE),
        ("s*/key", SILENCE),
        ("src/**/*.rs", allowed),
        ("src/a.rs", allowed),
        ("src/../*", SILENCE),
        ("src/*/../../x", SILENCE),
        ("src/{a,../..}/x", SILENCE),
        ("{src,/etc}/x", SILENCE),
        ("src*", SILENCE),
        ("src", SILENCE),
        ("", SILENCE),
    ] {
        check_outcome(&rules, &find(pattern), expected);
    }
    let below = |root: &str| TestCall::new("find", json!({ "pattern": "*.rs", "root": root }));
    check_outcome(&rules, &below("src/sub"), allowed);
    check_outcome(&rules, &below("secret"), DENIED);
    check_outcome(&rules, &below("."), SILENCE);
    let other = TestCall::new("find", json!({ "pattern": "../x/*", "root": "src" }));
    check_outcome(&rules, &other, SILENCE);
}

#[test]
fn allowing_a_path_does_not_allow_a_host_and_vice_versa() {
    let both = TestCall::new("save", json!({ "url": "https://docs.rs/x", "path": "src/a" }));
    check_outcome(&user_rules("allow path src"), &both, SILENCE);
    check_outcome(&user_rules("allow host docs.rs"), &both, SILENCE);
    for pattern in [CallPattern::Path("/project/src".into()), CallPattern::Host("docs.rs".into())] {
        let mut rules = Rules::default();
        let decision = PermissionDecision::AllowInSession;
        rules.remember_answer(SessionRule::new(&both.policy_call(), decision, pattern));
        check_outcome(&rules, &both, SILENCE);
    }
}

#[test]
fn rules_can_deny_but_not_allow_strings_of_a_foreign_tool() {
    for source in [PluginSource::Relayed, PluginSource::Elsewhere] {
        for (rule, text, expected) in [
            ("deny path secret", "secret/key", DENIED),
            ("deny path secret", "~/../../project/secret", DENIED),
            ("deny path secret", "please read secret/key", UNCLEAR),
            ("deny path secret", "/project", UNCLEAR),
            ("deny outside /project", "/etc/passwd", DENIED),
            ("deny host evil.example", "https://evil.example/x", DENIED),
            ("deny host evil.example", "evil.example", UNCLEAR),
            ("deny host *.example", "see EVIL.example:80/x", UNCLEAR),
            ("deny host evil.example", "a@evil.example", UNCLEAR),
            ("deny host evil.example", "http:/evil.example", DENIED),
            ("deny command git push", "git push --force", UNCLEAR),
            ("deny command rm", "ls; rm -r x", UNCLEAR),
            ("deny path secret", "a text with $words", "allow option.yes"),
            ("deny host *", "hello", "allow option.yes"),
        ] {
            let mut rules = user_rules(rule);
            rules.allow_all = true;
            for arguments in
                [json!({ "x": text }), json!({ "x": { "y": ["", text] } }), json!({ text: 1 })]
            {
                check_outcome(&rules, &foreign_call(source, arguments), expected);
            }
            let allowing = user_rules(&rule.replace("deny", "allow"));
            let decided = jaato_policy::decide(
                &allowing,
                &foreign_call(source, json!({ "x": text })).policy_call(),
            );
            assert_eq!(decided.outcome.name(), "ask", "{rule} {text}");
        }
    }
}

#[test]
fn a_host_is_denied_in_every_spelling() {
    let allowed = "allow option.yes";
    for (rule, text, declared, undeclared) in [
        ("deny host 127.0.0.1", "http://2130706433/", DENIED, DENIED),
        ("deny host 127.0.0.1", "http://0x7f.1/", DENIED, DENIED),
        ("deny host 127.0.0.1", "http://[::ffff:127.0.0.1]/", DENIED, DENIED),
        ("deny host 127.0.0.1", "[::ffff:127.0.0.1]", DENIED, UNCLEAR),
        ("deny host 127.0.0.1", "::ffff:127.0.0.1", DENIED, UNCLEAR),
        ("deny host 0177.1", "127.0.0.1:80", DENIED, UNCLEAR),
        ("deny host evil.example", "http:\\\\evil.example", DENIED, DENIED),
        ("deny host evil.example", "HTTP:evil.example/x", DENIED, DENIED),
        ("deny host evil.example", "https:///evil.example.", DENIED, DENIED),
        ("deny host evil.example", "//evil.example/x", DENIED, UNCLEAR),
        ("deny host evil.example", " https://a@EVIL.example:1", DENIED, DENIED),
        ("deny host evil.example", "http://evil%2eexample/", UNCLEAR, UNCLEAR),
        ("deny host evil.example", "evil%2Eexample", UNCLEAR, UNCLEAR),
        ("deny host evil.example", "http://\u{ff45}vil.example/", UNCLEAR, UNCLEAR),
        ("deny host evil.example", "evil\u{3002}example", UNCLEAR, UNCLEAR),
        ("deny host evil.example", "http://ev\til.example/", UNCLEAR, allowed),
        ("deny host good.example", "http://evil.example\\@good.example/", UNCLEAR, UNCLEAR),
        ("deny host evil.example", "https://docs.rs/a%20b?c=\u{fc}", allowed, allowed),
        ("deny host evil.example", "docs.rs", allowed, allowed),
        ("deny host evil.example", "100% of M\u{fc}ller, see http://docs.rs.", "", allowed),
    ] {
        let mut rules = user_rules(rule);
        rules.allow_all = true;
        if !declared.is_empty() {
            check_outcome(&rules, &TestCall::new("fetch", json!({ "url": text })), declared);
        }
        check_outcome(
            &rules,
            &foreign_call(PluginSource::Relayed, json!({ "x": text })),
            undeclared,
        );
    }
    let fetch = |url: &str| TestCall::new("fetch", json!({ "url": url }));
    let rules = user_rules("allow host *.example.com\nallow host 127.1");
    check_outcome(&rules, &fetch("https://a.example.com/"), "allow file.allow user.toml:1");
    check_outcome(&rules, &fetch("http://127.0.0.1/"), "allow file.allow user.toml:2");
    check_outcome(&rules, &fetch("https://evil.example%2f.example.com/"), SILENCE);
}

/// A line with many words. Each is two names, as a word and as a part of one.
fn call_with_words(count: usize) -> TestCall {
    let line = format!("cat{} ~/.ssh/id_rsa", " a".repeat(count));
    TestCall::new("cli_based_tool", json!({ "command": line }))
}

#[test]
fn deny_rule_asks_about_calls_with_too_many_or_too_long_names() {
    let mut rules = user_rules("deny path ~/.ssh");
    rules.allow_all = true;
    // The program is a name, too.
    let last = 4096 / 2 - 2;
    check_outcome(&rules, &call_with_words(last), DENIED);
    for count in [last + 1, last + 2, 3000] {
        check_outcome(&rules, &call_with_words(count), UNCLEAR);
    }
    let shell = |line: String| TestCall::new("cli_based_tool", json!({ "command": line }));
    let long = |bytes: usize| "./".repeat(bytes / 2);
    check_outcome(&rules, &shell(format!("cat {}a", long(4000))), "allow option.yes");
    check_outcome(&rules, &shell(format!("cat {}a", long(5000))), UNCLEAR);
    check_outcome(&rules, &shell(format!("cd ~/{} && cat .ssh/id_rsa", long(4090))), UNCLEAR);
    // A long text is split into its parts.
    check_outcome(&rules, &shell(format!("cat <<E\n{}\nE", "a ".repeat(1000))), "allow option.yes");
    let text =
        |count: usize| foreign_call(PluginSource::Relayed, json!({ "x": "cat a ".repeat(count) }));
    check_outcome(&rules, &text(100), "allow option.yes");
    check_outcome(&rules, &text(3000), UNCLEAR);
}

#[test]
fn deny_rule_asks_about_partly_analysed_foreign_text() {
    for rule in ["deny command rm", "deny path /srv/secret"] {
        let mut rules = user_rules(rule);
        rules.allow_all = true;
        let text = |text: String| foreign_call(PluginSource::Relayed, json!({ "x": text }));
        let spaces = |count: usize| text(format!("ls{}x", " ".repeat(count)));
        check_outcome(&rules, &spaces(32 * 1024 - 3), "allow option.yes");
        check_outcome(&rules, &spaces(32 * 1024 - 2), UNCLEAR);
        let nested = |depth: usize| text("(".repeat(depth) + "ls" + &")".repeat(depth));
        check_outcome(&rules, &nested(8), "allow option.yes");
        check_outcome(&rules, &nested(13), UNCLEAR);
        // It is not a command line.
        check_outcome(&rules, &text("if x then ) do".to_owned()), "allow option.yes");
    }
}

#[test]
fn a_reason_that_hides_programs_is_kept_after_many_others() {
    let mut rules = user_rules("deny command rm");
    rules.allow_all = true;
    let files: String = (0..600).map(|at| format!(" > a{at}")).collect();
    let line = format!("ls{files}; $x y");
    check_outcome(&rules, &TestCall::new("cli_based_tool", json!({ "command": line })), UNCLEAR);
}

#[test]
fn relayed_tool_is_allowed_only_by_its_whole_name() {
    let scene = foreign_call(PluginSource::Relayed, json!({ "command": "ls", "path": "src" }));
    for rule in [
        "allow tool *",
        "allow tool mcp__*",
        "allow tool mcp__moon__d?",
        "allow plugin tool-mcp",
        "allow plugin *",
        "allow command ls",
        "allow path /project",
        "allow read_only false",
    ] {
        check_outcome(&user_rules(rule), &scene, SILENCE);
    }
    check_outcome(&user_rules("allow tool mcp__moon__do"), &scene, "allow file.allow user.toml:1");
    assert_eq!(
        propose_patterns(&Rules::default(), &scene.policy_call()),
        [CallPattern::exact_call(&scene.policy_call()), CallPattern::Tool]
    );
}

#[test]
fn deny_rule_asks_about_a_call_with_too_many_values() {
    let operations: Vec<_> = (0..10_000).map(|_| json!({ "path": "src/a" })).collect();
    let many = edit_call(json!(operations));
    let mut rules = user_rules("deny path secret\nallow path src");
    check_outcome(&rules, &many, UNCLEAR);
    rules.allow_all = true;
    check_outcome(&rules, &many, UNCLEAR);
    check_outcome(&user_rules("allow path src"), &many, SILENCE);
    rules = Rules::default();
    rules.mode = PolicyMode::AcceptEdits;
    check_outcome(&rules, &many, SILENCE);
}

#[test]
fn an_explanation_shows_all_that_a_call_touches() {
    let shown = |scene: &TestCall| {
        let touches = evaluate_call(&Rules::default(), &scene.policy_call()).touches;
        touches.iter().map(|it| format!("{} {}", it.kind, it.name)).collect::<Vec<_>>()
    };
    let moved = edit_call(json!([{ "from": "a", "to": "../b", "content": "c/d" }]));
    assert_eq!(shown(&moved), ["write /project/a", "write /b"]);
    let line = TestCall::new("cli_based_tool", json!({ "command": "curl https://docs.rs -o ./x" }));
    assert_eq!(shown(&line), ["word /project/x", "host docs.rs"]);
    let other = foreign_call(PluginSource::Relayed, json!({ "x": "https://docs.rs/" }));
    assert!(shown(&other).contains(&"host docs.rs".to_owned()));
}

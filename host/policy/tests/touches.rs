//! Rules and the declarations of tools: what counts as a path, host or command of a call.

use jaato_policy::{
    CallPattern, PluginSource, PolicyMode, Rules, SessionRule, evaluate, propose_patterns,
};
use jaato_types::permission_prompt::PermissionDecision;
use serde_json::{Value, json};

use crate::files::{Scene, check, user};

const DENIED: &str = "deny file.deny user.toml:1";
const UNCLEAR: &str = "ask file.unclear user.toml:1";
const SILENCE: &str = "ask ask.silence";

fn edits(operations: Value) -> Scene {
    Scene::new("multiFileEdit", json!({ "operations": operations }))
}

/// A call to a tool that jaato did not write.
fn foreign(source: PluginSource, arguments: Value) -> Scene {
    let mut scene = Scene::new("mcp__moon__do", arguments);
    scene.plugin = "tool-mcp".into();
    scene.source = source;
    // Whatever its author declares does not count.
    scene.schema = json!({ "type": "object", "x-jaato-touches": { "text": "harmless" } });
    scene
}

#[test]
fn path_rules_match_declared_path_arguments_of_any_name() {
    let mut rules = user("deny path secret\nallow path src");
    check(
        &rules,
        &edits(json!([{ "from": "src/a", "to": "src/b" }])),
        "allow file.allow user.toml:2",
    );
    check(&rules, &edits(json!([{ "from": "src/a", "to": "Makefile" }])), SILENCE);
    check(&rules, &edits(json!([{ "from": "secret/key", "to": "src/b" }])), DENIED);
    // Text is not a path.
    let note = Scene::new("note", json!({ "text": "secret/key" }));
    check(&rules, &note, SILENCE);
    rules.allow_all = true;
    check(&rules, &note, "allow option.yes");
    rules = Rules::default();
    rules.mode = PolicyMode::AcceptEdits;
    check(&rules, &edits(json!([{ "from": "a", "to": "b" }])), "allow mode.accept_edits");
    check(&rules, &edits(json!([{ "from": "a", "to": ".git/config" }])), SILENCE);
    check(&rules, &edits(json!([{ "from": "../a", "to": "b" }])), SILENCE);
    check(&rules, &edits(json!([{ "path": "b", "unknown": "x" }])), SILENCE);
}

#[test]
fn path_rules_match_the_base_folder_of_a_search_pattern() {
    let rules = user("deny path secret\nallow path src");
    let allowed = "allow file.allow user.toml:2";
    let find = |pattern: &str| Scene::new("find", json!({ "pattern": pattern }));
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
        check(&rules, &find(pattern), expected);
    }
    let below = |root: &str| Scene::new("find", json!({ "pattern": "*.rs", "root": root }));
    check(&rules, &below("src/sub"), allowed);
    check(&rules, &below("secret"), DENIED);
    check(&rules, &below("."), SILENCE);
    let other = Scene::new("find", json!({ "pattern": "../x/*", "root": "src" }));
    check(&rules, &other, SILENCE);
}

#[test]
fn allowing_a_path_does_not_allow_a_host_and_vice_versa() {
    let both = Scene::new("save", json!({ "url": "https://docs.rs/x", "path": "src/a" }));
    check(&user("allow path src"), &both, SILENCE);
    check(&user("allow host docs.rs"), &both, SILENCE);
    for pattern in [CallPattern::Path("/project/src".into()), CallPattern::Host("docs.rs".into())] {
        let mut rules = Rules::default();
        let decision = PermissionDecision::AllowInSession;
        rules.remember(SessionRule::new(&both.call(), decision, pattern));
        check(&rules, &both, SILENCE);
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
            let mut rules = user(rule);
            rules.allow_all = true;
            for arguments in
                [json!({ "x": text }), json!({ "x": { "y": ["", text] } }), json!({ text: 1 })]
            {
                check(&rules, &foreign(source, arguments), expected);
            }
            let allowing = user(&rule.replace("deny", "allow"));
            let decided =
                jaato_policy::decide(&allowing, &foreign(source, json!({ "x": text })).call());
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
        let mut rules = user(rule);
        rules.allow_all = true;
        if !declared.is_empty() {
            check(&rules, &Scene::new("fetch", json!({ "url": text })), declared);
        }
        check(&rules, &foreign(PluginSource::Relayed, json!({ "x": text })), undeclared);
    }
    let fetch = |url: &str| Scene::new("fetch", json!({ "url": url }));
    let rules = user("allow host *.example.com\nallow host 127.1");
    check(&rules, &fetch("https://a.example.com/"), "allow file.allow user.toml:1");
    check(&rules, &fetch("http://127.0.0.1/"), "allow file.allow user.toml:2");
    check(&rules, &fetch("https://evil.example%2f.example.com/"), SILENCE);
}

/// A line with many words. Each is two names, as a word and as a part of one.
fn words(count: usize) -> Scene {
    let line = format!("cat{} ~/.ssh/id_rsa", " a".repeat(count));
    Scene::new("cli_based_tool", json!({ "command": line }))
}

#[test]
fn deny_rule_asks_about_calls_with_too_many_or_too_long_names() {
    let mut rules = user("deny path ~/.ssh");
    rules.allow_all = true;
    // The program is a name, too.
    let last = 4096 / 2 - 2;
    check(&rules, &words(last), DENIED);
    for count in [last + 1, last + 2, 3000] {
        check(&rules, &words(count), UNCLEAR);
    }
    let shell = |line: String| Scene::new("cli_based_tool", json!({ "command": line }));
    let long = |bytes: usize| "./".repeat(bytes / 2);
    check(&rules, &shell(format!("cat {}a", long(4000))), "allow option.yes");
    check(&rules, &shell(format!("cat {}a", long(5000))), UNCLEAR);
    check(&rules, &shell(format!("cd ~/{} && cat .ssh/id_rsa", long(4090))), UNCLEAR);
    // A long text is split into its parts.
    check(&rules, &shell(format!("cat <<E\n{}\nE", "a ".repeat(1000))), "allow option.yes");
    let text =
        |count: usize| foreign(PluginSource::Relayed, json!({ "x": "cat a ".repeat(count) }));
    check(&rules, &text(100), "allow option.yes");
    check(&rules, &text(3000), UNCLEAR);
}

#[test]
fn deny_rule_asks_about_partly_analysed_foreign_text() {
    for rule in ["deny command rm", "deny path /srv/secret"] {
        let mut rules = user(rule);
        rules.allow_all = true;
        let text = |text: String| foreign(PluginSource::Relayed, json!({ "x": text }));
        let spaces = |count: usize| text(format!("ls{}x", " ".repeat(count)));
        check(&rules, &spaces(32 * 1024 - 3), "allow option.yes");
        check(&rules, &spaces(32 * 1024 - 2), UNCLEAR);
        let nested = |depth: usize| text("(".repeat(depth) + "ls" + &")".repeat(depth));
        check(&rules, &nested(8), "allow option.yes");
        check(&rules, &nested(13), UNCLEAR);
        // It is not a command line.
        check(&rules, &text("if x then ) do".to_owned()), "allow option.yes");
    }
}

#[test]
fn a_reason_that_hides_programs_is_kept_after_many_others() {
    let mut rules = user("deny command rm");
    rules.allow_all = true;
    let files: String = (0..600).map(|at| format!(" > a{at}")).collect();
    let line = format!("ls{files}; $x y");
    check(&rules, &Scene::new("cli_based_tool", json!({ "command": line })), UNCLEAR);
}

#[test]
fn relayed_tool_is_allowed_only_by_its_whole_name() {
    let scene = foreign(PluginSource::Relayed, json!({ "command": "ls", "path": "src" }));
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
        check(&user(rule), &scene, SILENCE);
    }
    check(&user("allow tool mcp__moon__do"), &scene, "allow file.allow user.toml:1");
    assert_eq!(
        propose_patterns(&Rules::default(), &scene.call()),
        [CallPattern::exact_call(&scene.call()), CallPattern::Tool]
    );
}

#[test]
fn deny_rule_asks_about_a_call_with_too_many_values() {
    let operations: Vec<_> = (0..10_000).map(|_| json!({ "path": "src/a" })).collect();
    let many = edits(json!(operations));
    let mut rules = user("deny path secret\nallow path src");
    check(&rules, &many, UNCLEAR);
    rules.allow_all = true;
    check(&rules, &many, UNCLEAR);
    check(&user("allow path src"), &many, SILENCE);
    rules = Rules::default();
    rules.mode = PolicyMode::AcceptEdits;
    check(&rules, &many, SILENCE);
}

#[test]
fn an_explanation_shows_all_that_a_call_touches() {
    let shown = |scene: &Scene| {
        let touches = evaluate(&Rules::default(), &scene.call()).touches;
        touches.iter().map(|it| format!("{} {}", it.kind, it.name)).collect::<Vec<_>>()
    };
    let moved = edits(json!([{ "from": "a", "to": "../b", "content": "c/d" }]));
    assert_eq!(shown(&moved), ["write /project/a", "write /b"]);
    let line = Scene::new("cli_based_tool", json!({ "command": "curl https://docs.rs -o ./x" }));
    assert_eq!(shown(&line), ["word /project/x", "host docs.rs"]);
    let other = foreign(PluginSource::Relayed, json!({ "x": "https://docs.rs/" }));
    assert!(shown(&other).contains(&"host docs.rs".to_owned()));
}

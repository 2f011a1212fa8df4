//! Rules and the declarations of tools: what counts as a path, host or command of a call.

use jaato_policy::{Mode, Pattern, PluginSource, Rules, evaluate, proposals};
use serde_json::{Value, json};

use crate::files::{Scene, check, user};

const DENIED: &str = "deny file.deny user.toml:1";
const UNCLEAR: &str = "ask file.unclear user.toml:1";
const SILENCE: &str = "ask ask.silence";

fn edits(operations: Value) -> Scene {
    Scene::new("multiFileEdit", json!({ "operations": operations }))
}

/// A call of a tool that jaato did not write.
fn foreign(source: PluginSource, arguments: Value) -> Scene {
    let mut scene = Scene::new("mcp__moon__do", arguments);
    scene.plugin = "tool-mcp".into();
    scene.source = source;
    // Whatever its author declares counts for nothing.
    scene.schema = json!({ "type": "object", "x-jaato-touches": { "text": "harmless" } });
    scene
}

#[test]
fn declared_paths_count_whatever_their_names_are() {
    let mut rules = user("deny path secret\nallow path src");
    check(
        &rules,
        &edits(json!([{ "from": "src/a", "to": "src/b" }])),
        "allow file.allow user.toml:2",
    );
    check(&rules, &edits(json!([{ "from": "src/a", "to": "Makefile" }])), SILENCE);
    check(&rules, &edits(json!([{ "from": "secret/key", "to": "src/b" }])), DENIED);
    // Text is no path.
    let note = Scene::new("note", json!({ "text": "secret/key" }));
    check(&rules, &note, SILENCE);
    rules.allow_all = true;
    check(&rules, &note, "allow option.yes");
    rules = Rules::default();
    rules.mode = Mode::AcceptEdits;
    check(&rules, &edits(json!([{ "from": "a", "to": "b" }])), "allow mode.accept_edits");
    check(&rules, &edits(json!([{ "from": "a", "to": ".git/config" }])), SILENCE);
    check(&rules, &edits(json!([{ "from": "../a", "to": "b" }])), SILENCE);
    check(&rules, &edits(json!([{ "path": "b", "unknown": "x" }])), SILENCE);
}

#[test]
fn a_pattern_is_the_folder_below_which_its_matches_are() {
    let rules = user("deny path secret\nallow path src");
    let allowed = "allow file.allow user.toml:2";
    let find = |pattern: &str| Scene::new("find", json!({ "pattern": pattern }));
    for (pattern, expected) in [
        ("secret/*", DENIED),
        ("secret/key", DENIED),
        ("./x/../secret/**", DENIED),
        ("/project/secret/*", DENIED),
        // The files tool leaves out what is denied.
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
fn a_rule_for_paths_says_nothing_of_hosts_and_the_other_way_round() {
    let both = Scene::new("save", json!({ "url": "https://docs.rs/x", "path": "src/a" }));
    check(&user("allow path src"), &both, SILENCE);
    check(&user("allow host docs.rs"), &both, SILENCE);
    let only = |pattern: Pattern| pattern.covers(&both.call());
    assert!(!only(Pattern::Path("/project/src".into())) && !only(Pattern::Host("docs.rs".into())));
}

#[test]
fn any_string_of_a_foreign_tool_can_be_denied_and_none_allows() {
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
            ("deny host evil.example", "http:/evil.example", UNCLEAR),
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
fn a_tool_that_is_passed_on_is_allowed_by_its_whole_name_alone() {
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
        proposals(&Rules::default(), &scene.call()),
        [Pattern::exactly(&scene.call()), Pattern::Tool]
    );
}

#[test]
fn a_call_with_more_values_than_are_read_may_touch_anything() {
    let operations: Vec<_> = (0..10_000).map(|_| json!({ "path": "src/a" })).collect();
    let many = edits(json!(operations));
    let mut rules = user("deny path secret\nallow path src");
    check(&rules, &many, UNCLEAR);
    rules.allow_all = true;
    check(&rules, &many, UNCLEAR);
    check(&user("allow path src"), &many, SILENCE);
    rules = Rules::default();
    rules.mode = Mode::AcceptEdits;
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

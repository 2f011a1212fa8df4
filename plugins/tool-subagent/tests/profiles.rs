//! Calls of the tools and the command for profiles through the boundary.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::PathBuf;

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::ErrorKind;
use jaato_plugin_sdk::types::service::SessionFacts;
use jaato_plugin_testkit::FakeHost;

/// A workspace and a home.
struct ProfilesFixture {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl ProfilesFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["w", "h"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        Self { _folder: folder, root }
    }

    fn write_file(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    /// Returns a host in the workspace, which the user trusts.
    fn trusting_host(&self) -> FakeHost {
        let facts =
            SessionFacts { trusted_workspace: Some(self.path("w")), ..SessionFacts::default() };
        self.host_with_facts(facts, json!({}))
    }

    fn host_with_facts(&self, facts: SessionFacts, mut config: Value) -> FakeHost {
        config["home"] = json!(self.path("h"));
        let facts = SessionFacts { working_directory: self.path("w"), ..facts };
        FakeHost::new(tool_subagent::__jaato::MODULE).with_config(config).with_session(facts)
    }
}

#[track_caller]
fn call_tool(host: &FakeHost, name: &str, arguments: Value) -> Value {
    Value::Object(host.call(name, arguments).unwrap().content)
}

const REVIEWER: &str = "---\nname: reviewer\ndescription: Reviews code.\ntools: Read, Grep\n\
                        model: sonnet\n---\nBe strict.\n";

#[test]
fn list_shows_profiles_and_what_is_wrong_with_others() {
    let places = ProfilesFixture::new();
    places.write_file("w/.claude/agents/reviewer.md", REVIEWER);
    places.write_file("h/.jaato/profiles/reviewer.json", "{\"plugins\": [\"cli\"]}");
    places.write_file("w/.jaato/profiles/bad.yaml", "max_turns: many\n");
    let config = json!({ "profiles": { "own": { "description": "Mine.", "model": "a/b" } } });
    let trusted =
        SessionFacts { trusted_workspace: Some(places.path("w")), ..SessionFacts::default() };
    let host = places.host_with_facts(trusted, config);
    let expected = json!({
        "profiles": [
            {
                "name": "own", "description": "Mine.", "model": "a/b", "max_turns": 10,
                "auto_approved": false, "source": "config.toml: profiles.own",
            },
            {
                "name": "reviewer", "description": "", "plugins": ["cli"], "max_turns": 10,
                "auto_approved": false, "source": places.path("h/.jaato/profiles/reviewer.json"),
            },
        ],
        "count": 2,
        "skipped": [
            {
                "path": places.path("w/.jaato/profiles/bad.yaml"),
                "reason": "'max_turns' must be a positive integer",
            },
            {
                "path": places.path("w/.claude/agents/reviewer.md"),
                "reason": format!(
                    "`{}` already has the name `reviewer`",
                    places.path("h/.jaato/profiles/reviewer.json")
                ),
            },
        ],
    });
    assert_eq!(call_tool(&host, "list_subagent_profiles", json!({})), expected);
    let command = host.create(None).unwrap().command("profiles", json!({})).unwrap();
    let text = command.content["result"].as_str().unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert_eq!(
        lines[..2],
        [
            "own  Mine. (model a/b; config.toml: profiles.own)".to_owned(),
            format!("reviewer   (plugins cli; {})", places.path("h/.jaato/profiles/reviewer.json")),
        ]
    );
    assert!(lines[2].ends_with("bad.yaml is skipped: 'max_turns' must be a positive integer"));
}

#[test]
fn list_of_an_untrusted_workspace_says_what_is_ignored() {
    let places = ProfilesFixture::new();
    places.write_file("w/.claude/agents/reviewer.md", REVIEWER);
    let host = places.host_with_facts(SessionFacts::default(), json!({}));
    let answer = call_tool(&host, "list_subagent_profiles", json!({}));
    let note = format!(
        "`{}` is ignored, because the workspace is not trusted; run `jaato trust`",
        places.path("w/.claude/agents")
    );
    assert_eq!((&answer["profiles"], &answer["count"]), (&json!([]), &json!(0)));
    assert_eq!(answer["note"], note);
    assert!(answer["message"].as_str().unwrap().starts_with("No profiles."));
    let command = host.create(None).unwrap().command("profiles", json!({})).unwrap();
    assert_eq!(command.content["result"], format!("no profiles\n! {note}"));
}

#[test]
fn profiles_are_read_at_each_use() {
    let places = ProfilesFixture::new();
    let host = places.trusting_host();
    let count = || call_tool(&host, "list_subagent_profiles", json!({}))["count"].clone();
    assert_eq!(count(), 0);
    places.write_file("w/.claude/agents/reviewer.md", REVIEWER);
    assert_eq!(count(), 1);
}

#[test]
fn validation_reports_all_errors_of_a_file() {
    let places = ProfilesFixture::new();
    places.write_file("w/good.json", r#"{"name": "good", "description": "d", "plugins": []}"#);
    places.write_file("w/bad.json", r#"{"plugins": "cli", "icon": ["x"], "gc": {"type": "zz"}}"#);
    places.write_file("w/warn.yaml", "name: warn\ndescription: d\nplugin_configs: {}\n");
    places.write_file("w/agent.md", REVIEWER);
    places.write_file("w/broken.json", "{");
    places.write_file("w/bytes.json", [0x7b, 0xff, 0xff, 0xff, 0xff]);
    places.write_file("w/huge.yaml", "x".repeat(65_537));
    places.write_file("w/text.txt", "x");
    fs::create_dir(places.root.join("w/folder.json")).unwrap();
    let host = places.trusting_host();
    let check = |path: &str, errors: &[&str], warnings: &[&str]| {
        let expected = json!({
            "valid": errors.is_empty(), "path": path, "errors": errors, "warnings": warnings,
        });
        assert_eq!(call_tool(&host, "validateProfile", json!({ "path": path })), expected);
    };
    check("good.json", &[], &[]);
    let wrong = [
        "'name' is required",
        "'description' is required",
        "'plugins' must be an array",
        "gc.type 'zz' is invalid. Must be one of: truncate, summarize, hybrid, budget",
        "'icon' must contain exactly 3 strings, got 1",
    ];
    check("bad.json", &wrong, &[]);
    let ignored = "'plugin_configs' is ignored: jaato does not set it for a subagent";
    check("warn.yaml", &[], &[ignored]);
    check("agent.md", &[], &[]);
    check("broken.json", &["Invalid JSON: EOF while parsing an object at line 1 column 1"], &[]);
    check("bytes.json", &["it is not UTF-8 text"], &[]);
    check("huge.yaml", &["it has more than 65536 bytes"], &[]);
    check("folder.json", &["it is not a regular file"], &[]);
    check("none.json", &["File not found: none.json"], &[]);
    let names = "the name of a profile must end with .json, .yaml, .yml or .md";
    check("text.txt", &[names], &[]);
    check("", &["'path' is required"], &[]);
}

#[test]
fn validation_reads_only_files_that_the_environment_allows() {
    let places = ProfilesFixture::new();
    places.write_file("secret.json", "{}");
    let host = places.trusting_host();
    let error =
        host.call("validateProfile", json!({ "path": places.path("secret.json") })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
}

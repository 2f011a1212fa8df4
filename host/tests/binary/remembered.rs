//! Tests what a permanent answer covers in later sessions, and which files can never be edited
//! without a prompt.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::answers::{call_answer, text_answer};
use crate::support::cli::{house_with_asking_cli, house_with_cli};
use crate::support::{House, fixtures, is_root, library_name, set_mode};

const RULES: &str = "home/.config/jaato/permissions.toml";

/// Runs one command in a folder. The user answers permanently each time.
fn answer_always(house: &House, command: &str, folder: &Path) -> String {
    house.set_script(&json!({ "answers": [
        call_answer("cli_based_tool", json!({ "command": command })),
        text_answer("done"),
    ] }));
    let words = ["run", "--output", "json", "--answers", "go"];
    let mut running = house.command(&words).directory(folder).start();
    let asked = running.wait_for("\"event\":\"permission_asked\"");
    let asked: Value = serde_json::from_str(&asked).unwrap();
    let answer = json!({ "call_id": asked["call_id"], "decision": "allow_always", "pattern": 0 });
    running.write(format!("{}\n", json!({ "answer": answer })).as_bytes());
    // A missing command makes the run fail, but the answer is stored all the same.
    running.finish().stdout
}

/// Returns the rules' decision about a command in a folder.
fn decision_in_folder(house: &House, command: &str, folder: &Path) -> String {
    let arguments = json!({ "command": command }).to_string();
    let words = ["permission", "explain", "cli_based_tool", &arguments];
    let said = house.command(&words).directory(folder).run().code(0).stdout;
    said.split(':').next().unwrap().to_owned()
}

fn create_project(house: &House, name: &str) -> std::path::PathBuf {
    house.write(&format!("{name}/.git/HEAD"), "ref: refs/heads/main\n");
    house.write(&format!("{name}/Makefile"), "all:\n\ttouch ran\n");
    house.path().join(name)
}

#[test]
fn permanent_answer_applies_only_in_its_trusted_workspace() {
    let Some(house) = house_with_cli() else { return };
    let (mine, other) = (create_project(&house, "mine"), create_project(&house, "other"));
    let inner = create_project(&house, "mine/inner");
    for folder in [&mine, &other, &inner] {
        house.command(&["trust"]).directory(folder).run().code(0);
    }
    for line in ["make", "./build.sh", "npm test", "python3 setup.py", "sh run.sh", "pytest"] {
        answer_always(&house, line, &mine);
        assert_eq!(decision_in_folder(&house, line, &mine), "allow", "{line}");
        for elsewhere in [&other, &inner] {
            assert_eq!(decision_in_folder(&house, line, elsewhere), "ask", "{line}: elsewhere");
        }
    }
    let text = fs::read_to_string(house.path().join(RULES)).unwrap();
    for line in ["call = \"make\"", "call = \"npm test\"", "workspace = \""] {
        assert!(text.contains(line), "{text}");
    }
    let listed = house.run(&["permission", "list"]).code(0).stdout;
    assert!(listed.contains("call = \"python3 setup.py\""), "{listed}");
}

/// Returns an installation with the file tools, in mode `accept-edits`.
fn house_with_file_tools() -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::test_house()?.join("plugins");
    for name in ["tool_file_edit", "environment_local"] {
        house.ship(&plugins.join(library_name(name)));
    }
    Some(house)
}

/// Writes files from a folder in mode `accept-edits`. Returns those written without a prompt.
fn write_rules(house: &House, names: &[&str], folder: &Path) -> Vec<String> {
    let steps: Vec<Value> = names
        .iter()
        .map(|name| {
            let arguments = json!({ "path": name, "content": "new" });
            json!({ "call": { "name": "writeNewFile", "arguments": arguments } })
        })
        .collect();
    house.set_script(&json!({ "answers": [{ "steps": steps }, text_answer("done")] }));
    let words = ["run", "--mode", "accept-edits", "go"];
    house.command(&words).directory(folder).no_input().run();
    let is_written = |name: &&&str| folder.join(name).symlink_metadata().is_ok();
    names.iter().filter(is_written).map(|name| (*name).to_owned()).collect()
}

#[test]
fn automatic_edits_never_change_protected_files() {
    let Some(house) = house_with_file_tools() else { return };
    let work = house.workspace();
    let protected = [
        ".husky/pre-commit",
        ".githooks/x",
        ".github/workflows/ci.yml",
        ".GitHub/Workflows/ci.yml",
        ".gitlab-ci.yml",
        ".circleci/config.yml",
        ".cargo/config.toml",
        ".npmrc",
        ".yarnrc.yml",
        ".pnpmfile.cjs",
        ".gitmodules",
        ".gitattributes",
        ".devcontainer/devcontainer.json",
        ".cursor/mcp.json",
        ".gemini/settings.json",
        ".codex/config.toml",
        "GEMINI.md",
        "agents.md",
        "sub/AGENTS.md",
        ".env.local",
        ".envrc",
        ".zed/tasks.json",
        ".pre-commit-config.yaml",
        "lefthook.yml",
        "x.code-workspace",
        "./.vscode/tasks.json",
        "sub/../.idea/x.xml",
        ".some-new-tool.yml",
        "HEAD",
        "config",
        "sub/HEAD",
        "sub/config",
        "objects/x",
        "refs/x",
        "packed-refs",
        "hooks/post-checkout",
        "AGENTS\u{200c}.md",
        "sitecustomize.py",
    ];
    let plain = ["src/main.rs", ".gitignore", "Makefile", "package.json", "src/config/a.rs"];
    for names in [&protected[..], &plain[..]] {
        let got = write_rules(&house, names, &work);
        let expected: &[&str] = if names.len() == plain.len() { &plain } else { &[] };
        assert_eq!(got, expected, "{got:?}");
    }
}

#[test]
fn automatic_edits_never_change_home_or_jaato_files() {
    let Some(house) = house_with_file_tools() else { return };
    let names = [
        ".config/jaato/permissions.toml",
        ".local/share/jaato/grants.json",
        ".bashrc",
        ".profile",
        ".ssh/authorized_keys2",
        ".gitconfig",
        ".config/systemd/user/x.service",
    ];
    let got = write_rules(&house, &names, &house.home());
    assert_eq!(got, Vec::<String>::new());
    let config = house.home().join(".config");
    let got = write_rules(&house, &["git/config", "fish/config.fish", "new"], &config);
    assert_eq!(got, Vec::<String>::new());
    assert_eq!(write_rules(&house, &["notes.md"], &house.home()), ["notes.md"]);
}

#[test]
fn home_and_folders_of_other_users_are_not_workspaces() {
    let Some(house) = house_with_cli() else { return };
    house.run(&["permission", "allow", "--command", "make"]).code(0);
    house.write("home/.jaato/prompts/x.md", "say x");
    for name in ["mine", "Downloads/evil"] {
        house.write(&format!("home/{name}/Makefile"), "all:\n\ttouch ran\n");
    }
    let (mine, evil) = (house.home().join("mine"), house.home().join("Downloads/evil"));
    house.command(&["trust"]).directory(&mine).run().code(0);
    assert_eq!(decision_in_folder(&house, "make", &mine), "allow");
    assert_eq!(decision_in_folder(&house, "make", &evil), "ask");
    house.command(&["trust"]).directory(&house.home()).run().code(0);
    assert_eq!(decision_in_folder(&house, "make", &evil), "ask");

    // Like `/tmp`: every user can write there.
    let (open, work) = (house.path().join("open"), house.path().join("open/work"));
    fs::create_dir_all(&work).unwrap();
    fs::create_dir_all(open.join(".jaato")).unwrap();
    set_mode(&open, 0o1777);
    house.command(&["trust"]).directory(&work).run().code(0);
    assert_eq!(decision_in_folder(&house, "make", &open), "ask");
    if !is_root() {
        return;
    }
    let shared = house.path().join("shared");
    fs::create_dir_all(shared.join("work")).unwrap();
    fs::create_dir_all(shared.join(".jaato")).unwrap();
    std::os::unix::fs::chown(shared.join(".jaato"), Some(64_001), None).unwrap();
    let said = house.command(&["trust"]).directory(&shared.join("work")).run().code(0).stdout;
    assert!(!said.contains("/shared`"), "{said}");
}

#[test]
fn workspace_rule_cannot_allow_everything() {
    let Some(house) = house_with_asking_cli() else { return };
    let decided = |name: &str, text: &str| {
        for old in ["permissions.toml", "permissions.json"] {
            let _ = fs::remove_file(house.workspace().join(".jaato").join(old));
        }
        house.write(&format!("workspace/.jaato/{name}"), text);
        house.run(&["trust"]).code(0);
        decision_in_folder(&house, "date", &house.workspace())
    };
    for rule in [
        "tool = \"*\"",
        "tool = \"?*\"",
        "tool = \"*_tool\"",
        "tool = \"cli_based_tool\"\nplugin = \"*\"",
        "plugin = \"tool-cli\"",
        "read_only = false",
        "agent_type = \"main\"",
        "host = \"*\"",
        "path = \"/\"",
        "argument.command = \"*\"",
        "command = \"date\"\noptions = \"any\"",
    ] {
        let text = format!("[[rules]]\ndecision = \"allow\"\n{rule}\n");
        assert_eq!(decided("permissions.toml", &text), "deny", "{rule}");
    }
    for rule in ["tool = \"cli_based_tool\"", "tool = \"cli_based_tool\"\nargument.command = \"*\""]
    {
        let text = format!("[[rules]]\ndecision = \"allow\"\n{rule}\n");
        assert_eq!(decided("permissions.toml", &text), "ask", "{rule}");
    }
    for list in [
        r#"{"tools": ["*"]}"#,
        r#"{"tools": ["cli*"]}"#,
        r#"{"tools": ["cli_based_tool"]}"#,
        r#"{"patterns": ["*", "cli_based_tool(*)"]}"#,
        r#"{"arguments": {"*": {"command": ["date"]}}}"#,
    ] {
        let text = format!("{{\"whitelist\": {list}}}");
        assert_eq!(decided("permissions.json", &text), "ask", "{list}");
    }
    let text = "[[rules]]\ndecision = \"allow\"\ncommand = \"date\"\n";
    assert_eq!(decided("permissions.toml", text), "allow");
}

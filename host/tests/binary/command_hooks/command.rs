//! `jaato hook`: the list, and trying hooks without a session.

use serde_json::json;

use super::{HookHouse, hook_entry, script_command};

#[test]
fn list_shows_where_each_hook_comes_from_and_whether_it_runs() {
    let mut hooks = hook_entry("PreToolUse", "Bash", "./guard.sh");
    hooks["Stop"] = json!([{ "hooks": [{ "type": "http", "url": "http://x.example" }] }]);
    let Some(house) = HookHouse::untrusted(&hooks, &[]) else { return };
    house.house.configure(
        "[[plugins.hook-command.hooks.SessionStart]]\nhooks = [{ command = \"date\" }]\n",
    );
    let list = || house.house.run(&["hook"]).code(0).stdout;
    let own = "the configuration  SessionStart: date\n";
    let guard = ".claude/settings.json  PreToolUse (Bash): ./guard.sh";
    let untrusted = list();
    assert!(untrusted.contains(own), "{untrusted}");
    assert!(untrusted.contains(&format!("{guard}  (not trusted, does not run)\n")), "{untrusted}");
    house.house.run(&["trust"]).code(0);
    let trusted = list();
    assert!(trusted.contains(own) && trusted.contains(&format!("{guard}\n")), "{trusted}");
    let other = "Stop: jaato does not run hooks of the type `http`";
    assert!(trusted.contains(other), "{trusted}");
}

#[test]
fn list_without_hooks_says_so() {
    let Some(house) = HookHouse::without_hooks() else { return };
    let output = house.house.run(&["hook", "list"]).code(0);
    assert_eq!(output.stdout, "no hooks are configured; `hook help` explains where\n");
}

#[test]
fn test_runs_the_hooks_of_an_event_and_shows_their_decision() {
    let guard = "input=$(cat)\ncase $input in *danger*) echo no >&2; exit 2 ;; esac\necho fine";
    let hooks = hook_entry("PreToolUse", "Bash", &script_command("sh", "guard.sh"));
    let Some(house) = HookHouse::new(&hooks, &[("guard.sh", guard)]) else { return };
    let output = house.house.run(&["hook", "test", "PreToolUse"]).code(0);
    for row in
        ["\"tool_name\":\"Bash\"", "  exit code 0 after ", "  output: fine", "together: none"]
    {
        assert!(output.stdout.contains(row), "{row}: {output}");
    }
    let given = r#"{"tool_input": {"command": "danger"}}"#;
    let output = house.house.run(&["hook", "test", "pretooluse", given]).code(0);
    for row in ["  exit code 2 after ", "  error output: no", "together: block: no"] {
        assert!(output.stdout.contains(row), "{row}: {output}");
    }
    let other = r#"{"tool_name": "Read", "tool_input": {}}"#;
    let output = house.house.run(&["hook", "test", "PreToolUse", other]).code(0);
    assert!(output.stdout.contains("no hook of `PreToolUse` matches"), "{output}");
    let unknown = house.house.run(&["hook", "test", "Moon"]);
    assert!(unknown.code != 0 && unknown.stderr.contains("unknown event `Moon`"), "{unknown}");
    let broken = house.house.run(&["hook", "test", "Stop", "{"]);
    assert!(broken.code != 0 && broken.stderr.contains("is not a JSON object"), "{broken}");
}

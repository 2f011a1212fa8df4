//! Tests profiles of subagents: those of a workspace count only while it is trusted, and a broken
//! one is reported.

use serde_json::json;

use crate::support::{House, fixtures, library_name};

fn house_with_profiles() -> Option<House> {
    let house = House::new()?;
    for plugin in ["environment_local", "tool_subagent"] {
        house.ship(&fixtures::test_house()?.join("plugins").join(library_name(plugin)));
    }
    house.write(
        "workspace/.claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Use when: code was written.\ntools: Read, Bash(git *)\n\
         model: inherit\n---\nBe strict.\n",
    );
    house.write("workspace/.jaato/profiles/bad.json", "{\"name\": 7}");
    house.write("home/.jaato/profiles/own.yaml", "description: Mine.\nplugins: [cli]\n");
    Some(house)
}

#[test]
fn workspace_profiles_count_only_while_the_workspace_is_trusted() {
    let Some(house) = house_with_profiles() else { return };
    let own = json!({
        "name": "own", "description": "Mine.", "plugins": ["cli"], "max_turns": 10,
        "auto_approved": false, "source": house.home().join(".jaato/profiles/own.yaml"),
    });
    let listed = || house.run(&["call", "list_subagent_profiles", "{}"]).code(0).json();
    let workspace = house.workspace();
    let note = format!(
        "`{}` is ignored, because the workspace is not trusted; run `jaato trust`",
        workspace.join(".jaato/profiles").display()
    );
    assert_eq!(listed(), json!({ "profiles": [own], "count": 1, "note": note }));

    let trusted = house.run(&["trust"]).code(0);
    assert!(trusted.stdout.contains(".claude/agents/reviewer.md"), "{trusted}");
    let reviewer = workspace.join(".claude/agents/reviewer.md");
    let answer = listed();
    let expected = json!({
        "name": "reviewer", "description": "Use when: code was written.",
        "tools": ["readFile", "viewImage"], "auto_approved": false, "source": reviewer,
    });
    assert_eq!((&answer["count"], &answer["profiles"][1]), (&json!(2), &expected));
    let skipped = json!([{
        "path": workspace.join(".jaato/profiles/bad.json"), "reason": "'name' must be a string",
    }]);
    assert_eq!(answer["skipped"], skipped);
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(warning.contains("tool 'Bash(git *)' is left out"), "{warning}");

    let command = house.run(&["command", "profiles"]).code(0).json();
    let lines: Vec<&str> = command["result"].as_str().unwrap().lines().collect();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert!(
        lines[1].starts_with("reviewer  Use when: code was written. (tools readFile viewImage; ")
    );

    house.write("workspace/.claude/agents/evil.md", "---\ndescription: x\n---\n");
    assert_eq!(listed()["count"], 1, "a new file withdraws trust");
    house.assert_no_processes();
}

#[test]
fn profile_is_validated_inside_the_workspace_only() {
    let Some(house) = house_with_profiles() else { return };
    let validate =
        |path: &str| house.run(&["call", "validateProfile", &json!({ "path": path }).to_string()]);
    let bad = validate(".jaato/profiles/bad.json").code(0).json();
    let expected = json!({
        "valid": false, "path": ".jaato/profiles/bad.json",
        "errors": ["'name' must be a string", "'description' is required"], "warnings": [],
    });
    assert_eq!(bad, expected);
    house.write("home/secret.json", "{}");
    let refused = validate("../home/secret.json");
    assert_ne!(refused.code, 0, "{refused}");
    house.assert_no_processes();
}

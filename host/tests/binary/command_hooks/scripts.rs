//! Hook scripts in the style of published ones: a guard, a formatter, context for prompts, tests
//! before the end, a log, and a rewriter.

use serde_json::{Value, json};

use super::{
    HookHouse, call_answer, done_after_result, expect_result, has_python, hook_entry, run_answer,
    script_command,
};
use crate::support::answers::{text_answer, with_expectation};

/// Blocks recursive removal, and changes to files with secrets.
const GUARD: &str = r#"
import json, re, sys
call = json.load(sys.stdin)
given = call.get("tool_input", {})
REMOVES = r"\brm\s+-([a-z]*r[a-z]*f|[a-z]*f[a-z]*r)"
if call["tool_name"] == "Bash" and re.search(REMOVES, given.get("command", "")):
    print("recursive removal is blocked; move files to trash/ instead", file=sys.stderr)
    sys.exit(2)
path = given.get("file_path", "")
if call["tool_name"] in ("Edit", "MultiEdit", "Write") and path.endswith(".env"):
    print("files with secrets are read-only", file=sys.stderr)
    sys.exit(2)
"#;

fn guard_house() -> Option<HookHouse> {
    let command = script_command("python3", "guard.py");
    let hooks = hook_entry("PreToolUse", "Bash|Edit|MultiEdit|Write", &command);
    if has_python() { HookHouse::new(&hooks, &[("guard.py", GUARD)]) } else { None }
}

#[test]
fn guard_script_blocks_recursive_removal_and_tells_the_model_why() {
    let Some(house) = guard_house() else { return };
    house.house.write("workspace/kept/a", "a");
    let blocked = "plugin `hook-command` denied the call to `cli_based_tool`: recursive removal \
                   is blocked; move files to trash/ instead";
    let output = house.run(&json!([
        run_answer("rm -rf kept"),
        expect_result(
            blocked,
            call_answer("cli_based_tool", json!({ "command": "rm", "args": ["-fr", "kept"] }))
        ),
        expect_result(blocked, run_answer("rm kept/b || echo rm without options")),
        done_after_result("rm without options"),
    ]));
    assert_eq!(output.code(0).stdout, "done\n");
    assert_eq!(house.file_text("kept/a"), "a");
    house.house.assert_no_processes();
}

#[test]
fn guard_script_sees_every_file_of_a_call() {
    let Some(house) = guard_house() else { return };
    house.house.write("workspace/.env", "KEY=1\n");
    house.house.run(&["trust"]).code(0);
    let patch = "*** Begin Patch\n*** Update File: .env\n@@\n-KEY=1\n+KEY=2\n*** End Patch";
    let operations = json!([
        { "action": "create", "path": "a", "content": "a" },
        { "action": "edit", "path": ".env", "old": "1", "new": "2" },
    ]);
    let blocked = "files with secrets are read-only";
    let output = house.run(&json!([
        call_answer("updateFile", json!({ "path": ".env", "old": "1", "new": "2" })),
        expect_result(
            blocked,
            call_answer("updateFile", json!({ "path": ".env", "new_content": "x" }))
        ),
        expect_result(blocked, call_answer("multiFileEdit", json!({ "operations": operations }))),
        expect_result(blocked, call_answer("apply_patch", json!({ "input": patch }))),
        expect_result(blocked, call_answer("removeFile", json!({ "path": ".env" }))),
        expect_result(blocked, call_answer("writeNewFile", json!({ "path": "b", "content": "b" }))),
        done_after_result("\"success\":true"),
    ]));
    assert_eq!(output.code(0).stdout, "done\n");
    assert_eq!((house.file_text(".env").as_str(), house.file_text("a").as_str()), ("KEY=1\n", "-"));
    assert_eq!(house.file_text("b"), "b");
}

/// Removes spaces at the ends of lines in the file that was written, and reports it.
const FORMATTER: &str = r#"
path=$(sed -n 's/.*"file_path":"\([^"]*\)".*/\1/p')
case $path in *.txt) ;; *) exit 0 ;; esac
sed 's/ *$//' "$path" > "$path.new" && mv "$path.new" "$path"
echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "formatted"}}'
"#;

#[test]
fn formatter_script_changes_the_written_file_and_tells_the_model() {
    let hooks = hook_entry("PostToolUse", "Edit|Write", &script_command("sh", "format.sh"));
    let Some(house) = HookHouse::new(&hooks, &[("format.sh", FORMATTER)]) else { return };
    let output = house.run_events(&json!([
        call_answer("writeNewFile", json!({ "path": "a.txt", "content": "one  \ntwo \n" })),
        done_after_result("\"hook_feedback\":\"formatted\""),
    ]));
    assert_eq!(house.file_text("a.txt"), "one\ntwo\n", "{output}");
    let lines = output.code(0).json_lines();
    let changed = lines.iter().find(|line| line["event"] == "tool_result_changed").unwrap();
    assert_eq!((&changed["source"], &changed["name"]), (&json!("command"), &json!("writeNewFile")));
}

/// Adds the branch to each prompt, and refuses prompts with a key.
const CONTEXT: &str = r#"
prompt=$(cat)
case $prompt in *sk-*) echo "the prompt has a key in it" >&2; exit 2 ;; esac
echo "Current branch: $(sed 's|ref: refs/heads/||' .git/HEAD)"
"#;

#[test]
fn prompt_script_adds_context_or_refuses_the_prompt() {
    let hooks = hook_entry("UserPromptSubmit", "", &script_command("sh", "context.sh"));
    let Some(house) = HookHouse::new(&hooks, &[("context.sh", CONTEXT)]) else { return };
    house.house.write("workspace/.git/HEAD", "ref: refs/heads/moon\n");
    let output = house.run_events(&json!([with_expectation(
        "data",
        "Current branch: moon",
        text_answer("done")
    )]));
    let lines = output.code(0).json_lines();
    let added = lines.iter().find(|line| line["event"] == "prompt_added").unwrap();
    assert_eq!(added["source"], "command");
    house.house.set_script(&json!({ "answers": [] }));
    let refused = house.house.run(&["run", "use sk-12345"]);
    let text = "plugin `hook-command` refused the prompt: the prompt has a key in it";
    assert!(refused.code != 0 && refused.stderr.contains(text), "{refused}");
}

/// Makes the model run the tests before it ends, once.
const TESTS_FIRST: &str = r#"
import json, sys
turn = json.load(sys.stdin)
if turn["stop_hook_active"]:
    sys.exit(0)
said = turn["last_assistant_message"]
print(json.dumps({"decision": "block", "reason": "Run sh test.sh. You said: " + said}))
"#;

#[test]
fn stop_script_makes_the_model_run_the_tests_once() {
    if !has_python() {
        return;
    }
    let hooks = hook_entry("Stop", "", &script_command("python3", "stop.py"));
    let Some(house) = HookHouse::new(&hooks, &[("stop.py", TESTS_FIRST)]) else { return };
    house.house.write("workspace/test.sh", "echo all tests pass\n");
    let output = house.run_events(&json!([
        text_answer("finished"),
        with_expectation("data", "Run sh test.sh. You said: finished", run_answer("sh test.sh")),
        done_after_result("all tests pass"),
    ]));
    let lines = output.code(0).json_lines();
    let continued: Vec<&Value> =
        lines.iter().filter(|line| line["event"] == "turn_continued").collect();
    assert_eq!(continued.len(), 1);
    assert_eq!(continued[0]["source"], "command");
}

/// Makes the model run the tests before it ends, unless the transcript has such a call.
const TESTS_IN_TRANSCRIPT: &str = r#"
import json, os, stat, sys
turn = json.load(sys.stdin)
path, ran, said = turn["transcript_path"], [], []
for line in open(path):
    entry = json.loads(line)
    if entry["type"] == "assistant":
        for block in entry["message"]["content"]:
            if block["type"] == "tool_use" and block["name"] == "Bash":
                ran.append(block["input"]["command"])
            elif block["type"] == "text":
                said.append(block["text"])
if stat.S_IMODE(os.stat(path).st_mode) != 0o600:
    print("others can read the transcript", file=sys.stderr)
    sys.exit(2)
if "sh test.sh" not in ran:
    print("Run sh test.sh. You said: " + " ".join(said), file=sys.stderr)
    sys.exit(2)
with open("seen", "w") as seen:
    seen.write(path + "\n" + " ".join(said))
"#;

#[test]
fn stop_script_reads_the_calls_so_far_from_the_transcript() {
    if !has_python() {
        return;
    }
    let hooks = hook_entry("Stop", "", &script_command("python3", "stop.py"));
    let Some(house) = HookHouse::new(&hooks, &[("stop.py", TESTS_IN_TRANSCRIPT)]) else { return };
    house.house.write("workspace/test.sh", "echo all tests pass\n");
    let output = house.run(&json!([
        text_answer("finished"),
        with_expectation("data", "Run sh test.sh. You said: finished", run_answer("sh test.sh")),
        done_after_result("all tests pass"),
    ]));
    output.code(0);
    let seen = house.file_text("seen");
    let (path, said) = seen.split_once('\n').unwrap();
    assert_eq!(said, "finished done");
    assert!(path.ends_with(".jsonl") && !std::path::Path::new(path).exists(), "{path}");
}

/// Logs each call, and fails in a way that blocks nothing.
const LOGGER: &str = r#"
cat >> "$CLAUDE_PROJECT_DIR/calls.jsonl"
echo >> "$CLAUDE_PROJECT_DIR/calls.jsonl"
echo logged
"#;

#[test]
fn logger_script_gets_each_call_in_the_usual_form() {
    let mut hooks = hook_entry("PreToolUse", "*", &script_command("sh", "log.sh"));
    hooks["PostToolUse"] =
        hook_entry("PostToolUse", "", &script_command("sh", "log.sh"))["PostToolUse"].clone();
    let Some(house) = HookHouse::new(&hooks, &[("log.sh", LOGGER)]) else { return };
    house.house.write("workspace/a", "a\n");
    let output = house.run(&json!([
        call_answer("cli_based_tool", json!({ "command": "echo x", "timeout_seconds": 9 })),
        call_answer("readFile", json!({ "path": "a" })),
        text_answer("done"),
    ]));
    output.code(0);
    let log = house.file_text("calls.jsonl");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<_> = lines
        .iter()
        .map(|line| {
            let part = |key: &str| line[key].as_str().unwrap_or_default();
            (part("hook_event_name"), part("tool_name"), line["tool_input"].clone())
        })
        .collect();
    let workspace = house.house.workspace();
    let (bash, read) = (
        json!({ "command": "echo x", "timeout": 9000 }),
        json!({ "file_path": workspace.join("a") }),
    );
    assert_eq!(
        seen,
        [
            ("PreToolUse", "Bash", bash.clone()),
            ("PostToolUse", "Bash", bash),
            ("PreToolUse", "Read", read.clone()),
            ("PostToolUse", "Read", read),
        ]
    );
    assert_eq!(lines[0]["cwd"], json!(workspace));
    assert_eq!(lines[0]["permission_mode"], "bypassPermissions", "`--yes` allows every call");
    assert!(lines[0]["session_id"].as_str().is_some_and(|id| !id.is_empty()));
    assert_eq!(lines[0]["tool_use_id"], lines[1]["tool_use_id"]);
    assert_eq!(lines[1]["tool_response"]["stdout"], "x\n", "{log}");
    assert_eq!(lines[0].get("agent_id"), None);
}

/// Replaces one program by another.
const REWRITER: &str = r#"
import json, sys
call = json.load(sys.stdin)
command = call["tool_input"]["command"]
if command.startswith("npm "):
    print(json.dumps({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "permissionDecisionReason": "this project uses pnpm",
        "updatedInput": {"command": "echo p" + command},
    }}))
"#;

#[test]
fn rewriter_script_changes_the_command_and_the_change_is_an_event() {
    if !has_python() {
        return;
    }
    let hooks = hook_entry("PreToolUse", "Bash", &script_command("python3", "rewrite.py"));
    let Some(house) = HookHouse::new(&hooks, &[("rewrite.py", REWRITER)]) else { return };
    let output = house.run_events(&json!([
        run_answer("npm test"),
        expect_result("pnpm test", text_answer("done"))
    ]));
    let lines = output.code(0).json_lines();
    let changed = lines.iter().find(|line| line["event"] == "tool_call_changed").unwrap();
    assert_eq!(changed["arguments"], json!({ "command": "echo pnpm test" }));
    assert_eq!(changed["source"], "command");
    // The user's rules still decide: a hook that allows a call does not answer for the user.
    house.house.write(
        "home/.config/jaato/permissions.toml",
        "version = 1\n[[rules]]\ndecision = \"deny\"\ntool = \"cli_based_tool\"\n",
    );
    let output = house.run(&json!([run_answer("npm test"), done_after_result("is denied")]));
    assert_eq!(output.stdout, "done\n", "{output}");
}

//! Tests command hooks in the real binary: scripts in the style of published ones, and scripts that
//! misbehave.

mod command;
mod failures;
mod moments;
mod scripts;

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::answers::text_answer;
use crate::support::command::Output;
use crate::support::{House, cli, fixtures, library_name, skip};

/// An installation with hooks in its workspace, and tools that run commands and edit files.
pub struct HookHouse {
    pub house: House,
}

impl HookHouse {
    /// Creates an installation whose workspace is trusted with these hooks.
    pub fn new(hooks: &Value, scripts: &[(&str, &str)]) -> Option<Self> {
        let house = Self::untrusted(hooks, scripts)?;
        house.house.run(&["trust"]).code(0);
        Some(house)
    }

    /// The same, but the workspace is not trusted.
    pub fn untrusted(hooks: &Value, scripts: &[(&str, &str)]) -> Option<Self> {
        let house = Self::without_hooks()?;
        for (name, text) in scripts {
            house.house.write(&format!("workspace/.claude/hooks/{name}"), text);
        }
        house.write_settings(hooks);
        Some(house)
    }

    /// Creates an installation without hooks.
    pub fn without_hooks() -> Option<Self> {
        let house = cli::house_with_cli()?;
        let plugins = fixtures::test_house()?.join("plugins");
        for plugin in ["hook_command", "tool_file_edit"] {
            house.ship(&plugins.join(library_name(plugin)));
        }
        Some(Self { house })
    }

    /// Writes the settings file of the workspace.
    pub fn write_settings(&self, hooks: &Value) {
        let text = json!({ "hooks": hooks }).to_string();
        self.house.write("workspace/.claude/settings.json", &text);
    }

    /// Lets a scripted model answer, and runs a task without asking the user.
    pub fn run(&self, answers: &Value) -> Output {
        self.house.set_script(&json!({ "answers": answers }));
        self.house.run(&["run", "--yes", "go"])
    }

    /// The same, with events as JSON.
    pub fn run_events(&self, answers: &Value) -> Output {
        self.house.set_script(&json!({ "answers": answers }));
        self.house.run(&["run", "--yes", "--output", "json", "go"])
    }

    /// Returns the text of a file of the workspace, or `-` if it does not exist.
    pub fn file_text(&self, name: &str) -> String {
        fs::read_to_string(self.house.workspace().join(name)).unwrap_or_else(|_| "-".to_owned())
    }
}

/// Returns the entry of a settings file for a script: an event with one hook.
pub fn hook_entry(event: &str, matcher: &str, command: &str) -> Value {
    let hooks = json!([{ "type": "command", "command": command }]);
    json!({ event: [{ "matcher": matcher, "hooks": hooks }] })
}

/// Returns the command line for a script of the workspace.
pub fn script_command(program: &str, name: &str) -> String {
    format!("{program} \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/{name}")
}

/// Returns true if scripts in Python can run, or prints why the test is skipped.
pub fn has_python() -> bool {
    let runs =
        Command::new("python3").arg("--version").output().is_ok_and(|it| it.status.success());
    if !runs {
        skip("`python3` is not installed");
    }
    runs
}

/// Returns an answer of the model that calls a tool.
pub fn call_answer(name: &str, arguments: Value) -> Value {
    crate::support::answers::call_answer(name, arguments)
}

/// Returns an answer that runs a command.
pub fn run_answer(command: &str) -> Value {
    call_answer("cli_based_tool", json!({ "command": command }))
}

/// Returns an answer that expects this text in the last result.
pub fn expect_result(result: &str, then: Value) -> Value {
    crate::support::answers::with_expectation("tool_result", result, then)
}

/// Returns the last answer, after a result with this text.
pub fn done_after_result(result: &str) -> Value {
    expect_result(result, text_answer("done"))
}

//! Interactive sessions of the real binary, used through `jaato call --batch`.

use serde_json::{Value, json};

use super::command::Running;
use super::{House, fixture, fixtures, library_name, skip};

/// Returns an installation with the shells, or prints why the test is skipped.
pub fn house_with_shells() -> Option<House> {
    house_with_shell_settings("")
}

/// Like [`house_with_shells`], with settings.
pub fn house_with_shell_settings(settings: &str) -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::test_house()?.join("plugins");
    for plugin in ["environment_local", "tool_interactive_shell"] {
        house.ship(&plugins.join(library_name(plugin)));
    }
    house.configure_more(settings);
    Some(house)
}

/// Returns true if a program is installed, otherwise prints what is skipped.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        skip(&format!("there is no `{program}`"));
    }
    found
}

/// A session of jaato for consecutive tool calls.
pub struct ShellCalls {
    running: Running,
}

impl ShellCalls {
    /// Starts the session.
    pub fn in_house(house: &House) -> Self {
        let command =
            house.command(&["call", "--batch"]).variable("PS1", "$ ").with_long_deadline();
        Self::start(command.variable("TMPDIR", house.path().join("run")))
    }

    /// Starts the session with the test's own command line.
    pub fn start(command: super::Command) -> Self {
        Self { running: command.start() }
    }

    /// Calls a tool and returns the whole answer.
    #[track_caller]
    pub fn call_any(&mut self, tool: &str, arguments: &Value) -> Value {
        let line = json!({ "tool": tool, "args": arguments }).to_string() + "\n";
        self.running.write(line.as_bytes());
        serde_json::from_str(&self.running.next_line()).unwrap()
    }

    /// Calls a tool that must succeed.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.call_any(tool, arguments);
        assert!(answer.get("error").is_none(), "{tool}({arguments}) answers {answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must fail.
    #[track_caller]
    pub fn call_refused(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.call_any(tool, arguments);
        assert!(answer["error"].is_object(), "{tool}({arguments}) answers {answer}");
        answer["error"].clone()
    }

    /// Starts a program in a session and returns the session's name.
    #[track_caller]
    pub fn spawn(&mut self, command: &str) -> (String, Value) {
        let answer = self.call("shell_spawn", &json!({ "command": command }));
        (answer["session_id"].as_str().unwrap().to_owned(), answer)
    }

    /// Types text.
    #[track_caller]
    pub fn type_text(&mut self, session: &str, text: &str) -> Value {
        self.call("shell_input", &json!({ "session_id": session, "input": text }))
    }

    /// Presses a key.
    #[track_caller]
    pub fn press_key(&mut self, session: &str, key: &str) -> Value {
        self.call("shell_control", &json!({ "session_id": session, "key": key }))
    }

    /// Closes a session.
    #[track_caller]
    pub fn close(&mut self, session: &str) -> Value {
        self.call("shell_close", &json!({ "session_id": session }))
    }

    /// Ends jaato, and checks that no process is left.
    #[track_caller]
    pub fn end(self, house: &House) {
        self.end_jaato();
        house.assert_no_processes();
    }

    /// Ends jaato while other processes of the installation continue.
    #[track_caller]
    pub fn end_jaato(self) {
        self.running.finish();
    }
}

/// Starts a program, and runs the test with it.
#[track_caller]
pub fn play_program(command: &str, play: impl Fn(&mut ShellCalls, &str, &Value)) {
    let Some(house) = house_with_shells() else { return };
    let mut calls = ShellCalls::in_house(&house);
    let (session, answer) = calls.spawn(command);
    play(&mut calls, &session, &answer);
    calls.end(&house);
}

/// Kills the worker of a plugin.
#[track_caller]
pub fn kill_worker(house: &House, plugin: &str) {
    let library = library_name(plugin);
    let workers = house.processes();
    let worker = workers.iter().find(|process| process.contains(&library)).unwrap();
    let id = worker.split(':').next().unwrap();
    let status = std::process::Command::new("kill").args(["-9", id]).status().unwrap();
    assert!(status.success(), "{worker}");
}

/// Returns the output.
#[track_caller]
pub fn output_text(answer: &Value) -> &str {
    answer["output"].as_str().unwrap()
}

/// Returns the reason of the answer.
#[track_caller]
pub fn return_reason(answer: &Value) -> &str {
    answer["reason"].as_str().unwrap()
}

/// A shell that shows only its commands' output.
pub const BASH: &str = "bash --norc --noprofile";

pub fn house_without_terminals() -> Option<House> {
    house_with_environment("pipes")
}

/// Returns an installation whose sessions have an environment without terminals.
pub fn house_with_environment(name: &str) -> Option<House> {
    let house = house_with_shell_settings(&format!("environment = \"{name}\"\n"))?;
    house.ship(&fixture(name));
    Some(house)
}

//! Interactive sessions of the real binary, driven through `jaato call --batch`.

use serde_json::{Value, json};

use super::command::Running;
use super::{House, fixture, fixtures, library_name, skip};

/// Makes a house with the shells, or leaves the test with a line that says why it is left out.
pub fn furnish() -> Option<House> {
    furnish_with("")
}

/// [`furnish`], with settings.
pub fn furnish_with(settings: &str) -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::house()?.join("plugins");
    for plugin in ["environment_local", "tool_interactive_shell"] {
        house.ship(&plugins.join(library_name(plugin)));
    }
    house.configure_more(settings);
    Some(house)
}

/// Tells whether a program is there; one line says what is left out where it is not.
pub fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        skip(&format!("there is no `{program}`"));
    }
    found
}

/// A session of jaato in which one tool call is made after the other.
pub struct Calls {
    running: Running,
}

impl Calls {
    /// Begins.
    pub fn of(house: &House) -> Self {
        let command = house.command(&["call", "--batch"]).variable("PS1", "$ ").patient();
        Self::start(command.variable("TMPDIR", house.path().join("run")))
    }

    /// Begins with a command line of the test's own.
    pub fn start(command: super::Command) -> Self {
        Self { running: command.start() }
    }

    /// Calls a tool; the whole answer.
    #[track_caller]
    pub fn ask(&mut self, tool: &str, arguments: &Value) -> Value {
        let line = json!({ "tool": tool, "args": arguments }).to_string() + "\n";
        self.running.write(line.as_bytes());
        serde_json::from_str(&self.running.line()).unwrap()
    }

    /// Calls a tool that must not fail.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask(tool, arguments);
        assert!(answer.get("error").is_none(), "{tool}({arguments}) answers {answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must fail.
    #[track_caller]
    pub fn refused(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask(tool, arguments);
        assert!(answer["error"].is_object(), "{tool}({arguments}) answers {answer}");
        answer["error"].clone()
    }

    /// Starts a program in a session, whose name is returned.
    #[track_caller]
    pub fn spawn(&mut self, command: &str) -> (String, Value) {
        let answer = self.call("shell_spawn", &json!({ "command": command }));
        (answer["session_id"].as_str().unwrap().to_owned(), answer)
    }

    /// Types.
    #[track_caller]
    pub fn input(&mut self, session: &str, text: &str) -> Value {
        self.call("shell_input", &json!({ "session_id": session, "input": text }))
    }

    /// Presses a key.
    #[track_caller]
    pub fn key(&mut self, session: &str, key: &str) -> Value {
        self.call("shell_control", &json!({ "session_id": session, "key": key }))
    }

    /// Closes a session.
    #[track_caller]
    pub fn close(&mut self, session: &str) -> Value {
        self.call("shell_close", &json!({ "session_id": session }))
    }

    /// Ends, and looks whether anything lives on.
    #[track_caller]
    pub fn end(self, house: &House) {
        self.end_alone();
        house.nothing_lives();
    }

    /// Ends, where others of the same house go on.
    #[track_caller]
    pub fn end_alone(self) {
        self.running.finish();
    }
}

/// Starts a program, and plays.
#[track_caller]
pub fn play(command: &str, play: impl Fn(&mut Calls, &str, &Value)) {
    let Some(house) = furnish() else { return };
    let mut calls = Calls::of(&house);
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

/// Returns what was shown.
#[track_caller]
pub fn output(answer: &Value) -> &str {
    answer["output"].as_str().unwrap()
}

/// Returns why the answer was given.
#[track_caller]
pub fn reason(answer: &Value) -> &str {
    answer["reason"].as_str().unwrap()
}

/// A shell that shows nothing but what it is told.
pub const BASH: &str = "bash --norc --noprofile";

pub fn without_terminals() -> Option<House> {
    with_environment("pipes")
}

/// A house whose sessions have an environment without terminals.
pub fn with_environment(name: &str) -> Option<House> {
    let house = furnish_with(&format!("environment = \"{name}\"\n"))?;
    house.ship(&fixture(name));
    Some(house)
}

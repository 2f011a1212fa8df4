//! The tool `shell_spawn`.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::terminal::SIZE;

use super::{SECONDS, maximum_wait, non_empty_argument, wait_and_respond};
use crate::command;
use crate::ready::ResultReason;
use crate::shells::InteractiveShellPlugin;
use crate::wait::WaitCondition;

/// The maximum length of a session's name. With a number for uniqueness, it stays within the host's
/// limit of 64.
const NAME_CHARACTERS_MAX: usize = 56;

/// Start an interactive program (shell, REPL, debugger, ssh, editor) in its own terminal. Returns
/// session_id and the output until it waits for input.
#[derive(ToolInput)]
#[tool(
    category = "system",
    destructive,
    open_world,
    available_if(
        environment_has = "shell",
        reason = "in a session whose execution environment runs commands"
    ),
    example("Start a Python REPL", command = "python3"),
    example("Start a wizard that asks questions", command = "npm init")
)]
struct ShellSpawn {
    /// The program and its arguments.
    #[schemars(extend("x-jaato-touches" = "command"))]
    command: String,
    /// Session name, instead of session_0, session_1, ….
    #[schemars(extend("x-jaato-touches" = { "text": "the name of a terminal" }))]
    session_name: Option<String>,
    /// Terminal rows. Default: 24.
    #[schemars(range(min = 2, max = 500))]
    rows: Option<u16>,
    /// Terminal columns. Default: 80.
    #[schemars(range(min = 2, max = 1000))]
    cols: Option<u16>,
    /// Seconds to wait for a busy program. Default: 10.
    #[schemars(range(min = 0.0, max = 30.0))]
    timeout: Option<f64>,
}

impl Tool for ShellSpawn {
    type State = InteractiveShellPlugin;

    async fn call(self, cx: &Cx<InteractiveShellPlugin>) -> Result<Output> {
        let shells = &cx.state().0;
        let line = non_empty_argument("shell_spawn", "command", &self.command)?;
        let Some(parsed) = command::parse_command_line(line) else {
            unreachable!("it is not empty")
        };
        let name = self.session_name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        if let Some(name) = name {
            check_session_name(name)?;
        }
        let size = (self.rows.unwrap_or(SIZE.0), self.cols.unwrap_or(SIZE.1));
        let session = shells.spawn_session(line, parsed, name, size).await?;
        let longest = maximum_wait(self.timeout, SECONDS);
        let (mut told, reason) =
            wait_and_respond(cx, &session, &WaitCondition::Ready, longest).await?;
        if matches!(reason, ResultReason::Waiting | ResultReason::Prompt) {
            session.record_first_prompt();
        }
        told.insert("session_id".to_owned(), session.id.clone().into());
        let limits = session.backend.list_limitations();
        if !limits.is_empty() {
            told.insert("backend".to_owned(), session.backend.as_str().into());
            told.insert("limits".to_owned(), limits.into());
        }
        if reason == ResultReason::Exit {
            let note = "Process exited immediately. Check the command and output.";
            told.insert("note".to_owned(), note.into());
        }
        Ok(Output::json(Value::Object(told)))
    }
}

tool!(ShellSpawn);

fn check_session_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.chars().all(is_plain) && name.len() <= NAME_CHARACTERS_MAX {
        return Ok(());
    }
    let text = format!("shell_spawn: `{name}` is not a valid session name");
    let hint = format!("letters, digits, `_`, `-` and `.`, {NAME_CHARACTERS_MAX} at most");
    Err(Error::new(ErrorKind::InvalidArguments, text).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_names_allow_only_plain_characters() {
        assert!(check_session_name("build-1.x_y").is_ok());
        for bad in ["a b", "a/b", "\u{1b}[2J", &"x".repeat(65)] {
            assert_eq!(check_session_name(bad).unwrap_err().kind, ErrorKind::InvalidArguments);
        }
    }
}

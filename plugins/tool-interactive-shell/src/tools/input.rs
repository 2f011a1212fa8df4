//! The tool `shell_input`.

use std::time::{Duration, Instant};

use jaato_plugin_sdk::hooks::{Preview, SHELL_PROMPT};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::terminal::{TerminalAsk, TerminalAskOutcome, TerminalState};

use super::{SECONDS, TypedInput, maximum_wait, respond_to_input, running_session, type_input};
use crate::answer::{ExpectedInput, expected_input};
use crate::backend::BackendName;
use crate::input_bytes::{self, LINE_BYTES_MAX};
use crate::marks::MarkableShell;
use crate::session::{ConsumedInput, ShellSession};
use crate::shells::InteractiveShellPlugin;

/// The maximum number of bytes typed by one call.
const INPUT_BYTES_MAX: usize = 1024 * 1024;

/// Type text into a session and get the output until the program waits for input again. End a line
/// with \n.
#[derive(ToolInput)]
#[tool(
    category = "system",
    destructive,
    open_world,
    previews,
    available_if(
        environment_has = "shell",
        reason = "in a session whose execution environment runs commands"
    ),
    example("Print 1+1 in the Python REPL", session_id = "session_0", input = "print(1+1)\n")
)]
struct ShellInput {
    /// The session.
    #[schemars(extend("x-jaato-touches" = { "text": "the name of a terminal" }))]
    session_id: String,
    /// The text. Never type passwords: use ask_user.
    #[schemars(extend("x-jaato-touches" = "command"))]
    input: Option<String>,
    /// Let the user type a password or other secret instead; you do not see it.
    ask_user: Option<bool>,
    /// At a shell prompt inside ssh or docker: make this shell mark its prompts, for faster
    /// results.
    mark_prompts: Option<MarkedShell>,
    /// Seconds to wait for a busy program. Default: 10.
    #[schemars(range(min = 0.0, max = 30.0))]
    timeout: Option<f64>,
}

/// A shell that can mark its prompts.
#[tool_type]
#[derive(Debug, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum MarkedShell {
    /// bash.
    Bash,
    /// zsh.
    Zsh,
    /// fish.
    Fish,
    /// sh, dash, or busybox.
    Sh,
}

impl From<MarkedShell> for MarkableShell {
    fn from(shell: MarkedShell) -> Self {
        match shell {
            MarkedShell::Bash => Self::Bash,
            MarkedShell::Zsh => Self::Zsh,
            MarkedShell::Fish => Self::Fish,
            MarkedShell::Sh => Self::Posix,
        }
    }
}

impl Tool for ShellInput {
    type State = InteractiveShellPlugin;

    async fn call(self, cx: &Cx<InteractiveShellPlugin>) -> Result<Output> {
        let shells = &cx.state().0;
        let session = running_session(shells, "shell_input", &self.session_id)?;
        let is_asked = self.ask_user == Some(true);
        let text = match (self.input, is_asked, self.mark_prompts) {
            (Some(input), false, None) => input,
            (None, false, Some(shell)) => {
                MarkableShell::from(shell).setup_line(&shells.nonce) + "\n"
            }
            (None, true, None) => String::new(),
            (None, false, None) => {
                let text = "shell_input: input is required";
                return Err(Error::new(ErrorKind::InvalidArguments, text));
            }
            (Some(_), true, _) | (Some(_), _, Some(_)) | (None, true, Some(_)) => {
                let text = "shell_input: give one of input, ask_user and mark_prompts";
                return Err(Error::new(ErrorKind::InvalidArguments, text));
            }
        };
        // Keeps the session in use while the user answers, which may take long.
        let wanted = session.read_without_pauses();
        let state = session.program_control().state().await.unwrap_or_default();
        let longest = maximum_wait(self.timeout, SECONDS);
        let (typed, begun) = if is_asked {
            ask_user(&session).await?;
            (TypedInput { bytes: Vec::new(), taken: ConsumedInput::All }, Instant::now())
        } else {
            let begun = Instant::now();
            (type_text(cx, &session, &state, &text, longest).await?, begun)
        };
        drop(wanted);
        shells.trace.write_line(format_args!("input: id={}", session.id));
        let mut told = respond_to_input(cx, &session, &typed, (begun, longest)).await?;
        if is_asked {
            told.insert("typed_by_user".to_owned(), true.into());
        }
        Ok(Output::json(Value::Object(told)))
    }

    async fn preview(self, cx: &Cx<InteractiveShellPlugin>) -> Result<Preview> {
        let session = match running_session(&cx.state().0, "shell_input", &self.session_id) {
            Ok(session) => session,
            Err(error) => return Ok(Preview::refused(error)),
        };
        let line = session.lock_live().screen.cursor_line();
        let text = describe_input(&session.id, &session.command, line.trim_end());
        let is_line = self.input.as_deref().is_some_and(is_whole_line);
        let typed_into = match is_line && session.is_shell_at_prompt().await {
            true => SHELL_PROMPT.to_owned(),
            false => String::new(),
        };
        let reader = session.command.clone();
        Ok(Preview { typed_into, reader, ..Preview::text(text) })
    }
}

tool!(ShellInput);

/// Returns true if a shell runs the input completely: one line with its end, without control
/// characters.
fn is_whole_line(input: &str) -> bool {
    let Some(line) = input.strip_suffix('\n') else { return false };
    // An exclamation mark recalls earlier input.
    !line.contains(|c: char| c.is_control() || c == '!')
}

/// Describes which program would read the input, and its prompt. A session's name alone does not
/// show which program it runs.
fn describe_input(session: &str, command: &str, line: &str) -> String {
    let program = format!("typed into {session}, in which `{command}` runs");
    match line {
        "" => program,
        line => format!("{program}; the cursor is after `{line}`"),
    }
}

async fn type_text(
    cx: &Cx<InteractiveShellPlugin>,
    session: &ShellSession,
    state: &TerminalState,
    text: &str,
    longest: Duration,
) -> Result<TypedInput> {
    if text.len() > INPUT_BYTES_MAX {
        let text =
            format!("input has {} bytes, at most {INPUT_BYTES_MAX} may be typed", text.len());
        return Err(Error::new(ErrorKind::LimitReached, text)
            .with_hint("write a file, and let the program read it"));
    }
    let is_secret = expected_input(state) == Some(ExpectedInput::HiddenLine);
    let may_type = cx.state().0.settings.types_secrets;
    if is_secret && !may_type && !text.trim_end_matches(['\n', '\r']).is_empty() {
        let text = "the program asks for hidden input, such as a password, which would stay in this conversation";
        return Err(Error::new(ErrorKind::PermissionDenied, text).with_hint(
            "call shell_input with `ask_user` and without `input`: the user types it, and you do not see it; \
             shell_control with c-c leaves the prompt",
        ));
    }
    let mode = if session.backend == BackendName::Pipes {
        input_bytes::ProgramInputMode::Pipe
    } else if should_paste(session) {
        input_bytes::ProgramInputMode::Paste
    } else if state.reads_lines == Some(true) {
        input_bytes::ProgramInputMode::Lines
    } else {
        input_bytes::ProgramInputMode::Keys
    };
    let bytes = input_bytes::typed_bytes(text, mode);
    if let Some(line) = input_bytes::too_long_line_length(&bytes, mode) {
        let text = format!(
            "a line of the input has {line} bytes, but the terminal accepts at most {LINE_BYTES_MAX} per line"
        );
        return Err(Error::new(ErrorKind::LimitReached, text).with_hint(
            "nothing was typed, because the rest would be lost; use shorter lines, or let the program read a file",
        ));
    }
    record_expected_echo(session, text);
    type_input(cx, session, bytes, longest).await
}

/// Records the echo to expect. Pipes and full-screen programs do not echo.
fn record_expected_echo(session: &ShellSession, text: &str) {
    let mut live = session.lock_live();
    if session.backend != BackendName::Pipes && !live.screen.is_full_screen() {
        text.clone_into(&mut live.typed);
    }
}

/// Lets the user type.
async fn ask_user(session: &ShellSession) -> Result<()> {
    let ask = TerminalAsk {
        terminal: 0,
        name: session.id.clone(),
        command: session.command.clone(),
        prompt: session.lock_live().screen.cursor_line(),
    };
    session.record_input();
    match session.program_control().ask_user(ask).await? {
        TerminalAskOutcome::Typed => Ok(()),
        TerminalAskOutcome::Declined => {
            Err(Error::new(ErrorKind::PermissionDenied, "the user did not type anything")
                .with_hint("shell_control with c-c leaves the prompt"))
        }
        TerminalAskOutcome::Nobody { reason } => {
            let text = format!("the user cannot be asked: {reason}");
            let hint = "the user may type it from another terminal; shell_read waits for that. With \
                        `type_secrets = true` in `[plugins.tool-interactive-shell]` the user lets you type \
                        passwords that are thrown away";
            Err(Error::new(ErrorKind::Unavailable, text).with_hint(hint))
        }
        TerminalAskOutcome::Unknown => {
            Err(Error::new(ErrorKind::HostBug, "the host did not answer the question"))
        }
    }
}

/// Returns true if a text should be pasted. A line editor gets several lines as a paste. A
/// full-screen program gets keys, because an editor interprets them as commands.
fn should_paste(session: &ShellSession) -> bool {
    let live = session.lock_live();
    live.screen.wants_bracketed_paste() && !live.screen.is_full_screen()
}

#[cfg(test)]
mod tests {
    use super::describe_input;

    #[test]
    fn permission_prompt_names_the_program_and_its_prompt() {
        assert_eq!(
            describe_input("session_0", "psql -h db", ""),
            "typed into session_0, in which `psql -h db` runs"
        );
        assert_eq!(
            describe_input("session_0", "python3", ">>>"),
            "typed into session_0, in which `python3` runs; the cursor is after `>>>`"
        );
    }
}

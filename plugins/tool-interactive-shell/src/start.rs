//! Prepares the start of a program: the shell for a line, and the variables.

use jaato_plugin_sdk::prelude::*;

use crate::backend::ProgramStart;
use crate::command::ParsedCommandLine;
use crate::marks::{MarkNonce, MarkableShell as MarkingShell};
use crate::shells::ShellRegistry;

/// The shell that reads command lines if the environment names none.
const SHELL: &str = "sh";

/// The shell of the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentShell {
    /// The path of the shell that reads command lines.
    pub path: String,
    /// Whether it is this machine, where the system knows which programs wait.
    pub is_host: bool,
}

/// Asks for the environment's shell, once.
pub async fn environment_shell(shells: &ShellRegistry) -> Result<&EnvironmentShell> {
    shells
        .shell
        .get_or_try_init(|| async {
            let facts = shells.home.environment().await?;
            let path = facts.shell.map_or_else(|| SHELL.to_owned(), |shell| shell.path);
            Ok(EnvironmentShell { path, is_host: facts.is_host })
        })
        .await
}

/// Returns the words and variables of a program. Pagers and history files are disabled. A shell
/// marks its prompts if the system does not know whether it waits.
pub fn program_start(
    command: ParsedCommandLine,
    shell: &EnvironmentShell,
    nonce: &MarkNonce,
) -> ProgramStart {
    let fixed = [
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("RIPGREP_CONFIG_PATH", ""),
        ("HISTFILE", ""),
        ("SAVEHIST", "0"),
        ("fish_history", ""),
        ("LESSHISTFILE", "-"),
        ("NODE_REPL_HISTORY", ""),
        ("PYTHON_HISTORY", "/dev/null"),
        ("PSQL_HISTORY", "/dev/null"),
        ("SQLITE_HISTORY", "/dev/null"),
    ];
    let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut start =
        ProgramStart { variables: fixed.into_iter().collect(), ..ProgramStart::default() };
    let marking = command.program().and_then(MarkingShell::from_program_name);
    let injection = marking
        .filter(|_| !shell.is_host && command.is_bare_shell())
        .and_then(|shell| shell.startup_injection(nonce, "$ "));
    start.words = command.words_to_start(&shell.path);
    if let Some(injection) = injection {
        start.words.splice(1..1, injection.arguments);
        start.variables.extend(injection.variables);
    }
    start
}

/// Reports a missing program in the original's words.
pub fn missing_program_error(error: Error, command: &str) -> Error {
    if error.kind != ErrorKind::NotFound {
        return error;
    }
    let text = format!("the command was not found or was not executable: `{command}`");
    let mut told = Error::new(ErrorKind::NotFound, format!("{text} ({})", error.message));
    told.hint = error.hint;
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;

    fn sample_start(line: &str, is_host: bool) -> ProgramStart {
        let shell = EnvironmentShell { path: "/bin/ash".to_owned(), is_host };
        let nonce = MarkNonce::new("0123456789abcdef").unwrap();
        program_start(command::parse_command_line(line).unwrap(), &shell, &nonce)
    }

    #[test]
    fn shell_prompts_are_marked_only_if_wait_detection_is_missing() {
        let is_marked =
            |start: &ProgramStart| format!("{start:?}").contains("jaato=0123456789abcdef");
        assert!(!is_marked(&sample_start("bash", true)));
        for line in ["bash", "sh", "/bin/ash -i", "fish --no-config"] {
            assert!(is_marked(&sample_start(line, false)), "{line}");
        }
        for line in ["python3", "sh -c 'echo x'", "bash script.sh", "a | sh"] {
            assert!(!is_marked(&sample_start(line, false)), "{line}");
        }
    }

    #[test]
    fn pager_and_shell_history_are_disabled() {
        let start = sample_start("ls | wc", true);
        assert_eq!(start.words, ["/bin/ash", "-c", "ls | wc"]);
        assert_eq!(start.variables["PAGER"], "cat");
        assert_eq!(start.variables["HISTFILE"], "");
    }
}

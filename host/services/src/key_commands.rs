//! Runs the user's commands that print keys, such as `api_key_command = "pass show vendor"`, and
//! the system's secret tools.
//!
//! A command runs when its key is first needed, in the user's home and with their variables. The
//! host keeps its output as long as it lives and never displays it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use jaato_config::EnvironmentVariables;
use jaato_process::{ChildCommand, Exit, ProcessError, StandardInput, StandardOutput, Supervisor};
use jaato_types::{Error, ErrorKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// How long a command may take, because the user may have to unlock the secret store.
const DEADLINE: Duration = Duration::from_secs(60);

/// Maximum bytes of a key.
const KEY_BYTES_MAX: u64 = 64 * 1024;

/// Runs the commands.
#[derive(Debug)]
pub struct KeyCommands {
    supervisor: Supervisor,
    variables: BTreeMap<OsString, OsString>,
    folder: PathBuf,
}

impl KeyCommands {
    /// Takes over the variables. Runs nothing.
    pub fn new(supervisor: Supervisor, variables: &EnvironmentVariables) -> Self {
        let folder = variables.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let given = variables.iter().map(|(name, value)| (name.into(), value.clone()));
        let folder = folder.unwrap_or_else(|| PathBuf::from("/"));
        Self { supervisor, variables: given.collect(), folder }
    }

    /// Runs a shell command and returns its trimmed output. `whose` says where the command is
    /// defined.
    ///
    /// # Errors
    /// `configuration` if it cannot be started, fails, or prints nothing or invalid text, or
    /// `timeout`.
    pub async fn run(&self, line: &str, whose: &str) -> Result<String, Error> {
        let wrong = |what: String| {
            let text = format!("the key command of {whose} {what}");
            Error::new(ErrorKind::Configuration, text)
                .with_hint("run it in a shell: it must print only the key")
        };
        let words = ["/bin/sh", "-c", line];
        let (bytes, exit) = match self.wait_for_exit(&words, b"").await {
            Ok(ended) => ended,
            Err(MissingExitReason::NotStarted(error)) => {
                return Err(wrong(format!("cannot be started: {error}")));
            }
            Err(MissingExitReason::Late) => {
                let text =
                    format!("the key command of {whose} took longer than {} s", DEADLINE.as_secs());
                return Err(Error::new(ErrorKind::Timeout, text));
            }
        };
        match exit {
            Ok(Exit::Code(0)) => {}
            Ok(Exit::Code(code)) => return Err(wrong(format!("ended with {code}"))),
            Ok(Exit::Signal(signal)) => {
                return Err(wrong(format!("was killed by signal {signal}")));
            }
            Err(error) => return Err(wrong(format!("cannot be waited for: {error}"))),
        }
        let text = String::from_utf8(bytes).map_err(|_| wrong("prints no text".to_owned()))?;
        match text.trim() {
            "" => Err(wrong("prints nothing".to_owned())),
            key if key.contains('\n') => Err(wrong("prints more than one line".to_owned())),
            key => Ok(key.to_owned()),
        }
    }

    /// Runs a program with arguments and input, and returns its output. Returns `None` if it is
    /// missing, fails or takes too long.
    pub async fn run_program(&self, words: &[&str], input: &[u8]) -> Option<Vec<u8>> {
        match self.wait_for_exit(words, input).await {
            Ok((printed, Ok(Exit::Code(0)))) => Some(printed),
            Ok((_, Ok(Exit::Code(_) | Exit::Signal(_)) | Err(_))) | Err(_) => None,
        }
    }

    /// Runs a program to its end, and kills it after the deadline.
    async fn wait_for_exit(
        &self,
        words: &[&str],
        input: &[u8],
    ) -> Result<(Vec<u8>, Result<Exit, ProcessError>), MissingExitReason> {
        let mut command =
            ChildCommand::new(words.first().copied().unwrap_or_default(), &self.folder);
        command.args = words.iter().skip(1).map(OsString::from).collect();
        command.variables.clone_from(&self.variables);
        command.stdout = StandardOutput::Piped;
        if !input.is_empty() {
            command.stdin = StandardInput::Piped;
        }
        let mut child =
            self.supervisor.spawn(command).await.map_err(MissingExitReason::NotStarted)?;
        let (reads, printed) = (child.stdin.take(), child.stdout.take());
        let ended = tokio::time::timeout(DEADLINE, async {
            if let Some(mut reads) = reads {
                // If the program does not read its input, its exit code still decides. Dropping the
                // pipe ends its input.
                let _ = reads.write_all(input).await;
            }
            let mut bytes = Vec::new();
            if let Some(printed) = printed {
                // After a read error, the exit code still decides.
                let _ = printed.take(KEY_BYTES_MAX).read_to_end(&mut bytes).await;
            }
            (bytes, child.wait().await)
        });
        let Ok(ended) = ended.await else {
            // The program is killed. An error of that would say less than the deadline.
            let _ = child.end().await;
            return Err(MissingExitReason::Late);
        };
        Ok(ended)
    }
}

/// Why a program has no exit status.
enum MissingExitReason {
    NotStarted(ProcessError),
    Late,
}

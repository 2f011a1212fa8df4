//! Keys that a command of the person's prints: `api_key_command = "pass show vendor"`.
//!
//! It is run when its key is first needed, in the person's home and with their variables, and what
//! it printed is kept as long as the host lives. Nothing that it prints is shown.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use jaato_config::Variables;
use jaato_process::{Command, Exit, Output, Supervisor};
use jaato_types::{Error, ErrorKind};
use tokio::io::AsyncReadExt as _;

/// How long it may take: somebody may have to unlock what keeps the key.
const DEADLINE: Duration = Duration::from_secs(60);

/// Most bytes of a key.
const KEY_BYTES_MAX: u64 = 64 * 1024;

/// Runs such commands.
#[derive(Debug)]
pub struct KeyCommands {
    supervisor: Supervisor,
    variables: BTreeMap<OsString, OsString>,
    folder: PathBuf,
}

impl KeyCommands {
    /// Looks at the variables, and runs nothing.
    pub fn new(supervisor: Supervisor, variables: &Variables) -> Self {
        let folder = variables.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let given = variables.iter().map(|(name, value)| (name.into(), value.clone()));
        let folder = folder.unwrap_or_else(|| PathBuf::from("/"));
        Self { supervisor, variables: given.collect(), folder }
    }

    /// Runs a line of the shell and returns what it printed, without the white space around it.
    /// `whose` says where the line stands.
    ///
    /// # Errors
    /// `configuration` when it cannot be started, fails, prints nothing or no text; `timeout`.
    pub async fn run(&self, line: &str, whose: &str) -> Result<String, Error> {
        let wrong = |what: String| {
            let text = format!("the command of {whose} {what}");
            Error::new(ErrorKind::Configuration, text)
                .with_hint("run it yourself in a shell: it has to print the key and nothing else")
        };
        let mut command = Command::new("/bin/sh", &self.folder);
        command.args = vec!["-c".into(), line.into()];
        command.variables.clone_from(&self.variables);
        command.stdout = Output::Piped;
        let started = self.supervisor.spawn(command).await;
        let mut child = started.map_err(|error| wrong(format!("cannot be started: {error}")))?;
        let printed = child.stdout.take();
        let ended = tokio::time::timeout(DEADLINE, async {
            let mut bytes = Vec::new();
            if let Some(printed) = printed {
                // What was read before an error is judged by the exit code.
                let _ = printed.take(KEY_BYTES_MAX).read_to_end(&mut bytes).await;
            }
            (bytes, child.wait().await)
        });
        let Ok((bytes, exit)) = ended.await else {
            // Ended by force; an error of that would say less than the deadline does.
            let _ = child.end().await;
            let text = format!("the command of {whose} took longer than {} s", DEADLINE.as_secs());
            return Err(Error::new(ErrorKind::Timeout, text));
        };
        match exit {
            Ok(Exit::Code(0)) => {}
            Ok(Exit::Code(code)) => return Err(wrong(format!("ended with {code}"))),
            Ok(Exit::Signal(signal)) => {
                return Err(wrong(format!("was ended by signal {signal}")));
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
}

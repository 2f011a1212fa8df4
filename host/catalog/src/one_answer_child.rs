//! Runs a child of jaato's own executable that opens a plugin for one answer, so that untrusted
//! code never runs in the host.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jaato_loader::{JSON_VALUES_MAX, json_values_bound};
use jaato_process::{
    ChildCommand, ChildProcess, ErrorOutput, Exit, ProcessError, ProcessLimits, StandardOutput,
    Supervisor,
};
use jaato_types::{Error, ErrorKind, FRAME_BYTES_MAX};
use jaato_worker::ChildAnswer;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::runtime::Handle;

use crate::exit::exit_text;

/// Maximum bytes of a child's output to repeat in an error.
const PRINTED_BYTES_MAX: usize = 400;

/// Returns the working directory for a child that runs a plugin: the folder for temporary files, if
/// it exists. Never the user's directory, because its content must not affect such a child.
pub fn child_folder() -> PathBuf {
    let named = std::env::temp_dir();
    let is_there = |folder: &PathBuf| folder.is_absolute() && folder.is_dir();
    [named, PathBuf::from("/tmp")].into_iter().find(is_there).unwrap_or_else(|| PathBuf::from("/"))
}

/// A task for a child.
pub struct ChildTask<'a> {
    /// What the child does, for errors: `describing it`.
    pub what: &'a str,
    /// The arguments before the file's path.
    pub arguments: &'a [&'a str],
    /// Its working directory, also for temporary files.
    pub folder: &'a Path,
    /// How long it may take.
    pub deadline: Duration,
    /// Its address space limit.
    pub memory_bytes: u64,
    /// Its limit on open descriptors.
    pub open_files: u64,
}

impl ChildTask<'_> {
    /// Starts the child, waits for its end and returns its answer.
    ///
    /// # Errors
    /// One line about the failure: the loader refused the plugin, or it panicked, crashed or hung.
    pub async fn run<T: DeserializeOwned>(
        &self,
        supervisor: &Supervisor,
        executable: &Path,
        plugin: &Path,
    ) -> Result<T, Error> {
        let (ours, theirs) = std::io::pipe().map_err(pipe_error)?;
        let mut command = ChildCommand::new(executable, self.folder);
        command.args = self.arguments.iter().map(Into::into).collect();
        command.args.push(plugin.into());
        command.variables = [
            ("PATH", "/usr/bin:/bin".into()),
            ("LANG", "C.UTF-8".into()),
            ("TMPDIR", self.folder.into()),
        ]
        .map(|(name, value): (&str, OsString)| (name.into(), value))
        .into();
        command.stdout = StandardOutput::Piped;
        command.stderr = ErrorOutput::Merged;
        command.descriptor3 = Some(theirs.into());
        command.limits = ProcessLimits {
            memory_bytes: Some(self.memory_bytes),
            open_files: Some(self.open_files),
            cpu_seconds: Some(self.deadline.as_secs() + 1),
        };
        let mut child =
            supervisor.spawn(command).await.map_err(|error| self.start_error(&error))?;

        let ours =
            tokio::net::unix::pipe::Receiver::from_owned_fd(ours.into()).map_err(pipe_error)?;
        let printed = child.stdout.take();
        let mut sent = ChildGuard { child: Arc::new(child), is_over: false };
        let talk = async {
            let (answer, printed) =
                tokio::join!(read_at_most(ours, FRAME_BYTES_MAX + 1), read_printed(printed));
            (answer, printed, sent.child.wait().await)
        };
        let Ok((answer, printed, exit)) = tokio::time::timeout(self.deadline, talk).await else {
            // The child is killed. An error of that would say less than the deadline.
            let _ = sent.child.end().await;
            sent.is_over = true;
            let text = format!("{} took longer than {} s", self.what, self.deadline.as_secs());
            return Err(Error::new(ErrorKind::Timeout, text));
        };
        sent.is_over = true;
        self.parse_child_answer(&answer, &printed, exit)
    }

    fn parse_child_answer<T: DeserializeOwned>(
        &self,
        answer: &[u8],
        printed: &str,
        exit: Result<Exit, ProcessError>,
    ) -> Result<T, Error> {
        if answer.len() > FRAME_BYTES_MAX {
            let text = format!("{} returned more than {FRAME_BYTES_MAX} bytes", self.what);
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        if json_values_bound(answer) > JSON_VALUES_MAX {
            let text =
                format!("{} returned JSON with more than {JSON_VALUES_MAX} values", self.what);
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        match (serde_json::from_slice(answer), exit) {
            (Ok(ChildAnswer::Ok(answer)), _) => Ok(answer),
            (Ok(ChildAnswer::Error(error)), _) => Err(error),
            (Err(_), Ok(exit)) => {
                let printed = match printed.trim() {
                    "" => String::new(),
                    text => format!("; it printed: {}", text.replace('\n', " ⏎ ")),
                };
                let (what, end) = (self.what, exit_text(exit));
                let text = format!("{what} failed: its process {end}{printed}");
                Err(Error::new(ErrorKind::PluginMisbehaved, text))
            }
            (Err(_), Err(error)) => Err(self.start_error(&error)),
        }
    }

    fn start_error(&self, error: &ProcessError) -> Error {
        let text = format!("{} failed: cannot run a process for it: {error}", self.what);
        let described = Error::new(ErrorKind::Io, text);
        match error.hint() {
            Some(hint) => described.with_hint(hint),
            None => described,
        }
    }
}

/// A child that is ended when no one waits for its answer.
struct ChildGuard {
    child: Arc<ChildProcess>,
    is_over: bool,
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };
        if !self.is_over {
            let child = Arc::clone(&self.child);
            runtime.spawn(async move { child.end().await });
        }
    }
}

async fn read_at_most(mut from: impl AsyncRead + Unpin, bytes_max: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Data read before an error is treated like a short answer.
    let _ = (&mut from).take(bytes_max as u64).read_to_end(&mut bytes).await;
    bytes
}

/// Reads all output of the child, so that it cannot block, and keeps the end.
async fn read_printed(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut from) = from else { return String::new() };
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 4096]);
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..read]);
        let surplus = kept.len().saturating_sub(PRINTED_BYTES_MAX);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

fn pipe_error(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot create a pipe for a child process: {error}"))
}

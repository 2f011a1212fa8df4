//! Starts the processes in which plugins run outside of the host.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_catalog::{child_folder, exit_text};
use jaato_config::trust::SESSION_MARKER;
use jaato_loader::remote::WorkerProcess;
use jaato_log::Log;
use jaato_process::{
    ChildCommand, ChildProcess, ErrorOutput, GroupSignal, ProcessLimits, StandardOutput, Supervisor,
};
use jaato_types::{Error, ErrorKind, Manifest, PluginName, WorkerVariable};
use jaato_worker::SERVE_ARGUMENTS;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::watch;

/// Limit on a worker's open descriptors.
pub const WORKER_OPEN_FILES: u64 = 512;
/// Address space of a worker with an untrusted plugin, so that it cannot exhaust the machine's
/// memory.
pub const WORKER_MEMORY_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Maximum bytes of a worker's output to repeat in an error.
const PRINTED_BYTES_MAX: usize = 400;
/// How long to wait for the rest of its output after its end.
const PRINTED_MAX: Duration = Duration::from_millis(100);
/// Longest line of the log. Longer lines are split.
const LINE_BYTES_MAX: usize = 4096;
/// Variables that every worker gets, if the host has them.
const VARIABLES: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ"];

/// Starts workers.
pub struct Workers {
    supervisor: Supervisor,
    executable: PathBuf,
    log: Log,
}

/// A worker to start.
pub struct WorkerRequest<'a> {
    /// The file that it opens.
    pub file: &'a Path,
    pub manifest: &'a Manifest,
    /// Whether it could also run inside jaato. Its memory is then not limited.
    pub is_trusted: bool,
    /// The session that it belongs to.
    pub owner: Option<&'a str>,
    /// Returns the value of a variable, if the plugin may see it.
    pub variable: &'a (dyn Fn(&str) -> Option<OsString> + Sync),
}

/// A started worker: the host's end of its socket, and its process.
pub struct StartedWorker {
    pub socket: UnixStream,
    pub process: Arc<dyn WorkerProcess>,
}

impl Workers {
    /// Creates a starter for workers. Starts nothing.
    pub fn new(supervisor: Supervisor, executable: PathBuf, log: Log) -> Self {
        Self { supervisor, executable, log }
    }

    /// Starts a worker.
    ///
    /// # Errors
    /// If the socket cannot be created, or the process cannot be started.
    pub async fn start(&self, asked: WorkerRequest<'_>) -> Result<StartedWorker, Error> {
        let WorkerRequest { file, manifest, .. } = asked;
        let failed = |what: String| Error::new(ErrorKind::Io, what);
        let no_socket =
            |error: std::io::Error| failed(format!("cannot create a socket for a worker: {error}"));
        let (socket, theirs) = UnixStream::pair().map_err(no_socket)?;
        let mut command = ChildCommand::new(&self.executable, child_folder());
        command.args = SERVE_ARGUMENTS.iter().map(Into::into).collect();
        command.args.push(file.into());
        command.variables = worker_variables(&asked);
        command.stdout = StandardOutput::Piped;
        command.stderr = ErrorOutput::Merged;
        command.descriptor3 = Some(OwnedFd::from(theirs));
        command.limits = ProcessLimits {
            memory_bytes: (!asked.is_trusted).then_some(WORKER_MEMORY_BYTES),
            open_files: Some(WORKER_OPEN_FILES),
            cpu_seconds: None,
        };
        let mut child = self.supervisor.spawn(command).await.map_err(|error| {
            let made = failed(format!("cannot start a worker for `{}`: {error}", manifest.name));
            error.hint().into_iter().fold(made, Error::with_hint)
        })?;
        let printed = Arc::new(Mutex::new(Vec::new()));
        let (reading, read) = watch::channel(());
        if let Some(output) = child.stdout.take() {
            let reader =
                WorkerOutputLogger { plugin: manifest.name.clone(), log: self.log.clone() };
            let reader = reader.log_output(output, Arc::clone(&printed));
            tokio::spawn(async move {
                reader.await;
                drop(reading);
            });
        }
        Ok(StartedWorker { socket, process: Arc::new(WorkerChild { child, printed, read }) })
    }
}

/// Returns the variables that every worker gets, and those that its manifest names.
fn worker_variables(asked: &WorkerRequest<'_>) -> BTreeMap<OsString, OsString> {
    let common = VARIABLES.map(|name| WorkerVariable { name, value: None, memory_below: None });
    let named = asked.manifest.variables.iter().filter_map(|entry| WorkerVariable::parse(entry));
    let available = OnceCell::new();
    let value = |variable: WorkerVariable<'_>| {
        let own = || {
            let is_due = variable.memory_below.is_none_or(|bytes| {
                available.get_or_init(available_memory).is_some_and(|available| available < bytes)
            });
            variable.value.filter(|_| is_due).map(OsString::from)
        };
        Some((variable.name.into(), (asked.variable)(variable.name).or_else(own)?))
    };
    let mut variables: BTreeMap<OsString, OsString> =
        common.into_iter().chain(named).filter_map(value).collect();
    // Programs below a plugin must not trust anything in the user's name.
    variables.insert(SESSION_MARKER.into(), asked.owner.unwrap_or("none").into());
    variables
}

/// Returns the memory that a process could still allocate, in bytes, or `None` if that is unknown.
fn available_memory() -> Option<u64> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    let machine = system.available_memory();
    let group = system.cgroup_limits().map(|limits| limits.free_memory);
    Some(group.map_or(machine, |group| group.min(machine))).filter(|&bytes| bytes > 0)
}

/// The process of one worker.
struct WorkerChild {
    child: ChildProcess,
    printed: Arc<Mutex<Vec<u8>>>,
    /// Closed when all its output was read.
    read: watch::Receiver<()>,
}

impl WorkerProcess for WorkerChild {
    fn wait_for_end(&self) -> BoxFuture<'_, String> {
        Box::pin(async {
            let exit = self.child.wait().await;
            // A child of the worker may hold the pipe open.
            let mut read = self.read.clone();
            let _ = tokio::time::timeout(PRINTED_MAX, read.changed()).await;
            match exit {
                Ok(exit) => exit_text(exit),
                Err(error) => format!("is gone: {error}"),
            }
        })
    }

    fn end_process(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // We may not kill the survivors. The guardian tries again at the host's end.
            let _ = self.child.end().await;
        })
    }

    fn resume(&self) -> BoxFuture<'_, bool> {
        Box::pin(async {
            is_stopped(self.child.pid()) && self.child.signal(GroupSignal::Continue).await.is_ok()
        })
    }

    fn last_output(&self) -> String {
        let printed = self.printed.lock();
        String::from_utf8_lossy(&printed).into_owned()
    }
}

/// Returns true if a process was stopped, or false if `/proc` is unavailable.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name may contain any character and ends with the last parenthesis.
    let after = stat.iter().rposition(|byte| *byte == b')').unwrap_or(stat.len());
    stat.get(after + 2) == Some(&b'T')
}

/// Writes the output of plugins inside the host to the log, line by line, until the output ends.
/// `source` is the name for the lines.
pub async fn log_worker_output(log: Log, source: String, output: impl AsyncRead + Unpin) {
    WorkerOutputLogger { plugin: PluginName::from(source), log }
        .log_output(output, Arc::default())
        .await;
}

/// Writes a worker's output to the log line by line, and keeps the last part for the error of its
/// death.
struct WorkerOutputLogger {
    plugin: PluginName,
    log: Log,
}

impl WorkerOutputLogger {
    async fn log_output(self, mut output: impl AsyncRead + Unpin, kept: Arc<Mutex<Vec<u8>>>) {
        let (mut line, mut buffer) = (Vec::new(), vec![0; 4096]);
        while let Ok(read @ 1..) = output.read(&mut buffer).await {
            let piece = &buffer[..read];
            {
                let mut kept = kept.lock();
                kept.extend_from_slice(piece);
                let surplus = kept.len().saturating_sub(PRINTED_BYTES_MAX);
                kept.drain(..surplus);
            }
            for byte in piece {
                if *byte == b'\n' || line.len() >= LINE_BYTES_MAX {
                    self.log_line(&mut line);
                }
                if *byte != b'\n' {
                    line.push(*byte);
                }
            }
        }
        self.log_line(&mut line);
    }

    fn log_line(&self, line: &mut Vec<u8>) {
        if !line.is_empty() {
            let text = String::from_utf8_lossy(line);
            self.log.write_line(3, self.plugin.as_str(), &format!("printed: {text}"));
            line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_worker_variables(entries: &[&str], set: &[(&str, &str)], expected: &[(&str, &str)]) {
        let manifest = serde_json::json!({
            "v": 1, "name": "p", "version": "1", "api": "1.0.0", "kinds": ["tool"], "variables": entries,
        });
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        let value = |name: &str| set.iter().find(|it| it.0 == name).map(|it| it.1.into());
        let file = Path::new("p.so");
        let asked = WorkerRequest {
            file,
            manifest: &manifest,
            is_trusted: true,
            owner: Some("s"),
            variable: &value,
        };
        let mut found = worker_variables(&asked);
        assert_eq!(found.remove(&OsString::from(SESSION_MARKER)), Some("s".into()));
        let found: Vec<_> = found.iter().map(|it| (it.0.to_str(), it.1.to_str())).collect();
        let expected: Vec<_> = expected.iter().map(|it| (Some(it.0), Some(it.1))).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn session_mark_is_the_same_in_process_and_config() {
        assert_eq!(jaato_process::SESSION_MARK, jaato_config::trust::SESSION_MARK);
    }

    #[test]
    fn worker_gets_variables_from_the_user_or_else_from_its_manifest() {
        let set = [("HOME", "/h"), ("A", "1"), ("OTHER", "2")];
        check_worker_variables(&[], &set, &[("HOME", "/h")]);
        check_worker_variables(&["A", "B"], &set, &[("A", "1"), ("HOME", "/h")]);
        check_worker_variables(&["A=3", "B=4"], &set, &[("A", "1"), ("B", "4"), ("HOME", "/h")]);
        check_worker_variables(&["what is this?"], &set, &[("HOME", "/h")]);
    }

    #[test]
    fn low_memory_default_applies_only_on_a_small_machine() {
        // No machine has less than 0 bytes, and none has a million GiB.
        check_worker_variables(&["A=1 if memory < 0 GiB"], &[], &[]);
        check_worker_variables(&["A=1 if memory < 1000000 GiB"], &[], &[("A", "1")]);
        check_worker_variables(&["A=1 if memory < 0 GiB"], &[("A", "2")], &[("A", "2")]);
    }
}

//! Runs programs for plugins: the implementation of the service `process`.
//!
//! A call's programs are children of the host's supervisor, and the call reads each one through its
//! stream. Dropping that stream (by close, cancel, or the end of the call) ends the program and its
//! descendants. [`LeftoverPrograms`] keeps what an ended program left running until the host ends.
//!
//! Invariants: only the current frame of a program's output is in memory. A program gets no
//! variable that looks like a secret unless the user passes it. Every program gets the session's
//! marker.

mod leftovers;
mod service;
mod stream;
#[cfg(test)]
mod tests;
mod variables;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jaato_config::EnvironmentVariables;
use jaato_config::trust::SESSION_MARKER;
use jaato_process::{ChildCommand, ProcessError, Supervisor};
use jaato_types::process::Spawn;
use jaato_types::{Error, ErrorKind, SessionId};
use parking_lot::{Mutex, MutexGuard};

pub use leftovers::EndedProcess;
use leftovers::LeftoverPrograms;
pub use service::CallProcesses;
pub use variables::declared_secrets;

/// Maximum number of running programs per session: 64 on terminals and 64 others. Each takes a
/// keeper and four descriptors, and a terminal takes two more, out of the 1024 that most systems
/// allow a process.
pub const RUNNING_PER_SESSION_MAX: usize = 128;

/// The number of the host's first program. Environments count from 1, and a session may hold
/// numbers of both kinds.
const FIRST_NUMBER: u64 = 1 << 52;

/// The marker of a program that runs for no session.
const NO_SESSION: &str = "none";

/// The state that all calls' programs share.
pub struct ProgramRegistry {
    supervisor: Supervisor,
    variables: Mutex<Arc<BTreeMap<OsString, OsString>>>,
    directory: PathBuf,
    numbers: AtomicU64,
    running: Mutex<HashMap<SessionId, usize>>,
    left: LeftoverPrograms,
}

impl ProgramRegistry {
    /// Creates the state without starting anything. `credentials` are the variables that providers
    /// declare, `pass` the user's exceptions.
    pub fn new(
        supervisor: Supervisor,
        variables: &EnvironmentVariables,
        credentials: &BTreeSet<String>,
        pass: &[String],
        directory: PathBuf,
    ) -> Self {
        Self {
            supervisor,
            variables: Mutex::new(Arc::new(variables::cleaned_variables(
                variables,
                credentials,
                pass,
            ))),
            directory,
            numbers: AtomicU64::new(FIRST_NUMBER),
            running: Mutex::default(),
            left: LeftoverPrograms::default(),
        }
    }

    /// Returns the host's variables for programs, without any that contain or look like a secret.
    pub fn variables(&self) -> Arc<BTreeMap<OsString, OsString>> {
        Arc::clone(&self.variables.lock())
    }

    /// Withholds variables that providers declare from all programs started afterwards. `pass`
    /// holds the user's exceptions.
    pub fn withhold_variables(&self, credentials: &BTreeSet<String>, pass: &[String]) {
        let mut variables = self.variables.lock();
        let is_secret = |name: &&String| !pass.contains(name);
        for name in credentials.iter().filter(is_secret) {
            if variables.contains_key(OsStr::new(name)) {
                Arc::make_mut(&mut variables).remove(OsStr::new(name));
            }
        }
    }

    /// Lists the processes that were left running and still live. The host ends them next.
    pub async fn list_living(&self) -> Vec<EndedProcess> {
        self.left.list_living().await
    }

    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Relaxed)
    }

    /// Reserves a slot among the session's programs. Dropping it releases the slot.
    fn take_slot(self: &Arc<Self>, session: &SessionId) -> Result<ProgramSlot, Error> {
        let mut running = self.lock_running();
        let count = running.entry(session.clone()).or_default();
        if *count >= RUNNING_PER_SESSION_MAX {
            let text =
                format!("the session already has {RUNNING_PER_SESSION_MAX} running programs");
            return Err(Error::new(ErrorKind::LimitReached, text)
                .with_hint("wait until some have ended")
                .temporary());
        }
        *count += 1;
        Ok(ProgramSlot { processes: Arc::clone(self), session: session.clone() })
    }

    fn lock_running(&self) -> MutexGuard<'_, HashMap<SessionId, usize>> {
        self.running.lock()
    }

    /// Builds the supervisor's command for a program.
    fn child_command(&self, spawn: &Spawn, session: &SessionId) -> ChildCommand {
        let directory = match &spawn.directory {
            Some(directory) => self.directory.join(directory),
            None => self.directory.clone(),
        };
        let mut command = ChildCommand::new(&spawn.program, &directory);
        command.args = spawn.args.iter().map(OsString::from).collect();
        command.variables = (*self.variables()).clone();
        // The host's own value would name another folder.
        command.variables.insert("PWD".into(), directory.into());
        let given = spawn.variables.iter().map(|(name, value)| (name.into(), value.into()));
        command.variables.extend(given);
        append_paths(&mut command.variables, &spawn.extra_paths);
        // An environment that runs a program for a session sets the marker itself.
        if spawn.variables.contains_key(SESSION_MARKER) {
            return command;
        }
        let marker = if session.as_str().is_empty() { NO_SESSION } else { session.as_str() };
        command.variables.insert(SESSION_MARKER.into(), marker.into());
        command
    }
}

fn append_paths(variables: &mut BTreeMap<OsString, OsString>, folders: &[String]) {
    if folders.is_empty() {
        return;
    }
    let path = variables.entry("PATH".into()).or_default();
    for folder in folders {
        if !path.is_empty() {
            path.push(":");
        }
        path.push(folder);
    }
}

/// A slot among the running programs of a session.
struct ProgramSlot {
    processes: Arc<ProgramRegistry>,
    session: SessionId,
}

impl Drop for ProgramSlot {
    fn drop(&mut self) {
        let mut running = self.processes.lock_running();
        if let Some(count) = running.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.session);
            }
        }
    }
}

/// Converts a supervisor's error to one that plugins, models and users can act on.
fn to_plugin_error(error: &ProcessError) -> Error {
    let kind = match error {
        ProcessError::InvalidCommand { .. } => ErrorKind::InvalidArguments,
        ProcessError::ProgramNotFound { .. } | ProcessError::BadDirectory { .. } => {
            ErrorKind::NotFound
        }
        ProcessError::CommandTooLarge { .. } | ProcessError::ArgumentsTooLong { .. } => {
            ErrorKind::LimitReached
        }
        ProcessError::NotExecutable { .. } | ProcessError::Survivors { .. } => ErrorKind::Failed,
        ProcessError::CannotStart { .. }
        | ProcessError::NoDescriptors { .. }
        | ProcessError::GuardianNotStarted { .. }
        | ProcessError::NoGuardian { .. }
        | ProcessError::GuardianLost
        | ProcessError::GuardianSilent { .. }
        | ProcessError::GuardianVersion { .. } => ErrorKind::Unavailable,
        ProcessError::GuardianAnswer { .. } | ProcessError::IsGuardian => ErrorKind::HostBug,
    };
    let told = Error::new(kind, error.to_string());
    let told = if error.is_temporary() { told.temporary() } else { told };
    match error.hint() {
        Some(hint) => told.with_hint(hint),
        None => told,
    }
}

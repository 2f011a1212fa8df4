//! Runs programs for plugins: what the service `process` stands on.
//!
//! A call's programs are children of the host's supervisor, each read by the stream that the call
//! was given. Dropping that stream (close, cancel, the end of the call) ends the program and its
//! descendants. What a program that has ended left running is kept by [`LeftOvers`] until the host
//! ends.
//!
//! Invariants: nothing of a program's output is held but the frame on its way; a program gets no
//! variable that looks like a secret unless the person passes it; every program gets the session's
//! marker.

mod left;
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

use jaato_config::Variables;
use jaato_config::trust::SESSION_MARKER;
use jaato_process::{Command, ProcessError, Supervisor};
use jaato_types::process::Spawn;
use jaato_types::{Error, ErrorKind, SessionId};
use parking_lot::{Mutex, MutexGuard};

pub use left::EndedProcess;
use left::LeftOvers;
pub use service::CallProcesses;
pub use variables::declared_secrets;

/// Programs that one session may have running at a time: 64 on terminals and as many beside them.
/// Each takes a keeper and four descriptors, a terminal two more, of the 1024 that a process is
/// given by most systems.
pub const RUNNING_PER_SESSION_MAX: usize = 128;

/// The number of the host's first program. Environments count from 1, and a session may hold
/// numbers of both kinds.
const FIRST_NUMBER: u64 = 1 << 52;

/// The marker of a program that runs for no session.
const NO_SESSION: &str = "none";

/// What the programs of all calls share.
pub struct Processes {
    supervisor: Supervisor,
    variables: Mutex<Arc<BTreeMap<OsString, OsString>>>,
    directory: PathBuf,
    numbers: AtomicU64,
    running: Mutex<HashMap<SessionId, usize>>,
    left: LeftOvers,
}

impl Processes {
    /// Makes them; starts nothing. `credentials` are the variables that providers declare, `pass`
    /// those that the person lets through.
    pub fn new(
        supervisor: Supervisor,
        variables: &Variables,
        credentials: &BTreeSet<String>,
        pass: &[String],
        directory: PathBuf,
    ) -> Self {
        Self {
            supervisor,
            variables: Mutex::new(Arc::new(variables::cleaned(variables, credentials, pass))),
            directory,
            numbers: AtomicU64::new(FIRST_NUMBER),
            running: Mutex::default(),
            left: LeftOvers::default(),
        }
    }

    /// Returns what programs get of the host's variables: nothing that holds or looks like a
    /// secret.
    pub fn variables(&self) -> Arc<BTreeMap<OsString, OsString>> {
        Arc::clone(&self.variables.lock())
    }

    /// Keeps variables that providers declare from programs that are started from here on; `pass`
    /// are those that the person lets through.
    pub fn withhold(&self, credentials: &BTreeSet<String>, pass: &[String]) {
        let mut variables = self.variables.lock();
        let is_secret = |name: &&String| !pass.contains(name);
        for name in credentials.iter().filter(is_secret) {
            if variables.contains_key(OsStr::new(name)) {
                Arc::make_mut(&mut variables).remove(OsStr::new(name));
            }
        }
    }

    /// Lists what was left running and still lives; the host ends it next.
    pub async fn living(&self) -> Vec<EndedProcess> {
        self.left.living().await
    }

    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Relaxed)
    }

    /// Takes one of the session's places; dropping it gives it back.
    fn take_place(self: &Arc<Self>, session: &SessionId) -> Result<RunningPlace, Error> {
        let mut running = self.running();
        let count = running.entry(session.clone()).or_default();
        if *count >= RUNNING_PER_SESSION_MAX {
            let text = format!("the session has {RUNNING_PER_SESSION_MAX} programs running");
            return Err(Error::new(ErrorKind::LimitReached, text)
                .with_hint("wait until some have ended")
                .temporary());
        }
        *count += 1;
        Ok(RunningPlace { processes: Arc::clone(self), session: session.clone() })
    }

    fn running(&self) -> MutexGuard<'_, HashMap<SessionId, usize>> {
        self.running.lock()
    }

    /// Describes a program to the supervisor.
    fn command(&self, spawn: &Spawn, session: &SessionId) -> Command {
        let directory = match &spawn.directory {
            Some(directory) => self.directory.join(directory),
            None => self.directory.clone(),
        };
        let mut command = Command::new(&spawn.program, &directory);
        command.args = spawn.args.iter().map(OsString::from).collect();
        command.variables = (*self.variables()).clone();
        // The host's own would name another folder.
        command.variables.insert("PWD".into(), directory.into());
        let given = spawn.variables.iter().map(|(name, value)| (name.into(), value.into()));
        command.variables.extend(given);
        append_paths(&mut command.variables, &spawn.extra_paths);
        // An environment runs it for a session, and says for which.
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

/// A place among the running programs of a session.
struct RunningPlace {
    processes: Arc<Processes>,
    session: SessionId,
}

impl Drop for RunningPlace {
    fn drop(&mut self) {
        let mut running = self.processes.running();
        if let Some(count) = running.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.session);
            }
        }
    }
}

/// Makes a supervisor's error one that a plugin, a model and a person can act on.
fn told(error: &ProcessError) -> Error {
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

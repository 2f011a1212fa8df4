//! The service `process` of a fake host: real programs, each in its own process group.
//!
//! The difference from the host: processes that leave the program's process group (`setsid`) are
//! neither found nor ended.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use jaato_types::process::{SPAWN, SPAWN_ON_TERMINAL, Spawn, SpawnOnTerminal};
use jaato_types::service::SessionFacts;
use jaato_types::{Error, ErrorKind, Result};

use super::clock::FakeTime;
use super::services::{FakeServiceReply, ServiceRequest};

/// Words that make a variable look like a secret, as in the host.
const SECRET_WORDS: [&str; 7] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTHORIZATION"];

/// The variable that every program of a session gets.
const SESSION_MARKER: &str = "JAATO_SESSION_ID";

/// The programs of one fake host.
#[derive(Default)]
pub(crate) struct FakePrograms {
    time: Option<FakeTime>,
    running: super::program::RunningFakePrograms,
}

impl FakePrograms {
    /// Sets the time that stops while a program runs.
    pub(crate) fn set_time(&mut self, time: FakeTime) {
        self.time = Some(time);
    }

    /// Ends all programs immediately.
    pub(crate) fn end_all(&mut self) {
        self.running.end_all();
    }

    /// Answers an operation of the service.
    pub(crate) fn answer(
        &mut self,
        request: &ServiceRequest,
        session: Option<&SessionFacts>,
        folder: &Path,
    ) -> Result<FakeServiceReply> {
        let (spawn, terminal): (Spawn, _) = match request.operation.as_str() {
            SPAWN => (request.read()?, None),
            SPAWN_ON_TERMINAL => {
                let SpawnOnTerminal { spawn, terminal, .. } = request.read()?;
                (spawn, Some(PathBuf::from(terminal)))
            }
            _ => return self.run_operation(request),
        };
        let id = session.map(|facts| facts.session_id.clone()).filter(|id| !id.is_empty());
        let prepared = PreparedProgram {
            directory: working_directory(&spawn, session, folder)?,
            variables: program_variables(&spawn, id.unwrap_or_else(|| "fake".to_owned())),
            spawn,
            terminal,
        };
        self.start_program(request, prepared)
    }

    fn run_operation(&self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        self.running.run_operation(request)
    }

    fn start_program(
        &mut self,
        request: &ServiceRequest,
        prepared: PreparedProgram,
    ) -> Result<FakeServiceReply> {
        let held = self.time.as_ref().map(FakeTime::hold_time);
        self.running.start(request.context, &prepared, held)
    }
}

/// A program that may be started.
pub(crate) struct PreparedProgram {
    pub(crate) spawn: Spawn,
    /// The terminal that it runs on, if its outputs are not to be read.
    pub(crate) terminal: Option<PathBuf>,
    pub(crate) directory: PathBuf,
    pub(crate) variables: BTreeMap<OsString, OsString>,
}

/// Returns the session's working directory, or the host's own folder without a session.
fn working_directory(
    spawn: &Spawn,
    session: Option<&SessionFacts>,
    folder: &Path,
) -> Result<PathBuf> {
    let working = session.map(|facts| PathBuf::from(&facts.working_directory));
    let working = working.filter(|path| path.is_absolute()).unwrap_or_else(|| folder.to_owned());
    let directory = spawn.directory.as_ref().map(|path| working.join(path)).unwrap_or(working);
    if directory.is_dir() {
        return Ok(directory);
    }
    let text = format!("cannot work in `{}`: no such directory", directory.display());
    Err(Error::new(ErrorKind::NotFound, text))
}

fn program_variables(spawn: &Spawn, session: String) -> BTreeMap<OsString, OsString> {
    let is_secret = |name: &OsString| {
        let name = name.to_string_lossy().to_ascii_uppercase();
        SECRET_WORDS.iter().any(|word| name.contains(word))
    };
    let mut variables: BTreeMap<OsString, OsString> =
        std::env::vars_os().filter(|(name, _)| !is_secret(name)).collect();
    let given = spawn.variables.iter().map(|(name, value)| (name.into(), value.into()));
    variables.extend(given);
    let path = variables.entry("PATH".into()).or_default();
    for extra in &spawn.extra_paths {
        if !path.is_empty() {
            path.push(":");
        }
        path.push(extra);
    }
    variables.insert(SESSION_MARKER.into(), session.into());
    variables
}

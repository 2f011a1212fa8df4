//! Commands in the sandbox: the host runs `bwrap`, which runs the command.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{ProcessControl, ProcessEvents, Spawn};
use jaato_plugin_sdk_environment::{HostFiles, Shell};

use crate::sandbox::Sandbox;

/// The program that creates the sandbox.
const BWRAP: &str = "bwrap";

/// The maximum output to read when the sandbox is tested.
const SAID_BYTES_MAX: usize = 64 * 1024;

/// Runs commands in the sandbox.
pub struct SandboxShell {
    home: Home,
    files: HostFiles,
    sandbox: Arc<Sandbox>,
}

impl SandboxShell {
    /// Creates the shell. `home` belongs to the instance, which outlives every call.
    pub fn new(home: Home, files: HostFiles, sandbox: Arc<Sandbox>) -> Self {
        Self { home, files, sandbox }
    }

    /// Checks that the sandbox works on this machine.
    ///
    /// # Errors
    /// Kind `unavailable` if `bwrap` is missing or lacks a permission.
    pub async fn check_bwrap(&self) -> Result<()> {
        let spawn = Spawn::program("true").deadline_ms(10_000);
        let tried = self.home.process(&wrap_spawn(&self.sandbox, spawn, Path::new("/"))).await;
        let tried = tried.map_err(|error| {
            let text = format!("cannot run `{BWRAP}`: {}", error.message);
            Error::new(ErrorKind::Unavailable, text).with_hint("install the package `bubblewrap`")
        })?;
        let ran = tried.finish(SAID_BYTES_MAX).await?;
        if ran.exit.code == Some(0) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ran.stderr);
        let text = format!("`{BWRAP}` cannot create a sandbox: {}", said.trim());
        let hint = "the system must allow user namespaces";
        Err(Error::new(ErrorKind::Unavailable, text).with_hint(hint))
    }

    /// Wraps a program in the sandbox. Blocks to look for the folder and the program.
    async fn prepared(&self, host: &Reporter, spawn: Spawn) -> Result<Spawn> {
        let (files, sandbox) = (self.files.clone(), Arc::clone(&self.sandbox));
        host.blocking(move |_| prepared(&files, &sandbox, spawn)).await?
    }
}

impl Shell for SandboxShell {
    type Program = ProcessControl;
    type Events = ProcessEvents;

    // The host runs `bwrap` itself, and the output goes directly to the tool.
    async fn prepare(&self, host: &Reporter, spawn: Spawn) -> Result<Option<Spawn>> {
        self.prepared(host, spawn).await.map(Some)
    }

    // For programs that outlive their call.
    async fn start(
        &self,
        host: &Reporter,
        spawn: Spawn,
    ) -> Result<(ProcessControl, ProcessEvents)> {
        let spawn = self.prepared(host, spawn).await?;
        Ok(self.home.process(&spawn).await?.split())
    }
}

/// Finds the folder and the program, so that the caller gets an error before anything runs.
fn prepared(files: &HostFiles, sandbox: &Sandbox, mut spawn: Spawn) -> Result<Spawn> {
    if spawn.program.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArguments, "the command is empty"));
    }
    let asked = spawn.directory.take().unwrap_or_default();
    let (directory, _) = files.confined().folder_paths(&asked)?;
    let own_path = || std::env::var_os("PATH").unwrap_or_default();
    let mut path = spawn.variables.get("PATH").map_or_else(own_path, OsString::from);
    for folder in &spawn.extra_paths {
        path.push(":");
        path.push(folder);
    }
    if !sandbox.has_visible_program(&spawn.program, &directory, &path) {
        let text = format!("no program `{}` in the sandbox", spawn.program);
        return Err(Error::new(ErrorKind::NotFound, text));
    }
    if let Some((folder, _)) = files.confined().temporary_folder() {
        let folder = folder.to_string_lossy().into_owned();
        // `/tmp` is read-only.
        spawn.variables.entry("TMPDIR".to_owned()).or_insert(folder);
    }
    Ok(wrap_spawn(sandbox, spawn, &directory))
}

/// Puts `bwrap` before a program. The label for the user shows only the program.
fn wrap_spawn(sandbox: &Sandbox, spawn: Spawn, directory: &Path) -> Spawn {
    let own = || [std::slice::from_ref(&spawn.program), &spawn.args].concat();
    let label = spawn.label.clone().unwrap_or_else(|| own().join(" "));
    Spawn {
        program: BWRAP.to_owned(),
        args: [sandbox.bwrap_arguments(directory), own()].concat(),
        label: Some(label),
        ..spawn
    }
}

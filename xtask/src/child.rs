//! Starts other programs and reports their failures clearly.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How often to check a child with a deadline.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Returns a command for the cargo that runs this chore, in the checkout.
///
/// The command gets the same variables as a cargo that the user runs, because some crates are
/// rebuilt if these differ (ring uses `CARGO_PKG_NAME`, proc-macro2 `RUSTC_BOOTSTRAP`), and all
/// their dependents too.
pub fn cargo_command(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    clear_cargo_variables(&mut command);
    disable_incremental_data(&mut command);
    command
}

/// On a CI machine, lets the command and the cargos that it starts write no data for incremental
/// builds. CI machines never build a second time, and the data would need several gigabytes.
pub fn disable_incremental_data(command: &mut Command) {
    if is_ci() {
        command.env("CARGO_INCREMENTAL", "0");
    }
}

/// Returns true on a CI machine, based on the variable that all of them set.
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true" || value == "1")
}

/// Removes the variables of `cargo run` and test runs. Otherwise other programs would assume that
/// they run under cargo, or cargo would build differently.
pub fn clear_cargo_variables(command: &mut Command) {
    remove_cargo_variables(command, std::env::vars_os().map(|(name, _)| name));
}

fn remove_cargo_variables(command: &mut Command, names: impl Iterator<Item = OsString>) {
    for name in names {
        let text = name.to_string_lossy();
        let is_left = text == "CARGO"
            || text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
            || text == "CARGO_BIN_NAME"
            || text == "CARGO_CRATE_NAME"
            || text == "CARGO_PRIMARY_PACKAGE"
            || text == "RUSTC_BOOTSTRAP"
            || text == "RUST_RECURSION_COUNT";
        if is_left {
            command.env_remove(&name);
        }
    }
}

/// Runs a command to its end on the same terminal. The error names the command.
pub fn run_command(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {}", command_text(command)))?;
    check_status(command, status)
}

/// Runs a command to its end and returns its standard output.
pub fn command_stdout(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", command_text(command)))?;
    check_status(command, output.status)?;
    String::from_utf8(output.stdout).with_context(|| format!("reading {}", command_text(command)))
}

/// Returns an error unless the command succeeded.
pub fn check_status(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("{} failed ({status})", command_text(command));
    }
    Ok(())
}

/// The end of a child with a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildOutcome {
    /// Its exit code was 0.
    Well,
    /// It had another exit code, or a signal ended it.
    Badly,
    /// It was killed at its deadline.
    Late,
    /// The program does not exist, or may not be run.
    NotStarted,
}

/// Waits for the command until the deadline, then kills it.
pub fn run_until_deadline(command: &mut Command, deadline: Duration) -> ChildOutcome {
    let Ok(mut child) = command.stdin(Stdio::null()).spawn() else {
        return ChildOutcome::NotStarted;
    };
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return ChildOutcome::Well,
            Ok(Some(_)) | Err(_) => return ChildOutcome::Badly,
            Ok(None) if start.elapsed() < deadline => std::thread::sleep(LOOK_EVERY),
            Ok(None) => {
                // The command may have ended just before the kill. It is reaped in both cases.
                let _ = child.kill();
                let _ = child.wait();
                return ChildOutcome::Late;
            }
        }
    }
}

/// Returns the command as a user would type it.
pub fn command_text(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_stem().unwrap_or(command.get_program()).to_string_lossy();
    let mut text = format!("`{name}");
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text.push('`');
    text
}

/// Replaces this process with the command, which gets its terminal, signals and exit code.
pub fn exec_command(mut command: Command) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt;

    Err(command.exec().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_variables_are_removed_and_user_variables_are_kept() {
        let mut command = Command::new("jaato");
        let names =
            ["CARGO", "CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "CARGO_HOME", "RUSTC_BOOTSTRAP"];
        remove_cargo_variables(&mut command, names.iter().map(OsString::from));
        let removed: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(removed, ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "RUSTC_BOOTSTRAP"]);
    }

    #[test]
    fn a_failure_names_the_command_as_typed() {
        let mut command = cargo_command(Path::new("."));
        command.args(["no-such-command", "--flag"]).stderr(Stdio::null());
        let error = run_command(&mut command).unwrap_err().to_string();
        assert!(error.starts_with("`cargo no-such-command --flag` failed ("), "{error}");
    }

    #[test]
    fn missing_program_is_distinguished_from_a_failing_one() {
        let mut missing = Command::new("no-such-program-anywhere");
        assert_eq!(
            run_until_deadline(&mut missing, Duration::from_secs(5)),
            ChildOutcome::NotStarted
        );
        let mut failing = cargo_command(Path::new("."));
        failing.arg("no-such-command").stderr(Stdio::null());
        assert_eq!(run_until_deadline(&mut failing, Duration::from_secs(60)), ChildOutcome::Badly);
    }

    #[test]
    fn a_child_that_hangs_is_killed_at_its_deadline() {
        let mut command = Command::new("sleep");
        command.arg("600");
        let start = Instant::now();
        assert_eq!(run_until_deadline(&mut command, Duration::from_millis(50)), ChildOutcome::Late);
        assert!(start.elapsed() < Duration::from_secs(300));
    }
}

//! Starts other programs and says clearly what went wrong with them.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How often a child with a deadline is looked at: short against any deadline, long against a look.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The cargo that runs this chore, working in the checkout.
pub fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    command
}

/// Runs to the end with the terminal passed through; a failure names the command.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {}", shown(command)))?;
    check(command, status)
}

/// Runs to the end and gives what it wrote to its standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", shown(command)))?;
    check(command, output.status)?;
    String::from_utf8(output.stdout).with_context(|| format!("reading {}", shown(command)))
}

/// Fails unless the command has ended well.
pub fn check(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("{} failed ({status})", shown(command));
    }
    Ok(())
}

/// How a child with a deadline has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Well,
    Badly,
    /// It was killed when its time was up.
    Late,
    /// There is no such program, or it may not be run.
    NotStarted,
}

/// Waits for the command at most `deadline`, then kills it.
pub fn within(command: &mut Command, deadline: Duration) -> Ended {
    let Ok(mut child) = command.stdin(Stdio::null()).spawn() else { return Ended::NotStarted };
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ended::Well,
            Ok(Some(_)) | Err(_) => return Ended::Badly,
            Ok(None) if start.elapsed() < deadline => std::thread::sleep(LOOK_EVERY),
            Ok(None) => {
                // It may have ended between the look and the kill; either way it is reaped.
                let _ = child.kill();
                let _ = child.wait();
                return Ended::Late;
            }
        }
    }
}

/// The command as a person would type it.
pub fn shown(command: &Command) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_as_typed() {
        let mut command = cargo(Path::new("."));
        command.args(["no-such-command", "--flag"]).stderr(Stdio::null());
        let error = run(&mut command).unwrap_err().to_string();
        assert!(error.starts_with("`cargo no-such-command --flag` failed ("), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_told_from_one_that_fails() {
        let mut missing = Command::new("no-such-program-anywhere");
        assert_eq!(within(&mut missing, Duration::from_secs(5)), Ended::NotStarted);
        let mut failing = cargo(Path::new("."));
        failing.arg("no-such-command").stderr(Stdio::null());
        assert_eq!(within(&mut failing, Duration::from_secs(60)), Ended::Badly);
    }

    #[cfg(unix)]
    #[test]
    fn a_child_that_hangs_is_killed_at_its_deadline() {
        let mut command = Command::new("sleep");
        command.arg("600");
        let start = Instant::now();
        assert_eq!(within(&mut command, Duration::from_millis(50)), Ended::Late);
        assert!(start.elapsed() < Duration::from_secs(300));
    }
}

//! `jaato environment`: where files are and commands run.

use std::io::{self, Read as _};
use std::sync::Arc;

use jaato_runtime::session_loop::{Cancel, EventSink, Session};
use jaato_runtime::types::execution::EnvironmentFacts;
use jaato_runtime::types::process::{OutputStream, ProcessExit, Spawn};
use jaato_runtime::types::{Error, ErrorKind, EventEnvelope};
use jaato_runtime::{Runtime, SessionOptions};
use serde_json::json;
use tokio::sync::mpsc;

use crate::args::{EnvironmentArgs, GlobalArgs};
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::signals::cancel_on_signals;
use crate::terminal::Channel;
use crate::{report, start, terminal};

/// How many bytes of standard input are read at a time.
const INPUT_BYTES: usize = 64 * 1024;

/// How many pieces of standard input wait for the program.
const INPUT_WAITING_MAX: usize = 4;

/// The offset that a shell adds to the number of a signal that ended a program.
const SIGNAL_BASE: i32 = 128;

/// The deadline of a command that the user watches, in milliseconds: a year. The environment's
/// `shell_timeout` is for unattended commands.
const EXEC_DEADLINE_MS: u64 = 365 * 24 * 60 * 60 * 1000;

/// The limits of the environments' isolation.
const CONFINEMENT: &str = "tools can access only files in the allowed folders; jaato does not confine commands yet: only an environment that does so itself (a container, a sandbox) confines them";

/// Lists the environments.
pub async fn list_environments(global: GlobalArgs, as_json: bool) -> CommandResult {
    let runtime = start::lasting_runtime(start::setup_arguments(global)).await?;
    report::print_problems(&start::list_problems(runtime));
    let environments = runtime.list_environments();
    if as_json {
        let listed = environments.iter().map(|it| {
            json!({
                "name": it.spec.name,
                "title": it.spec.title,
                "plugin": it.plugin,
                "default": it.is_default,
            })
        });
        return report::print_exact_json(&listed.collect());
    }
    if environments.is_empty() {
        report::print_line("no execution environments")?;
        return Ok(Exit::Done);
    }
    let rows: Vec<_> = environments
        .iter()
        .map(|it| {
            let default = if it.is_default { "default" } else { "" };
            let (name, plugin) = (it.spec.name.clone(), it.plugin.to_string());
            vec![name, plugin, default.to_owned(), it.spec.title.clone()]
        })
        .collect();
    report::print_table(&["environment", "plugin", "", "what"], &rows)?;
    report::print_notes(CONFINEMENT);
    Ok(Exit::Done)
}

/// Sets up an environment and describes it.
pub async fn show_environment(
    global: GlobalArgs,
    args: &EnvironmentArgs,
    as_json: bool,
) -> CommandResult {
    let (runtime, session) = environment_session(global, args).await?;
    let cancel = Cancel::new();
    cancel_on_signals(cancel.clone());
    let notice = |text: String| report::print_notes(&text);
    let facts = tokio::select! {
        () = cancel.cancelled() => Err(Error::cancelled()),
        facts = runtime.environment_facts(session.id(), notice) => facts,
    };
    close_session(runtime, session).await;
    let facts = facts?;
    if as_json {
        return report::print_exact_json(&json!(facts));
    }
    report::print_line(&describe_environment(&facts))?;
    Ok(Exit::Done)
}

fn describe_environment(facts: &EnvironmentFacts) -> String {
    let mut lines = vec![format!("{}: {}", facts.name, environment_location(facts))];
    lines.push(format!("  commands start in {}", facts.working_directory));
    for allowed in &facts.allowed_paths {
        let how = if allowed.read_only { " (read-only)" } else { "" };
        lines.push(format!("  tools can access files in {}{how}", allowed.path));
    }
    if let Some(folder) = &facts.temporary_directory {
        lines.push(format!("  temporary files are in {folder}"));
    }
    if let Some(os) = &facts.os {
        lines.push(format!("  it runs {} ({} {})", os.friendly_name, os.name, os.release));
    }
    if let Some(shell) = &facts.shell {
        lines.push(format!("  the shell is {}", shell.path));
    }
    if let Some(user) = &facts.user {
        lines.push(format!("  commands run as {user}"));
    }
    for (key, value) in &facts.details {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        lines.push(format!("  {key}: {value}"));
    }
    let reach = if facts.confines_commands { "only these" } else { "other" };
    lines.push(format!("  commands can access {reach} folders"));
    lines.join("\n")
}

fn environment_location(facts: &EnvironmentFacts) -> &'static str {
    if facts.is_host { "this machine" } else { "not this machine's own files and programs" }
}

/// Runs a command in an environment.
pub async fn run_in_environment(
    global: GlobalArgs,
    args: &EnvironmentArgs,
    directory: Option<String>,
    command: &[String],
) -> CommandResult {
    let (runtime, session) = environment_session(global, args).await?;
    let cancel = Cancel::new();
    cancel_on_signals(cancel.clone());
    let spawn = Spawn { directory, ..spawn_for_command(command) }.deadline_ms(EXEC_DEADLINE_MS);
    let mut failed = None;
    let ran =
        runtime.execute(session.id(), &spawn, read_piped_input(), &cancel, |stream, bytes| {
            let channel = match stream {
                OutputStream::Stdout => Channel::Output,
                OutputStream::Stderr => Channel::Errors,
            };
            if let Err(error) = terminal::pass(channel, bytes) {
                // No one reads the output, so the command need not continue.
                failed.get_or_insert(error);
                cancel.cancel();
            }
        });
    let exit = ran.await;
    close_session(runtime, session).await;
    if let Some(error) = failed.filter(|error| error.kind() != io::ErrorKind::BrokenPipe) {
        return Err(CommandFailure::new(Exit::Failed, format!("cannot write the output: {error}")));
    }
    match exit {
        Ok(exit) => exit_with_process(&exit),
        Err(error) if error.kind == ErrorKind::Cancelled => Ok(Exit::Cancelled),
        Err(error) => Err(error.into()),
    }
}

/// Builds the process: a single word is a line for the shell, as with `ssh`. Several are a program
/// and its arguments.
fn spawn_for_command(command: &[String]) -> Spawn {
    match command {
        [line] => Spawn::shell(line),
        [program, args @ ..] => args.iter().fold(Spawn::program(program), Spawn::arg),
        [] => unreachable!("clap wants at least one"),
    }
}

/// Exits with the command's own code.
fn exit_with_process(exit: &ProcessExit) -> CommandResult {
    for left in &exit.left_running {
        report::print_notes(&format!("ended process {} ({}), left running", left.pid, left.name));
    }
    match (exit.code, exit.signal) {
        (Some(0), _) => Ok(Exit::Done),
        (Some(code), _) => crate::exit::exit_now(code),
        (None, Some(signal)) => crate::exit::exit_now(SIGNAL_BASE + signal),
        (None, None) => {
            Err(CommandFailure::new(Exit::Failed, "the result of the command is unknown"))
        }
    }
}

/// Reads standard input on its own thread, unless it is a terminal.
fn read_piped_input() -> Option<mpsc::Receiver<Vec<u8>>> {
    if terminal::input_is_terminal() {
        return None;
    }
    let (sender, receiver) = mpsc::channel(INPUT_WAITING_MAX);
    std::thread::spawn(move || {
        let mut buffer = vec![0; INPUT_BYTES];
        loop {
            // Input that cannot be read counts as ended.
            let read = io::stdin().lock().read(&mut buffer).unwrap_or(0);
            if sender.blocking_send(buffer[..read].to_vec()).is_err() || read == 0 {
                return;
            }
        }
    });
    Some(receiver)
}

/// No one follows the session, because the command itself prints.
pub struct DiscardingEventSink;

impl EventSink for DiscardingEventSink {
    fn receive_event(&self, _envelope: EventEnvelope) {}
}

async fn environment_session(
    global: GlobalArgs,
    args: &EnvironmentArgs,
) -> Result<(Runtime, Session), CommandFailure> {
    let mut arguments = start::setup_arguments(global);
    start::add_environment(&mut arguments, args);
    let runtime = start::start_runtime(arguments).await?;
    let mut options = SessionOptions::unattended(Arc::new(DiscardingEventSink));
    options.environment_options = start::environment_options(&runtime, args)?;
    let session = runtime.open_session_for_calls(options)?;
    Ok((runtime, session))
}

async fn close_session(runtime: Runtime, session: Session) {
    runtime.close_session(session.id()).await;
    start::close_runtime(runtime).await;
}

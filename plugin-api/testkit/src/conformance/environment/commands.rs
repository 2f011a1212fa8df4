//! Checks of commands, each run in both ways. The environment may prepare a command for the host to
//! run, and it can always run a command itself and stream its output to the host.

use jaato_types::execution::{
    STREAM_CLOSE, STREAM_END, STREAM_KEY, STREAM_NEXT, StreamClose, StreamNext,
};
use jaato_types::process::{
    END, LIST, OutputStream, PREPARE, ProcessEvent, ProcessExit, ProcessFacts, ProcessStartAnswer,
    SPAWN, START, Spawn, Stdin, WRITE,
};
use jaato_types::{ErrorKind, Frame, Result};
use serde_json::{Value, json};

use super::{PreparedEnvironment, ask_environment, ask_with_bytes, call_environment, has_shell};
use crate::FakeHost;
use crate::conformance::{ConformanceSuite, ConformanceVerdict, ensure, prefix_error};

/// The maximum output of one command that is read.
pub(super) const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// The longest default deadline that a check waits for. It skips environments with a longer one.
const SHORT_MS: u64 = 1000;

/// A deadline that is never reached.
const LONG_MS: u64 = 300_000;

/// The way to run a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandRunner {
    /// The environment, which streams the output.
    Environment,
    /// The host, with the command that the environment prepared.
    Host,
}

/// The result of a command.
#[derive(Default)]
struct CommandOutcome {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    exit: ProcessExit,
}

impl CommandOutcome {
    /// Adds a frame of a command's stream.
    fn add_frame(&mut self, frame: &Frame<'_>) -> ConformanceVerdict {
        match frame.json().map_err(|error| format!("no event: {error}"))? {
            ProcessEvent::Output { stream: OutputStream::Stdout, .. } => {
                self.stdout.extend_from_slice(frame.bytes);
            }
            ProcessEvent::Output { stream: OutputStream::Stderr, .. } => {
                self.stderr.extend_from_slice(frame.bytes);
            }
            ProcessEvent::Exited(exit) => self.exit = exit,
            ProcessEvent::Unknown => {}
        }
        ensure(self.stdout.len() < OUTPUT_BYTES_MAX, || "it prints without end".into())
    }
}

impl PreparedEnvironment<'_> {
    /// Returns the ways in which the environment's commands run: none if it has no commands.
    fn command_runners(&self) -> Vec<CommandRunner> {
        let prepares = self.has_operation(PREPARE, json!({ "program": "true" }));
        let ways = [(has_shell(self), CommandRunner::Environment), (prepares, CommandRunner::Host)];
        ways.into_iter().filter_map(|(is_there, way)| is_there.then_some(way)).collect()
    }

    /// Runs a command to its end. Returns both outputs and the exit.
    fn run_command(
        &self,
        way: CommandRunner,
        spawn: &Spawn,
        input: &[u8],
    ) -> std::result::Result<CommandOutcome, String> {
        match way {
            CommandRunner::Environment => self.run_in_environment(spawn, input),
            CommandRunner::Host => self.run_on_host(spawn, input),
        }
        .map_err(|error| format!("{error} (run by the {way:?})"))
    }

    fn run_in_environment(
        &self,
        spawn: &Spawn,
        input: &[u8],
    ) -> std::result::Result<CommandOutcome, String> {
        let spawned: Value =
            ask_environment(self.instance, SPAWN, spawn).map_err(prefix_error("a command"))?;
        let process = spawned["process"].as_u64().ok_or("a command has no number")?;
        if spawn.stdin == Stdin::Piped {
            let write = json!({ "process": process, "close": true });
            ask_with_bytes::<Value>(self.instance, WRITE, &write, input)
                .map_err(prefix_error("its input"))?;
        }
        self.read_outcome(spawned[STREAM_KEY].as_u64().ok_or("a command has no stream")?)
    }

    fn read_outcome(&self, stream: u64) -> std::result::Result<CommandOutcome, String> {
        let mut ran = CommandOutcome::default();
        loop {
            let frame = call_environment(
                self.instance,
                STREAM_NEXT,
                &StreamNext { stream, ..StreamNext::default() },
                &[],
            )
            .map_err(prefix_error("its stream"))?;
            let parsed = Frame::parse(&frame).map_err(|error| error.to_string())?;
            if parsed.json == STREAM_END.to_string().as_bytes() {
                break;
            }
            ran.add_frame(&parsed)?;
        }
        let closed: Result<Value> = ask_environment(
            self.instance,
            STREAM_CLOSE,
            &StreamClose { stream, ..StreamClose::default() },
        );
        closed.map_err(prefix_error("closing a stream"))?;
        Ok(ran)
    }

    fn run_on_host(
        &self,
        spawn: &Spawn,
        input: &[u8],
    ) -> std::result::Result<CommandOutcome, String> {
        let prepared = self.prepare_spawn(spawn).map_err(prefix_error("a command is prepared"))?;
        let program =
            self.host.start_program(&prepared).map_err(prefix_error("a prepared command"))?;
        if spawn.stdin == Stdin::Piped {
            program.write(input).map_err(prefix_error("its input"))?;
        }
        let mut ran = CommandOutcome::default();
        while let Some(frame) = program.next().map_err(prefix_error("its stream"))? {
            ran.add_frame(&Frame::parse(&frame).map_err(|error| error.to_string())?)?;
        }
        Ok(ran)
    }

    fn prepare_spawn(&self, spawn: &Spawn) -> Result<Spawn> {
        ask_environment(self.instance, PREPARE, spawn)
    }

    /// Tries to start a command.
    fn start_command(&self, way: CommandRunner, spawn: &Spawn) -> Result<()> {
        match way {
            CommandRunner::Environment => {
                ask_environment::<Value>(self.instance, SPAWN, spawn).map(drop)
            }
            CommandRunner::Host => self.host.start_program(&self.prepare_spawn(spawn)?).map(drop),
        }
    }
}

/// A command reads its input, writes to separate outputs, and ends with its exit code, with the
/// given variables and folder.
pub fn commands_run(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    for way in ready.command_runners() {
        let line = "cat; echo \"$MOON\" >&2; exit 3";
        let spawn = Spawn::shell(line).variable("MOON", "full").piped_stdin();
        let ran = ready.run_command(way, &spawn, b"light")?;
        ensure(ran.stdout == b"light", || format!("its output: {:?}", display_text(&ran.stdout)))?;
        ensure(ran.stderr == b"full\n", || format!("its errors: {:?}", display_text(&ran.stderr)))?;
        ensure(ran.exit.code == Some(3), || format!("its exit: {:?}", ran.exit))?;
        let ran = ready.run_command(way, &Spawn::shell("pwd"), b"")?;
        let directory = format!("{}\n", ready.facts.working_directory);
        ensure(ran.stdout == directory.as_bytes(), || {
            format!("it runs in {:?}, not in {directory:?}", display_text(&ran.stdout))
        })?;
        let missing = ready.start_command(way, &Spawn::program("no-such-moon"));
        let is_told = missing.is_err_and(|error| error.kind == ErrorKind::NotFound);
        ensure(is_told, || "a program that is not there is no `not_found`".into())?;
    }
    ready.shut_down(host)
}

/// A prepared command keeps what the host and the tool set: its input, its variables, its deadline,
/// and its label for the user.
pub fn host_commands_are_prepared(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    if ready.command_runners().contains(&CommandRunner::Host) {
        let asked =
            Spawn::shell("true").variable("MOON", "full").piped_stdin().deadline_ms(LONG_MS);
        let asked = asked.label("the moon");
        let prepared =
            ready.prepare_spawn(&asked).map_err(prefix_error("a command is prepared"))?;
        let kept = |it: &Spawn| (it.stdin, it.deadline_ms, it.label.clone());
        ensure(kept(&prepared) == kept(&asked), || format!("{asked:?} becomes {prepared:?}"))?;
        let words = [std::slice::from_ref(&prepared.program), &prepared.args].concat();
        let is_kept = prepared.variables.get("MOON").is_some_and(|value| value == "full")
            || words.iter().any(|word| word.contains("MOON=full"));
        ensure(is_kept, || format!("the variable is lost: {prepared:?}"))?;
    }
    ready.shut_down(host)
}

/// A command ends at its deadline, and its output so far is kept.
pub fn a_deadline_ends_a_command(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    for way in ready.command_runners() {
        let spawn = Spawn::shell("echo begun; sleep 300").deadline_ms(300);
        let ran = ready.run_command(way, &spawn, b"")?;
        ensure(ran.exit.timed_out, || format!("its time is not up: {:?}", ran.exit))?;
        ensure(ran.stdout == b"begun\n", || format!("it printed {:?}", display_text(&ran.stdout)))?;
    }
    ready.shut_down(host)
}

/// A command without a deadline gets the environment's default deadline, but a background program
/// does not. The check waits only for a short deadline.
pub fn environment_deadline_is_kept(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let timeout_ms = ready.facts.shell_timeout_ms;
    for way in ready.command_runners() {
        if !(1..=SHORT_MS).contains(&timeout_ms) {
            break;
        }
        let started: ProcessStartAnswer =
            ask_environment(ready.instance, START, &Spawn::shell("sleep 300"))
                .map_err(prefix_error("a program"))?;
        let ran = ready.run_command(way, &Spawn::shell("echo begun; sleep 300"), b"")?;
        ensure(ran.exit.timed_out, || format!("its time is not up: {:?}", ran.exit))?;
        ensure(ran.stdout == b"begun\n", || format!("it printed {:?}", display_text(&ran.stdout)))?;
        let ran = ready.run_command(way, &Spawn::shell("exit 2").deadline_ms(LONG_MS), b"")?;
        ensure(ran.exit.code == Some(2), || format!("its own deadline is lost: {:?}", ran.exit))?;
        let listed: Vec<ProcessFacts> =
            ready.ask_environment(LIST, Value::Null).map_err(prefix_error("a list"))?;
        let is_running = |it: &ProcessFacts| it.process == started.process && it.exit.is_none();
        ensure(listed.iter().any(is_running), || format!("a program has ended: {listed:?}"))?;
    }
    ready.shut_down(host)
}

/// A command that was ended reports so.
pub fn running_command_can_be_ended(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    if has_shell(&ready) {
        let spawned: Value =
            ask_environment(ready.instance, SPAWN, &Spawn::shell("sleep 300; echo late"))
                .map_err(prefix_error("a command"))?;
        ready.ask_environment::<Value>(END, spawned.clone()).map_err(prefix_error("its end"))?;
        let ran = ready.read_outcome(spawned[STREAM_KEY].as_u64().unwrap_or_default())?;
        ensure(ran.stdout.is_empty(), || {
            format!("it printed after its end: {:?}", display_text(&ran.stdout))
        })?;
        ensure(ran.exit.code != Some(0), || format!("it ended well: {:?}", ran.exit))?;
    }
    ready.shut_down(host)
}

pub(super) fn display_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned()
}

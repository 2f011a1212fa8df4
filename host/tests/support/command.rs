//! Runs an installation's jaato with its own variables and a deadline, and captures its output.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::House;

/// How long a run may take. Far more than any needs, so it only ends hanging runs.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// How long a run with a real model may take.
const PATIENT_DEADLINE: Duration = Duration::from_secs(600);

/// How long processes may live after the host has ended.
pub const LEFTOVERS_BOUND: Duration = DEADLINE;

/// The interval between checks for such processes.
pub const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A command line to run.
pub struct Command {
    command: std::process::Command,
    input: CommandInput,
    deadline: Duration,
    root: String,
}

/// Standard input.
enum CommandInput {
    /// A pipe with these bytes.
    Pipe(Vec<u8>),
    /// Already set on the command.
    Given,
}

/// Returns the words of `unshare` that remove a command's network, if that is possible here.
pub fn no_network(house: &House) -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [&["-n", "--"], &["-rn", "--"]];
    let works =
        |way: &&&[&str]| Command::wrapped_in(house, "unshare", way, &["--version"]).run().code == 0;
    let has_program = std::process::Command::new("unshare").arg("--version").output().is_ok();
    ways.iter().filter(|_| has_program).find(works).copied()
}

/// The output of a run and how it ended.
#[derive(Debug)]
pub struct Output {
    /// The exit code, or 128 plus the signal's number.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    root: String,
}

impl Command {
    pub fn new(house: &House, words: &[&str]) -> Self {
        let program = house.binary();
        let mut command = Self {
            command: std::process::Command::new(program),
            input: CommandInput::Pipe(Vec::new()),
            deadline: DEADLINE,
            root: house.path().display().to_string(),
        };
        command.command.args(words).current_dir(house.workspace());
        command.with_house(house)
    }

    fn with_house(mut self, house: &House) -> Self {
        self.command
            .env_clear()
            .env("HOME", house.home())
            .env("XDG_RUNTIME_DIR", house.path().join("run"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .process_group(0);
        if super::is_isolated() {
            let (name, value) = super::ISOLATED;
            self.command.env(name, value);
        }
        self
    }

    /// Runs another program in front of jaato, such as `strace` or `unshare`.
    pub fn wrapped_in(house: &House, program: &str, before: &[&str], words: &[&str]) -> Self {
        let mut command = Self {
            command: std::process::Command::new(program),
            input: CommandInput::Pipe(Vec::new()),
            deadline: DEADLINE,
            root: house.path().display().to_string(),
        };
        command.command.args(before).arg(house.binary()).args(words);
        command.command.current_dir(house.workspace());
        command.with_house(house)
    }

    /// Runs another program alone.
    pub fn program(house: &House, program: &str, words: &[&str]) -> Self {
        let mut command = Self {
            command: std::process::Command::new(program),
            input: CommandInput::Pipe(Vec::new()),
            deadline: DEADLINE,
            root: house.path().display().to_string(),
        };
        command.command.args(words).current_dir(house.workspace());
        command.with_house(house)
    }

    pub fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.command.env(name, value.into());
        self
    }

    pub fn without_variable(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub fn directory(mut self, folder: &std::path::Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    pub fn user(mut self, id: u32) -> Self {
        self.command.uid(id).gid(id);
        self
    }

    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = CommandInput::Pipe(bytes.into());
        self
    }

    /// Uses no input, like a service.
    pub fn no_input(mut self) -> Self {
        self.command.stdin(Stdio::null());
        self.input = CommandInput::Given;
        self
    }

    /// Waits longer than others need. A turn waits for each call, however slow the machine is.
    pub fn with_long_deadline(mut self) -> Self {
        self.deadline = PATIENT_DEADLINE;
        self.command.env("JAATO_SESSION_AUTO_BACKGROUND_THRESHOLD_MS", "0");
        self
    }

    /// Reads standard input from a file, for outputs that are closed early.
    pub fn input_file(mut self, path: &std::path::Path) -> Self {
        self.command.stdin(std::fs::File::open(path).unwrap());
        self.input = CommandInput::Given;
        self
    }

    /// Runs to the end.
    #[track_caller]
    pub fn run(mut self) -> Output {
        let input = match std::mem::replace(&mut self.input, CommandInput::Given) {
            CommandInput::Pipe(bytes) => {
                self.command.stdin(Stdio::piped());
                bytes
            }
            CommandInput::Given => Vec::new(),
        };
        let mut running = self.start();
        if !input.is_empty() {
            running.write(&input);
        }
        running.finish()
    }

    /// Starts the program and reads its output while it runs.
    #[track_caller]
    pub fn start(mut self) -> Running {
        if let CommandInput::Pipe(_) = &self.input {
            self.command.stdin(Stdio::piped());
        }
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawned = spawn_retrying(&mut self.command);
        let mut child =
            spawned.unwrap_or_else(|error| panic!("cannot start {:?}: {error}", self.command));
        let (ended, watch) = channel();
        let (group, deadline) = (child.id(), self.deadline);
        let watchdog = std::thread::spawn(move || end_at_deadline(&watch, deadline, group));
        let (lines, stdout) = start_reader(child.stdout.take().unwrap());
        let (error_lines, stderr) = start_reader(child.stderr.take().unwrap());
        let input = child.stdin.take();
        let root = self.root;
        Running {
            child,
            input,
            lines,
            rest: RefCell::default(),
            error_lines,
            stdout,
            stderr,
            ended,
            watchdog,
            deadline,
            root,
        }
    }

    /// Runs the program with an output that is closed after this many bytes, as `| head -c` does.
    /// Writes the input only after that, and keeps it open.
    #[track_caller]
    pub fn run_into_closed_output(mut self, bytes: usize) -> Output {
        let (mut head, output) = std::io::pipe().unwrap();
        let input = match std::mem::replace(&mut self.input, CommandInput::Given) {
            CommandInput::Pipe(input) => {
                self.command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
                input
            }
            CommandInput::Given => Vec::new(),
        };
        let mut child = spawn_retrying(self.command.stdout(output).stderr(Stdio::piped())).unwrap();
        // Only the child may hold its end of the pipe.
        drop(self.command);
        let (ended, watch) = channel();
        let (group, deadline) = (child.id(), self.deadline);
        let watchdog = std::thread::spawn(move || end_at_deadline(&watch, deadline, group));
        let mut read = vec![0; bytes];
        head.read_exact(&mut read).unwrap();
        drop(head);
        let mut stdin = child.stdin.take();
        if let Some(stdin) = &mut stdin {
            // If it does not read its input, it has ended, and its output shows why.
            let _ = stdin.write_all(&input);
        }
        let (_, stderr) = start_reader(child.stderr.take().unwrap());
        let status = child.wait().unwrap();
        drop((stdin, ended));
        let stdout = String::from_utf8_lossy(&read).into_owned();
        let stderr = stderr.join().unwrap();
        let output = Output { code: exit_code(status), stdout, stderr, root: self.root };
        assert!(!watchdog.join().unwrap(), "it did not end in time: {output}");
        output
    }
}

/// A run in progress.
pub struct Running {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The standard output behind the last text that was waited for, as far as it was received.
    rest: RefCell<String>,
    error_lines: Receiver<String>,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
    ended: Sender<()>,
    watchdog: JoinHandle<bool>,
    /// How long it may take until it prints more: as long as the whole run.
    deadline: Duration,
    root: String,
}

impl Running {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes to standard input, which stays open.
    pub fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("standard input is open");
        // If it does not read its input, it has ended, and its output shows why.
        let _ = input.write_all(bytes).and_then(|()| input.flush());
    }

    /// Waits for the next line of standard output.
    #[track_caller]
    pub fn next_line(&self) -> String {
        self.take_through(|printed| printed.find('\n').map(|at| at + 1))
    }

    /// Waits for a line of standard output with this text.
    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        loop {
            let line = self.next_line();
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Waits for text on standard error, even in an unfinished line. Returns everything up to
    /// there.
    #[track_caller]
    pub fn wait_for_error(&self, text: &str) -> String {
        let mut seen = String::new();
        while !seen.contains(text) {
            seen.push_str(&self.error_lines.recv_timeout(self.deadline).expect("more output"));
        }
        seen
    }

    /// Returns the text on standard error that was not waited for.
    pub fn unread_errors(&self) -> String {
        self.error_lines.try_iter().collect()
    }

    /// Waits for text on standard output, even in an unfinished line.
    #[track_caller]
    pub fn wait_for_text(&self, text: &str) {
        self.take_through(|printed| printed.find(text).map(|at| at + text.len()));
    }

    /// Waits until a prompt accepts an answer, which is when its input row is shown.
    #[track_caller]
    pub fn wait_for_question(&self) {
        // With a colour, and without.
        const ROWS: [&str; 2] = ["║ \u{1b}[0m> ", "║ > "];
        let end = |printed: &str, row: &str| printed.find(row).map(|at| at + row.len());
        self.take_through(|printed| ROWS.iter().filter_map(|row| end(printed, row)).min());
    }

    /// Waits until standard output has an end that is looked for, and returns the text before it.
    /// The text behind it is left for the next wait.
    #[track_caller]
    fn take_through(&self, end: impl Fn(&str) -> Option<usize>) -> String {
        let mut printed = self.rest.take();
        loop {
            if let Some(end) = end(&printed) {
                self.rest.replace(printed.split_off(end));
                return printed;
            }
            match self.lines.recv_timeout(self.deadline) {
                Ok(piece) => printed.push_str(&piece),
                Err(error) => panic!("{error}: the output ends after {printed:?}"),
            }
        }
    }

    /// Sends a signal by its name, only to the host.
    pub fn send_signal(&self, name: &str) {
        let words = [format!("-{name}"), self.child.id().to_string()];
        let status = std::process::Command::new("kill").args(words).status().unwrap();
        assert!(status.success());
    }

    /// Closes standard input and waits for the end.
    #[track_caller]
    pub fn finish(mut self) -> Output {
        drop(self.input.take());
        self.wait_with_open_input()
    }

    /// Waits for the end without closing standard input.
    #[track_caller]
    pub fn wait_with_open_input(mut self) -> Output {
        let input = self.input.take();
        let status = self.child.wait().unwrap();
        drop(input);
        let (stdout, stderr) = (self.stdout.join().unwrap(), self.stderr.join().unwrap());
        drop(self.ended);
        let late = self.watchdog.join().unwrap();
        let output = Output { code: exit_code(status), stdout, stderr, root: self.root };
        assert!(!late, "it did not end in time: {output}");
        output
    }
}

/// Starts a program. If the test has just copied the file, a child that another thread is starting
/// may hold it open for writing for a moment.
fn spawn_retrying(command: &mut std::process::Command) -> std::io::Result<Child> {
    let began = Instant::now();
    loop {
        match command.spawn() {
            Err(error)
                if error.kind() == ErrorKind::ExecutableFileBusy && began.elapsed() < DEADLINE =>
            {
                std::thread::yield_now();
            }
            spawned => return spawned,
        }
    }
}

/// Kills the process group at the deadline. Returns whether that was necessary.
fn end_at_deadline(watch: &Receiver<()>, deadline: Duration, group: u32) -> bool {
    let late = matches!(watch.recv_timeout(deadline), Err(RecvTimeoutError::Timeout));
    if late {
        let words = ["-KILL".to_owned(), "--".to_owned(), format!("-{group}")];
        let _ = std::process::Command::new("kill").args(words).status();
    }
    late
}

/// Reads to the end and passes on each piece at once. A piece is a line, or the beginning of one.
fn start_reader(mut from: impl Read + Send + 'static) -> (Receiver<String>, JoinHandle<String>) {
    let (sender, pieces) = channel();
    let thread = std::thread::spawn(move || {
        let (mut all, mut told, mut buffer) = (Vec::new(), 0, [0; 4096]);
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            all.extend_from_slice(&buffer[..read]);
            while told < all.len() {
                let end = all[told..].iter().position(|&byte| byte == b'\n');
                let end = end.map_or(all.len(), |at| told + at + 1);
                // A character split between two reads is still incomplete.
                let end = match std::str::from_utf8(&all[told..end]) {
                    Err(error) if error.error_len().is_none() => told + error.valid_up_to(),
                    _ => end,
                };
                if end == told {
                    break;
                }
                // The receiver may be gone.
                let _ = sender.send(String::from_utf8_lossy(&all[told..end]).into_owned());
                told = end;
            }
        }
        String::from_utf8(all).unwrap_or_else(|error| panic!("the output is not UTF-8: {error}"))
    });
    (pieces, thread)
}

fn exit_code(status: std::process::ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

impl Output {
    /// Fails unless it ended with this code.
    #[track_caller]
    pub fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, expected, "{self}");
        self
    }

    /// Fails unless it succeeded with an empty standard error.
    #[track_caller]
    pub fn expect_silent(self) -> Self {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self}");
        self
    }

    /// Returns standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Returns standard output as JSON lines.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.stdout.lines().map(parse).collect()
    }
}

/// Formats everything for snapshots, with the parts replaced that differ between installations.
impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let clean = |text: &str| super::normalize_text(text, &self.root);
        writeln!(f, "exit {}", self.code)?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(f, "--- {name}\n{}", clean(text))?;
            }
        }
        Ok(())
    }
}

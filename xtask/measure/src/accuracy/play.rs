//! Runs one program and judges each result.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::caller::{TimedToolAnswer, ToolCaller};
use super::programs::{AccuracyProgram, ProgramStep, StepAction, StepEndState};
use super::recorder::{TerminalWriteRecorder, find_terminal};
use super::report::{ProgramReport, StepVerdict};
use super::services::ProgramFolder;

/// The rule for comparison: no output for this long.
const SILENCE: Duration = Duration::from_millis(500);

/// A program that writes within this time after a result was not done yet.
const SETTLE: Duration = Duration::from_millis(350);

/// The longest wait of a step, in seconds.
const STEP_S_MAX: u64 = 20;

/// How long to wait for a program that stays busy, in seconds.
const NEVER_S: u64 = 3;

/// The longest wait for the expected output after a result that came too early.
const TRUTH_DELAY: Duration = Duration::from_secs(15);

/// The session's name.
const SESSION: &str = "session_0";

/// Types from outside the tools, which leave this input to the user.
const TYPE: &str = "import fcntl, os, sys, termios
fd = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
for byte in sys.argv[2].encode(): fcntl.ioctl(fd, termios.TIOCSTI, bytes([byte]))";

/// Runs a program.
pub fn play_program(
    program: &AccuracyProgram,
    place: &ProgramFolder,
    caller: &mut ToolCaller,
    recorder: &TerminalWriteRecorder,
) -> Result<ProgramReport> {
    let mut played = ProgramReport::new(program);
    let (mut terminal, mut is_secret) = (None, false);
    for (number, step) in program.steps.iter().enumerate() {
        let begun = Instant::now();
        let answer = run_step(step, program, place, caller, (terminal, is_secret))?;
        terminal = terminal.or_else(|| find_terminal(caller.pid()));
        is_secret = step.asks_secret;
        let seen = StepObservation { place, recorder, terminal, begun, answer };
        let verdict = seen.judge_step(step, caller)?;
        let verdict = StepJudgement { number, verdict, ..seen.step_judgement(step) };
        played.add_step(step, verdict);
    }
    Ok(played)
}

/// The judgement of a step.
#[derive(Debug)]
pub struct StepJudgement {
    pub number: usize,
    pub verdict: StepVerdict,
    /// The reason and the output of the result.
    pub reason: String,
    pub output: String,
    /// The time from the program's last write to the result, or `None` if the step does not wait.
    pub latency: Option<Duration>,
    /// Whether the rule of silence would have been right.
    pub silence_is_right: bool,
}

/// Runs a step.
fn run_step(
    step: &ProgramStep,
    program: &AccuracyProgram,
    place: &ProgramFolder,
    caller: &mut ToolCaller,
    (terminal, is_secret): (Option<u32>, bool),
) -> Result<TimedToolAnswer> {
    let seconds = if step.ends == StepEndState::Never { NEVER_S } else { STEP_S_MAX };
    match &step.does {
        StepAction::Starts => {
            let command = place.fill_placeholders(&program.command);
            caller.call_tool("shell_spawn", &json!({ "command": command, "timeout": seconds }))
        }
        StepAction::Marks(shell) => {
            let arguments =
                json!({ "session_id": SESSION, "mark_prompts": shell, "timeout": seconds });
            caller.call_tool("shell_input", &arguments)
        }
        StepAction::Types(text) if is_secret => {
            let begun = Instant::now();
            if let Err(error) = type_at_terminal(terminal, &place.fill_placeholders(text)) {
                let reason = error.to_string();
                return Ok(TimedToolAnswer::from_failure(begun, reason));
            }
            let answer = caller
                .call_tool("shell_read", &json!({ "session_id": SESSION, "timeout": seconds }))?;
            Ok(TimedToolAnswer { asked: begun, ..answer })
        }
        StepAction::Types(text) => {
            let (tool, arguments) = input_arguments(&place.fill_placeholders(text), seconds);
            caller.call_tool(tool, &arguments)
        }
    }
}

/// Converts input to a key or a text.
fn input_arguments(text: &str, seconds: u64) -> (&'static str, Value) {
    let key = match text.as_bytes() {
        [0x1b] => Some("escape".to_owned()),
        [b'\r'] => Some("enter".to_owned()),
        [b'\t'] => Some("tab".to_owned()),
        [code @ 1..=26] if *code != b'\n' => Some(format!("c-{}", char::from(code + b'a' - 1))),
        _ => None,
    };
    match key {
        Some(key) => {
            ("shell_control", json!({ "session_id": SESSION, "key": key, "timeout": seconds }))
        }
        None => {
            ("shell_input", json!({ "session_id": SESSION, "input": text, "timeout": seconds }))
        }
    }
}

/// Types at the terminal from outside. Only root can do this.
fn type_at_terminal(terminal: Option<u32>, text: &str) -> Result<()> {
    let Some(terminal) = terminal else { bail!("the terminal was not found") };
    let mut command = Command::new("python3");
    command.args(["-c", TYPE, &format!("/dev/pts/{terminal}"), text]).stderr(Stdio::null());
    if command.status()?.success() {
        return Ok(());
    }
    bail!("typing secrets from outside needs root")
}

/// A result and the other observations.
struct StepObservation<'a> {
    place: &'a ProgramFolder,
    recorder: &'a TerminalWriteRecorder,
    terminal: Option<u32>,
    begun: Instant,
    answer: TimedToolAnswer,
}

impl StepObservation<'_> {
    /// Returns true if the output shows everything that the step expects.
    fn has_expected_output(&self, step: &ProgramStep, output: &str, is_alive: bool) -> bool {
        let lacks = step
            .lacks
            .as_ref()
            .is_none_or(|text| !output.contains(&self.place.fill_placeholders(text)));
        (step.ends == StepEndState::Exited) != is_alive
            && output.contains(&self.place.fill_placeholders(&step.shows))
            && lacks
    }

    fn judge_step(&self, step: &ProgramStep, caller: &mut ToolCaller) -> Result<StepVerdict> {
        let TimedToolAnswer { reason, output, is_alive, answered, .. } = &self.answer;
        if step.ends == StepEndState::Never {
            return Ok(if reason == "limit" { StepVerdict::Right } else { StepVerdict::Early });
        }
        let is_done = self.has_expected_output(step, output, *is_alive);
        let mut is_quiet = true;
        if matches!(step.ends, StepEndState::Waiting) {
            std::thread::sleep(SETTLE);
            is_quiet = self.recorder.writes_since(*answered, self.terminal).is_empty();
            if is_done && !is_quiet {
                // The observer may report the program's last write late. Then a further read
                // returns nothing new.
                let read = caller
                    .call_tool("shell_read", &json!({ "session_id": SESSION, "timeout": 0 }))?;
                is_quiet = read.output.is_empty() || read.output == *output;
            }
        }
        if is_done && is_quiet {
            return Ok(match &**reason {
                "waiting" | "prompt" | "exit" => StepVerdict::Right,
                "silence" => StepVerdict::Silence,
                _ => StepVerdict::Missed,
            });
        }
        let later = self.wait_until_done(step, caller)?;
        Ok(match (&**reason, later) {
            ("limit", _) => StepVerdict::Missed,
            (_, true) => StepVerdict::Early,
            (_, false) => StepVerdict::Wrong,
        })
    }

    /// Waits until the program has reached the start of the next step.
    fn wait_until_done(&self, step: &ProgramStep, caller: &mut ToolCaller) -> Result<bool> {
        let mut output = self.answer.output.clone();
        let begun = Instant::now();
        while begun.elapsed() < TRUTH_DELAY {
            let read =
                caller.call_tool("shell_read", &json!({ "session_id": SESSION, "timeout": 2 }))?;
            output.push_str(&read.output);
            std::thread::sleep(SETTLE);
            if self.has_expected_output(step, &output, read.is_alive) {
                return Ok(true);
            }
            if !read.is_alive {
                return Ok(false);
            }
        }
        Ok(false)
    }

    fn step_judgement(&self, step: &ProgramStep) -> StepJudgement {
        let writes = self.recorder.writes_since(self.begun, self.terminal);
        let TimedToolAnswer { asked, answered, reason, output, .. } = &self.answer;
        let before = writes.iter().copied().filter(|at| at <= answered);
        let last = before.max().unwrap_or(*asked).max(*asked);
        let waits = matches!(step.ends, StepEndState::Waiting | StepEndState::GoingOn);
        StepJudgement {
            number: 0,
            verdict: StepVerdict::Wrong,
            reason: reason.clone(),
            output: output.clone(),
            latency: waits.then(|| answered.saturating_duration_since(last)),
            silence_is_right: is_silence_rule_right(*asked, *answered, &writes, step.ends),
        }
    }
}

/// Returns true if the rule of silence would have waited until the end of the output.
fn is_silence_rule_right(
    asked: Instant,
    answered: Instant,
    writes: &[Instant],
    ends: StepEndState,
) -> bool {
    let mut last = asked;
    for at in writes {
        // The step does not wait for a clock that keeps running.
        if ends == StepEndState::GoingOn && *at > answered {
            break;
        }
        if at.saturating_duration_since(last) >= SILENCE {
            return false;
        }
        last = *at;
    }
    ends != StepEndState::Never
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_keys_and_texts_are_typed() {
        let key = |text: &str| input_arguments(text, 1).1["key"].as_str().map(str::to_owned);
        assert_eq!(key("\u{3}").as_deref(), Some("c-c"));
        assert_eq!(key("\u{1a}").as_deref(), Some("c-z"));
        assert_eq!(key("\u{1b}").as_deref(), Some("escape"));
        assert_eq!(key("\r").as_deref(), Some("enter"));
        assert_eq!(key("\n"), None);
        assert_eq!(input_arguments("ls\n", 1).0, "shell_input");
    }

    #[test]
    fn half_second_gap_in_the_output_breaks_the_silence_rule() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let check = |writes: &[Instant], ends| is_silence_rule_right(begin, at(900), writes, ends);
        assert!(check(&[at(1), at(400), at(800)], StepEndState::Waiting));
        assert!(!check(&[at(1), at(501)], StepEndState::Waiting));
        assert!(!check(&[at(500)], StepEndState::Waiting));
        assert!(check(&[at(1), at(2000)], StepEndState::GoingOn), "a clock that keeps running");
        assert!(!check(&[], StepEndState::Never));
    }
}

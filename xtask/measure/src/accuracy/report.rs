//! The table, the totals and the misses.

use std::fmt::Write as _;
use std::time::Duration;

use super::play::StepJudgement;
use super::programs::{AccuracyProgram, ProgramStep, StepEndState};

/// The targets as shares of all steps: the least right ones and the most early ones.
const RIGHT_PERCENT_MIN: f64 = 94.0;
const EARLY_PERCENT_MAX: f64 = 3.0;

/// The target for the median time from a program's last write to the result.
const MEDIAN_MAX: Duration = Duration::from_millis(10);

/// The delay of the rule of silence for each step.
const SILENCE_MS: f64 = 500.0;

/// The maximum number of characters of a wrong result to show.
const SHOWN_CHARACTERS_MAX: usize = 160;

/// The verdict on a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepVerdict {
    /// Arrived while the program waited, with the right reason.
    Right,
    /// Arrived before the program waited.
    Early,
    /// Arrived while the program waited, but only because of its silence.
    Silence,
    /// Arrived much later, or with an error.
    Missed,
    /// The expected output never appeared, so the step does not work on this machine.
    Wrong,
    /// The program is not installed.
    NotThere,
}

/// A program that was run.
pub struct ProgramReport {
    name: String,
    verdicts: Vec<StepVerdict>,
    latencies: Vec<Duration>,
    silence_right: usize,
    /// A line for each step that was not right.
    misses: Vec<String>,
}

impl ProgramReport {
    /// Creates an entry without results.
    pub fn new(program: &AccuracyProgram) -> Self {
        let name = program.name.clone();
        Self { name, verdicts: vec![], latencies: vec![], silence_right: 0, misses: vec![] }
    }

    /// Creates the entry of a program that cannot run. All its steps count as wrong.
    pub fn from_missing_programs(program: &AccuracyProgram, missing: &[String]) -> Self {
        let verdicts = vec![StepVerdict::NotThere; program.steps.len()];
        let misses = vec![format!("{}: there is no {}", program.name, missing.join(", "))];
        Self { verdicts, misses, ..Self::new(program) }
    }

    /// Adds a step.
    pub fn add_step(&mut self, step: &ProgramStep, judged: StepJudgement) {
        let StepJudgement { number, verdict, reason, output, latency, silence_is_right } = judged;
        self.verdicts.push(verdict);
        self.silence_right += usize::from(silence_is_right);
        if verdict == StepVerdict::Right {
            // The latency for a busy program is meaningless.
            self.latencies.extend(latency.filter(|_| step.ends != StepEndState::Never));
            return;
        }
        let from = output.chars().count().saturating_sub(SHOWN_CHARACTERS_MAX);
        let tail: String = output.chars().skip(from).collect();
        self.misses.push(format!(
            "{} #{number}: {verdict:?} ({reason}), wanted {:?}, shown {tail:?}",
            self.name, step.shows
        ));
    }

    fn count_verdict(&self, verdict: StepVerdict) -> usize {
        self.verdicts.iter().filter(|own| **own == verdict).count()
    }
}

/// All programs.
#[derive(Default)]
pub struct AccuracyReport(Vec<ProgramReport>);

impl AccuracyReport {
    /// Adds a program and prints a line, because the whole run takes minutes.
    pub fn add_program(&mut self, played: ProgramReport) {
        let right = played.count_verdict(StepVerdict::Right);
        eprintln!("{}: {right} of {} right", played.name, played.verdicts.len());
        self.0.push(played);
    }

    fn step_count(&self) -> usize {
        self.0.iter().map(|played| played.verdicts.len()).sum()
    }

    fn count_verdict(&self, verdict: StepVerdict) -> usize {
        self.0.iter().map(|played| played.count_verdict(verdict)).sum()
    }

    fn percent_of_steps(&self, count: usize) -> f64 {
        count as f64 * 100.0 / self.step_count().max(1) as f64
    }

    fn sorted_latencies(&self) -> Vec<Duration> {
        let mut all: Vec<_> = self.0.iter().flat_map(|played| played.latencies.clone()).collect();
        all.sort_unstable();
        all
    }

    /// Returns true if the targets are met.
    pub fn has_met_targets(&self) -> bool {
        self.percent_of_steps(self.count_verdict(StepVerdict::Right)) >= RIGHT_PERCENT_MIN
            && self.percent_of_steps(self.count_verdict(StepVerdict::Early)) <= EARLY_PERCENT_MAX
            && quantile(&self.sorted_latencies(), 0.5) <= MEDIAN_MAX
    }

    /// Returns the report as Markdown. `install` is the command that installs what is missing.
    pub fn format_report(&self, install: &str) -> String {
        let mut text = String::from(
            "| program | steps | right | early | by silence | missed | median ms | 500 ms rule right |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for played in &self.0 {
            let mut latencies = played.latencies.clone();
            latencies.sort_unstable();
            let [right, early, silence] =
                [StepVerdict::Right, StepVerdict::Early, StepVerdict::Silence]
                    .map(|it| played.count_verdict(it));
            let rest = played.verdicts.len() - right - early - silence;
            let median = to_milliseconds(quantile(&latencies, 0.5));
            let row = [right, early, silence, rest].map(|count| count.to_string()).join(" | ");
            let (name, steps) = (&played.name, played.verdicts.len());
            let _ = writeln!(
                text,
                "| {name} | {steps} | {row} | {median:.1} | {} |",
                played.silence_right
            );
        }
        self.append_sums(&mut text);
        let misses: Vec<_> = self.0.iter().flat_map(|played| &played.misses).collect();
        if !misses.is_empty() {
            text.push_str("\nnot right:\n");
        }
        for miss in misses {
            let _ = writeln!(text, "- {miss}");
        }
        if self.count_verdict(StepVerdict::NotThere) > 0 {
            let _ = writeln!(text, "\ninstall the missing programs with: {install}");
        }
        text
    }

    fn append_sums(&self, text: &mut String) {
        let latencies = self.sorted_latencies();
        let [right, early, silence, missed, wrong, absent] = [
            StepVerdict::Right,
            StepVerdict::Early,
            StepVerdict::Silence,
            StepVerdict::Missed,
            StepVerdict::Wrong,
            StepVerdict::NotThere,
        ]
        .map(|verdict| self.count_verdict(verdict));
        let steps = self.step_count();
        let (right_share, early_share) =
            (self.percent_of_steps(right), self.percent_of_steps(early));
        let silence_right: usize = self.0.iter().map(|played| played.silence_right).sum();
        let share = self.percent_of_steps(silence_right);
        let of = |part| to_milliseconds(quantile(&latencies, part));
        let median = of(0.5);
        let _ = writeln!(
            text,
            "\n{} programs, {steps} steps: {right} right ({right_share:.1} %), {early} early ({early_share:.1} %), \
             {silence} by silence, {missed} missed, {wrong} without what they show, {absent} of programs that are \
             not there\nfrom what a program wrote last to the result: median {median:.1} ms, p90 {:.1}, p99 {:.1}, \
             longest {:.1}\nthe rule of 500 ms on the same streams: {silence_right} right ({share:.1} %), {SILENCE_MS} ms \
             each: {:.0} times as long",
            self.0.len(),
            of(0.9),
            of(0.99),
            of(1.0),
            SILENCE_MS / median.max(0.001),
        );
    }
}

fn to_milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Returns the quantile of a sorted list.
fn quantile(sorted: &[Duration], part: f64) -> Duration {
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((last * part).round() as usize).copied().unwrap_or_default()
}

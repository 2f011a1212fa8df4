//! Counts and times the tests in the output of test programs.

use std::time::Duration;

/// The number of slowest tests to list at the end of a run.
const SLOWEST: usize = 20;

/// The totals over all test programs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TestTally {
    pub passed: usize,
    pub failed: usize,
    pub ignored: usize,
    tests: Vec<TimedTest>,
}

/// A test and its duration.
#[derive(Debug, PartialEq, Eq)]
struct TimedTest {
    took: Duration,
    program: String,
    test: String,
    /// Whether it passed.
    good: bool,
}

impl TestTally {
    /// Parses one line of a test program's output. Returns true for the line of a passed or ignored
    /// test, which does not have to be printed.
    pub fn read_line(&mut self, program: &str, line: &str) -> bool {
        let line = line.trim();
        if let Some(result) = line.strip_prefix("test result: ") {
            self.count_result(result);
            return false;
        }
        let Some((test, outcome)) =
            line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        else {
            return false;
        };
        let good = outcome.starts_with("ok");
        if let Some(took) = parse_duration(outcome) {
            let (program, test) = (program.to_owned(), test.to_owned());
            self.tests.push(TimedTest { took, program, test, good });
        }
        good || outcome.starts_with("ignored")
    }

    fn count_result(&mut self, result: &str) {
        for part in result.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(count), Some(kind)) = (words.next(), words.next()) else { continue };
            let Ok(count) = count.parse::<usize>() else { continue };
            match kind {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }

    /// Adds the totals of another tally.
    pub fn add_tally(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.tests.extend(other.tests);
    }

    /// Returns the number of tests that ran.
    pub fn tests_run(&self) -> usize {
        self.passed + self.failed
    }

    /// Returns true if tests with this part in their names ran and all passed.
    pub fn has_passed_all(&self, part: &str) -> bool {
        let mut tests = self.tests.iter().filter(|test| test.test.contains(part)).peekable();
        tests.peek().is_some() && tests.all(|test| test.good)
    }

    /// Returns a short summary with the total duration of the tests.
    pub fn format_summary(&self) -> String {
        let together: Duration = self.tests.iter().map(|test| test.took).sum();
        format!(
            "{} ok, {} not ok, {:.1} s of tests",
            self.passed,
            self.failed,
            together.as_secs_f64()
        )
    }

    /// Returns the slowest tests, one per line.
    pub fn format_slowest(&self) -> String {
        let mut tests: Vec<&TimedTest> = self.tests.iter().collect();
        tests.sort_by_key(|test| std::cmp::Reverse(test.took));
        let line = |test: &&TimedTest| {
            format!("{:7.2} s  {}: {}\n", test.took.as_secs_f64(), test.program, test.test)
        };
        tests.iter().take(SLOWEST).map(line).collect()
    }
}

/// Parses the duration in the outcome of a test: `ok <1.234s>`.
fn parse_duration(outcome: &str) -> Option<Duration> {
    let (_, time) = outcome.rsplit_once('<')?;
    let seconds = time.strip_suffix("s>")?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns the lines in the log of skipped tests, one for each test.
pub fn unique_skipped_lines(log: &str) -> Vec<String> {
    let lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| line.strip_prefix("SKIPPED: ").unwrap_or(line).to_owned()).collect()
}

/// The final result of the run.
#[derive(Debug, PartialEq, Eq)]
pub struct TestVerdict {
    pub line: String,
    pub good: bool,
}

/// Computes the final result. A skipped test looks like a passed one to its program, but counts as
/// skipped here. A failed phase counts as a failure, unless it ran tests, whose failures are
/// already counted.
pub fn compute_verdict(tally: &TestTally, failed_phases: Vec<&str>, skipped: usize) -> TestVerdict {
    let ran_tests = |phase: &&&str| ["tests", "doctests", "isolated"].contains(*phase);
    let other = failed_phases.iter().filter(|phase| !ran_tests(phase) || tally.failed == 0);
    let failed = tally.failed + other.count();
    let mut line = format!(
        "{} passed, {failed} failed, {} skipped",
        tally.passed.saturating_sub(skipped),
        tally.ignored + skipped
    );
    if !failed_phases.is_empty() {
        line = format!("failed: {}\n{line}", failed_phases.join(", "));
    }
    TestVerdict { line, good: failed == 0 && failed_phases.is_empty() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally_of_lines(lines: &[&str]) -> TestTally {
        let mut tally = TestTally::default();
        for line in lines {
            tally.read_line("a-crate it", line);
        }
        tally
    }

    fn tally_of_counts(passed: usize, failed: usize, ignored: usize) -> TestTally {
        TestTally { passed, failed, ignored, tests: Vec::new() }
    }

    #[test]
    fn results_of_all_programs_are_summed() {
        let mut sum = tally_of_lines(&[
            "running 3 tests\n",
            "test a ... ok\n",
            "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.01s\n",
            "a test prints: test result: 9 passed\n",
        ]);
        sum.add_tally(tally_of_lines(&[
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n",
        ]));
        assert_eq!(sum, tally_of_counts(6, 2, 1));
    }

    #[test]
    fn slowest_tests_are_listed_first() {
        let mut tally = tally_of_lines(&[
            "test quick ... ok <0.001s>\n",
            "test a::slow ... FAILED <12.500s>\n",
            "test x ... y ... ok <1.000s>\n",
            "test left_out ... ignored, on purpose\n",
        ]);
        assert_eq!(
            tally.format_slowest(),
            "  12.50 s  a-crate it: a::slow\n   1.00 s  a-crate it: x ... y\n   0.00 s  a-crate it: quick\n"
        );
        for _ in 0..SLOWEST {
            tally.read_line("b", "test more ... ok <2.000s>");
        }
        assert_eq!(tally.format_slowest().lines().count(), SLOWEST);
    }

    #[test]
    fn a_group_of_tests_passes_if_one_ran_and_none_failed() {
        let tally = tally_of_lines(&[
            "test a::one ... ok <0.001s>\n",
            "test a::two ... ok <0.001s>\n",
            "test b::one ... FAILED <0.001s>\n",
        ]);
        assert!(tally.has_passed_all("a::"));
        assert!(!tally.has_passed_all("one"), "one of two failed");
        assert!(!tally.has_passed_all("c::"), "none ran");
    }

    #[test]
    fn lines_of_passed_tests_are_hidden_from_the_terminal() {
        let mut tally = TestTally::default();
        assert!(tally.read_line("a", "test a ... ok <0.001s>\n"));
        assert!(tally.read_line("a", "test a ... ignored\n"));
        for line in
            ["test a ... FAILED <0.001s>\n", "thread 'a' panicked", "test result: ok. 1 passed"]
        {
            assert!(!tally.read_line("a", line), "{line}");
        }
    }

    #[test]
    fn a_skipped_test_is_not_a_passed_one() {
        let verdict = compute_verdict(&tally_of_counts(10, 0, 1), Vec::new(), 2);
        assert_eq!(
            verdict,
            TestVerdict { line: "8 passed, 0 failed, 3 skipped".into(), good: true }
        );
    }

    #[test]
    fn a_failed_check_fails_the_run_though_all_tests_passed() {
        let verdict = compute_verdict(&tally_of_counts(1, 0, 0), vec!["tidy"], 0);
        assert_eq!(verdict.line, "failed: tidy\n1 passed, 1 failed, 0 skipped");
        assert!(!verdict.good);
    }

    #[test]
    fn failed_tests_are_counted_once_and_a_crash_counts_too() {
        let failed = compute_verdict(&tally_of_counts(1, 2, 0), vec!["tests", "doctests"], 0);
        assert!(failed.line.ends_with("1 passed, 2 failed, 0 skipped"));
        let crashed = compute_verdict(&tally_of_counts(1, 0, 0), vec!["tests"], 0);
        assert!(crashed.line.ends_with("1 passed, 1 failed, 0 skipped"));
        assert!(!failed.good && !crashed.good);
    }

    #[test]
    fn empty_lines_of_the_skip_log_are_ignored() {
        assert_eq!(unique_skipped_lines("SKIPPED: a: b\n\n  c\n"), ["a: b", "c"]);
    }
}

//! Counts what cargo's test programs say of themselves.

/// Sums over all test programs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    pub ignored: usize,
}

impl Tally {
    /// Adds one line of a test program's output, if it is the one with the result.
    pub fn read(&mut self, line: &str) {
        let Some(result) = line.trim_start().strip_prefix("test result: ") else { return };
        for part in result.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(count), Some(what)) = (words.next(), words.next()) else { continue };
            let Ok(count) = count.parse::<usize>() else { continue };
            match what {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }
}

/// The lines that tests left in the log, each once for each test that was left out.
pub fn skipped_lines(log: &str) -> Vec<String> {
    let lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| line.strip_prefix("SKIPPED: ").unwrap_or(line).to_owned()).collect()
}

/// How it all ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Verdict {
    pub line: String,
    pub good: bool,
}

/// A test that was left out looks like a passed one to cargo; here it counts as skipped. A phase
/// that failed counts as a failure, unless it runs tests, whose failures are counted already.
pub fn verdict(tally: &Tally, failed_phases: Vec<&str>, skipped: usize) -> Verdict {
    let is_counted = |phase: &&&str| ["tests", "isolated"].contains(phase) && tally.failed > 0;
    let other = failed_phases.iter().filter(|phase| !is_counted(phase));
    let failed = tally.failed + other.count();
    let mut line = format!(
        "{} passed, {failed} failed, {} skipped",
        tally.passed.saturating_sub(skipped),
        tally.ignored + skipped
    );
    if !failed_phases.is_empty() {
        line = format!("failed: {}\n{line}", failed_phases.join(", "));
    }
    Verdict { line, good: failed == 0 && failed_phases.is_empty() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.read(line);
        }
        tally
    }

    #[test]
    fn results_of_all_programs_are_summed() {
        let sum = tally(&[
            "running 3 tests\n",
            "test a ... ok\n",
            "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.01s\n",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n",
            "a test prints: test result: 9 passed\n",
        ]);
        assert_eq!(sum, Tally { passed: 6, failed: 2, ignored: 1 });
    }

    #[test]
    fn a_skipped_test_is_not_a_passed_one() {
        let verdict = verdict(&Tally { passed: 10, failed: 0, ignored: 1 }, Vec::new(), 2);
        assert_eq!(verdict, Verdict { line: "8 passed, 0 failed, 3 skipped".into(), good: true });
    }

    #[test]
    fn a_failed_check_fails_the_run_though_all_tests_passed() {
        let verdict = verdict(&Tally { passed: 1, failed: 0, ignored: 0 }, vec!["clippy"], 0);
        assert_eq!(verdict.line, "failed: clippy\n1 passed, 1 failed, 0 skipped");
        assert!(!verdict.good);
    }

    #[test]
    fn failed_tests_are_counted_once_and_a_crash_counts_too() {
        let failed = verdict(&Tally { passed: 1, failed: 2, ignored: 0 }, vec!["tests"], 0);
        assert!(failed.line.ends_with("1 passed, 2 failed, 0 skipped"));
        let crashed = verdict(&Tally { passed: 1, failed: 0, ignored: 0 }, vec!["tests"], 0);
        assert!(crashed.line.ends_with("1 passed, 1 failed, 0 skipped"));
        assert!(!failed.good && !crashed.good);
    }

    #[test]
    fn empty_lines_of_the_log_are_no_tests() {
        assert_eq!(skipped_lines("SKIPPED: a: b\n\n  c\n"), ["a: b", "c"]);
    }
}

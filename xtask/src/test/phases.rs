//! The phases of a test run: how each ended and how long it took.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

/// The phases that have run, in order.
#[derive(Debug, Default)]
pub struct TestPhases {
    done: Vec<FinishedPhase>,
}

#[derive(Debug)]
struct FinishedPhase {
    name: &'static str,
    took: Duration,
    good: bool,
}

impl TestPhases {
    /// Runs one phase. Prints an error immediately and remembers it for the end.
    pub fn run_phase(&mut self, name: &'static str, phase: impl FnOnce() -> Result<()>) {
        println!("== {name}");
        let start = Instant::now();
        let result = phase();
        if let Err(error) = &result {
            eprintln!("error: {name}: {error:#}");
        }
        self.done.push(FinishedPhase { name, took: start.elapsed(), good: result.is_ok() });
    }

    /// Returns the names of the failed phases.
    pub fn failed_phases(&self) -> Vec<&'static str> {
        self.done.iter().filter(|phase| !phase.good).map(|phase| phase.name).collect()
    }

    /// Formats the phases for users.
    pub fn as_table(&self) -> String {
        let mut text = String::new();
        for phase in &self.done {
            let mark = if phase.good { "ok" } else { "FAILED" };
            text.push_str(&format!(
                "{:8} {:7.1} s  {mark}\n",
                phase.name,
                phase.took.as_secs_f64()
            ));
        }
        text
    }

    /// Formats the phases for tools that track the durations.
    pub fn as_json(&self) -> String {
        let phases = self.done.iter().map(|phase| {
            let duration_ms = u64::try_from(phase.took.as_millis()).unwrap_or(u64::MAX);
            json!({"phase": phase.name, "duration_ms": duration_ms, "ok": phase.good})
        });
        format!("{:#}\n", json!({"v": 1, "phases": phases.collect::<Vec<_>>()}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn a_failed_phase_is_remembered_and_the_next_one_runs() {
        let mut phases = TestPhases::default();
        phases.run_phase("first", || bail!("broken"));
        phases.run_phase("second", || Ok(()));
        assert_eq!(phases.failed_phases(), ["first"]);
        let table = phases.as_table();
        assert!(table.lines().next().is_some_and(|line| line.ends_with("FAILED")), "{table}");
        assert!(table.lines().nth(1).is_some_and(|line| line.ends_with("ok")), "{table}");
        let json: serde_json::Value = serde_json::from_str(&phases.as_json()).unwrap();
        assert_eq!(json["phases"][0]["ok"], false);
        assert_eq!(json["phases"][1]["phase"], "second");
    }
}

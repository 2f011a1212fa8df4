//! The results of the runs: averages for each scenario and side, in the original harness's fields.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jaato_library::UsageTotals;
use serde_json::{Map, Value, json};

use crate::domain::BenchSide;

/// The result of one run.
#[derive(Debug, Clone)]
pub struct RunMeasurement {
    ledger: PathBuf,
    totals: UsageTotals,
    /// Requests to the model.
    pub turns: u64,
    /// Why the run failed, if it did.
    pub error: Option<String>,
}

/// The results of all runs.
#[derive(Debug, Default)]
pub struct BenchSummary {
    /// The runs by scenario, `cli` before `mcp`.
    pub scenarios: BTreeMap<String, [Vec<RunMeasurement>; 2]>,
}

/// Averages over the runs of a side that did not fail.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunAverages {
    /// The number of runs, including failed ones.
    pub runs: usize,
    /// The number of failed runs.
    pub errors: usize,
    /// Tokens of the requests.
    pub prompt_tokens: f64,
    /// Tokens of the answers.
    pub output_tokens: f64,
    /// Requests to the model.
    pub turns: f64,
}

impl RunMeasurement {
    /// Creates a result from the totals of a run's ledger.
    pub fn new(ledger: &Path, totals: UsageTotals, error: Option<String>) -> Self {
        Self { ledger: ledger.to_owned(), totals, turns: totals.requests, error }
    }

    /// Returns all its tokens.
    pub fn tokens(&self) -> u64 {
        self.totals.prompt_tokens + self.totals.output_tokens
    }

    /// Returns the totals of the run, in the format of a trace.
    pub fn to_summary_json(&self) -> Value {
        json!({
            "prompt_tokens": self.totals.prompt_tokens,
            "output_tokens": self.totals.output_tokens,
            "total_tokens": self.tokens(),
            "cached_tokens": self.totals.cached_tokens,
            "tool_calls": self.totals.tool_calls,
            "failed_tool_calls": self.totals.failed_tool_calls,
            "cost_micro_usd": self.totals.cost_micro_usd,
            "error": self.error,
        })
    }

    fn details(&self) -> Value {
        json!({ "ledger": self.ledger, "summary": self.to_summary_json(), "turns": self.turns })
    }
}

impl RunAverages {
    /// Computes the averages of a side.
    pub fn from_runs(runs: &[RunMeasurement]) -> Self {
        let good: Vec<&RunMeasurement> = runs.iter().filter(|run| run.error.is_none()).collect();
        let average = |of: fn(&RunMeasurement) -> u64| match good.len() {
            0 => 0.0,
            count => good.iter().map(|run| of(run) as f64).sum::<f64>() / count as f64,
        };
        Self {
            runs: runs.len(),
            errors: runs.len() - good.len(),
            prompt_tokens: average(|run| run.totals.prompt_tokens),
            output_tokens: average(|run| run.totals.output_tokens),
            turns: average(|run| run.turns),
        }
    }

    /// Returns all tokens.
    pub fn total_tokens(&self) -> f64 {
        self.prompt_tokens + self.output_tokens
    }

    fn to_json(self) -> Value {
        json!({
            "runs": self.runs,
            "avg_prompt_tokens": self.prompt_tokens,
            "avg_output_tokens": self.output_tokens,
            "avg_total_tokens": self.total_tokens(),
            "avg_turns": self.turns,
            "errors": self.errors,
        })
    }
}

impl BenchSummary {
    /// Adds a run.
    pub fn add_run(&mut self, scenario: &str, side: BenchSide, measured: RunMeasurement) {
        self.scenarios.entry(scenario.to_owned()).or_default()[side as usize].push(measured);
    }

    /// Counts the runs that failed.
    pub fn error_count(&self) -> usize {
        let runs = self.scenarios.values().flatten().flatten();
        runs.filter(|run| run.error.is_some()).count()
    }

    /// Returns the summary as JSON.
    pub fn to_json(&self, meta: Value) -> Value {
        let scenario = |sides: &[Vec<RunMeasurement>; 2]| {
            let mut fields = Map::new();
            for side in BenchSide::BOTH {
                let runs = &sides[side as usize];
                let details: Vec<Value> = runs.iter().map(RunMeasurement::details).collect();
                fields.insert(side.name().to_owned(), RunAverages::from_runs(runs).to_json());
                fields.insert(format!("{}_details", side.name()), details.into());
            }
            Value::Object(fields)
        };
        let scenarios: Map<String, Value> =
            self.scenarios.iter().map(|(name, sides)| (name.clone(), scenario(sides))).collect();
        json!({ "scenarios": scenarios, "meta": meta })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_measurement(
        prompt: u64,
        output: u64,
        turns: u64,
        error: Option<&str>,
    ) -> RunMeasurement {
        let totals = UsageTotals {
            prompt_tokens: prompt,
            output_tokens: output,
            requests: turns,
            ..UsageTotals::default()
        };
        RunMeasurement::new(Path::new("run1.jsonl"), totals, error.map(str::to_owned))
    }

    #[test]
    fn averages_are_of_the_runs_that_did_not_fail() {
        let mut summary = BenchSummary::default();
        summary.add_run("s", BenchSide::Cli, run_measurement(100, 10, 2, None));
        summary.add_run("s", BenchSide::Cli, run_measurement(200, 20, 3, None));
        summary.add_run("s", BenchSide::Cli, run_measurement(9999, 9, 9, Some("overloaded")));
        summary.add_run("s", BenchSide::Mcp, run_measurement(0, 0, 0, Some("down")));
        assert_eq!(summary.error_count(), 2);
        let json = summary.to_json(json!({ "runs": 3 }));
        let averages = json!({
            "runs": 3, "avg_prompt_tokens": 150.0, "avg_output_tokens": 15.0,
            "avg_total_tokens": 165.0, "avg_turns": 2.5, "errors": 1,
        });
        assert_eq!(json["scenarios"]["s"]["cli"], averages);
        assert_eq!(json["scenarios"]["s"]["mcp"]["avg_total_tokens"], 0.0);
        let details = &json["scenarios"]["s"]["cli_details"][0];
        assert_eq!((&details["ledger"], &details["turns"]), (&json!("run1.jsonl"), &json!(2)));
        assert_eq!(details["summary"]["total_tokens"], 110);
        assert_eq!(json["meta"]["runs"], 3);
    }
}

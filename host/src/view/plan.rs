//! Work plans as lines for the user: the whole plan when it is new, then only its changes.

use std::collections::HashMap;
use std::fmt::Write as _;

use jaato_runtime::types::work_plan::{PlanStatus, PlanStep, PlanStepStatus, WorkPlan};

/// Steps of a new plan that are shown. The others are counted.
const STEPS_SHOWN: usize = 20;

/// The plans that the user has seen, by source.
#[derive(Default)]
pub struct Plans(HashMap<String, WorkPlan>);

impl Plans {
    /// Returns the lines that show the news of a plan.
    pub fn lines(&mut self, source: &str, plan: &WorkPlan) -> Vec<String> {
        let before = self.0.insert(source.to_owned(), plan.clone());
        match before.filter(|before| before.id == plan.id) {
            None => plan_lines(plan),
            Some(before) => changes(&before, plan),
        }
    }
}

fn plan_lines(plan: &WorkPlan) -> Vec<String> {
    let mut lines = vec![format!("plan: {}{}", plan.title, status(plan.status))];
    lines.extend(plan.steps.iter().take(STEPS_SHOWN).map(step));
    let left = plan.steps.len().saturating_sub(STEPS_SHOWN);
    if left > 0 {
        lines.push(format!("  … {left} more"));
    }
    lines
}

fn changes(before: &WorkPlan, plan: &WorkPlan) -> Vec<String> {
    let known: HashMap<&str, &PlanStep> =
        before.steps.iter().map(|step| (step.id.as_str(), step)).collect();
    let is_new = |step: &&PlanStep| known.get(step.id.as_str()) != Some(step);
    let mut lines: Vec<String> = plan.steps.iter().filter(is_new).map(step).collect();
    if before.status != plan.status || before.title != plan.title {
        let done =
            plan.steps.iter().filter(|step| step.status == PlanStepStatus::Completed).count();
        let mut line = format!("plan: {}{}", plan.title, status(plan.status));
        // Writing into a string never fails.
        let _ = write!(line, " ({done} of {} steps done)", plan.steps.len());
        lines.push(line);
    }
    lines
}

fn status(status: PlanStatus) -> &'static str {
    match status {
        PlanStatus::Proposed => " (proposed)",
        PlanStatus::Active | PlanStatus::Unknown => "",
        PlanStatus::Completed => ": completed",
        PlanStatus::Failed => ": failed",
        PlanStatus::Cancelled => ": cancelled",
    }
}

fn step(step: &PlanStep) -> String {
    let mark = match step.status {
        PlanStepStatus::Pending | PlanStepStatus::Unknown => "[ ]",
        PlanStepStatus::Blocked => "[=]",
        PlanStepStatus::InProgress => "[>]",
        PlanStepStatus::Completed => "[x]",
        PlanStepStatus::Failed => "[!]",
        PlanStepStatus::Skipped => "[-]",
    };
    let result = step.result.as_ref().map(|result| format!(": {result}")).unwrap_or_default();
    format!("  {mark} {}{result}", step.description)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn plan_with_steps(steps: &[(&str, PlanStepStatus)]) -> WorkPlan {
        let steps = steps.iter().map(|(description, status)| PlanStep {
            id: (*description).to_owned(),
            description: (*description).to_owned(),
            status: *status,
            result: None,
        });
        WorkPlan {
            id: "1".to_owned(),
            title: "mend".to_owned(),
            status: PlanStatus::Active,
            steps: steps.collect(),
            summary: None,
        }
    }

    #[test]
    fn a_new_plan_is_shown_whole_and_then_what_changes() {
        let mut plans = Plans::default();
        let mut told = String::new();
        let mut tell = |plan: &WorkPlan| {
            let lines = plans.lines("todo", plan);
            told.extend(lines.into_iter().map(|line| line + "\n"));
            told.push_str("--\n");
        };
        tell(&plan_with_steps(&[
            ("look", PlanStepStatus::Pending),
            ("edit", PlanStepStatus::Blocked),
        ]));
        let mut plan = plan_with_steps(&[
            ("look", PlanStepStatus::Completed),
            ("edit", PlanStepStatus::Pending),
        ]);
        plan.steps[0].result = Some("found it".to_owned());
        tell(&plan);
        tell(&plan);
        plan.status = PlanStatus::Failed;
        tell(&plan);
        tell(&WorkPlan {
            id: "2".to_owned(),
            ..plan_with_steps(&[("a", PlanStepStatus::Pending); 25])
        });
        expect![[r#"
            plan: mend
              [ ] look
              [=] edit
            --
              [x] look: found it
              [ ] edit
            --
            --
            plan: mend: failed (1 of 2 steps done)
            --
            plan: mend
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              [ ] a
              … 5 more
            --
        "#]]
        .assert_eq(&told);
    }
}

//! The progress of a batch on standard error: a bar at a terminal, else a line for each task.

use std::time::Duration;

use jaato_runtime::config::Dollars;
use jaato_runtime::session_loop::SessionUsage;

use super::results::TaskResult;
use crate::report;
use crate::terminal::{self, Moving, NAME_COLUMNS, exact_line};

/// Columns of an error in a line.
const ERROR_COLUMNS: usize = 200;

/// The progress of a batch.
pub struct BatchProgress {
    total: usize,
    done: usize,
    failed: usize,
    /// The bar, at a terminal.
    bar: Option<Moving>,
}

impl BatchProgress {
    /// Begins, after `done` tasks of which `failed` did not succeed.
    pub fn begin(total: usize, done: usize, failed: usize) -> Self {
        let bar = (terminal::errors_are_terminal() && terminal::can_edit()).then(Moving::default);
        let mut progress = Self { total, done, failed, bar };
        if done > 0 {
            let have = if done == 1 { "task has its" } else { "tasks have their" };
            report::print_remark(&format!("{done} {have} results already"));
        }
        progress.draw_bar();
        progress
    }

    /// Shows that a task ended. At a terminal, only one that did not succeed has a line.
    pub fn add_result(&mut self, result: &TaskResult) {
        self.done += 1;
        self.failed += usize::from(result.exit_code != 0);
        match &mut self.bar {
            Some(_) if result.exit_code == 0 => {}
            Some(bar) => {
                bar.still();
                report::print_notes(&task_line(result));
            }
            None => {
                let Self { total, done, .. } = self;
                report::print_notes(&format!("[{done}/{total}] {}", task_line(result)));
            }
        }
        self.draw_bar();
    }

    /// Removes the bar.
    pub fn end(mut self) {
        if let Some(bar) = &mut self.bar {
            bar.still();
        }
    }

    fn draw_bar(&mut self) {
        let label = match self.failed {
            0 => "tasks".to_owned(),
            failed => format!("tasks, {failed} failed"),
        };
        if let Some(bar) = &mut self.bar {
            bar.progress(&label, self.done as u64, self.total as u64);
        }
    }
}

fn task_line(result: &TaskResult) -> String {
    let id = exact_line(&result.id, NAME_COLUMNS);
    let seconds = Duration::from_millis(result.duration_ms).as_secs_f64();
    let facts = format!("{}, {seconds:.1} s", usage_text(&result.usage));
    match &result.error {
        None => format!("{id}: done ({facts})"),
        Some(error) => {
            format!("{id}: failed ({facts}): {}", exact_line(&error.message, ERROR_COLUMNS))
        }
    }
}

/// Describes a usage: `2 requests, 50 tokens, $0.005`.
pub fn usage_text(usage: &SessionUsage) -> String {
    let requests = if usage.steps == 1 { "request" } else { "requests" };
    let cost = match (usage.cost_micro_usd, usage.has_unknown_cost) {
        (0, _) => String::new(),
        (cost, false) => format!(", ${}", Dollars::from_micros(cost)),
        (cost, true) => format!(", more than ${}", Dollars::from_micros(cost)),
    };
    format!("{} {requests}, {} tokens{cost}", usage.steps, usage.tokens)
}

//! `jaato batch`: runs the tasks of a file, several at a time, on one runtime.
//!
//! Each task is a session of its own, which no user follows. With `--out`, the same command
//! continues a batch that was interrupted in any way.

mod input;
mod progress;
mod results;
mod task;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use futures_util::StreamExt as _;
use jaato_runtime::Runtime;
use jaato_runtime::config::{Caps, Dollars};
use jaato_runtime::session_loop::{Cancel, SessionUsage, SharedBudget};
use parking_lot::Mutex;

use self::input::{BatchTask, read_tasks};
use self::progress::{BatchProgress, usage_text};
use self::results::{EarlierResults, ResultOutput, TaskError, TaskResult};
use self::task::TaskEnd;
use crate::args::{GlobalArgs, SessionArgs};
use crate::deadline::parse_deadline;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::sessions::resume;
use crate::signals::cancel_on_signals;
use crate::{conversation, report, start, terminal};

/// The help heading of the limits of a batch.
const BATCH_CAPS: &str = "Batch limits";

/// The arguments of `batch`.
#[derive(Debug, Args)]
pub struct BatchArgs {
    /// The tasks, a JSON object per line: `task`, and perhaps `id`, `model`, `tools`, `system`,
    /// `attach`, `deadline`, `max_cost`, `max_tokens`, `max_steps`; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub tasks: PathBuf,

    /// Append the results to this file instead of printing them; the same command then continues a
    /// batch that was interrupted
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Run this many tasks at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub parallel: u8,

    /// Stop each task after this time, for example 90s, 10m or 1h30m
    #[arg(long, value_name = "DURATION", value_parser = parse_deadline)]
    pub deadline: Option<Duration>,

    #[command(flatten)]
    pub session: SessionArgs,

    #[command(flatten)]
    pub caps: BatchCapArgs,
}

/// Limits of all tasks together.
#[derive(Debug, Clone, Default, Args)]
pub struct BatchCapArgs {
    /// Stop before a request with which all tasks may cost more than this many US dollars
    #[arg(long, help_heading = BATCH_CAPS, value_name = "DOLLARS")]
    pub batch_max_cost: Option<Dollars>,

    /// Stop before a request with which all tasks may use more than this many tokens
    #[arg(long, help_heading = BATCH_CAPS, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub batch_max_tokens: Option<u64>,

    /// Stop after this many requests of all tasks
    #[arg(long, help_heading = BATCH_CAPS, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub batch_max_steps: Option<u64>,
}

impl BatchCapArgs {
    /// Returns what all tasks may use together, if that is limited.
    fn shared_budget(&self, used: SessionUsage) -> Option<SharedBudget> {
        let caps = Caps {
            cost: self.batch_max_cost,
            tokens: self.batch_max_tokens,
            steps: self.batch_max_steps,
        };
        (caps != Caps::default())
            .then(|| SharedBudget::new(("batch", "--batch-max-"), caps, used, None))
    }
}

/// What the tasks of a batch share.
struct BatchRun<'a> {
    runtime: &'a Runtime,
    args: &'a BatchArgs,
    earlier: &'a EarlierResults,
    budget: Option<SharedBudget>,
    output: Mutex<ResultOutput>,
    /// Ends all tasks.
    cancel: Cancel,
}

/// How a batch ended, apart from its results.
#[derive(Default)]
struct BatchSummary {
    /// The worst exit code of a task.
    worst: Option<Exit>,
    /// The number of tasks without a result.
    unfinished: usize,
    /// The limit of the batch that stopped tasks.
    why: Option<TaskError>,
    used: SessionUsage,
    /// Why results can no longer be written.
    failure: Option<CommandFailure>,
}

/// Runs the tasks that have no result yet.
pub async fn run_batch(global: GlobalArgs, args: BatchArgs) -> CommandResult {
    terminal::reserve();
    let file = args.tasks.clone();
    // Standard input may take long.
    let read = tokio::task::spawn_blocking(move || read_tasks(&file)).await;
    let tasks = read.map_err(|error| CommandFailure::new(Exit::Failed, error))??;
    let (output, earlier) = ResultOutput::open(args.out.as_deref())?;
    check_results(&tasks, &earlier)?;
    let arguments = conversation::setup_arguments(global, &args.session)?;
    let runtime = start::start_runtime(arguments).await?;
    report::print_problems(&start::list_problems(&runtime));
    check_names(&runtime, &args, &tasks).await?;
    let cancel = Cancel::new();
    cancel_on_signals(cancel.clone());
    let batch = BatchRun {
        budget: args.caps.shared_budget(earlier_usage(&runtime, &tasks, &earlier)),
        runtime: &runtime,
        args: &args,
        earlier: &earlier,
        output: Mutex::new(output),
        cancel: cancel.clone(),
    };
    let end = batch.run_tasks(&tasks).await;
    let output = batch.output.into_inner();
    let is_resumable = output.is_file();
    if end.unfinished == 0 && end.failure.is_none() {
        output.remove_unfinished_file();
    }
    start::close_runtime(runtime).await;
    end.print_totals(tasks.len(), is_resumable);
    match end.failure {
        Some(failure) => Err(failure),
        None if cancel.is_cancelled() => Ok(Exit::Cancelled),
        None if end.unfinished > 0 => Ok(Exit::Limit),
        None => Ok(end.worst.unwrap_or(Exit::Done)),
    }
}

impl BatchRun<'_> {
    async fn run_tasks(&self, tasks: &[BatchTask]) -> BatchSummary {
        let (finished, open): (Vec<_>, Vec<_>) =
            tasks.iter().partition(|task| self.earlier.results.contains_key(&task.id));
        let mut end = BatchSummary::default();
        for task in finished {
            end.add_result(&self.earlier.results[&task.id]);
        }
        let failed = tasks.iter().filter_map(|task| self.earlier.results.get(&task.id));
        let failed = failed.filter(|result| result.exit_code != 0).count();
        let mut progress = BatchProgress::begin(tasks.len(), tasks.len() - open.len(), failed);
        let running = futures_util::stream::iter(open).map(|task| self.run_task(task));
        let mut running = running.buffer_unordered(usize::from(self.args.parallel));
        while let Some(ended) = running.next().await {
            let written = match ended {
                TaskEnd::Finished(result) => {
                    let written = self.output.lock().write_result(&result);
                    if written.is_ok() {
                        progress.add_result(&result);
                        end.add_result(&result);
                    }
                    written
                }
                TaskEnd::Unfinished(why) => {
                    end.unfinished += 1;
                    end.why = end.why.take().or(why);
                    Ok(())
                }
                TaskEnd::Unwritable(failure) => Err(failure),
            };
            if let Err(failure) = written {
                end.unfinished += 1;
                end.failure.get_or_insert(failure);
                // Without a place for their results, the others end too.
                self.cancel.cancel();
            }
        }
        progress.end();
        end
    }
}

impl BatchSummary {
    fn add_result(&mut self, result: &TaskResult) {
        let exit = Exit::from_code(result.exit_code).unwrap_or(Exit::Failed);
        self.worst = Some(self.worst.map_or(exit, |worst| worst.worse_of(exit)));
        self.used = add_usage(self.used, result.usage);
    }

    /// Prints the totals, and how to continue.
    fn print_totals(&self, total: usize, is_resumable: bool) {
        let Self { unfinished, used, .. } = self;
        let finished = total - unfinished;
        report::print_remark(&format!("{finished} of {total} tasks ended: {}", usage_text(used)));
        if let Some(TaskError { message, hint }) = &self.why {
            let hint = hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            report::print_problems(&[format!("{message}{hint}")]);
        }
        if *unfinished > 0 {
            let how = match is_resumable {
                true => "the same command continues them",
                false => "`--out FILE` makes a batch that the same command continues",
            };
            report::print_notes(&format!("{unfinished} of {total} tasks are unfinished; {how}"));
        }
    }
}

/// Checks that the results are those of the tasks.
fn check_results(tasks: &[BatchTask], earlier: &EarlierResults) -> Result<(), CommandFailure> {
    let other = |task: &&BatchTask| {
        earlier.results.get(&task.id).is_some_and(|result| result.task != task.task)
    };
    let Some(task) = tasks.iter().find(other) else { return Ok(()) };
    let text = format!(
        "the results have an answer to another task with the id `{}` (line {} of the tasks)",
        task.id, task.line
    );
    Err(CommandFailure::new(Exit::Usage, text)
        .hint("name another file with `--out`, or remove that result from it"))
}

/// Checks the names of models and tools, so that a typo ends the command before any request.
async fn check_names(
    runtime: &Runtime,
    args: &BatchArgs,
    tasks: &[BatchTask],
) -> Result<(), CommandFailure> {
    let SessionArgs { tools, allow, .. } = &args.session;
    conversation::check_tool_names(runtime, tools.as_deref(), allow).await?;
    let mut checked = HashSet::new();
    for task in tasks {
        let names = (task.model.as_deref(), task.tools.as_deref());
        if !checked.insert(names) {
            continue;
        }
        let at_line = |mut failure: CommandFailure| {
            failure.message = format!("line {} of the tasks: {}", task.line, failure.message);
            failure
        };
        if let (Some(model), _) = names {
            let found = runtime.answering_model(model);
            found.map_err(|error| at_line(conversation::start_failure(error)))?;
        }
        if let (_, Some(tools)) = names {
            let found = conversation::check_tool_names(runtime, Some(tools), &[]).await;
            found.map_err(at_line)?;
        }
    }
    Ok(())
}

/// Returns the usage of earlier processes: that of results, and of sessions that continue.
fn earlier_usage(runtime: &Runtime, tasks: &[BatchTask], earlier: &EarlierResults) -> SessionUsage {
    let usage_of = |task: &BatchTask| match earlier.results.get(&task.id) {
        Some(result) => result.usage,
        None => match earlier.sessions.get(&task.id) {
            Some(session) => resume::saved_usage(runtime, session),
            None => SessionUsage::default(),
        },
    };
    tasks.iter().map(usage_of).fold(SessionUsage::default(), add_usage)
}

fn add_usage(one: SessionUsage, other: SessionUsage) -> SessionUsage {
    SessionUsage {
        steps: one.steps.saturating_add(other.steps),
        tokens: one.tokens.saturating_add(other.tokens),
        cost_micro_usd: one.cost_micro_usd.saturating_add(other.cost_micro_usd),
        has_unknown_cost: one.has_unknown_cost || other.has_unknown_cost,
    }
}

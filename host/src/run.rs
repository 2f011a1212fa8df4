//! `jaato run`: a model works on a task, with live output.

use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jaato_runtime::session_loop::{
    Cancel, HookPromptAddition, Session, TurnReport, estimate_tokens,
};
use jaato_runtime::{Runtime, visible};

use crate::args::{FollowArgs, GlobalArgs, OutputForm, SessionArgs};
use crate::client_answers::AnswerClient;
use crate::conversation::SessionObservers;
use crate::deadline::{parse_deadline, start_deadline};
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::sessions::resume::{self, SessionChoice};
use crate::signals::cancel_on_signals;
use crate::view::View;
use crate::{attach, conversation, report, start, terminal, worktree};

/// The largest task, in bytes, because it goes to the provider with everything else.
const TASK_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How long to wait for standard input before a line says so.
const INPUT_PATIENCE: Duration = Duration::from_secs(1);

/// The arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The task; read from standard input if absent. Piped input is added to it
    pub task: Vec<String>,

    #[command(flatten)]
    pub follow: FollowArgs,

    #[command(flatten)]
    pub session: SessionArgs,

    /// Stop after this time, for example 90s, 10m or 1h30m, and save the session
    #[arg(long, value_name = "DURATION", value_parser = parse_deadline)]
    pub deadline: Option<Duration>,

    /// Attach this file: an image, a PDF or text; repeatable. `@FILE` in the task does the same
    #[arg(long, value_name = "FILE")]
    pub attach: Vec<PathBuf>,

    /// Print the objects that tools found as JSON at the end; `hidden` includes parts that the
    /// model never sees
    #[arg(long, value_name = "hidden", num_args = 0..=1, require_equals = true, default_missing_value = "shown")]
    pub objects: Option<ObjectsForm>,

    /// Print the request with token counts, and do not send it
    #[arg(long)]
    pub show_prompt: bool,

    /// Print text, or the events as JSON lines
    #[arg(long, value_enum, default_value_t = OutputForm::Text)]
    pub output: OutputForm,

    /// With `--output json`: read answers to questions and forms from standard input, one JSON
    /// object {"answer": {…}} per line
    #[arg(long)]
    pub answers: bool,
}

/// Which objects are printed at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObjectsForm {
    /// What the model may see
    #[value(hide = true)]
    Shown,
    /// All parts
    Hidden,
}

/// Runs a task to its end.
pub async fn run_task(global: GlobalArgs, args: RunArgs) -> CommandResult {
    terminal::reserve();
    let is_text = args.output == OutputForm::Text;
    if args.answers && is_text {
        let text = "`--answers` is for programs and needs JSON output";
        return Err(CommandFailure::new(Exit::Usage, text).hint("add `--output json`"));
    }
    let (runtime, choice) =
        conversation::start_runtime(global, (&args.session, &args.follow), is_text).await?;
    let cancel = Cancel::new();
    if args.show_prompt {
        return show_prompt(runtime, &choice, args, &cancel).await;
    }
    let (words, piped) = read_task(&args).await?;
    let saving =
        resume::open_saving(&runtime, &choice, (&args.session, &args.follow.saving), None)?;
    cancel_on_signals(cancel.clone());
    let view = View::start(args.output, cancel.clone());
    if args.follow.thoughts {
        view.show_thoughts();
    }
    let client = args.answers.then(AnswerClient::start);
    let watch = match &client {
        Some(client) => client.session_observers(&view),
        None => SessionObservers::at_terminal(&view, &Arc::default()),
    };
    let mut session = conversation::start_session(&runtime, &args.session, saving, &view, watch)?;
    if let Some(client) = client {
        client.report_to(session.emitter());
    }
    // A deadline ends the turn, but not the rest of the output.
    let until = cancel.child_token();
    let deadline = args.deadline.map(|after| start_deadline(after, &until));
    conversation::await_tools(&mut session, &args.session, &until).await;
    let report = match attach::attach_files(&runtime, &session, words.into(), &args.attach).await {
        // Piped text attaches no files, because the user need not be its author.
        Ok(prompt) => Ok(session.run_turn(prompt.with_paragraph(piped), &until).await),
        Err(failure) => Err(failure),
    };
    drop(deadline);
    conversation::end_tasks(&session, &view).await;
    session.wait_until_written().await;
    let shown = view.finish(&cancel).await;
    let objects = args.objects.map(|form| session.objects_json(form == ObjectsForm::Hidden));
    runtime.close_session(session.id()).await;
    if is_text {
        worktree::print_how_to_accept(&runtime);
    }
    start::close_runtime(runtime).await;
    let (report, shown) = (report?, shown?);
    if let Some(objects) = objects {
        // On its own line among the events, and readable for users below an answer.
        match args.output {
            OutputForm::Json => report::print_json_line(&objects)?,
            OutputForm::Text => _ = report::print_json(&objects)?,
        }
    }
    finish_turn(&report, args.output).map(|exit| shown.exit(exit))
}

async fn show_prompt(
    runtime: Runtime,
    choice: &SessionChoice,
    args: RunArgs,
    cancel: &Cancel,
) -> CommandResult {
    let view = View::start(OutputForm::Text, cancel.clone());
    let watch = SessionObservers::at_terminal(&view, &Arc::default());
    let saving = (&args.session, &args.follow.saving);
    let saving = resume::open_saving(&runtime, choice, saving, None)?;
    let mut session = conversation::start_session(&runtime, &args.session, saving, &view, watch)?;
    cancel_on_signals(cancel.clone());
    session.renew_tools(cancel).await;
    conversation::await_tools(&mut session, &args.session, cancel).await;
    let additions = session.prompt_additions(&args.task.join(" "), cancel).await;
    view.finish(cancel).await?;
    let shown = match additions {
        Ok(additions) => print_prompt(&runtime, &session, args.session.system, &additions),
        Err(error) => Err(CommandFailure::from(error)),
    };
    runtime.close_session(session.id()).await;
    start::close_runtime(runtime).await;
    shown
}

fn print_prompt(
    runtime: &Runtime,
    session: &Session,
    system: Option<String>,
    additions: &[HookPromptAddition],
) -> CommandResult {
    let request = session.next_request();
    let mode = session.rules().lock().mode;
    let system = runtime.system_prompt(system, &request.tools)?.with_mode_part(mode);
    let mut total = 0;
    for (label, tokens) in system.token_estimates(&request.tools) {
        total += tokens;
        report::print_line(&format!("--- {label} (about {tokens} tokens)"))?;
        let part = system.parts().iter().find(|part| part.label == label);
        let tool = || {
            let name = label.strip_prefix("tool ")?;
            request.tools.iter().find(|tool| tool.name.as_str() == name)
        };
        match (part, tool()) {
            (Some(part), _) => report::print_line(&part.text)?,
            (None, Some(tool)) => {
                report::print_line(&tool.description)?;
                report::print_json_line(&tool.parameters)?;
            }
            (None, None) => {}
        }
    }
    for (plugin, text) in session.pending_instructions() {
        let tokens = estimate_tokens(&text);
        total += tokens;
        let name = visible::visible_name(plugin.as_str());
        report::print_line(&format!(
            "--- with the first message, by {name} (about {tokens} tokens)"
        ))?;
        report::print_line(&text)?;
    }
    for HookPromptAddition { plugin, text, tokens, is_cut } in additions {
        total += tokens;
        let cut = if *is_cut { ", cut" } else { "" };
        let name = visible::visible_name(plugin.name.as_str());
        report::print_line(&format!(
            "--- before the task, by {name} (about {tokens} tokens{cut})"
        ))?;
        report::print_line(text)?;
    }
    report::print_line(&format!("--- in all about {total} tokens before the task"))?;
    Ok(Exit::Done)
}

/// Combines the task from the command line and standard input.
async fn read_task(args: &RunArgs) -> Result<(String, Option<String>), CommandFailure> {
    let given = args.task.join(" ");
    let reads_input = !args.answers && should_read_input(given.trim().is_empty());
    let piped = if reads_input { read_input().await? } else { None };
    let has_piped = piped.as_ref().is_some_and(|piped| !piped.trim().is_empty());
    if given.trim().is_empty() && !has_piped {
        let failure = CommandFailure::new(Exit::Usage, "there is no task");
        return Err(match &args.follow.saving.resume {
            Some(Some(id)) => failure.hint(format!("`{id}` was taken as the id for `--resume`")),
            _ => failure.hint("jaato run \"What operating system am I running on?\""),
        });
    }
    Ok((given, piped))
}

/// Returns true if standard input should be read: if it is piped or a file. One that is merely
/// open, as a service or an editor leaves it, is read only if it is needed.
fn should_read_input(is_needed: bool) -> bool {
    if terminal::input_is_terminal() {
        return false;
    }
    is_needed || is_pipe_or_file()
}

fn is_pipe_or_file() -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = std::fs::metadata("/dev/stdin").map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file())
}

async fn read_input() -> Result<Option<String>, CommandFailure> {
    let reading = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        io::stdin().lock().take(TASK_BYTES_MAX + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    tokio::pin!(reading);
    let read = tokio::select! {
        read = &mut reading => read,
        () = tokio::time::sleep(INPUT_PATIENCE) => {
            report::print_problems(&["waiting for the end of standard input".to_owned()]);
            reading.await
        }
    };
    let failed = |text: String| CommandFailure::new(Exit::Usage, text);
    let bytes = read
        .map_err(|error| failed(error.to_string()))?
        .map_err(|error| failed(format!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > TASK_BYTES_MAX {
        return Err(failed(format!("standard input has more than {TASK_BYTES_MAX} bytes"))
            .hint("write it to a file and name the file in the task"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        failed(format!(
            "standard input is not UTF-8: byte {} is wrong",
            error.utf8_error().valid_up_to()
        ))
        .hint("iconv -t UTF-8 converts it")
    })?;
    Ok((!text.trim().is_empty()).then_some(text))
}

/// Turns the end of a turn into the exit code, and reports errors that the view did not show.
fn finish_turn(report: &TurnReport, form: OutputForm) -> CommandResult {
    let exit = conversation::turn_exit(report);
    if report.error.is_none() && exit == Exit::Failed {
        let message = "every tool call of the run failed";
        return Err(
            CommandFailure::new(exit, message).hint("check the answer: it may claim success")
        );
    }
    match (&report.error, form) {
        // The view has already shown it.
        (_, OutputForm::Text) | (None, OutputForm::Json) => Ok(exit),
        (Some(_), OutputForm::Json) if exit == Exit::Done => Ok(exit),
        (Some(error), OutputForm::Json) => {
            Err(CommandFailure { exit, message: error.message.clone(), hint: error.hint.clone() })
        }
    }
}

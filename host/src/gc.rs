//! `jaato gc`: what a gc would leave out of a saved session.

use std::sync::Arc;

use clap::Args;
use jaato_runtime::saved::SaveMode;
use jaato_runtime::session_loop::{Cancel, GcPreview, PlannedTurn, Session};
use jaato_runtime::{Runtime, SessionOptions, preview_json, visible};

use crate::args::{GlobalArgs, SavingArgs};
use crate::environment::DiscardingEventSink;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::sessions::resume::{self, SessionChoice};
use crate::{report, start};

/// The arguments of `gc plan`.
#[derive(Debug, Args)]
pub struct GcPlanArgs {
    /// The session, as `jaato session show` takes it; defaults to the newest of this workspace
    #[arg(long, value_name = "ID")]
    pub resume: Option<String>,

    /// Plan for this model instead of the one that answered last
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub model: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Shows what a gc would leave out of a saved session, and changes nothing.
pub async fn preview_gc(global: GlobalArgs, args: GcPlanArgs) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    let planned = preview_in(&runtime, &args).await;
    start::close_runtime(runtime).await;
    let preview = planned?;
    if args.json {
        return report::print_exact_json(&preview_json(&preview));
    }
    print_preview(&preview)?;
    Ok(Exit::Done)
}

async fn preview_in(runtime: &Runtime, args: &GcPlanArgs) -> Result<GcPreview, CommandFailure> {
    let mut session = open_saved_session(runtime, args).await?;
    let preview = session.preview_gc(&Cancel::new()).await;
    runtime.close_session(session.id()).await;
    Ok(preview?)
}

/// Starts a session with the conversation of the saved one. Nothing is saved.
async fn open_saved_session(
    runtime: &Runtime,
    args: &GcPlanArgs,
) -> Result<Session, CommandFailure> {
    let saving = SavingArgs {
        resume: args.resume.clone().map(Some),
        newest: args.resume.is_none(),
        ..SavingArgs::default()
    };
    let SessionChoice::Saved(id) = resume::choose_session(runtime.setup(), &saving).await? else {
        unreachable!("a session was asked for")
    };
    let read = resume::read_session(runtime, &id)?;
    report::print_problems(&read.restored.problems);
    let options = SessionOptions {
        model: args.model.clone(),
        saving: SaveMode::Look(Box::new(read)),
        ..SessionOptions::unattended(Arc::new(DiscardingEventSink))
    };
    Ok(runtime.open_session(options)?)
}

fn print_preview(preview: &GcPreview) -> Result<(), CommandFailure> {
    let GcPreview { source, context_limit, tokens_before, tokens_after, .. } = preview;
    report::print_line(&format!(
        "{}: about {tokens_before} -> {tokens_after} of {context_limit} tokens{}",
        visible::visible_name(source),
        if preview.is_summarised { ", with a summary" } else { "" },
    ))?;
    if preview.turns.is_empty() {
        return report::print_line("nothing would go");
    }
    let row = |turn: &PlannedTurn| {
        vec![
            turn.turn.to_string(),
            turn.messages.to_string(),
            turn.tokens.to_string(),
            turn.why.clone(),
            visible::visible_name(&turn.begins).into_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = preview.turns.iter().map(row).collect();
    report::print_table(&["turn", "messages", "tokens", "why", "begins"], &rows)
}

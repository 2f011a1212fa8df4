//! `jaato undo`: the commands `undo` and `changes` of the plugin that edits files.

use clap::Args;
use serde_json::json;

use crate::args::GlobalArgs;
use crate::command::{self, AnswerForm};
use crate::exit::CommandResult;
use crate::terminal;

/// The arguments of `undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// The number of the change in --list; defaults to the last change
    pub change: Option<String>,

    /// List the changes that file tools made in this workspace
    #[arg(long, conflicts_with_all = ["change", "yes"])]
    pub list: bool,

    /// Undo without asking
    #[arg(long)]
    pub yes: bool,
}

/// Undoes a change, or lists changes.
pub async fn undo_changes(global: GlobalArgs, args: UndoArgs) -> CommandResult {
    terminal::reserve();
    let (command, arguments) = match args.list {
        true => ("changes", json!({})),
        false => ("undo", json!({ "change": args.change.unwrap_or_default(), "yes": args.yes })),
    };
    command::run_and_print(global, command, &[arguments.to_string()], AnswerForm::Text).await
}

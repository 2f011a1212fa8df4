//! The `jaato` binary: only arguments, and reports for users.

mod args;
mod ask;
mod attach;
mod batch;
mod call;
mod chat;
mod check;
mod client_answers;
mod columns;
mod command;
mod commands;
mod completion_words;
mod config;
mod conversation;
mod deadline;
mod dev;
mod diff;
mod doctor;
mod environment;
mod exit;
mod find;
mod first_start;
mod gc;
mod grant;
mod input_lines;
mod install;
mod json_view;
mod ledger;
mod lines;
mod login;
mod mcp;
mod model;
mod new_plugin;
mod permission;
mod permissions;
mod platform;
mod plugin;
mod prompts;
mod provider;
mod reload;
mod report;
mod run;
mod sessions;
mod shell;
mod signals;
mod start;
mod switch;
mod tasks;
mod terminal;
mod tool;
mod trust;
mod undo;
mod view;
mod worktree;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use commands::{Cli, Command, PluginWorkerArgs};
use exit::{CommandFailure, CommandResult, Exit};

fn main() -> ExitCode {
    // The guardian forks, so it must start before there are threads or a heap full of arguments.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "guardian") {
        return jaato_process::guardian_main();
    }
    // Before anything reads a key, in the host and in each child that runs a plugin.
    platform::protect_memory();
    platform::ignore_file_size_signal();
    let mut words: Vec<OsString> = std::env::args_os().collect();
    // `jaato` without arguments starts a chat if a user is present. Otherwise clap prints the help.
    if words.len() == 1 && terminal::input_is_terminal() && terminal::errors_are_terminal() {
        words.push("chat".into());
    }
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            return match report::print_usage(&error) {
                Ok(()) => exit.into(),
                Err(failure) => {
                    report::print_failure(&failure);
                    failure.exit.into()
                }
            };
        }
    };
    if let Command::PluginWorker { work: PluginWorkerArgs { describe, conform, settings, file } } =
        &cli.command
    {
        return match conform {
            Some(check) => jaato_worker::conform_main(check, settings.as_deref(), file),
            None if *describe => jaato_worker::describe_main(file),
            None => jaato_worker::serve_main(file),
        };
    }
    // A worker leaves its orphans to the guardian. If the system refuses this, only processes that
    // a command leaves by ending its guardian are affected.
    let _ = jaato_process::prepare_host();
    let exit = run_in_runtime(cli).unwrap_or_else(|failure| {
        report::print_failure(&failure);
        failure.exit
    });
    jaato_runtime::loader::mark_work_done(exit as i32);
    exit.into()
}

/// Runs a command on a current-thread tokio runtime, because the work is in plugins and on their
/// executor.
fn run_in_runtime(cli: Cli) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::new(Exit::Failed, format!("cannot start: {error}")))?;
    let outcome = runtime.block_on(cli.command.run(cli.global));
    // A prompt at the terminal or a plugin's hung job must not delay the end.
    runtime.shutdown_background();
    outcome
}

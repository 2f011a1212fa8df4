//! The `jaato` binary: arguments, reports for people; nothing else.

mod args;
mod ask;
mod call;
mod chat;
mod check;
mod command;
mod config;
mod conversation;
mod doctor;
mod environment;
mod exit;
mod hidden;
mod install;
mod ledger;
mod lines;
mod model;
mod new_plugin;
mod platform;
mod plugin;
mod reload;
mod report;
mod run;
mod shell;
mod signals;
mod start;
mod switch;
mod terminal;
mod tool;
mod trust;
mod view;

use std::process::ExitCode;

use clap::Parser as _;

use args::{
    Cli, Command, ConfigCommand, EnvironmentCommand, LedgerCommand, ModelCommand, PluginCommand,
    ShellCommand, ToolCommand,
};
use exit::{Exit, Failure, Outcome};
use jaato_runtime::config::Listing;

fn main() -> ExitCode {
    // The guardian forks: it must be itself before there is a thread or a heap full of arguments.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "guardian") {
        return jaato_process::guardian_main();
    }
    // Before anything that holds a key is read: in the host, and in each child that runs a plugin.
    platform::close_memory();
    platform::outlive_full_files();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            return match report::usage(&error) {
                Ok(()) => exit.into(),
                Err(failure) => {
                    report::failure(&failure);
                    failure.exit.into()
                }
            };
        }
    };
    if let Command::PluginWorker { describe, conform, file } = &cli.command {
        return match conform {
            Some(check) => jaato_worker::conform_main(check, file),
            None if *describe => jaato_worker::describe_main(file),
            None => jaato_worker::serve_main(file),
        };
    }
    // A worker leaves its orphans to the guardian. Refused by the system, it costs only what a
    // command leaves that ends its guardian.
    let _ = jaato_process::prepare_host();
    if runs_plugins(&cli.command) {
        // Where it cannot be kept, what plugins print stands in it, as it does on a terminal.
        let _ = terminal::reserve();
    }
    let exit = in_runtime(cli).unwrap_or_else(|failure| {
        report::failure(&failure);
        failure.exit
    });
    jaato_runtime::loader::work_is_done(exit as i32);
    exit.into()
}

/// Tells whether a command has plugins work whose answers a program may read.
fn runs_plugins(command: &Command) -> bool {
    matches!(command, Command::Run(_) | Command::Chat(_) | Command::Call(_) | Command::Offered(_))
}

/// Runs a command on a current-thread tokio runtime: the work is in plugins and on their executor.
fn in_runtime(cli: Cli) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot start: {error}")))?;
    let outcome = runtime.block_on(dispatch(cli));
    // A question at the terminal or a hung job of a plugin must not hold up the end.
    runtime.shutdown_background();
    outcome
}

async fn dispatch(cli: Cli) -> Outcome {
    let Cli { global, command } = cli;
    match command {
        Command::Run(args) => run::run(global, args).await,
        Command::Chat(args) => chat::chat(global, args).await,
        Command::Call(args) => call::call(global, args).await,
        Command::Offered(args) => command::command(global, args).await,
        Command::Tool { command: ToolCommand::List { json } } => tool::list(global, json).await,
        Command::Tool { command: ToolCommand::Show { tool, json } } => {
            tool::show(global, &tool, json).await
        }
        Command::Plugin { command: PluginCommand::List { json } } => {
            plugin::list(global, json).await
        }
        Command::Plugin { command: PluginCommand::Show { plugin, json } } => {
            plugin::show(global, &plugin, json).await
        }
        Command::Plugin { command: PluginCommand::Trust { file, sha256 } } => {
            plugin::trust(global, &file, &sha256)
        }
        Command::Plugin { command: PluginCommand::Untrust { what } } => {
            plugin::untrust(global, &what).await
        }
        Command::Plugin { command: PluginCommand::Reload { plugin } } => {
            reload::reload(global, plugin.as_deref()).await
        }
        Command::Plugin { command: PluginCommand::Check { file } } => {
            check::check(global, &file).await
        }
        Command::Plugin { command: PluginCommand::New { name, kind, path, sdk } } => {
            new_plugin::write(&name, kind, path, sdk)
        }
        Command::Plugin { command: PluginCommand::Install { what } } => {
            install::install(global, &what).await
        }
        Command::Plugin { command: PluginCommand::Remove { plugin } } => {
            install::remove(global, &plugin)
        }
        Command::Plugin { command: PluginCommand::Enable { plugin } } => {
            switch::switch(global, &plugin, Listing::Out)
        }
        Command::Plugin { command: PluginCommand::Disable { plugin } } => {
            switch::switch(global, &plugin, Listing::In)
        }
        Command::Model { command: ModelCommand::List { json } } => model::list(global, json).await,
        Command::Model { command: ModelCommand::Pull { model } } => {
            model::pull(global, model).await
        }
        Command::Model { command: ModelCommand::Import { file, name } } => {
            model::import(global, &file, name).await
        }
        Command::Environment { command: EnvironmentCommand::List { json } } => {
            environment::list(global, json).await
        }
        Command::Environment { command: EnvironmentCommand::Show { environment, json } } => {
            environment::show(global, &environment, json).await
        }
        Command::Environment {
            command: EnvironmentCommand::Exec { environment, directory, command },
        } => environment::exec(global, &environment, directory, &command).await,
        Command::Shell { command: ShellCommand::List { json } } => shell::list(json).await,
        Command::Shell { command: ShellCommand::Attach { name, types } } => {
            let purpose = if types { shell::Purpose::Type } else { shell::Purpose::Look };
            shell::attach(&name, purpose).await
        }
        Command::Ledger { command: LedgerCommand::Show(args) } => ledger::show(global, args),
        Command::Trust { remove } => trust::workspace(global, remove),
        Command::Config { command: ConfigCommand::Show } => config::show(global),
        Command::Doctor => doctor::doctor(global).await,
        Command::Guardian | Command::PluginWorker { .. } => {
            unreachable!("taken by main before there is a runtime")
        }
    }
}

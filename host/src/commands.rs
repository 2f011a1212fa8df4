//! The table of commands: name, help, arguments, and what runs, one row each.
//!
//! A new command is one row here and the file that the row calls. `--help`, the dispatch and the
//! check of `docs/commands.md` follow from the rows; the tests find the commands by asking
//! `--help`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use jaato_runtime::config::Listing;

use crate::args::{EnvironmentArgs, Global};
use crate::exit::Outcome;
use crate::{
    bench, call, chat, check, command, config, doctor, environment, grant, install, ledger, login,
    mcp, model, new_plugin, permission, plugin, provider, reload, run, shell, switch, tool, trust,
    undo,
};

/// An agentic tool orchestrator: you give a task, a model calls tools out of plugins under your
/// rules.
#[derive(Debug, Parser)]
#[command(name = "jaato", version, arg_required_else_help = true, max_term_width = 100)]
#[command(
    after_help = "Without a command, jaato starts a chat at a terminal.\n\nExit codes: 0 done, 1 the task failed, 2 usage, 3 configuration, 4 plugin, \
5 provider, 6 stopped by a limit or for want of a permission, 130 cancelled."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,

    #[command(subcommand)]
    pub command: Command,
}

/// Makes an enum that clap reads from the command line, and its `run`, which calls the handler of
/// the chosen row. A handler sees the global options and the fields of its row.
macro_rules! commands {
    (
        $(#[$enum_attribute:meta])*
        $commands:ident:
        $(
            $(#[$attribute:meta])*
            $name:ident
            $({ $( $(#[$field_attribute:meta])* $field:ident: $type:ty, )+ })?
            |$global:pat_param| $handler:expr;
        )+
    ) => {
        $(#[$enum_attribute])*
        #[derive(Debug, Subcommand)]
        pub enum $commands {
            $( $(#[$attribute])* $name $({ $( $(#[$field_attribute])* $field: $type, )+ })?, )+
        }

        impl $commands {
            /// Runs the command.
            pub async fn run(self, global: Global) -> Outcome {
                match self {
                    $( Self::$name $({ $($field,)+ })? => {
                        let $global = global;
                        $handler
                    } )+
                }
            }
        }
    };
}

commands! {
    Command:

    /// Give a model a task and watch it work
    Run {
        #[command(flatten)]
        args: run::RunArgs,
    } |global| run::run(global, args).await;

    /// Chat with a model in this folder (also `jaato` alone): Esc stops an answer, /help lists the
    /// rest
    Chat {
        #[command(flatten)]
        args: chat::ChatArgs,
    } |global| chat::chat(global, args).await;

    /// Call one tool yourself, or many with --batch
    Call {
        #[command(flatten)]
        args: call::CallArgs,
    } |global| call::call(global, args).await;

    /// Run a command that a plugin offers to people, or list them
    #[command(name = "command")]
    Offered {
        #[command(flatten)]
        args: command::CommandArgs,
    } |global| command::command(global, args).await;

    /// Take back what the file tools changed: shows the diff, asks (not with --yes), does it
    Undo {
        #[command(flatten)]
        args: undo::UndoArgs,
    } |global| undo::undo(global, args).await;

    /// Servers of the Model Context Protocol: see, add, remove, connect them, log in to them
    Mcp {
        /// `list`, `status`, `show`, `add`, `remove`, `connect`, `disconnect`, `login`, `logout`,
        /// `reload`, `logs` or `help`, and what belongs to it
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    } |global| mcp::mcp(global, &words).await;

    /// What tools there are
    Tool {
        #[command(subcommand)]
        command: ToolCommand,
    } |global| command.run(global).await;

    /// What plugins there are; check, trust, install, remove, enable, disable or write one
    Plugin {
        #[command(subcommand)]
        command: PluginCommand,
    } |global| command.run(global).await;

    /// Where a session's files lie and its commands run: this machine, a container
    Environment {
        #[command(subcommand)]
        command: EnvironmentCommand,
    } |global| command.run(global).await;

    /// The terminals that models work in: see them live, and type there
    Shell {
        #[command(subcommand)]
        command: ShellCommand,
    } |global| command.run(global).await;

    /// Models, and the weights of those that run on this machine
    Model {
        #[command(subcommand)]
        command: ModelCommand,
    } |global| command.run(global).await;

    /// Providers of models: their servers and keys; ask one whether it answers
    Provider {
        #[command(subcommand)]
        command: ProviderCommand,
    } |global| command.run(global).await;

    /// Rules about tool calls: list, explain, add, remove and test them
    Permission {
        #[command(subcommand)]
        command: PermissionCommand,
    } |global| command.run(global).await;

    /// What requests, tool calls and decisions have come to
    Ledger {
        #[command(subcommand)]
        command: LedgerCommand,
    } |global| command.run(global).await;

    /// Trust this workspace: its .jaato folder, .env, .mcp.json, AGENTS.md (or CLAUDE.md) and its
    /// skills (.agents/skills, .claude/skills, .claude/commands) as they are
    Trust {
        /// Take the trust back
        #[arg(long)]
        remove: bool,
        /// Send no variable to the workspace's MCP servers: those that refer to one do not start
        #[arg(long, conflicts_with = "remove")]
        no_variables: bool,
    } |global| match remove {
        true => trust::remove(global),
        false => trust::workspace(global, no_variables),
    };

    /// The configuration and where each value came from
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    } |global| command.run(global).await;

    /// What ways of working cost a model
    Bench {
        #[command(subcommand)]
        command: BenchCommand,
    } |global| command.run(global).await;

    /// What is found, what is missing, what to do
    Doctor |global| doctor::doctor(global).await;

    /// Start, watch and end child processes (started by jaato itself)
    #[command(hide = true)]
    Guardian |_| unreachable!("`main` runs it before there is a runtime");

    /// Run, describe or check a plugin in isolation (started by jaato itself)
    #[command(hide = true)]
    PluginWorker {
        #[command(flatten)]
        work: PluginWork,
    } |_| unreachable!("`main` runs `{work:?}` before there is a runtime");
}

commands! {
    PermissionCommand:

    /// List the rules of every file, from the one that binds most
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,

        /// List the rules that jaato ships one by one
        #[arg(long)]
        shipped: bool,
    } |global| permission::list(global, json, shipped);

    /// Tell what is decided about a call, by which rule, and what every other rule says
    Explain {
        #[command(flatten)]
        args: permission::ExplainArgs,
    } |global| permission::explain(global, args).await;

    /// Add a rule that allows
    Allow {
        #[command(flatten)]
        rule: permission::RuleArgs,
    } |global| permission::add(global, "allow", rule);

    /// Add a rule that denies, whatever allows
    Deny {
        #[command(flatten)]
        rule: permission::RuleArgs,
    } |global| permission::add(global, "deny", rule);

    /// Remove a rule by the number that `list` shows
    Remove {
        /// The number
        number: usize,
        /// From the workspace's file instead of your own
        #[arg(long)]
        workspace: bool,
    } |global| permission::remove(global, number, workspace);

    /// Show what was decided in earlier sessions
    Log {
        /// How many decisions to show
        #[arg(long, value_name = "N", default_value_t = 20)]
        last: usize,
        /// Print JSON, one object a line
        #[arg(long)]
        json: bool,
    } |global| permission::log(global, last, json);

    /// Test the rules with a file of calls and their expected decisions
    Test {
        /// The file: `[[cases]]` with `command`, or `tool` and `arguments`, and `expect`
        file: PathBuf,
    } |global| permission::test(global, &file).await;
}

commands! {
    ProviderCommand:

    /// List providers, each with its server and where its key comes from
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    } |global| provider::list(global, json).await;

    /// Ask a provider for a word and for a call of a tool; says what was found and what came
    Check {
        /// The provider, or provider/model; the configured model without it
        name: Option<String>,

        /// Run twelve checks, for less than $0.10, and print a table for a bug report
        #[arg(long)]
        full: bool,
    } |global| provider::check(global, name, full).await;

    /// List the models of a provider, and what is known of each
    Models {
        /// The provider; the configured model's without it
        name: Option<String>,

        /// Print JSON
        #[arg(long)]
        json: bool,
    } |global| provider::models(global, name, json).await;

    /// Keep a key for a provider, typed unseen or from a pipe
    Login {
        /// The provider
        name: String,
    } |global| login::login(global, name).await;

    /// Forget the key that `login` kept
    Logout {
        /// The provider
        name: String,
    } |global| login::logout(global, name).await;
}

commands! {
    ToolCommand:

    /// List the tools
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    } |global| tool::list(global, json).await;

    /// Show one tool: description, arguments, promises, examples
    Show {
        /// The tool
        tool: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    } |global| tool::show(global, &tool, json).await;
}

commands! {
    PluginCommand:

    /// List the plugins, and what could not be used
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    } |global| plugin::list(global, json).await;

    /// Show one plugin
    Show {
        /// The plugin
        plugin: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    } |global| plugin::show(global, &plugin, json).await;

    /// Trust a plugin file by its content, so that it runs inside jaato
    Trust {
        /// The file
        file: PathBuf,
        /// The digest that `jaato plugin list` shows for it
        #[arg(long, value_name = "HEX")]
        sha256: String,
    } |global| plugin::trust(global, &file, &sha256);

    /// Take the trust in a plugin file back; it runs in a worker then
    Untrust {
        /// The file, the plugin's name, or the digest
        #[arg(value_name = "FILE|PLUGIN|HEX")]
        what: String,
    } |global| plugin::untrust(global, &what).await;

    /// Grant a plugin what it asks for: to ask a model at your cost, to ask you questions, to keep
    /// secrets …
    ///
    /// `jaato plugin show PLUGIN` lists what it asks for. A plugin that is replaced by another file
    /// is granted anew.
    Grant {
        /// The plugin
        plugin: String,
        /// What is granted; all that it asks for when absent
        #[arg(value_name = "SERVICE")]
        services: Vec<String>,
    } |global| grant::grant(global, &plugin, &services).await;

    /// Take back what a plugin was granted
    Revoke {
        /// The plugin
        plugin: String,
        /// What is taken back; all when absent
        #[arg(value_name = "SERVICE")]
        services: Vec<String>,
    } |global| grant::revoke(global, &plugin, &services).await;

    /// Describe plugins again, whatever is known of them, and tell what changed
    ///
    /// A `jaato chat` that runs takes replaced files by itself; `/plugin reload` there begins a
    /// plugin anew.
    Reload {
        /// The plugin; all when absent
        plugin: Option<String>,
    } |global| reload::reload(global, plugin.as_deref()).await;

    /// Check a plugin file: what it says of itself, and in a worker whether it works
    ///
    /// Only examples of tools that change nothing and stay on this machine are run.
    Check {
        /// The file
        file: PathBuf,
    } |global| check::check(global, &file).await;

    /// Write the crate of a plugin of your own: it builds, tests itself, and has a README and a CI
    /// file
    New {
        /// Its name: small letters, digits and `-`
        name: String,
        /// What it is to be
        #[arg(long, value_enum, default_value_t = new_plugin::NewKind::Tool)]
        kind: new_plugin::NewKind,
        /// The folder to write; one of its name when absent
        #[arg(long, value_name = "DIR")]
        path: Option<PathBuf>,
        /// The sdk to build against, or a checkout; the one that came with this jaato when absent
        #[arg(long, value_name = "DIR")]
        sdk: Option<PathBuf>,
    } |_| new_plugin::write(&name, kind, path, sdk);

    /// Install a plugin that lies on this machine into your own plugins folder
    Install {
        /// A plugin file, a folder with one, or a .tar.gz of such a folder
        #[arg(value_name = "FILE|FOLDER|ARCHIVE")]
        what: PathBuf,
    } |global| install::install(global, &what).await;

    /// Take a plugin out of your own plugins folder
    Remove {
        /// The plugin
        plugin: String,
    } |global| install::remove(global, &plugin);

    /// Use a plugin again that was disabled
    Enable {
        /// The plugin
        plugin: String,
    } |global| switch::switch(global, &plugin, Listing::Out);

    /// Leave a plugin out: lists it in `[plugins] disabled` of your config.toml
    Disable {
        /// The plugin
        plugin: String,
    } |global| switch::switch(global, &plugin, Listing::In);
}

commands! {
    EnvironmentCommand:

    /// List the execution environments
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    } |global| environment::list(global, json).await;

    /// Set one up, tell what it is, and take it down again
    Show {
        #[command(flatten)]
        environment: EnvironmentArgs,
        /// As JSON
        #[arg(long)]
        json: bool,
    } |global| environment::show(global, &environment, json).await;

    /// Run a command in one; its exit code is the command's
    Exec {
        #[command(flatten)]
        environment: EnvironmentArgs,
        /// Where the command runs
        #[arg(long, value_name = "DIR")]
        directory: Option<String>,
        /// The program and its arguments; one word alone is a line for the shell
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    } |global| environment::exec(global, &environment, directory, &command).await;
}

commands! {
    ShellCommand:

    /// List the terminals of all sessions that run under your name
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    } |_| shell::list(json).await;

    /// Show one live, as much of it as fits; q leaves
    ///
    /// Where standard input or output is no terminal, the screen is printed once, as text.
    Attach {
        /// The terminal as `list` names it, or a part that only one of them has
        name: String,
        /// Type there too: every key goes to the program, but Ctrl-], which leaves
        #[arg(long = "type")]
        types: bool,
    } |_| {
        let purpose = if types { shell::Purpose::Type } else { shell::Purpose::Look };
        shell::attach(&name, purpose).await
    };
}

commands! {
    ModelCommand:

    /// List the models that can be used
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    } |global| model::list(global, json).await;

    /// Fetch a model's weights, or let its server fetch them
    Pull {
        /// The model, such as ollama/qwen3:8b; the default one when absent
        model: Option<String>,
    } |global| model::pull(global, model).await;

    /// Take weights from a file: those of a known model, or others under a name of your own
    Import {
        /// The GGUF file
        file: PathBuf,
        /// The name for weights that jaato does not know
        #[arg(long)]
        name: Option<String>,
    } |global| model::import(global, &file, name).await;
}

commands! {
    LedgerCommand:

    /// Show the last turns and the sums of all
    Show {
        #[command(flatten)]
        args: ledger::LedgerShowArgs,
    } |global| ledger::show(global, args);
}

commands! {
    BenchCommand:

    /// Give a model the same scenarios by a command line and by an MCP server, and add up what each
    /// costs in tokens; the tools of both run without asking
    #[command(name = "cli-vs-mcp")]
    CliVsMcp {
        #[command(flatten)]
        args: bench::cli_vs_mcp::CliVsMcpArgs,
    } |global| bench::cli_vs_mcp::cli_vs_mcp(global, args).await;
}

commands! {
    ConfigCommand:

    /// Print each value with the layer it came from
    Show |global| config::show(global).await;

    /// Print which configuration files count, and where they lie
    Path {
        /// As JSON
        #[arg(long)]
        json: bool,
    } |global| config::path(global, json);
}

/// What a worker is to do; `main` reads it.
#[derive(Debug, clap::Args)]
pub struct PluginWork {
    /// Describe it, and end
    #[arg(long)]
    pub describe: bool,
    /// Run this check of the conformance suite, and end
    #[arg(long, value_name = "CHECK", conflicts_with = "describe")]
    pub conform: Option<String>,
    /// The plugin file
    pub file: PathBuf,
}

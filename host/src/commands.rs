//! The table of commands: name, help, arguments and handler, one row each.
//!
//! A new command is one row here and the file that the row calls. `--help`, the dispatch and the
//! check of `docs/commands.md` follow from the rows. The tests find the commands through `--help`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use jaato_runtime::config::ListChange;

use crate::args::{EnvironmentArgs, GlobalArgs, OutputForm, parse_key_value};
use crate::exit::CommandResult;
use crate::{
    batch, call, chat, check, command, config, dev, doctor, environment, gc, grant, install,
    ledger, login, model, new_plugin, permission, plugin, provider, reload, run, sessions, shell,
    switch, tool, trust, undo,
};

/// Run AI agents in your terminal: a model proposes tool calls, jaato runs them under your rules.
#[derive(Debug, Parser)]
#[command(name = "jaato", version, arg_required_else_help = true, max_term_width = 100)]
#[command(
    after_help = "Without a command, jaato starts a chat at a terminal.\n\nExit codes: 0 done, 1 the task failed, 2 usage, 3 configuration, 4 plugin, \
5 provider, 6 stopped by a limit or a missing permission, 130 cancelled."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,

    #[command(subcommand)]
    pub command: Command,
}

/// Generates an enum that clap parses from the command line, and its `run`, which calls the handler
/// of the chosen row. A handler gets the global options and the fields of its row.
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
            pub async fn run(self, global: GlobalArgs) -> CommandResult {
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

    /// Give a model a task and show its progress
    Run {
        #[command(flatten)]
        args: run::RunArgs,
    } |global| run::run_task(global, args).await;

    /// Chat with a model in this folder (the default command): Esc stops an answer, /help lists
    /// commands
    Chat {
        #[command(flatten)]
        args: chat::ChatArgs,
    } |global| chat::chat(global, args).await;

    /// Run many tasks from a file, several at a time, without a user
    Batch {
        #[command(flatten)]
        args: batch::BatchArgs,
    } |global| batch::run_batch(global, args).await;

    /// Call a tool without a model, or several with --batch
    Call {
        #[command(flatten)]
        args: call::CallArgs,
    } |global| call::call_tool(global, args).await;

    /// List, show, search, change and export saved sessions
    Session {
        #[command(subcommand)]
        command: SessionCommand,
    } |global| command.run(global).await;

    /// Show what a gc would leave out of a full context
    Gc {
        #[command(subcommand)]
        command: GcCommand,
    } |global| command.run(global).await;

    /// Run a command of a plugin, or list these commands
    #[command(name = "command")]
    Offered {
        #[command(flatten)]
        args: command::CommandArgs,
    } |global| command::run_command(global, args).await;

    /// Undo a change of the file tools: shows the diff and asks first, unless you pass --yes
    Undo {
        #[command(flatten)]
        args: undo::UndoArgs,
    } |global| undo::undo_changes(global, args).await;

    /// List, add, remove, connect and log in to MCP servers (Model Context Protocol)
    Mcp {
        /// `list`, `status`, `show`, `add`, `remove`, `import`, `connect`, `disconnect`, `login`,
        /// `logout`, `reload`, `logs` or `help`, with its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    } |global| command::run_typed_command(global, "mcp", &words).await;

    /// List and test command hooks: commands that run around sessions, prompts and tool calls
    Hook {
        /// `list`, `test EVENT [JSON]` or `help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    } |global| command::run_typed_command(global, "hook", &words).await;

    /// List worktrees, show the changes in one, and apply them to your files
    Worktree {
        /// `list`, or `create`, `diff`, `accept` or `remove` with a NAME
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    } |global| command::run_typed_command(global, "worktree", &words).await;

    /// List and show tools
    Tool {
        #[command(subcommand)]
        command: ToolCommand,
    } |global| command.run(global).await;

    /// List, check, trust, install, remove, enable, disable and create plugins
    Plugin {
        #[command(subcommand)]
        command: PluginCommand,
    } |global| command.run(global).await;

    /// List and try execution environments: this machine, a container
    Environment {
        #[command(subcommand)]
        command: EnvironmentCommand,
    } |global| command.run(global).await;

    /// Watch the terminals that models use, and type in them
    Shell {
        #[command(subcommand)]
        command: ShellCommand,
    } |global| command.run(global).await;

    /// List models; fetch or import the weights of local ones
    Model {
        #[command(subcommand)]
        command: ModelCommand,
    } |global| command.run(global).await;

    /// List and test model providers, and store their API keys
    Provider {
        #[command(subcommand)]
        command: ProviderCommand,
    } |global| command.run(global).await;

    /// List, explain, add, remove and test permission rules
    Permission {
        #[command(subcommand)]
        command: PermissionCommand,
    } |global| command.run(global).await;

    /// Show token usage, cost and permission decisions
    Ledger {
        #[command(subcommand)]
        command: LedgerCommand,
    } |global| command.run(global).await;

    /// Trust this workspace as it is: its .jaato folder, .env, .mcp.json, AGENTS.md (or CLAUDE.md),
    /// skills (.agents/skills, .claude/skills, .claude/commands), subagents (.claude/agents) and
    /// hooks (.claude/settings.json, .claude/hooks)
    Trust {
        /// Revoke the trust
        #[arg(long)]
        remove: bool,
        /// Pass no variables to the workspace's MCP servers; servers that need one do not start
        #[arg(long, conflicts_with = "remove")]
        no_variables: bool,
    } |global| match remove {
        true => trust::remove_trust(global),
        false => trust::trust_workspace(global, no_variables),
    };

    /// Show the configuration and where each value came from
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    } |global| command.run(global).await;

    /// Check the installation and suggest fixes
    Doctor |global| doctor::run_doctor(global).await;

    /// Start, watch and end child processes (started by jaato itself)
    #[command(hide = true)]
    Guardian |_| unreachable!("`main` runs it before there is a runtime");

    /// Run, describe or check a plugin in isolation (started by jaato itself)
    #[command(hide = true)]
    PluginWorker {
        #[command(flatten)]
        work: PluginWorkerArgs,
    } |_| unreachable!("`main` runs `{work:?}` before there is a runtime");
}

commands! {
    SessionCommand:

    /// List the saved sessions of this workspace, the last changed first
    List {
        #[command(flatten)]
        args: sessions::ListArgs,
    } |global| sessions::list_sessions(global, &args);

    /// Show the conversation of a session
    Show {
        /// The session: its id, or at least 4 characters from its beginning, its end or its last
        /// part
        id: String,
        /// The output format
        #[arg(long, value_enum, default_value_t = OutputForm::Text)]
        output: OutputForm,
    } |global| sessions::show_session(global, &id, output);

    /// Find messages in saved sessions
    Search {
        #[command(flatten)]
        args: sessions::SearchArgs,
    } |global| sessions::search_sessions(global, &args);

    /// Name a session
    Rename {
        /// The session, as `show` takes it
        id: String,
        /// The name
        #[arg(required = true)]
        name: Vec<String>,
    } |global| sessions::rename_session(global, &id, &name);

    /// Delete sessions with their attachments; asks first, unless you pass --yes
    Delete {
        /// The sessions, as `show` takes them
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Delete without asking
        #[arg(long)]
        yes: bool,
    } |global| sessions::delete_sessions(global, &ids, yes).await;

    /// Take back one of your messages and everything after it
    Rewind {
        /// The session, as `show` takes it
        id: String,
        /// The number of the message, as `show` displays it
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
        to: u64,
        /// Also undo the edits of files
        #[arg(long)]
        files: bool,
    } |global| sessions::rewind_session(global, &id, to, files).await;

    /// Copy a session, and print the id of the copy
    Fork {
        /// The session, as `show` takes it
        id: String,
        /// Copy only what comes before this message
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
        to: Option<u64>,
    } |global| sessions::fork_session(global, &id, to);

    /// Write the conversation of a session as a document
    Export {
        /// The session, as `show` takes it
        id: String,
        /// The file, which must not exist; defaults to standard output
        file: Option<PathBuf>,
        /// The format; defaults to that of the file's name, or to Markdown
        #[arg(long, value_enum)]
        format: Option<sessions::ExportForm>,
    } |global| sessions::export_session(global, &id, format, file.as_deref());

    /// Print the sequence diagram of a session: prompts, requests, tool calls and results
    Trace {
        /// The session, as `show` takes it
        id: String,
        /// The format
        #[arg(long, value_enum, default_value_t = sessions::TraceForm::Mermaid)]
        format: sessions::TraceForm,
    } |global| sessions::export_trace(global, &id, format);

    /// Import an exported conversation, or sessions of Claude Code, Codex, goose and pi
    ///
    /// Without FILE and --from, lists the sessions of these programs. Their files stay as they are.
    Import {
        #[command(flatten)]
        args: sessions::ImportArgs,
    } |global| sessions::import_sessions(global, &args).await;

    /// Print new messages of a session while another process runs it
    Follow {
        /// The session, as `show` takes it
        id: String,
        /// The output format
        #[arg(long, value_enum, default_value_t = OutputForm::Text)]
        output: OutputForm,
    } |global| sessions::follow_session(global, &id, output).await;

    /// Make the index of all sessions again, for example after you copied session files
    Reindex |global| sessions::rebuild_index(global);
}

commands! {
    GcCommand:

    /// Show what would go from a saved session, why, and how much that frees; changes nothing
    Plan {
        #[command(flatten)]
        args: gc::GcPlanArgs,
    } |global| gc::preview_gc(global, args).await;
}

commands! {
    PermissionCommand:

    /// List the rules of all files, highest precedence first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,

        /// Also list each rule that ships with jaato
        #[arg(long)]
        shipped: bool,
    } |global| permission::list_rules(global, json, shipped);

    /// Explain which rule decides a call, and what the other rules say
    Explain {
        #[command(flatten)]
        args: permission::ExplainArgs,
    } |global| permission::explain_call(global, args).await;

    /// Add a rule that allows calls
    Allow {
        #[command(flatten)]
        rule: permission::RuleArgs,
    } |global| permission::add_rule_command(global, "allow", rule);

    /// Add a rule that denies calls; it overrides rules that allow
    Deny {
        #[command(flatten)]
        rule: permission::RuleArgs,
    } |global| permission::add_rule_command(global, "deny", rule);

    /// Remove a rule by its number in `list`
    Remove {
        /// The number of the rule
        number: usize,
        /// Remove it from the workspace's file instead of your own
        #[arg(long)]
        workspace: bool,
    } |global| permission::remove_rule_command(global, number, workspace);

    /// Show decisions of earlier sessions
    Log {
        /// The number of decisions to show
        #[arg(long, value_name = "N", default_value_t = 20)]
        last: usize,
        /// Print JSON, one object per line
        #[arg(long)]
        json: bool,
    } |global| permission::show_decision_log(global, last, json);

    /// Test the rules against a file of calls and expected decisions
    Test {
        /// The file: `[[cases]]` with `command`, or `tool` and `arguments`, and `expect`
        file: PathBuf,
    } |global| permission::test_rules(global, &file).await;
}

commands! {
    ProviderCommand:

    /// List providers with their servers and the sources of their API keys
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    } |global| provider::list_providers(global, json).await;

    /// Test a provider with one short answer and one tool call
    Check {
        /// The provider, or provider/model; defaults to the configured model
        name: Option<String>,

        /// Run twelve checks that cost less than $0.10, and print a table for a bug report
        #[arg(long)]
        full: bool,
    } |global| provider::check_provider(global, name, full).await;

    /// List the models of a provider with their limits and prices
    Models {
        /// The provider; defaults to that of the configured model
        name: Option<String>,

        /// Print JSON
        #[arg(long)]
        json: bool,
    } |global| provider::list_models(global, name, json).await;

    /// Store an API key for a provider; reads it from a hidden prompt or a pipe
    Login {
        /// The provider
        name: String,
    } |global| login::login(global, name).await;

    /// Delete the API key that `login` stored
    Logout {
        /// The provider
        name: String,
    } |global| login::logout(global, name).await;
}

commands! {
    ToolCommand:

    /// List tools
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    } |global| tool::list_tools(global, json).await;

    /// Show a tool: description, arguments, annotations, examples
    Show {
        /// The tool
        tool: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    } |global| tool::show_tool(global, &tool, json).await;
}

commands! {
    PluginCommand:

    /// List plugins, including those that cannot be used
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    } |global| plugin::list_plugins(global, json).await;

    /// Show a plugin
    Show {
        /// The plugin
        plugin: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    } |global| plugin::show_plugin(global, &plugin, json).await;

    /// Trust a plugin file by its digest, so that it runs in the jaato process
    Trust {
        /// The file
        file: PathBuf,
        /// The SHA-256 digest that `jaato plugin list` shows for the file
        #[arg(long, value_name = "HEX")]
        sha256: String,
    } |global| plugin::trust_plugin_file(global, &file, &sha256);

    /// Revoke the trust in a plugin file, so that it runs in a worker process
    Untrust {
        /// The file, the plugin's name, or the digest
        #[arg(value_name = "FILE|PLUGIN|HEX")]
        what: String,
    } |global| plugin::untrust_plugin(global, &what).await;

    /// Grant a plugin the services that it requests, for example to call a model at your cost
    ///
    /// `jaato plugin show PLUGIN` lists the services that it requests. If you replace the plugin
    /// file, grant them again.
    Grant {
        /// The plugin
        plugin: String,
        /// The services to grant; defaults to all requested services
        #[arg(value_name = "SERVICE")]
        services: Vec<String>,
    } |global| grant::grant_services(global, &plugin, &services).await;

    /// Revoke services that you granted to a plugin
    Revoke {
        /// The plugin
        plugin: String,
        /// The services to revoke; defaults to all
        #[arg(value_name = "SERVICE")]
        services: Vec<String>,
    } |global| grant::revoke_services(global, &plugin, &services).await;

    /// Describe plugins again, without the cache, and show what changed
    ///
    /// A running `jaato chat` picks up replaced files by itself; `/plugin reload` there restarts a
    /// plugin.
    Reload {
        /// The plugin; defaults to all
        plugin: Option<String>,
    } |global| reload::reload_plugins(global, plugin.as_deref()).await;

    /// Check a plugin file: its description, and its behaviour in a worker process
    ///
    /// The check runs only examples of tools that change nothing and stay on this machine. It uses
    /// your settings of the plugin.
    Check {
        /// The file
        file: PathBuf,
        /// Set one setting of the plugin for the check; repeatable
        #[arg(long, value_name = "KEY=VALUE", value_parser = parse_key_value)]
        setting: Vec<(String, String)>,
    } |global| check::check_plugin(global, &file, &setting).await;

    /// Build and install your plugin, and again after each change
    ///
    /// Runs `cargo build` in the folder of the plugin's crate, trusts the built file and gives it
    /// the grants that it requests, after one question. Later builds from this folder keep both. A
    /// running `jaato chat` uses each build at once. Ctrl-C ends it.
    Dev {
        /// The folder of the crate
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Build and install once, and do not wait for changes
        #[arg(long)]
        once: bool,
        /// Trust the builds and grant what they request without asking
        #[arg(long)]
        yes: bool,
        /// Build with optimizations
        #[arg(long)]
        release: bool,
    } |global| dev::run_dev(global, &folder, dev::DevOptions { once, yes, release }).await;

    /// Create the sources of a new plugin: a crate with tests, a README and a CI file, or C
    New {
        /// The name: lower-case letters, digits and `-`
        name: String,
        /// The kind of plugin
        #[arg(long, value_enum, default_value_t = new_plugin::NewPluginKind::Tool)]
        kind: new_plugin::NewPluginKind,
        /// The folder to create; defaults to the name of the plugin
        #[arg(long, value_name = "DIR")]
        path: Option<PathBuf>,
        /// The SDK to build against, or a checkout of jaato; defaults to the SDK of this jaato
        #[arg(long, value_name = "DIR")]
        sdk: Option<PathBuf>,
    } |_| new_plugin::write_new_plugin(&name, kind, path, sdk);

    /// Copy a plugin into your plugins folder
    Install {
        /// A plugin file, a folder with one, or a .tar.gz of such a folder
        #[arg(value_name = "FILE|FOLDER|ARCHIVE")]
        what: PathBuf,
    } |global| install::install_plugin(global, &what).await;

    /// Remove a plugin from your plugins folder
    Remove {
        /// The plugin
        plugin: String,
    } |global| install::remove_plugin(global, &plugin);

    /// Enable a disabled plugin
    Enable {
        /// The plugin
        plugin: String,
    } |global| switch::switch_plugin(global, &plugin, ListChange::Out);

    /// Disable a plugin: adds it to `[plugins] disabled` in your config.toml
    Disable {
        /// The plugin
        plugin: String,
    } |global| switch::switch_plugin(global, &plugin, ListChange::In);
}

commands! {
    EnvironmentCommand:

    /// List execution environments
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    } |global| environment::list_environments(global, json).await;

    /// Start an environment, describe it, and remove it again
    Show {
        #[command(flatten)]
        environment: EnvironmentArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    } |global| environment::show_environment(global, &environment, json).await;

    /// Run a command in an environment, and exit with its exit code
    Exec {
        #[command(flatten)]
        environment: EnvironmentArgs,
        /// The working directory of the command
        #[arg(long, value_name = "DIR")]
        directory: Option<String>,
        /// The program and its arguments; a single word is run by the shell
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    } |global| environment::run_in_environment(global, &environment, directory, &command).await;
}

commands! {
    ShellCommand:

    /// List the terminals of all your running sessions
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    } |_| shell::list_terminals(json).await;

    /// Watch a terminal live; q quits
    ///
    /// If standard input or output is not a terminal, prints the screen once as text.
    Attach {
        /// The name that `list` shows, or a unique part of it
        name: String,
        /// Also type: every key except Ctrl-], which quits, goes to the program
        #[arg(long = "type")]
        types: bool,
    } |_| {
        let purpose = if types { shell::AttachPurpose::Type } else { shell::AttachPurpose::Look };
        shell::attach_terminal(&name, purpose).await
    };
}

commands! {
    ModelCommand:

    /// List the models that you can use
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    } |global| model::list_models(global, json).await;

    /// Download the weights of a model, or tell its server to
    Pull {
        /// The model, for example ollama/qwen3:8b; defaults to the built-in one
        model: Option<String>,
    } |global| model::pull_model(global, model).await;

    /// Import weights from a file: of a known model, or of another under your own name
    Import {
        /// The GGUF file
        file: PathBuf,
        /// The name for weights of an unknown model
        #[arg(long)]
        name: Option<String>,
    } |global| model::import_weights(global, &file, name).await;
}

commands! {
    LedgerCommand:

    /// Show the last turns and the totals of all
    Show {
        #[command(flatten)]
        args: ledger::LedgerShowArgs,
    } |global| ledger::show_ledger(global, args);
}

commands! {
    ConfigCommand:

    /// Print each value and the layer that sets it
    Show |global| config::show_config(global).await;

    /// Print the paths of the configuration files that apply
    Path {
        /// Print JSON
        #[arg(long)]
        json: bool,
    } |global| config::show_config_paths(global, json);
}

/// The task of a worker. `main` reads it.
#[derive(Debug, clap::Args)]
pub struct PluginWorkerArgs {
    /// Describe it, and end
    #[arg(long)]
    pub describe: bool,
    /// Run this check of the conformance suite, and end
    #[arg(long, value_name = "CHECK", conflicts_with = "describe")]
    pub conform: Option<String>,
    /// The plugin's settings for the check, as JSON
    #[arg(long, value_name = "FILE", requires = "conform")]
    pub settings: Option<PathBuf>,
    /// The plugin file
    pub file: PathBuf,
}

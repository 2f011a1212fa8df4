//! The command line. Nothing is done here; `--help` is written here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// An agentic tool orchestrator: you give a task, a model calls tools out of plugins under your
/// rules.
#[derive(Debug, Parser)]
#[command(name = "jaato", version, arg_required_else_help = true, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done, 1 the task failed, 2 usage, 3 configuration, 4 plugin, \
5 provider, 6 stopped by a limit or for want of a permission, 130 cancelled."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,

    #[command(subcommand)]
    pub command: Command,
}

/// Heads what every command takes in each help, apart from the command's own options.
const GLOBAL: &str = "Global options";

/// What every command takes, before or after its name.
#[derive(Debug, Args)]
pub struct Global {
    /// Search this folder for plugins as well; may be given again
    #[arg(long, value_name = "DIR", global = true, help_heading = GLOBAL)]
    pub plugin_dir: Vec<PathBuf>,

    /// Use no network at all
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub offline: bool,

    /// Read this file instead of your own config.toml
    #[arg(long, value_name = "FILE", global = true, help_heading = GLOBAL)]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Give a model a task and watch it work
    Run(RunArgs),
    /// Talk with a model: one message a line, Ctrl-C stops an answer, /help lists the rest
    Chat(ChatArgs),
    /// Call one tool yourself, or many with --batch
    Call(CallArgs),
    /// Run a command that a plugin offers to people, or list them
    #[command(name = "command")]
    Offered(CommandArgs),
    /// What tools there are
    Tool {
        #[command(subcommand)]
        command: ToolCommand,
    },
    /// What plugins there are; check, trust, install, remove, enable, disable or write one
    Plugin {
        #[command(subcommand)]
        command: PluginCommand,
    },
    /// Where a session's files lie and its commands run: this machine, a container
    Environment {
        #[command(subcommand)]
        command: EnvironmentCommand,
    },
    /// The terminals that models work in: see them live, and type there
    Shell {
        #[command(subcommand)]
        command: ShellCommand,
    },
    /// Models, and the weights of those that run on this machine
    Model {
        #[command(subcommand)]
        command: ModelCommand,
    },
    /// What requests, tool calls and decisions have come to
    Ledger {
        #[command(subcommand)]
        command: LedgerCommand,
    },
    /// Trust this workspace: its .jaato folder, .env, .mcp.json and AGENTS.md as they are
    Trust {
        /// Take the trust back
        #[arg(long)]
        remove: bool,
    },
    /// The configuration and where each value came from
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// What is found, what is missing, what to do
    Doctor,
    /// Start, watch and end child processes (started by jaato itself)
    #[command(hide = true)]
    Guardian,
    /// Run, describe or check a plugin in isolation (started by jaato itself)
    #[command(hide = true)]
    PluginWorker {
        /// Describe it, and end
        #[arg(long)]
        describe: bool,
        /// Run this check of the conformance suite, and end
        #[arg(long, value_name = "CHECK", conflicts_with = "describe")]
        conform: Option<String>,
        /// The plugin file
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// The task; standard input is read when it is absent, and added when it is piped in
    pub task: Vec<String>,

    #[command(flatten)]
    pub session: SessionArgs,

    /// At the end print the objects that tools have found, as JSON; `hidden`: also what the model
    /// never sees
    #[arg(long, value_name = "hidden", num_args = 0..=1, require_equals = true, default_missing_value = "shown")]
    pub objects: Option<ObjectsForm>,

    /// Print what would be sent, with token counts, and send nothing
    #[arg(long)]
    pub show_prompt: bool,

    /// What to print: text for people, or the events as JSON lines
    #[arg(long, value_enum, default_value_t = OutputForm::Text)]
    pub output: OutputForm,
}

#[derive(Debug, Args)]
pub struct ChatArgs {
    /// The first message; the others are read line by line
    pub message: Vec<String>,

    #[command(flatten)]
    pub session: SessionArgs,
}

/// What a conversation with a model is started with.
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// The model
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub model: Option<String>,

    /// Only these tools; `none` for a model that takes no tools
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    pub tools: Option<Vec<String>>,

    /// Run this tool without asking; may be given again. One of a plugin that is not shipped is
    /// PLUGIN:TOOL
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub allow: Vec<String>,

    /// Run every tool without asking
    #[arg(long)]
    pub yes: bool,

    /// More instructions for the model
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,

    /// Read variables from this file instead of the workspace's .env
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,

    #[command(flatten)]
    pub environment: EnvironmentArgs,
}

/// Where files lie and commands run.
#[derive(Debug, Clone, Default, Args)]
pub struct EnvironmentArgs {
    /// Where files lie and commands run: `local`, `docker`, or a plugin's
    #[arg(long, value_name = "NAME")]
    pub environment: Option<String>,

    /// Work in a new container of this image; it goes at the end
    #[arg(long, value_name = "IMAGE", conflicts_with = "container")]
    pub image: Option<String>,

    /// Work in this container, which runs already and stays
    #[arg(long, value_name = "CONTAINER")]
    pub container: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum EnvironmentCommand {
    /// List the execution environments
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Set one up, tell what it is, and take it down again
    Show {
        #[command(flatten)]
        environment: EnvironmentArgs,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
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
    },
}

#[derive(Debug, Subcommand)]
pub enum ShellCommand {
    /// List the terminals of all sessions that run under your name
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one live, as much of it as fits; q leaves
    ///
    /// Where standard input or output is no terminal, the screen is printed once, as text.
    Attach {
        /// The terminal as `list` names it, or a part that only one of them has
        name: String,
        /// Type there too: every key goes to the program, but Ctrl-], which leaves
        #[arg(long = "type")]
        types: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObjectsForm {
    /// What the model may see
    #[value(hide = true)]
    Shown,
    /// All of it
    Hidden,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputForm {
    /// For people
    Text,
    /// The event stream, one JSON object a line
    Json,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["tool", "batch"]))]
pub struct CallArgs {
    /// The tool
    pub tool: Option<String>,

    /// Its arguments, a JSON object
    #[arg(default_value = "{}", conflicts_with = "batch")]
    pub arguments: String,

    /// Read calls from standard input, one JSON object {"tool", "args"} a line, in one session
    #[arg(long)]
    pub batch: bool,

    #[command(flatten)]
    pub environment: EnvironmentArgs,
}

#[derive(Debug, Args)]
pub struct CommandArgs {
    /// The command; all are listed when it is absent
    pub name: Option<String>,

    /// Its arguments: words in the order of its parameters, or one JSON object; `--` before words
    /// that begin with a dash
    #[arg(allow_negative_numbers = true)]
    pub arguments: Vec<String>,

    /// List them as JSON
    #[arg(long, conflicts_with = "name")]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Show the last turns and the sums of all
    Show(LedgerShowArgs),
}

#[derive(Debug, Args)]
pub struct LedgerShowArgs {
    /// Only sessions whose id begins so
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,

    /// How many turns to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub last: usize,

    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum ToolCommand {
    /// List the tools
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one tool: description, arguments, promises, examples
    Show {
        /// The tool
        tool: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// List the plugins, and what could not be used
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one plugin
    Show {
        /// The plugin
        plugin: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Trust a plugin file by its content, so that it runs inside jaato
    Trust {
        /// The file
        file: PathBuf,
        /// The digest that `jaato plugin list` shows for it
        #[arg(long, value_name = "HEX")]
        sha256: String,
    },
    /// Take the trust in a plugin file back; it runs in a worker then
    Untrust {
        /// The file, the plugin's name, or the digest
        #[arg(value_name = "FILE|PLUGIN|HEX")]
        what: String,
    },
    /// Describe plugins again, whatever is known of them, and tell what changed
    ///
    /// A `jaato chat` that runs takes replaced files by itself; `/plugin reload` there begins a
    /// plugin anew.
    Reload {
        /// The plugin; all when absent
        plugin: Option<String>,
    },
    /// Check a plugin file: what it says of itself, and in a worker whether it works
    ///
    /// Only examples of tools that change nothing and stay on this machine are run.
    Check {
        /// The file
        file: PathBuf,
    },
    /// Write the crate of a plugin of your own: it builds, tests itself, and has a README and a CI
    /// file
    New {
        /// Its name: small letters, digits and `-`
        name: String,
        /// What it is to be
        #[arg(long, value_enum, default_value_t = NewKind::Tool)]
        kind: NewKind,
        /// The folder to write; one of its name when absent
        #[arg(long, value_name = "DIR")]
        path: Option<PathBuf>,
        /// The sdk to build against, or a checkout; the one that came with this jaato when absent
        #[arg(long, value_name = "DIR")]
        sdk: Option<PathBuf>,
    },
    /// Install a plugin that lies on this machine into your own plugins folder
    Install {
        /// A plugin file, a folder with one, or a .tar.gz of such a folder
        #[arg(value_name = "FILE|FOLDER|ARCHIVE")]
        what: PathBuf,
    },
    /// Take a plugin out of your own plugins folder
    Remove {
        /// The plugin
        plugin: String,
    },
    /// Use a plugin again that was disabled
    Enable {
        /// The plugin
        plugin: String,
    },
    /// Leave a plugin out: lists it in `[plugins] disabled` of your config.toml
    Disable {
        /// The plugin
        plugin: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NewKind {
    /// Offers tools to models
    Tool,
    /// Decides what leaves a context that gets full
    Gc,
    /// Answers requests: a model back end
    Provider,
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List the models that can be used
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch the weights of a model that runs on this machine
    Pull {
        /// The model; the default one when absent
        model: Option<String>,
    },
    /// Take weights from a file: those of a known model, or others under a name of your own
    Import {
        /// The GGUF file
        file: PathBuf,
        /// The name for weights that jaato does not know
        #[arg(long)]
        name: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print each value with the layer it came from
    Show,
}

//! The table of known keys, which is the single source of [`Config`], [`Overrides`], the check for
//! unknown keys, `config show` and the table in `docs/configuration.md`.
//!
//! A new key is one row of [`keys!`]. A section is a struct that its consumer takes as a whole: the
//! session reads [`Limits`] and [`GcSettings`] directly, so no crate lists their keys again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jaato_types::{Effort, ModelId};

use crate::answer_settings::{Temperature, TextList};
use crate::env_file::{EnvFile, EnvFileVariable};
use crate::error::{ConfigError, ConfigWarning};
use crate::layers::ConfigLayers;
use crate::model_id::default_model;
use crate::model_settings::ModelSettings;
use crate::money::Dollars;
use crate::origin::{ConfigLayer, ValueOrigin};
use crate::percent::Percent;
use crate::permission_prompts::{PermissionChannel, PermissionMode, PromptEndpoint};
use crate::plugin_settings::PluginSettings;
use crate::setting::Setting;
use crate::show::ConfigEntry;

/// The default execution environment: this machine.
pub const DEFAULT_ENVIRONMENT: &str = "local";

/// The facts about a key.
#[derive(Debug, Clone)]
pub struct KeyInfo {
    /// The key with its section, dotted.
    pub path: &'static str,
    /// The kind of value, for users.
    pub kind: &'static str,
    /// Formats the built-in value as a configuration file would have it.
    pub default: fn() -> String,
    /// Variables that set it. A later one takes precedence.
    pub variables: &'static [&'static str],
    /// The variable that counts seconds, with a fraction, if the key counts milliseconds.
    pub in_seconds: Option<&'static str>,
    /// The command-line option that sets it.
    pub option: Option<&'static str>,
    /// The smallest and largest number.
    pub limits: Option<(u64, u64)>,
    /// What happens when two layers set it.
    pub merge: LayerMerge,
    /// The precedence of files and variables.
    pub precedence: KeyPrecedence,
    /// Who may set it.
    pub owner: KeyOwner,
    /// A description for users.
    pub doc: &'static str,
}

/// What happens when two layers set the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerMerge {
    /// The later layer takes precedence.
    Replace,
    /// The lists are joined, with the later layer's items first. Used for lists that disable
    /// something, so that no layer silently enables it again.
    Add,
}

/// The precedence of configuration files and variables for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPrecedence {
    /// A variable overrides a file.
    VariablesWin,
    /// A file overrides a variable. Used for `model`, because `MODEL_NAME` is often set for other
    /// programs.
    FilesWin,
}

/// Who may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOwner {
    /// Any layer.
    Anyone,
    /// The user: their own file, a variable, the command line. No file of a workspace, even a
    /// trusted one.
    User,
    /// Any layer, but a workspace only if the user's own configuration does not set it.
    UserFirst,
    /// Any layer, but a workspace only to this stricter value.
    Only(&'static str),
    /// Any layer, but a workspace only to a path inside itself.
    Inside,
}

impl KeyInfo {
    /// Returns the kind of value that the key takes, with its range.
    pub fn value_description(&self) -> String {
        match self.limits {
            Some((least, most)) => format!("{} from {least} to {most}", self.kind),
            None => self.kind.to_owned(),
        }
    }

    const fn with_section(
        mut self,
        path: &'static str,
        variables: &'static [&'static str],
    ) -> Self {
        self.path = path;
        if self.variables.is_empty() {
            self.variables = variables;
        }
        self
    }

    const fn with_variables(mut self, names: &'static [&'static str]) -> Self {
        self.variables = names;
        self
    }

    const fn with_seconds_variable(mut self, name: &'static str) -> Self {
        self.in_seconds = Some(name);
        self
    }

    const fn with_option(mut self, option: &'static str) -> Self {
        self.option = Some(option);
        self
    }

    const fn with_limits(mut self, least: u64, most: u64) -> Self {
        self.limits = Some((least, most));
        self
    }

    const fn with_added_layers(mut self) -> Self {
        self.merge = LayerMerge::Add;
        self
    }

    const fn only_from_user(mut self) -> Self {
        self.owner = KeyOwner::User;
        self
    }

    const fn with_owner(mut self, owner: KeyOwner) -> Self {
        self.owner = owner;
        self
    }

    const fn with_files_first(mut self) -> Self {
        self.precedence = KeyPrecedence::FilesWin;
        self
    }
}

const fn key_at(path: &'static str) -> KeyInfo {
    KeyInfo {
        path,
        kind: "",
        default: String::new,
        variables: &[],
        in_seconds: None,
        option: None,
        limits: None,
        merge: LayerMerge::Replace,
        precedence: KeyPrecedence::VariablesWin,
        owner: KeyOwner::Anyone,
        doc: "",
    }
}

/// A row of a key in a section. Its path and its variable follow from the section's name and its
/// own.
const fn section_key() -> KeyInfo {
    key_at("")
}

/// The path of a key in a section, and its variable unless the row names others: `JAATO_`, the
/// section and the key.
macro_rules! in_section {
    ($section:ident, $field:ident, $info:expr) => {{
        const PATH: &str = concat!(stringify!($section), ".", stringify!($field));
        const NAME: &str = concat!("JAATO_", stringify!($section), "_", stringify!($field));
        const UPPER: [u8; NAME.len()] = uppercase(NAME);
        const VARIABLES: &[&str] = match std::str::from_utf8(&UPPER) {
            Ok(name) => &[name],
            Err(_) => &[],
        };
        $info.with_section(PATH, VARIABLES)
    }};
}

const fn uppercase<const N: usize>(text: &str) -> [u8; N] {
    let mut upper = [0; N];
    let mut at = 0;
    while at < N {
        upper[at] = text.as_bytes()[at].to_ascii_uppercase();
        at += 1;
    }
    upper
}

/// Generates [`Config`], one struct for each section, [`Overrides`] and [`KEYS`] from the rows.
macro_rules! keys {
    (
        $( $(#[doc = $doc:literal])+ $field:ident: $type:ty = $default:expr, $info:expr; )+
        $( section $section:ident: $settings:ident, $section_doc:literal {
            $( $(#[doc = $row_doc:literal])+
            $row:ident: $row_type:ty = $row_default:expr, $row_info:expr; )+
        } )+
    ) => {
        /// The configuration: every known key with its type, the plugins' settings, and the origin
        /// of each value.
        #[derive(Debug, Clone)]
        pub struct Config {
            $( $(#[doc = $doc])+ pub $field: $type, )+
            $( #[doc = $section_doc] pub $section: $settings, )+
            /// `[plugins.NAME]`, by name, as written. Each plugin checks its own settings against
            /// its schema.
            pub plugin_settings: BTreeMap<String, PluginSettings>,
            /// `[providers.NAME]`, by name, as written: providers under names of their own.
            pub provider_settings: BTreeMap<String, PluginSettings>,
            /// `[models."provider/model"]` and `[models.NAME]`, by the name in the file.
            pub model_settings: BTreeMap<String, ModelSettings>,
            /// The user's name for the model, if the model was given by one.
            pub model_alias: Option<String>,
            /// Warnings about the files and variables that were read.
            pub warnings: Vec<ConfigWarning>,
            pub(crate) origins: BTreeMap<&'static str, Vec<ValueOrigin>>,
            pub(crate) env_file: EnvFile,
        }

        $(
            #[doc = $section_doc]
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $settings {
                $( $(#[doc = $row_doc])+ pub $row: $row_type, )+
            }

            impl Default for $settings {
                /// The built-in values.
                fn default() -> Self {
                    Self { $( $row: $row_default, )+ }
                }
            }
        )+

        /// Values from the command line, which override every other layer.
        #[derive(Debug, Clone, Default)]
        pub struct Overrides {
            $( $(#[doc = $doc])+ pub $field: Option<$type>, )+
        }

        /// Every known key, in display order.
        pub static KEYS: &[KeyInfo] = &[
            $( KeyInfo {
                kind: <$type as Setting>::KIND,
                default: || <$type as Setting>::to_text(&$default),
                doc: concat!($($doc),+),
                ..$info
            }, )+
            $( $( KeyInfo {
                kind: <$row_type as Setting>::KIND,
                default: || <$row_type as Setting>::to_text(&$row_default),
                doc: concat!($($row_doc),+),
                ..in_section!($section, $row, $row_info)
            }, )+ )+
        ];

        impl Default for Config {
            /// Returns the built-in values.
            fn default() -> Self {
                Self {
                    $( $field: $default, )+
                    $( $section: $settings::default(), )+
                    plugin_settings: BTreeMap::new(),
                    provider_settings: BTreeMap::new(),
                    model_settings: BTreeMap::new(),
                    model_alias: None,
                    warnings: Vec::new(),
                    origins: BTreeMap::new(),
                    env_file: EnvFile::default(),
                }
            }
        }

        impl Config {
            /// Merges the layers, key by key.
            pub(crate) fn from_layers(
                layers: &ConfigLayers<'_>,
                overrides: Overrides,
            ) -> Result<Self, ConfigError> {
                let mut origins = BTreeMap::new();
                let (model_settings, refused) = layers.model_settings()?;
                Ok(Self {
                    $( $field: {
                        const INFO: KeyInfo =
                            KeyInfo { kind: <$type as Setting>::KIND, ..$info };
                        let given: Option<$type> = overrides.$field;
                        layers.resolve_value(&INFO, $default, given, &mut origins)?
                    }, )+
                    $( $section: $settings { $( $row: {
                        const INFO: KeyInfo = KeyInfo {
                            kind: <$row_type as Setting>::KIND,
                            ..in_section!($section, $row, $row_info)
                        };
                        let given: Option<$row_type> = None;
                        layers.resolve_value(&INFO, $row_default, given, &mut origins)?
                    }, )+ }, )+
                    plugin_settings: layers.plugin_settings()?,
                    provider_settings: layers.provider_settings()?,
                    model_settings,
                    model_alias: None,
                    warnings: [layers.warnings(), refused].concat(),
                    origins,
                    env_file: layers.env_file(),
                })
            }

            pub(crate) fn key_entries(&self) -> Vec<ConfigEntry> {
                let values = [
                    $( self.$field.to_text(), )+
                    $( $( self.$section.$row.to_text(), )+ )+
                ];
                let entry = |(key, value): (&KeyInfo, String)| {
                    ConfigEntry::new(key.path, value, self.origins_of_key(key.path))
                };
                KEYS.iter().zip(values).map(entry).collect()
            }
        }
    };
}

/// Core tools of the shipped plugins, the most useful first, because a small model has room for
/// few.
const FIRST_TOOLS: [&str; 13] = [
    "cli_based_tool",
    "readFile",
    "get_environment",
    "updateFile",
    "writeNewFile",
    "apply_patch",
    "grep_content",
    "glob_files",
    "request_clarification",
    "createPlan",
    "startPlan",
    "setStepStatus",
    "completePlan",
];

keys! {
    /// The model that answers.
    model: ModelId = default_model(),
        key_at("model").with_variables(&["MODEL_NAME", "JAATO_MODEL"]).with_option("--model")
            .with_files_first();
    /// Provider of a model that is named without one. If not set, jaato uses the provider whose
    /// models or keys match.
    provider: String = String::new(),
        key_at("provider").with_variables(&["JAATO_PROVIDER"]);
    /// Models to use, in this order, if the model fails permanently.
    fallback: TextList = TextList::default(),
        key_at("fallback").with_variables(&["JAATO_FALLBACK"]).with_owner(KeyOwner::UserFirst);
    /// Do not use the network.
    offline: bool = false,
        key_at("offline").with_variables(&["JAATO_OFFLINE"]).with_option("--offline")
            .with_owner(KeyOwner::Only("true"));
    /// Execution environment: where the session's files are and its commands run.
    environment: String = DEFAULT_ENVIRONMENT.to_owned(),
        key_at("environment").with_variables(&["JAATO_ENVIRONMENT"]).with_option("--environment")
            .with_owner(KeyOwner::UserFirst);
    /// More plugin folders, searched before the user's own.
    plugin_dirs: Vec<PathBuf> = Vec::new(),
        key_at("plugin_dirs").with_variables(&["JAATO_PLUGIN_PATH"]).with_option("--plugin-dir")
            .with_added_layers()
            .only_from_user();
    /// Download missing weights of the embedded model without asking.
    local_download: bool = false,
        key_at("local.download").with_variables(&["JAATO_LOCAL_DOWNLOAD"])
            .with_owner(KeyOwner::Only("false"));
    /// Plugins that jaato does not load.
    plugins_disabled: Vec<String> = Vec::new(),
        key_at("plugins.disabled").with_variables(&["JAATO_PLUGINS_DISABLED"]).with_added_layers();
    /// Plugins that always run in a worker of their own; `*` means all.
    plugins_isolated: Vec<String> = Vec::new(),
        key_at("plugins.isolated").with_variables(&["JAATO_PLUGINS_ISOLATED"]).with_added_layers();
    /// Offer only these tools, by name or by a prefix that ends with `*`. An empty list offers all
    /// tools, `none` alone offers no tools.
    tools_enabled: Vec<String> = Vec::new(),
        key_at("tools.enabled").with_variables(&["JAATO_TOOLS_ENABLED"]).with_option("--tools")
            .with_owner(KeyOwner::UserFirst);
    /// Offer tools to the model. `--tools` overrides this key.
    tools_offered: bool = true,
        key_at("tools.offered").with_variables(&["AI_USE_CHAT_FUNCTIONS", "JAATO_TOOLS_OFFERED"]);
    /// Tools that are never offered, even if another setting enables them.
    tools_disabled: Vec<String> = Vec::new(),
        key_at("tools.disabled").with_variables(&["JAATO_TOOLS_DISABLED"]).with_added_layers();
    /// Core tools that come first in requests, as far as they fit.
    tools_first: Vec<String> = FIRST_TOOLS.map(str::to_owned).to_vec(),
        key_at("tools.first").with_variables(&["JAATO_TOOLS_FIRST"])
            .with_owner(KeyOwner::UserFirst);
    /// Approximate token limit for core tools and their plugins' instructions in each request; a
    /// model may have a lower limit. The model can still find the tools that do not fit.
    tools_core_tokens_max: u64 = 3_500,
        key_at("tools.core_tokens_max").with_variables(&["JAATO_TOOLS_CORE_TOKENS_MAX"])
            .with_limits(0, 1_000_000);
    /// Variables that commands get even if they look like secrets.
    tools_cli_pass: Vec<String> = Vec::new(),
        key_at("tools.cli.pass").with_variables(&["JAATO_TOOLS_CLI_PASS"]).with_added_layers()
            .only_from_user();

    section session: Limits, "The bounds of a session." {
        // Limits an endless tool loop.
        /// Maximum number of requests to the model in one turn.
        steps_max: u32 = 50, section_key().with_limits(1, 10_000);
        // One answer must not start thousands of processes.
        /// Maximum number of tool calls that run from one answer; the others get an error.
        calls_per_step_max: usize = 32, section_key().with_limits(1, 1024);
        /// Maximum number of tool calls that run at the same time.
        parallel_calls_max: usize = 8, section_key().with_limits(1, 64);
        // One careless `cat` must not push the task out of the context window.
        /// Maximum number of bytes of a tool call's output that the model gets; a file keeps the
        /// whole output.
        output_bytes_max: usize = 16 * 1024, section_key().with_limits(1024, 1024 * 1024);
        // A model that never stops would fill the memory.
        /// Maximum length of a model's answer, in bytes.
        answer_bytes_max: usize = 1024 * 1024, section_key().with_limits(1024, 64 * 1024 * 1024);
        /// Maximum number of tokens that jaato requests for an answer; 0 leaves it to the provider.
        answer_tokens_max: u32 = 0, section_key().with_limits(0, 10_000_000);
        // A second try costs little, but more would be a loop.
        /// Number of empty answers from a model after which a turn fails.
        empty_answers_max: u32 = 2, section_key().with_limits(0, 100);
        // A cold model on a slow disk needs time.
        /// Longest time that a provider may send no bytes at all before the request fails.
        provider_idle_ms: u64 = 120_000, section_key().with_limits(100, 3_600_000);
        // DeepSeek documents ten minutes in its queue. A server that only pings must still end.
        /// Longest time that a provider may keep a request open without content, for example with
        /// comments only.
        provider_keep_alive_ms: u64 = 900_000, section_key().with_limits(100, 86_400_000);
        /// Longest time that one tool call may take.
        call_deadline_ms: u64 = 600_000, section_key().with_limits(100, 86_400_000);
        /// Longest time that a plugin may ask for the answer of a hook.
        hook_deadline_ms: u64 = 60_000, section_key().with_limits(200, 3_600_000);
        /// How long a turn waits for a tool call before the call moves to the background; 0 means
        /// forever.
        auto_background_threshold_ms: u64 = 10_000, section_key().with_limits(0, 86_400_000);
        /// Maximum number of tool calls in the background at the same time.
        tasks_max: usize = 8, section_key().with_limits(0, 64);
        /// Approximate token limit for the objects that the model sees at a time; 0 shows only how
        /// many there are.
        objects_tokens_max: usize = 2_000, section_key().with_limits(0, 1_000_000);
        /// Maximum number of attempts for one request to a provider, including the first.
        attempts_max: u32 = 5, section_key().with_limits(1, 100)
            .with_variables(&["AI_RETRY_ATTEMPTS", "JAATO_SESSION_ATTEMPTS_MAX"]);
        /// Longest wait before the second attempt; it doubles with each further attempt.
        retry_base_ms: u64 = 1_000, section_key().with_limits(1, 600_000)
            .with_variables(&["AI_RETRY_BASE_DELAY", "JAATO_SESSION_RETRY_BASE_MS"])
            .with_seconds_variable("AI_RETRY_BASE_DELAY");
        /// Longest wait between two attempts.
        retry_wait_ms_max: u64 = 30_000, section_key().with_limits(1, 3_600_000)
            .with_variables(&["AI_RETRY_MAX_DELAY", "JAATO_SESSION_RETRY_WAIT_MS_MAX"])
            .with_seconds_variable("AI_RETRY_MAX_DELAY");
        /// Do not report retries at the terminal.
        retry_silent: bool = false, section_key()
            .with_variables(&["AI_RETRY_LOG_SILENT", "JAATO_SESSION_RETRY_SILENT"]);
        /// Minimum time between the starts of two requests of a session to its provider.
        request_interval_ms: u64 = 0, section_key().with_limits(0, 3_600_000)
            .with_variables(&["AI_REQUEST_INTERVAL", "JAATO_SESSION_REQUEST_INTERVAL_MS"])
            .with_seconds_variable("AI_REQUEST_INTERVAL");
        /// Longest wait that a provider may ask for; if it asks for more, the request fails.
        retry_after_ms_max: u64 = 120_000, section_key().with_limits(1, 86_400_000);
        /// Stream answers. Turn this off for servers that stream badly.
        streaming: bool = true, section_key();
        /// Sampling temperature; 0 is greedy. If not set, the provider decides.
        temperature: Option<Temperature> = None, section_key();
        /// How much the model thinks before it answers. If not set, the provider decides.
        effort: Option<Effort> = None, section_key();
        /// Seed that makes sampling repeatable, if the provider supports it.
        seed: Option<u64> = None, section_key();
        /// Stop sequences: an answer ends before any of these texts.
        stop: TextList = TextList::default(), section_key();
    }

    section sessions: SavedSessionSettings, "Which sessions are saved, and for how long." {
        /// Save conversations, so that `--continue` and `--resume` can continue them.
        save: bool = true, section_key().only_from_user();
        // Nothing that a user wrote is deleted unless the user asks for it.
        /// Delete a saved session this many days after its last change; 0 keeps all.
        keep_days: u64 = 0, section_key().with_limits(0, 100_000).only_from_user();
        /// Delete the oldest saved sessions if all together have more megabytes; 0 keeps all.
        keep_megabytes: u64 = 0, section_key().with_limits(0, 100_000_000).only_from_user();
    }

    section permissions: PermissionSettings, "How a person is asked whether a call may run." {
        /// Approval mode: `accept-edits` edits workspace files without asking, `plan` only reads
        /// until you agree to a plan, `read-only` denies all changes.
        mode: PermissionMode = PermissionMode::Ask,
            section_key().with_option("--mode").with_owner(KeyOwner::Only("read-only"));
        /// Longest wait for an answer to a permission prompt; after that, the call is denied. 0
        /// uses the default: no limit at the terminal, 5 minutes elsewhere.
        answer_ms: u64 = 0, section_key().with_limits(0, 86_400_000).only_from_user()
            .with_variables(&["JAATO_PERMISSION_TIMEOUT", "JAATO_PERMISSIONS_ANSWER_MS"])
            .with_seconds_variable("JAATO_PERMISSION_TIMEOUT");
        /// Where jaato asks for permission: at the terminal, through a webhook, or through files in
        /// a folder.
        channel: PermissionChannel = PermissionChannel::Terminal, section_key().only_from_user();
        /// URL of the webhook, or folder for the files.
        endpoint: Option<PromptEndpoint> = None, section_key().only_from_user();
    }

    section caps: Caps, "What a session may use up as a whole." {
        /// Maximum cost of a session in US dollars; at this cost, it stops before the next request.
        cost: Option<Dollars> = None, section_key().with_option("--max-cost")
            .with_owner(KeyOwner::UserFirst);
        /// Maximum number of tokens in all requests and answers of a session.
        tokens: Option<u64> = None, section_key().with_option("--max-tokens")
            .with_owner(KeyOwner::UserFirst);
        /// Maximum number of requests of a session to its model.
        steps: Option<u64> = None, section_key().with_option("--max-steps")
            .with_owner(KeyOwner::UserFirst);
    }

    section gc: GcSettings, "When a gc runs, and what it should leave alone." {
        /// The gc that makes room in a full context: a plugin's name, or its short form `truncate`.
        plugin: String = "gc-truncate".to_owned(), section_key();
        /// How full the context window must be, in percent, for the gc to run.
        threshold_percent: Percent = Percent::from(80), section_key()
            .with_variables(&["JAATO_GC_THRESHOLD"]).with_limits(1, 100);
        /// How full the context should be, in percent, after results were shortened, or after
        /// recent turns had to be removed or shortened too.
        target_percent: u64 = 60, section_key().with_variables(&["JAATO_GC_TARGET"])
            .with_limits(1, 100);
        /// From which fill, in percent, `gc-budget` removes recent turns too. 0 is the continuous
        /// mode: every gc runs above `target_percent`, and `gc-budget` keeps recent turns.
        pressure_percent: u64 = 90, section_key().with_variables(&["JAATO_GC_PRESSURE"])
            .with_limits(0, 100);
        /// Run the gc automatically. A context that is full, or that the provider refuses, is made
        /// smaller even if this is false.
        auto_trigger: bool = true, section_key();
        /// Check before each request whether the gc must run. If false, check after each turn.
        check_before_send: bool = true, section_key();
        /// Number of recent finished turns that the gc keeps.
        preserve_recent_turns: u64 = 5, section_key().with_limits(0, 100_000);
        /// Number of turns before the recent ones that `gc-hybrid` summarises; it removes older
        /// ones without a summary.
        summarize_middle_turns: u64 = 10, section_key().with_limits(0, 100_000);
        /// Model that writes summaries. If empty, the session's model. An embedded model writes
        /// none unless it is named here.
        summary_model: String = String::new(), section_key();
        /// Turns that the gc always keeps; the first turn of the session is 0.
        pinned_turn_indices: Vec<u64> = Vec::new(), section_key();
        /// Maximum number of turns sent to the model; the gc runs if there are more. 0 means no
        /// limit.
        max_turns: u64 = 0, section_key().with_limits(0, 100_000);
        /// Tell the model that turns were removed.
        notify_on_gc: bool = true, section_key();
        /// Longest time that the gc may take; after that, the turn continues without it.
        deadline_ms: u64 = 10_000, section_key().with_limits(100, 600_000);
    }

    section ledger: LedgerSettings, "Whether a ledger is kept, and where." {
        /// Keep a ledger of requests, tool calls and decisions.
        enabled: bool = true, section_key().only_from_user();
        /// File of the ledger. The default is `ledger.jsonl` in jaato's data folder.
        path: Option<PathBuf> = None, section_key().with_variables(&["LEDGER_PATH"])
            .only_from_user();
    }

    section web: WebSettings, "What plugins may read from the web." {
        /// Hosts that plugins may read although their addresses are not public: names or addresses,
        /// without ports.
        private_hosts: Vec<String> = Vec::new(), section_key().only_from_user();
    }

    section terminals: TerminalSettings, "Who may see the terminals of models." {
        /// Let the same user see a model's terminals and type into them (`jaato shell`).
        join: bool = true, section_key().only_from_user();
    }

    section prompt: PromptSettings, "What the prompt is made of." {
        /// File whose text follows the built-in part of the system prompt.
        file: Option<PathBuf> = None, section_key().with_owner(KeyOwner::Inside);
    }
}

impl Config {
    /// Returns the origin of a key's value: one place, or several for lists that are joined. An
    /// unknown key counts as built-in.
    pub fn origins_of_key(&self, key: &str) -> &[ValueOrigin] {
        self.origins.get(key).map_or(&[ValueOrigin::BuiltIn], Vec::as_slice)
    }

    /// Returns true if a trusted workspace sets the key.
    pub fn is_set_by_workspace(&self, key: &str) -> bool {
        self.origins_of_key(key).iter().any(|origin| match origin.layer() {
            ConfigLayer::Workspace => true,
            ConfigLayer::EnvFile => !self.env_file.is_own,
            ConfigLayer::BuiltIn
            | ConfigLayer::User
            | ConfigLayer::Variable
            | ConfigLayer::CommandLine => false,
        })
    }

    /// Returns a variable of the variables file by its name. Only for names that a plugin's
    /// description lists, because the other variables belong to other programs.
    pub fn env_file_variable(&self, name: &str) -> Option<EnvFileVariable<'_>> {
        self.env_file.get(name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn paths_and_variables_are_each_used_once() {
        let mut seen = BTreeSet::new();
        for key in KEYS {
            assert!(seen.insert(key.path), "{}", key.path);
            for variable in key.variables {
                assert!(seen.insert(variable), "{variable}");
            }
        }
    }

    #[test]
    fn no_key_is_also_a_section() {
        for key in KEYS {
            let section = format!("{}.", key.path);
            assert!(!KEYS.iter().any(|other| other.path.starts_with(&section)), "{}", key.path);
        }
    }

    #[test]
    fn defaults_lie_within_their_limits() {
        for key in KEYS {
            if let Some(limits) = key.limits {
                let default: u64 = (key.default)().parse().unwrap();
                assert!(default.is_within(limits), "{}", key.path);
            }
        }
    }
}

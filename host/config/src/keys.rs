//! The table of known keys: the one place from which [`Config`], [`Overrides`], the check for
//! unknown keys, `config show` and the table in `docs/configuration.md` all come.
//!
//! A new key is one entry in [`keys!`]; nothing else changes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jaato_types::ModelId;

use crate::env_file::{EnvFile, EnvFileVariable};
use crate::error::{ConfigError, Warning};
use crate::layers::Layers;
use crate::model_id::{DEFAULT_PROVIDER, default_model};
use crate::model_settings::ModelSettings;
use crate::origin::{Layer, Origin};
use crate::plugin_settings::PluginSettings;
use crate::setting::Setting;
use crate::show::Entry;

/// The execution environment where nothing else is said: this machine.
pub const DEFAULT_ENVIRONMENT: &str = "local";

/// What is known about a key.
#[derive(Debug, Clone)]
pub struct KeyInfo {
    /// The key with its section, dotted.
    pub path: &'static str,
    /// What it takes, for people.
    pub kind: &'static str,
    /// Writes the built-in value as a configuration file would.
    pub default: fn() -> String,
    /// Variables that give it; a later one wins.
    pub variables: &'static [&'static str],
    /// Option of the command line that gives it.
    pub option: Option<&'static str>,
    /// Least and largest number.
    pub limits: Option<(u64, u64)>,
    /// What happens when two layers give it.
    pub merge: Merge,
    /// How files and variables rank.
    pub precedence: Precedence,
    /// Who may say it.
    pub owner: Owner,
    /// What it does, for people.
    pub doc: &'static str,
}

/// What happens when two layers give the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// The later layer wins.
    Replace,
    /// The lists add up, the later layer's items first. For lists of what is off: no layer can
    /// silently turn on again what another turned off.
    Add,
}

/// How configuration files and variables rank for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// A variable wins over a file.
    VariablesWin,
    /// A file wins over a variable. For `model`: `MODEL_NAME` is often set for other programs.
    FilesWin,
}

/// Whose word counts for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Every layer may give it.
    Anyone,
    /// No file of a workspace gives it, trusted or not: only what the person wrote or named.
    User,
    /// A workspace gives it only where the person's own configuration does not.
    UserFirst,
    /// A workspace may only say this: what is stricter.
    Only(&'static str),
    /// A workspace may only name what lies inside of it.
    Inside,
}

impl KeyInfo {
    /// What the key takes, with its range.
    pub fn wants(&self) -> String {
        match self.limits {
            Some((least, most)) => format!("{} from {least} to {most}", self.kind),
            None => self.kind.to_owned(),
        }
    }

    const fn variables(mut self, names: &'static [&'static str]) -> Self {
        self.variables = names;
        self
    }

    const fn option(mut self, option: &'static str) -> Self {
        self.option = Some(option);
        self
    }

    const fn limits(mut self, least: u64, most: u64) -> Self {
        self.limits = Some((least, most));
        self
    }

    const fn adding_up(mut self) -> Self {
        self.merge = Merge::Add;
        self
    }

    const fn users_own(mut self) -> Self {
        self.owner = Owner::User;
        self
    }

    const fn owner(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }

    const fn files_win(mut self) -> Self {
        self.precedence = Precedence::FilesWin;
        self
    }
}

const fn key(path: &'static str) -> KeyInfo {
    KeyInfo {
        path,
        kind: "",
        default: String::new,
        variables: &[],
        option: None,
        limits: None,
        merge: Merge::Replace,
        precedence: Precedence::VariablesWin,
        owner: Owner::Anyone,
        doc: "",
    }
}

macro_rules! keys {
    ($( $(#[doc = $doc:literal])+ $field:ident: $type:ty = $default:expr, $info:expr; )+) => {
        /// The configuration: every known key with its type, the settings of the plugins, and
        /// where each value came from.
        #[derive(Debug, Clone)]
        pub struct Config {
            $( $(#[doc = $doc])+ pub $field: $type, )+
            /// `[plugins.NAME]`, by name, as written: each plugin's own schema checks its own.
            pub plugin_settings: BTreeMap<String, PluginSettings>,
            /// `[models."provider/model"]`, by the model's id.
            pub model_settings: BTreeMap<String, ModelSettings>,
            /// What a person should know about the files and variables that were read.
            pub warnings: Vec<Warning>,
            pub(crate) origins: BTreeMap<&'static str, Vec<Origin>>,
            pub(crate) env_file: EnvFile,
        }

        /// Values given on the command line; they win over every other layer.
        #[derive(Debug, Clone, Default)]
        pub struct Overrides {
            $( $(#[doc = $doc])+ pub $field: Option<$type>, )+
        }

        /// Every known key, in the order in which people are shown them.
        pub static KEYS: &[KeyInfo] = &[ $( KeyInfo {
            kind: <$type as Setting>::KIND,
            default: || <$type as Setting>::show(&$default),
            doc: concat!($($doc),+),
            ..$info
        }, )+ ];

        impl Default for Config {
            /// The built-in values alone.
            fn default() -> Self {
                Self {
                    $( $field: $default, )+
                    plugin_settings: BTreeMap::new(),
                    model_settings: BTreeMap::new(),
                    warnings: Vec::new(),
                    origins: BTreeMap::new(),
                    env_file: EnvFile::default(),
                }
            }
        }

        impl Config {
            /// Merges the layers, key by key.
            pub(crate) fn resolve(
                layers: &Layers<'_>,
                overrides: Overrides,
            ) -> Result<Self, ConfigError> {
                let mut origins = BTreeMap::new();
                Ok(Self {
                    $( $field: {
                        const INFO: KeyInfo =
                            KeyInfo { kind: <$type as Setting>::KIND, ..$info };
                        let given: Option<$type> = overrides.$field;
                        layers.resolve(&INFO, $default, given, &mut origins)?
                    }, )+
                    plugin_settings: layers.plugin_settings()?,
                    model_settings: layers.model_settings()?,
                    warnings: layers.warnings(),
                    origins,
                    env_file: layers.env_file(),
                })
            }

            pub(crate) fn key_entries(&self) -> Vec<Entry> {
                vec![ $( {
                    const INFO: KeyInfo = $info;
                    Entry::new(INFO.path, self.$field.show(), self.origins(INFO.path))
                }, )+ ]
            }
        }
    };
}

keys! {
    /// Model that answers.
    model: ModelId = default_model(),
        key("model").variables(&["MODEL_NAME", "JAATO_MODEL"]).option("--model").files_win();
    /// Provider of a model that `MODEL_NAME` gives without one.
    provider: String = DEFAULT_PROVIDER.to_owned(),
        key("provider").variables(&["JAATO_PROVIDER"]);
    /// Use no network at all.
    offline: bool = false,
        key("offline").variables(&["JAATO_OFFLINE"]).option("--offline").owner(Owner::Only("true"));
    /// Execution environment: where the session's files lie and its commands run.
    environment: String = DEFAULT_ENVIRONMENT.to_owned(),
        key("environment").variables(&["JAATO_ENVIRONMENT"]).option("--environment")
            .owner(Owner::UserFirst);
    /// More folders with plugins, searched before the user's own.
    plugin_dirs: Vec<PathBuf> = Vec::new(),
        key("plugin_dirs").variables(&["JAATO_PLUGIN_PATH"]).option("--plugin-dir").adding_up()
            .users_own();
    /// Fetch the weights of the embedded model when they are missing.
    local_download: bool = true,
        key("local.download").variables(&["JAATO_LOCAL_DOWNLOAD"]).owner(Owner::Only("false"));
    /// Plugins that are not used.
    plugins_disabled: Vec<String> = Vec::new(),
        key("plugins.disabled").variables(&["JAATO_PLUGINS_DISABLED"]).adding_up();
    /// Plugins that run in a worker of their own, whatever they ask for; `*` means all.
    plugins_isolated: Vec<String> = Vec::new(),
        key("plugins.isolated").variables(&["JAATO_PLUGINS_ISOLATED"]).adding_up();
    /// Only these tools are offered; when empty, all are; `none` alone offers no tool.
    tools_enabled: Vec<String> = Vec::new(),
        key("tools.enabled").variables(&["JAATO_TOOLS_ENABLED"]).option("--tools")
            .owner(Owner::UserFirst);
    /// Tools that are not offered, whatever else says so.
    tools_disabled: Vec<String> = Vec::new(),
        key("tools.disabled").variables(&["JAATO_TOOLS_DISABLED"]).adding_up();
    /// Variables that commands are given although they look like secrets.
    tools_cli_pass: Vec<String> = Vec::new(),
        key("tools.cli.pass").variables(&["JAATO_TOOLS_CLI_PASS"]).adding_up().users_own();
    /// Most requests to the model in one turn.
    session_steps_max: u64 = 50,
        key("session.steps_max").variables(&["JAATO_SESSION_STEPS_MAX"])
            .limits(1, 10_000);
    /// Most calls of one answer that are run; the rest gets an error.
    session_calls_per_step_max: u64 = 32,
        key("session.calls_per_step_max").variables(&["JAATO_SESSION_CALLS_PER_STEP_MAX"])
            .limits(1, 1024);
    /// Most tool calls that run at the same time.
    session_parallel_calls_max: u64 = 8,
        key("session.parallel_calls_max").variables(&["JAATO_SESSION_PARALLEL_CALLS_MAX"])
            .limits(1, 64);
    /// Most bytes of a tool call's output that the model is sent; the whole stays in a file.
    session_output_bytes_max: u64 = 16 * 1024,
        key("session.output_bytes_max").variables(&["JAATO_SESSION_OUTPUT_BYTES_MAX"])
            .limits(1024, 1024 * 1024);
    /// Longest answer of a model, in bytes.
    session_answer_bytes_max: u64 = 1024 * 1024,
        key("session.answer_bytes_max").variables(&["JAATO_SESSION_ANSWER_BYTES_MAX"])
            .limits(1024, 64 * 1024 * 1024);
    /// Most empty answers of a model in one turn.
    session_empty_answers_max: u64 = 2,
        key("session.empty_answers_max").variables(&["JAATO_SESSION_EMPTY_ANSWERS_MAX"])
            .limits(0, 100);
    /// Longest silence of a provider, without a single byte, before the request fails.
    session_provider_idle_ms: u64 = 120_000,
        key("session.provider_idle_ms").variables(&["JAATO_SESSION_PROVIDER_IDLE_MS"])
            .limits(100, 3_600_000);
    /// Longest time that a provider may keep a request open with bytes that say nothing, such as
    /// comments.
    session_provider_keep_alive_ms: u64 = 900_000,
        key("session.provider_keep_alive_ms").variables(&["JAATO_SESSION_PROVIDER_KEEP_ALIVE_MS"])
            .limits(100, 86_400_000);
    /// Longest time that one tool call may take.
    session_call_deadline_ms: u64 = 600_000,
        key("session.call_deadline_ms").variables(&["JAATO_SESSION_CALL_DEADLINE_MS"])
            .limits(100, 86_400_000);
    /// How long a call may keep the turn waiting before it goes on in the background; 0 means for
    /// ever.
    session_auto_background_threshold_ms: u64 = 10_000,
        key("session.auto_background_threshold_ms")
            .variables(&["JAATO_SESSION_AUTO_BACKGROUND_THRESHOLD_MS"])
            .limits(0, 86_400_000);
    /// Most calls that go on in the background at once.
    session_tasks_max: u64 = 8,
        key("session.tasks_max").variables(&["JAATO_SESSION_TASKS_MAX"])
            .limits(0, 64);
    /// Most tokens, roughly, of the objects that the model is shown at a time; 0 shows only how
    /// many there are.
    session_objects_tokens_max: u64 = 2_000,
        key("session.objects_tokens_max").variables(&["JAATO_SESSION_OBJECTS_TOKENS_MAX"])
            .limits(0, 1_000_000);
    /// Most attempts for one request to a provider, the first included.
    session_attempts_max: u64 = 5,
        key("session.attempts_max").variables(&["JAATO_SESSION_ATTEMPTS_MAX"])
            .limits(1, 100);
    /// Longest wait before the second attempt; it doubles with each further one.
    session_retry_base_ms: u64 = 1_000,
        key("session.retry_base_ms").variables(&["JAATO_SESSION_RETRY_BASE_MS"])
            .limits(1, 600_000);
    /// Longest wait between two attempts.
    session_retry_wait_ms_max: u64 = 30_000,
        key("session.retry_wait_ms_max").variables(&["JAATO_SESSION_RETRY_WAIT_MS_MAX"])
            .limits(1, 3_600_000);
    /// Longest wait that a provider may ask for; a longer one fails the request.
    session_retry_after_ms_max: u64 = 120_000,
        key("session.retry_after_ms_max").variables(&["JAATO_SESSION_RETRY_AFTER_MS_MAX"])
            .limits(1, 86_400_000);
    /// Gc that makes room in a full context: a plugin's name, or its short form `truncate`.
    gc_plugin: String = "gc-truncate".to_owned(),
        key("gc.plugin").variables(&["JAATO_GC_PLUGIN"]);
    /// How full the context window must be, in percent, for the gc to run.
    gc_threshold_percent: u64 = 80,
        key("gc.threshold_percent").variables(&["JAATO_GC_THRESHOLD"])
            .limits(1, 100);
    /// How full the context should be, in percent, where more than old turns had to go.
    gc_target_percent: u64 = 60,
        key("gc.target_percent").variables(&["JAATO_GC_TARGET"])
            .limits(1, 100);
    /// Run the gc by itself; a request that the provider refuses as too large is helped anyway.
    gc_auto_trigger: bool = true,
        key("gc.auto_trigger").variables(&["JAATO_GC_AUTO_TRIGGER"]);
    /// Look before each request whether the gc must run; otherwise when a turn is over.
    gc_check_before_send: bool = true,
        key("gc.check_before_send").variables(&["JAATO_GC_CHECK_BEFORE_SEND"]);
    /// Finished turns that the gc keeps.
    gc_preserve_recent_turns: u64 = 5,
        key("gc.preserve_recent_turns").variables(&["JAATO_GC_PRESERVE_RECENT_TURNS"])
            .limits(0, 100_000);
    /// Turns that the gc always keeps, counted from 0 since the session began.
    gc_pinned_turn_indices: Vec<u64> = Vec::new(),
        key("gc.pinned_turn_indices").variables(&["JAATO_GC_PINNED_TURN_INDICES"]);
    /// Most turns that the model is sent; one more makes the gc run. 0 for no bound.
    gc_max_turns: u64 = 0,
        key("gc.max_turns").variables(&["JAATO_GC_MAX_TURNS"])
            .limits(0, 100_000);
    /// Let the gc say what it left out.
    gc_notify_on_gc: bool = true,
        key("gc.notify_on_gc").variables(&["JAATO_GC_NOTIFY_ON_GC"]);
    /// Longest time that the gc may take; after it the turn goes on without.
    gc_deadline_ms: u64 = 10_000,
        key("gc.deadline_ms").variables(&["JAATO_GC_DEADLINE_MS"])
            .limits(100, 600_000);
    /// Keep a ledger of requests, tool calls and decisions.
    ledger_enabled: bool = true,
        key("ledger.enabled").variables(&["JAATO_LEDGER_ENABLED"]).users_own();
    /// File of the ledger; without one it is `ledger.jsonl` among your data.
    ledger_path: Option<PathBuf> = None,
        key("ledger.path").variables(&["LEDGER_PATH"]).users_own();
    /// Let people of the same user see a model's terminals and type there (`jaato shell`).
    terminals_join: bool = true,
        key("terminals.join").variables(&["JAATO_TERMINALS_JOIN"]).users_own();
    /// File whose text follows the built-in part of the prompt.
    prompt_file: Option<PathBuf> = None,
        key("prompt.file").variables(&["JAATO_PROMPT_FILE"]).owner(Owner::Inside);
}

impl Config {
    /// Where a key's value came from: one place, or several for lists that add up. A key that is
    /// not known is nobody's, so it counts as built-in.
    pub fn origins(&self, key: &str) -> &[Origin] {
        self.origins.get(key).map_or(&[Origin::BuiltIn], Vec::as_slice)
    }

    /// Tells whether a trusted workspace gives the value of a key.
    pub fn is_workspaces(&self, key: &str) -> bool {
        self.origins(key).iter().any(|origin| match origin.layer() {
            Layer::Workspace => true,
            Layer::EnvFile => !self.env_file.is_own,
            Layer::BuiltIn | Layer::User | Layer::Variable | Layer::CommandLine => false,
        })
    }

    /// A variable of the variables file that is none of jaato's own, by its name: for those that a
    /// plugin's description names. All others of the file belong to other programs.
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

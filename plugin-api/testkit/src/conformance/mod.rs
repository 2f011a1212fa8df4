//! The requirements for all plugins, by kind. `conformance!` runs them in the plugin's own tests.
//!
//! The name of a check states the requirement, and its result describes a violation. The checks run
//! the plugin on a [`FakeHost`]. A panic of the plugin fails the check, even if a fence catches it.

pub mod environment;
mod fuzz;
pub mod gc;
pub mod hook;
mod plan;
pub mod plugin;
pub mod provider;
pub mod tool;

use std::time::{Duration, Instant};

use jaato_types::service::{ContextFacts, SessionFacts};
use jaato_types::{Error, ErrorKind, PluginKind, ToolSpec};
use serde_json::Value;

pub use plan::{apply_plan, check_plan};

use crate::{FakeHost, LiveObjectCounts, PluginUnderTest};

/// The violation of a requirement, if there is one.
pub type ConformanceVerdict = Result<(), String>;

/// A check.
pub type ConformanceCheck = fn(&ConformanceSuite, &FakeHost) -> ConformanceVerdict;

/// The longest description of a tool or an argument, in bytes: the limit of the strictest provider.
pub const DESCRIPTION_BYTES_MAX: usize = 1024;

/// The tools whose examples the checks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExampleSelection {
    /// Tools that only read.
    OfReaders,
    /// All tools.
    All,
    /// Tools that only read and have no access beyond this machine. Other tools are not called at
    /// all.
    Harmless,
}

/// A plugin and the settings of its checks.
pub struct ConformanceSuite {
    subject: PluginUnderTest,
    kinds: Vec<PluginKind>,
    prepare: fn(FakeHost) -> FakeHost,
    settings: Option<Value>,
    examples: ExampleSelection,
}

impl ConformanceSuite {
    /// Creates the suite of a plugin of these kinds.
    pub fn for_plugin(subject: impl Into<PluginUnderTest>, kinds: &[PluginKind]) -> Self {
        let (kinds, examples) = (kinds.to_vec(), ExampleSelection::OfReaders);
        Self { subject: subject.into(), kinds, prepare: |host| host, settings: None, examples }
    }

    /// Sets the plugin's configuration, `[plugins.NAME]`, for each host.
    #[must_use]
    pub fn with_settings(self, settings: Value) -> Self {
        Self { settings: Some(settings), ..self }
    }

    /// Sets a function that prepares each host: services, configuration, assets.
    #[must_use]
    pub fn with_host(self, prepare: fn(FakeHost) -> FakeHost) -> Self {
        Self { prepare, ..self }
    }

    /// Also runs the examples of tools that are not read-only, because they do no harm on the
    /// prepared host.
    #[must_use]
    pub fn with_all_examples(self) -> Self {
        Self { examples: ExampleSelection::All, ..self }
    }

    /// Runs only checks of an untrusted plugin that are safe on a machine in use: examples of tools
    /// that are read-only and access nothing beyond the machine. Other tools are not called, even
    /// with invalid arguments.
    #[must_use]
    pub fn with_harmless_examples(self) -> Self {
        Self { examples: ExampleSelection::Harmless, ..self }
    }

    /// Runs one check on its own host. Panics with the violation.
    #[track_caller]
    pub fn verify(&self, check: ConformanceCheck) {
        if let Err(what) = self.run_check(check) {
            panic!("the plugin does not conform: {what}");
        }
    }

    /// Runs one check on its own host.
    ///
    /// # Errors
    /// The violation.
    pub fn run_check(&self, check: ConformanceCheck) -> ConformanceVerdict {
        let host = self.new_host();
        check(self, &host)?;
        match host
            .log()
            .into_iter()
            .find(|line| line.level == 1 && line.text.starts_with("panicked"))
        {
            Some(line) => Err(format!("it panics: {}", line.text)),
            None => Ok(()),
        }
    }

    /// Returns the plugin's error if it creates no instance because a setting is missing.
    pub fn missing_setting(&self) -> Option<Error> {
        let error = self.new_host().create(None).err()?;
        (error.kind == ErrorKind::Configuration).then_some(error)
    }

    /// Creates a prepared host with a session that has a model and its own folder.
    fn new_host(&self) -> FakeHost {
        let mut host = FakeHost::new(self.subject.clone());
        if let Some(settings) = &self.settings {
            host = host.with_config(settings.clone());
        }
        let folder = host.shared_state().services.temporary_folder().unwrap_or_default();
        let context = ContextFacts {
            model: "scripted/test".to_owned(),
            context_limit: 8192,
            prompt_tokens: 100,
            output_tokens: 10,
            turns: 1,
            gc: None,
            ..ContextFacts::default()
        };
        let facts = SessionFacts {
            session_id: "conformance".to_owned(),
            agent_id: "main".to_owned(),
            agent_type: "main".to_owned(),
            context: Some(context),
            working_directory: folder.to_string_lossy().into_owned(),
            ..SessionFacts::default()
        };
        (self.prepare)(host.with_session(facts))
    }
}

impl ExampleSelection {
    /// Returns true if a tool's examples may run.
    fn can_run(self, spec: &ToolSpec) -> bool {
        match self {
            Self::OfReaders => spec.annotations.read_only,
            Self::All => true,
            Self::Harmless => spec.annotations.read_only && !spec.annotations.open_world,
        }
    }

    /// Returns true if a tool may be called with arguments that it must refuse.
    fn can_try(self, spec: &ToolSpec) -> bool {
        self != Self::Harmless || self.can_run(spec)
    }
}

/// Lists the checks for plugins of these kinds, each with its group and its name.
pub fn list_checks(kinds: &[PluginKind]) -> Vec<(&'static str, &'static str, ConformanceCheck)> {
    let mut checks = crate::__conformance!(list plugin);
    for kind in kinds {
        match kind {
            PluginKind::Tool => checks.extend(crate::__conformance!(list tool)),
            PluginKind::Gc => checks.extend(crate::__conformance!(list gc)),
            PluginKind::Provider => checks.extend(crate::__conformance!(list provider)),
            PluginKind::Environment => checks.extend(crate::__conformance!(list environment)),
            PluginKind::Hook => checks.extend(crate::__conformance!(list hook)),
            // Unknown kinds have no suite.
            PluginKind::Unknown => {}
        }
    }
    checks
}

/// Fails with a text unless a condition holds.
fn ensure(holds: bool, what: impl FnOnce() -> String) -> ConformanceVerdict {
    if holds { Ok(()) } else { Err(what()) }
}

/// Prefixes an error with the action that failed.
fn prefix_error(what: impl std::fmt::Display) -> impl FnOnce(Error) -> String {
    move |error| format!("{what}: {} ({})", error.message, error.kind.name())
}

/// Accepts an error as an answer, unless it means that the plugin failed to answer.
fn check_error_text(what: &str, error: &Error) -> ConformanceVerdict {
    let bad = [
        ErrorKind::PluginPanicked,
        ErrorKind::PluginMisbehaved,
        ErrorKind::HostBug,
        ErrorKind::Timeout,
        ErrorKind::Other,
    ];
    ensure(!bad.contains(&error.kind), || prefix_error(what)(error.clone()))?;
    ensure(!error.message.trim().is_empty(), || format!("{what}: the error has no text"))
}

/// Waits until the plugin holds nothing of the host, because its own threads may need a moment.
fn check_nothing_left(host: &FakeHost) -> ConformanceVerdict {
    let patience = host.shared_state().patience();
    let deadline = Instant::now() + patience;
    loop {
        host.settle().map_err(prefix_error("after the end"))?;
        let live = host.live();
        if live == LiveObjectCounts::default() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("{patience:?} after the end it still holds {live:?}"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Generates the conformance tests of a plugin: `conformance!(my_plugin: tool)`.
///
/// Takes the crate and its kinds (`tool`, `gc`, `provider`, `environment`, `hook`), which must
/// match its manifest. After a semicolon, a closure may change the
/// [`ConformanceSuite`](crate::conformance::ConformanceSuite):
///
/// ```text
/// conformance!(tool_shelf: tool; |suite| suite.with_all_examples());
/// ```
#[macro_export]
macro_rules! conformance {
    ($($plugin:ident)::+ : $($kind:ident),+ $(,)?) => {
        $crate::conformance!($($plugin)::+ : $($kind),+; |suite| suite);
    };
    ($($plugin:ident)::+ : $($kind:ident),+; $prepare:expr) => {
        /// The checks for every plugin.
        mod conformance {
            #[allow(unused_imports)]
            use super::*;

            fn suite() -> $crate::conformance::ConformanceSuite {
                let kinds = [$($crate::__conformance!(@kind $kind)),+];
                let suite = $crate::conformance::ConformanceSuite::for_plugin($($plugin)::+::__jaato::MODULE, &kinds);
                let prepare: fn($crate::conformance::ConformanceSuite) -> $crate::conformance::ConformanceSuite = $prepare;
                prepare(suite)
            }

            $crate::__conformance!(tests plugin);
            $($crate::__conformance!(tests $kind);)+
        }
    };
}

/// The checks of each kind, as tests or as a list.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance {
    (@kind tool) => { $crate::PluginKind::Tool };
    (@kind gc) => { $crate::PluginKind::Gc };
    (@kind provider) => { $crate::PluginKind::Provider };
    (@kind environment) => { $crate::PluginKind::Environment };
    (@kind hook) => { $crate::PluginKind::Hook };
    (@tests $module:ident: $($check:ident),+ $(,)?) => {
        mod $module {
            $(#[test]
            fn $check() {
                super::suite().verify($crate::conformance::$module::$check);
            })+
        }
    };
    (@list $module:ident: $($check:ident),+ $(,)?) => {
        vec![$((
            stringify!($module),
            stringify!($check),
            $crate::conformance::$module::$check as $crate::conformance::ConformanceCheck,
        )),+]
    };
    ($as:ident plugin) => { $crate::__conformance! { @$as plugin:
        manifest_kinds_match,
        the_description_agrees_with_the_manifest,
        the_description_is_the_same_each_time,
        commands_and_configuration_have_schemas,
        assets_are_pinned,
        saved_state_is_restored,
        bad_saved_state_is_refused_or_forgotten,
        unknown_operations_are_refused,
        bad_command_frames_are_refused,
        no_objects_are_left,
    } };
    ($as:ident tool) => { $crate::__conformance! { @$as tool:
        names_are_valid_unique_and_sorted,
        descriptions_are_present_and_short,
        schemas_are_closed_objects,
        examples_fit_their_schema,
        examples_work,
        read_only_examples_change_nothing,
        unknown_tools_are_refused,
        bad_frames_are_refused,
        wrong_arguments_are_refused,
        a_cancelled_call_ends,
        instances_are_independent,
    } };
    ($as:ident provider) => { $crate::__conformance! { @$as provider:
        provider_name_is_valid,
        models_are_listed,
        a_simple_request_is_answered,
        the_same_request_can_be_sent_again,
        a_history_of_every_kind_is_answered_or_refused,
        a_history_larger_than_a_frame_is_answered_or_refused,
        listed_options_are_accepted,
        a_cancelled_completion_ends,
        bad_frames_are_refused,
    } };
    ($as:ident environment) => { $crate::__conformance! { @$as environment:
        environment_name_is_valid,
        environment_is_set_up_once,
        written_files_are_read_back,
        files_outside_are_refused,
        texts_are_read_in_ranges,
        edits_are_atomic,
        files_are_copied_and_moved,
        folder_trees_are_walked,
        files_are_found_with_their_facts,
        texts_are_searched,
        denied_files_are_unreachable,
        searches_skip_denied_files,
        protected_files_are_not_changed,
        file_changed_after_its_check_is_refused,
        files_are_streamed_in_pieces,
        commands_run,
        host_commands_are_prepared,
        a_deadline_ends_a_command,
        environment_deadline_is_kept,
        running_command_can_be_ended,
        programs_outlive_their_call,
        terminals_have_size_and_input,
        terminals_signal_their_foreground,
        a_terminal_is_ended,
        processes_left_by_a_terminal_are_ended,
        bad_requests_of_terminals_are_refused,
        teardown_ends_running_programs,
        unknown_environment_operations_are_refused,
        bad_frames_are_refused,
        no_objects_are_left,
    } };
    ($as:ident hook) => { $crate::__conformance! { @$as hook:
        hooks_are_listed,
        each_hook_is_answered_in_time,
        unknown_hooks_are_refused,
        bad_frames_are_refused,
    } };
    ($as:ident gc) => { $crate::__conformance! { @$as gc:
        a_full_history_shrinks,
        empty_history_is_unchanged,
        a_history_larger_than_a_frame_shrinks,
        bad_frames_are_refused,
    } };
}

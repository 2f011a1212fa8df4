//! Reports of the engine to the host: log lines and misdeeds of plugins.

use std::fmt;
use std::time::Duration;

use jaato_types::PluginName;

use crate::executor::{JOB_OVERDUE_MAX, JOBS_LOST_MAX};

/// Receives the reports, on threads of plugins and of the watchdog. Must not block for long.
pub trait EngineObserver: Send + Sync + 'static {
    /// Takes a log line of a plugin, including panic messages. Levels: 1 error, 2 warn, 3 info, 4
    /// debug.
    fn log(&self, plugin: &PluginName, level: u8, text: &str);

    /// Takes a report that a plugin blocked or flooded the executor.
    fn report_misbehavior(&self, report: &MisbehaviorReport);

    /// Receives an error in the engine itself.
    fn log_trouble(&self, text: &str);
}

/// After this time a blocked thread concerns the user, because the call does not answer.
pub const LONG_BLOCK: Duration = Duration::from_secs(1);

/// A plugin's misdeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MisbehaviorReport {
    /// The plugin.
    pub plugin: PluginName,
    /// The misdeed.
    pub misdeed: Misbehavior,
    /// The number of misdeeds in this process.
    pub strikes: u32,
    /// Whether the plugin is disabled for it.
    pub disabled: bool,
}

/// The kinds of misdeeds on the executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misbehavior {
    /// A poll or a drop blocked its thread, which was written off and replaced.
    Blocked {
        /// The number in the thread's name.
        thread: usize,
        /// How long the thread was able to run during the poll.
        able_to_run: Duration,
    },
    /// The same poll or drop still blocks its thread after [`LONG_BLOCK`]. It counts once, so this
    /// is no further strike.
    StillBlocked {
        /// How long the thread was able to run during the poll.
        able_to_run: Duration,
    },
    /// Its futures keep waking themselves, so they were not polled for the rest of the second.
    PollsWithoutEnd,
    /// Blocking work continued long after its call was cancelled, and was abandoned.
    IgnoresCancel {
        /// The total number of such jobs that still run.
        lost: usize,
    },
}

impl fmt::Display for MisbehaviorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plugin = &self.plugin;
        match self.misdeed {
            Misbehavior::Blocked { able_to_run, .. } => write!(
                f,
                "the plugin `{plugin}` blocked a thread for {} ms; its blocking work belongs on the pool",
                able_to_run.as_millis()
            )?,
            Misbehavior::StillBlocked { able_to_run } => write!(
                f,
                "the plugin `{plugin}` still blocks a thread after {} s",
                able_to_run.as_secs()
            )?,
            Misbehavior::PollsWithoutEnd => write!(
                f,
                "the plugin `{plugin}` polls in a busy loop; it was throttled for the rest of the second"
            )?,
            Misbehavior::IgnoresCancel { lost } => write!(
                f,
                "blocking work of the plugin `{plugin}` continues {} s after its call was cancelled; {lost} of at most \
                 {JOBS_LOST_MAX} threads are lost to it",
                JOB_OVERDUE_MAX.as_secs()
            )?,
        }
        if self.disabled { f.write_str("; it is disabled") } else { Ok(()) }
    }
}

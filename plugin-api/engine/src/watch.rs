//! What the loader tells the host of its plugins: their log lines and their misdeeds.

use std::fmt;
use std::time::Duration;

use jaato_types::PluginName;

use crate::executor::{JOB_OVERDUE_MAX, JOBS_LOST_MAX};

/// Told by the loader; called from threads of plugins and from the watchdog. Must not block for
/// long.
pub trait Watch: Send + Sync + 'static {
    /// Takes a line that a plugin logs; panic messages come this way too. Levels: 1 error, 2 warn,
    /// 3 info, 4 debug.
    fn log(&self, plugin: &PluginName, level: u8, text: &str);

    /// Takes a report: a plugin blocked or flooded the executor.
    fn misbehaved(&self, report: &Report);

    /// Takes what went wrong in the loader itself.
    fn trouble(&self, text: &str);
}

/// What a plugin did wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The plugin.
    pub plugin: PluginName,
    /// What it did.
    pub misdeed: Misdeed,
    /// How often it did wrong in this process.
    pub strikes: u32,
    /// Whether it is disabled for that.
    pub disabled: bool,
}

/// What can be done wrong on the executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misdeed {
    /// A poll or a drop blocked its thread, which was written off and replaced.
    Blocked {
        /// The number in the thread's name.
        thread: usize,
        /// How long the thread was able to run in it.
        able_to_run: Duration,
    },
    /// Its futures wake themselves without end; for the rest of the second they were not polled.
    PollsWithoutEnd,
    /// Blocking work went on long after its call had been cancelled, and was given up.
    IgnoresCancel {
        /// How much of it goes on at this moment, in all.
        lost: usize,
    },
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plugin = &self.plugin;
        match self.misdeed {
            Misdeed::Blocked { able_to_run, .. } => write!(
                f,
                "the plugin `{plugin}` blocked a thread for {} ms; its blocking work belongs on the pool",
                able_to_run.as_millis()
            )?,
            Misdeed::PollsWithoutEnd => write!(
                f,
                "the plugin `{plugin}` wakes itself without end; it was held back for the rest of the second"
            )?,
            Misdeed::IgnoresCancel { lost } => write!(
                f,
                "blocking work of the plugin `{plugin}` goes on {} s after its call was cancelled; {lost} of at most \
                 {JOBS_LOST_MAX} threads are lost to it",
                JOB_OVERDUE_MAX.as_secs()
            )?,
        }
        if self.disabled { f.write_str("; it is disabled") } else { Ok(()) }
    }
}

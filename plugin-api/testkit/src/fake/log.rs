//! The fake host's log.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use jaato_plugin_api::abi::LogAbi;
use jaato_plugin_api::abi::abi_stable::std_types::RStr;
use jaato_plugin_engine::{EngineObserver, MisbehaviorReport};
use jaato_types::PluginName;
use parking_lot::Mutex;

/// The maximum number of lines to keep, so that a plugin that logs in a loop cannot exhaust the
/// memory.
const LINES_MAX: usize = 10_000;

/// One line in the host's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// 1 error, 2 warn, 3 info, 4 debug.
    pub level: u8,
    /// The text.
    pub text: String,
}

#[derive(Default)]
pub(crate) struct FakeLog(Mutex<Vec<LogLine>>);

impl FakeLog {
    pub(crate) fn write(&self, level: u8, text: &str) {
        let mut lines = self.0.lock();
        if lines.len() < LINES_MAX {
            lines.push(LogLine { level, text: text.to_owned() });
        }
    }

    pub(crate) fn lines(&self) -> Vec<LogLine> {
        self.0.lock().clone()
    }
}

impl EngineObserver for FakeLog {
    fn log(&self, _plugin: &PluginName, level: u8, text: &str) {
        self.write(level, text);
    }

    fn report_misbehavior(&self, _report: &MisbehaviorReport) {}

    fn log_trouble(&self, text: &str) {
        self.write(1, text);
    }
}

thread_local! {
    static BOOK: RefCell<Weak<FakeLog>> = const { RefCell::new(Weak::new()) };
}

/// Sends panics on this thread to the log of the thread's host.
pub(crate) fn enter_log(book: &Arc<FakeLog>) {
    BOOK.with(|slot| slot.replace(Arc::downgrade(book)));
}

/// The log that a plugin's panic hook receives.
///
/// A plugin that is linked into its test shares its panic hook with the test, and uses the first
/// log for the life of the process. This log therefore belongs to no host. It prints each line on
/// the terminal, so that failed assertions of the test are visible, and adds it to the host of the
/// current thread.
pub(crate) struct ProcessLog;

impl LogAbi for ProcessLog {
    fn log(&self, level: u8, text: RStr<'_>) {
        eprintln!("{text}");
        let book = BOOK.try_with(|slot| slot.borrow().upgrade()).ok().flatten();
        if let Some(book) = book {
            book.write(level, text.as_str());
        }
    }
}

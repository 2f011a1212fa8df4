//! Records which plugin's code a thread runs, for reports when the process dies.
//!
//! Everything is safe to read in a signal handler: no allocation, and no thread-local destructors.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use jaato_types::PluginName;

/// The maximum number of names in the table. Further plugins are reported without a name.
const NAMES_MAX: usize = 256;

static NAMES: [OnceLock<CString>; NAMES_MAX] = [const { OnceLock::new() }; NAMES_MAX];

/// The plugin whose code ran last on any thread. Also used for a plugin's own threads.
static LAST: AtomicUsize = AtomicUsize::new(NOBODY);

const NOBODY: usize = usize::MAX;

thread_local! {
    static RUNNING: Cell<usize> = const { Cell::new(NOBODY) };
}

/// The index of a plugin's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PluginNameIndex(usize);

impl PluginNameIndex {
    /// Stores a name for the rest of the process. The same name has the same index.
    pub(crate) fn for_plugin(plugin: &PluginName) -> Self {
        let Ok(name) = CString::new(plugin.as_str()) else { return Self(NOBODY) };
        let is_taken = |kept: &OnceLock<CString>| *kept.get_or_init(|| name.clone()) == name;
        Self(NAMES.iter().position(is_taken).unwrap_or(NOBODY))
    }
}

/// Records whose code the calling thread runs.
pub(crate) fn enter_plugin(place: PluginNameIndex) {
    LAST.store(place.0, Relaxed);
    RUNNING.set(place.0);
}

/// Records that the calling thread runs no plugin's code.
pub(crate) fn leave_plugin() {
    // The variable has no destructor, so this works on a thread that is ending.
    RUNNING.set(NOBODY);
}

/// The plugin whose code ended the process, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashSuspect {
    /// The thread was running this plugin's code.
    Running(&'static CStr),
    /// The thread is not the host's. This plugin was the last to be called.
    Perhaps(&'static CStr),
    /// No plugin has run in this process.
    Nobody,
}

/// Returns the plugin whose code the calling thread runs.
pub fn running_plugin() -> CrashSuspect {
    let name = |place: usize| NAMES.get(place)?.get().map(CString::as_c_str);
    match (name(RUNNING.get()), name(LAST.load(Relaxed))) {
        (Some(name), _) => CrashSuspect::Running(name),
        (None, Some(name)) => CrashSuspect::Perhaps(name),
        (None, None) => CrashSuspect::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_plugin_is_known_per_thread_and_otherwise_the_last_one() {
        let place = PluginNameIndex::for_plugin(&PluginName::from("tool-running"));
        assert_eq!(place, PluginNameIndex::for_plugin(&PluginName::from("tool-running")));
        assert_ne!(place, PluginNameIndex::for_plugin(&PluginName::from("tool-other")));
        enter_plugin(place);
        assert_eq!(running_plugin(), CrashSuspect::Running(c"tool-running"));
        leave_plugin();
        let told = std::thread::spawn(running_plugin).join().unwrap();
        assert!(matches!(told, CrashSuspect::Perhaps(_)), "{told:?}");
    }
}

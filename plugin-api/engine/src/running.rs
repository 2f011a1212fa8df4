//! Which plugin's code a thread runs: for whatever ends the process in the middle of it.
//!
//! All of it can be read in a handler of a signal: no allocation, no destructor of a
//! thread's.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use jaato_types::PluginName;

/// Names that are kept; what runs under a further one is told without a name.
const NAMES_MAX: usize = 256;

static NAMES: [OnceLock<CString>; NAMES_MAX] = [const { OnceLock::new() }; NAMES_MAX];

/// The plugin whose code ran last, on any thread; a thread of the plugin's own is told by it.
static LAST: AtomicUsize = AtomicUsize::new(NOBODY);

const NOBODY: usize = usize::MAX;

thread_local! {
    static RUNNING: Cell<usize> = const { Cell::new(NOBODY) };
}

/// A plugin's name by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamePlace(usize);

impl NamePlace {
    /// Keeps a name for the rest of the process; the same name has the same place.
    pub(crate) fn of(plugin: &PluginName) -> Self {
        let Ok(name) = CString::new(plugin.as_str()) else { return Self(NOBODY) };
        let is_taken = |kept: &OnceLock<CString>| *kept.get_or_init(|| name.clone()) == name;
        Self(NAMES.iter().position(is_taken).unwrap_or(NOBODY))
    }
}

/// Notes whose code the calling thread runs.
pub(crate) fn begin(place: NamePlace) {
    LAST.store(place.0, Relaxed);
    RUNNING.set(place.0);
}

/// Notes that the calling thread runs no plugin's code.
pub(crate) fn end() {
    // A thread that goes down has none any more, and no destructor that would say so.
    RUNNING.set(NOBODY);
}

/// Whose code ended the process, as far as it can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Culprit {
    /// This plugin's, which the thread was running.
    Running(&'static CStr),
    /// A thread of somebody's own; this plugin was the last to be called.
    Perhaps(&'static CStr),
    /// No plugin has run inside this process.
    Nobody,
}

/// Tells whose code the calling thread runs.
pub fn culprit() -> Culprit {
    let name = |place: usize| NAMES.get(place)?.get().map(CString::as_c_str);
    match (name(RUNNING.get()), name(LAST.load(Relaxed))) {
        (Some(name), _) => Culprit::Running(name),
        (None, Some(name)) => Culprit::Perhaps(name),
        (None, None) => Culprit::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_tells_whose_code_it_runs_and_another_who_ran_last() {
        let place = NamePlace::of(&PluginName::from("tool-running"));
        assert_eq!(place, NamePlace::of(&PluginName::from("tool-running")));
        assert_ne!(place, NamePlace::of(&PluginName::from("tool-other")));
        begin(place);
        assert_eq!(culprit(), Culprit::Running(c"tool-running"));
        end();
        let told = std::thread::spawn(culprit).join().unwrap();
        assert!(matches!(told, Culprit::Perhaps(_)), "{told:?}");
    }
}

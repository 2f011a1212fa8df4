//! What the binary must know of the system before `main`, what it does about signals, and keeping
//! its memory from other processes of the same user.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, Signal, kill, raise, sigaction, signal,
};
use nix::unistd::Pid;

static OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Tells whether the process was started without a standard output (`>&-`).
///
/// Rust opens `/dev/null` in its place before `main`, so that an answer would vanish there as if it
/// had been written.
pub fn output_was_closed() -> bool {
    OUTPUT_WAS_CLOSED.load(Relaxed)
}

/// A file that may not grow (`ulimit -f`) is told as an error of its write, and does not end the
/// process in silence.
///
/// A handler and no `SIG_IGN`: the programs that commands start get the system's own way back.
pub fn outlive_full_files() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    // Without one the signal ends the process, as it does by default.
    // SAFETY: the handler touches nothing, so it may run anywhere.
    let _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::Handler(nothing)) };
}

/// Stops the process group, as Ctrl-Z does at a terminal, and returns when it goes on. Where nobody
/// could let it go on (the group is an orphan), it does not stop.
pub fn stop_group() {
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // The others first: a signal to the group is taken by any thread, and this one would go on.
    // SAFETY: to ignore a signal runs nothing.
    let Ok(found) = (unsafe { sigaction(Signal::SIGTSTP, &ignore) }) else { return };
    let _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
    // SAFETY: what stood there stands there again.
    let _ = unsafe { sigaction(Signal::SIGTSTP, &found) };
    // By this thread itself: it is stopped before it returns.
    let _ = raise(Signal::SIGTSTP);
}

/// Counts the bytes that can be read from standard input at once; none where nobody knows.
pub fn bytes_waiting() -> usize {
    let mut count: libc::c_int = 0;
    // SAFETY: the call writes one number to the place that it is given.
    let asked = unsafe { libc::ioctl(libc::STDIN_FILENO, libc::FIONREAD, &raw mut count) };
    if asked == 0 { usize::try_from(count).unwrap_or_default() } else { 0 }
}

extern "C" fn look_at_output() {
    // SAFETY: asking for the flags of a descriptor touches no memory, and one that is not open is
    // an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    OUTPUT_WAS_CLOSED.store(flags == -1, Relaxed);
}

// SAFETY: the section holds functions of this type, which the system's start-up code calls before
// `main`; this one uses nothing that Rust's own start-up prepares.
#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static LOOK_AT_OUTPUT: extern "C" fn() = look_at_output;

/// What this process does about some signals, as it was found.
pub struct Handlers(Vec<(Signal, SigAction)>);

impl Handlers {
    /// Remembers what is done about these signals at this moment.
    ///
    /// # Errors
    /// Where the system refuses that.
    pub fn remember(signals: &[Signal]) -> Result<Self, Errno> {
        let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
        let remember = |signal: &Signal| {
            // SAFETY: to ignore a signal runs nothing. There is no way to ask without setting.
            let found = unsafe { sigaction(*signal, &ignore) }?;
            // SAFETY: what stood there stands there again.
            unsafe { sigaction(*signal, &found) }?;
            Ok((*signal, found))
        };
        signals.iter().map(remember).collect::<Result<_, _>>().map(Self)
    }

    /// Has that done again, whatever has been made of it meanwhile, and children waited for that
    /// would be forgotten.
    pub fn restore(&self) {
        for (signal, found) in &self.0 {
            // SAFETY: it is a handler of this program, which is there as long as the program is,
            // or none.
            let _ = unsafe { sigaction(*signal, found) };
        }
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: the default action is no handler; what stood there stands there again unless it
        // was to ignore.
        unsafe {
            if let Ok(found) = sigaction(Signal::SIGCHLD, &default)
                && !matches!(found.handler(), SigHandler::SigIgn)
            {
                let _ = sigaction(Signal::SIGCHLD, &found);
            }
        }
    }
}

/// The variable that leaves the memory open, for debuggers, core files and measuring.
#[cfg(target_os = "linux")]
const OPEN: &str = "JAATO_DUMPABLE";

/// Keeps other processes of this user out of this one's memory and variables, and out of a core
/// file: a worker that runs a stranger's plugin, say. Root still reads them.
#[cfg(target_os = "linux")]
pub fn close_memory() {
    if std::env::var_os(OPEN).is_some_and(|value| value == "1") {
        return;
    }
    // Refused by no system that has it; where it were, all else goes on as before.
    let _ = nix::sys::prctl::set_dumpable(false);
}

/// Does nothing where the system has no such thing.
#[cfg(not(target_os = "linux"))]
pub fn close_memory() {}

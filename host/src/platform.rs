//! System-specific parts of the binary: checks before `main`, signal handlers, and protecting its
//! memory from other processes of the same user.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, Signal, kill, raise, sigaction, signal,
};
use nix::unistd::Pid;

static OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns true if the process was started without a standard output (`>&-`).
///
/// Rust opens `/dev/null` in its place before `main`, so an answer would vanish there as if it had
/// been written.
pub fn is_output_closed() -> bool {
    OUTPUT_WAS_CLOSED.load(Relaxed)
}

/// Makes a write to a file that may not grow (`ulimit -f`) fail with an error, instead of silently
/// ending the process.
///
/// Uses a handler instead of `SIG_IGN`, so that programs started by commands get the default
/// action.
pub fn ignore_file_size_signal() {
    extern "C" fn ignore_signal(_signal: libc::c_int) {}
    // Without one the signal ends the process, as it does by default.
    // SAFETY: the handler touches nothing, so it may run anywhere.
    let _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::Handler(ignore_signal)) };
}

/// Stops the process group, as Ctrl-Z does at a terminal, and returns when it continues. Does not
/// stop if nothing could continue it (the group is an orphan).
pub fn stop_process_group() {
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // The others first, because any thread may take a signal to the group, and this one would
    // continue.
    // SAFETY: ignoring a signal runs nothing.
    let Ok(found) = (unsafe { sigaction(Signal::SIGTSTP, &ignore) }) else { return };
    let _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
    // SAFETY: restores the handler that was there before.
    let _ = unsafe { sigaction(Signal::SIGTSTP, &found) };
    // This thread itself raises it, so it is stopped before it returns.
    let _ = raise(Signal::SIGTSTP);
}

/// Returns how many bytes can be read from standard input at once. Returns 0 if that is unknown.
pub fn pending_input_bytes() -> usize {
    let mut count: libc::c_int = 0;
    // SAFETY: the call writes one number to the given location.
    let asked = unsafe { libc::ioctl(libc::STDIN_FILENO, libc::FIONREAD, &raw mut count) };
    if asked == 0 { usize::try_from(count).unwrap_or_default() } else { 0 }
}

extern "C" fn check_output_open() {
    // SAFETY: reading the flags of a descriptor touches no memory, and returns an error for one
    // that is not open.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    OUTPUT_WAS_CLOSED.store(flags == -1, Relaxed);
}

// SAFETY: the section holds functions of this type, which the system's start-up code calls before
// `main`. This one uses nothing that Rust's own start-up prepares.
#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static LOOK_AT_OUTPUT: extern "C" fn() = check_output_open;

/// The handlers of some signals at one time.
pub struct SignalHandlers(Vec<(Signal, SigAction)>);

impl SignalHandlers {
    /// Records the current handlers of these signals.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn read_handlers(signals: &[Signal]) -> Result<Self, Errno> {
        let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
        let remember = |signal: &Signal| {
            // SAFETY: ignoring a signal runs nothing. Only setting a handler returns the old one.
            let found = unsafe { sigaction(*signal, &ignore) }?;
            // SAFETY: restores the handler that was there before.
            unsafe { sigaction(*signal, &found) }?;
            Ok((*signal, found))
        };
        signals.iter().map(remember).collect::<Result<_, _>>().map(Self)
    }

    /// Restores the handlers, even if other code changed them. Also stops ignoring `SIGCHLD`,
    /// because ended children would otherwise be lost.
    pub fn restore(&self) {
        for (signal, found) in &self.0 {
            // SAFETY: it is a handler of this program, which exists as long as the program, or
            // none.
            let _ = unsafe { sigaction(*signal, found) };
        }
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: the default action is not a handler. The previous handler is restored unless it
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

/// The variable that leaves the memory accessible, for debuggers, core files and measurements.
#[cfg(target_os = "linux")]
const OPEN: &str = "JAATO_DUMPABLE";

/// Protects this process's memory and variables from other processes of this user, for example a
/// worker that runs an untrusted plugin, and from core files. Root can still read them.
#[cfg(target_os = "linux")]
pub fn protect_memory() {
    if std::env::var_os(OPEN).is_some_and(|value| value == "1") {
        return;
    }
    // No system that has this refuses it. If one did, everything else would still work.
    let _ = nix::sys::prctl::set_dumpable(false);
}

/// Does nothing on systems without this protection.
#[cfg(not(target_os = "linux"))]
pub fn protect_memory() {}

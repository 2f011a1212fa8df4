//! Reports which plugin was running when it ends the process by a crash or a call to `exit`.
//!
//! For programs that are only hosts. It changes how the process ends in one way: a plugin that
//! calls `exit` ends it with [`EXIT_CODE`], never with a code that means success. After a crash the
//! process still ends with the same signal and the same core file.
//!
//! Invariant: code in a handler does not allocate or lock, and calls only what POSIX allows there.

use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, siginfo_t};

use jaato_plugin_engine::{CrashSuspect, running_plugin};

/// The exit code of a process that a plugin inside it ended: the code for a broken plugin.
pub const EXIT_CODE: c_int = 4;

const SIGNALS: [(c_int, &CStr); 5] = [
    (SIGSEGV, c"segmentation fault"),
    (SIGBUS, c"bus error"),
    (SIGILL, c"illegal instruction"),
    (SIGFPE, c"arithmetic error"),
    (SIGABRT, c"abort"),
];

/// The previous action for each of these signals.
static BEFORE: [OnceLock<libc::sigaction>; SIGNALS.len()] =
    [const { OnceLock::new() }; SIGNALS.len()];

static LOG: OnceLock<CString> = OnceLock::new();

/// The exit code, once all work is done.
static OUTCOME: AtomicI32 = AtomicI32::new(-1);

/// The thread that runs the host's own work, and never a plugin's.
static OWN_THREAD: OnceLock<libc::pthread_t> = OnceLock::new();

/// Makes the process report the plugin that ends it, on standard error and in the log, if there is
/// one. Takes effect once. Call it on the thread that runs the host's own work, because that thread
/// may end the process for its own reasons.
pub fn install_crash_reports(log: Option<&Path>) {
    let path = log.and_then(|path| CString::new(path.as_os_str().as_bytes()).ok());
    if let Some(path) = path {
        // The first log stays, because it belongs to the process.
        let _ = LOG.set(path);
    }
    for ((signal, _), before) in SIGNALS.iter().zip(&BEFORE) {
        if before.get().is_none() {
            replace_signal_handler(*signal, before);
        }
    }
    OWN_THREAD.get_or_init(|| {
        // SAFETY: the function lives as long as the process. If it cannot be registered, nothing is
        // said.
        let _ = unsafe { libc::atexit(handle_exit) };
        // SAFETY: it only returns the id of the current thread.
        unsafe { libc::pthread_self() }
    });
}

/// Records that all work is done, with this exit code. Plugins can no longer change the code while
/// the process shuts down.
pub fn mark_work_done(code: i32) {
    OUTCOME.store(code.max(0), SeqCst);
}

fn replace_signal_handler(signal: c_int, before: &OnceLock<libc::sigaction>) {
    // SAFETY: zeroes are a value of this plain structure, and mean no flag and no blocked signal.
    let (mut ours, mut theirs): (libc::sigaction, libc::sigaction) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    ours.sa_sigaction = handle_crash as *const () as usize;
    // After a stack overflow, the normal stack has no space for the handler.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: both point to whole structures, and the handler keeps to what may be done in one.
    let done = unsafe { libc::sigaction(signal, &ours, &mut theirs) };
    if done == 0 {
        // Only this function sets it, and only if it is not set.
        let _ = before.set(theirs);
    }
}

extern "C" fn handle_crash(signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
    let outcome = OUTCOME.load(SeqCst);
    let known = SIGNALS.iter().position(|(known, _)| *known == signal);
    let words = known.map_or(c"a signal", |at| SIGNALS[at].1);
    write_report(words, if outcome < 0 { b" in" } else { b" at the end of" });
    if outcome >= 0 {
        // SAFETY: it may be called in a handler, and does not return.
        unsafe { libc::_exit(outcome) };
    }
    // SAFETY: the structure was given by the system for this signal; what is installed is what
    // stood there before, to which the signal is given again. `info` is valid in a handler with
    // `SA_SIGINFO`.
    unsafe {
        if let Some(before) = known.and_then(|at| BEFORE[at].get()) {
            libc::sigaction(signal, before, std::ptr::null_mut());
        } else {
            libc::signal(signal, libc::SIG_DFL);
        }
        // A fault recurs when this handler returns, but a signal from another process does not.
        if (*info).si_code <= 0 {
            libc::raise(signal);
        }
    }
}

extern "C" fn handle_exit() {
    // SAFETY: it only returns the id of the current thread.
    let is_own = OWN_THREAD.get().is_some_and(|own| *own == unsafe { libc::pthread_self() });
    if OUTCOME.load(SeqCst) < 0 && !is_own {
        write_report(c"a call of `exit`", b" in");
        // SAFETY: it does not return. The exit handlers that it skips belong to the plugin.
        unsafe { libc::_exit(EXIT_CODE) };
    }
}

/// Writes the report, unless no plugin has run in this process.
fn write_report(what: &CStr, place: &[u8]) {
    let (who, name): (&[u8], &CStr) = match running_plugin() {
        CrashSuspect::Running(name) => (b" plugin `", name),
        CrashSuspect::Perhaps(name) => {
            (b" a thread that runs no call; called last was plugin `", name)
        }
        CrashSuspect::Nobody => return,
    };
    let end: &[u8] = b"`, which runs inside jaato, ends jaato";
    let parts = [what.to_bytes(), place, who, name.to_bytes(), end];
    let mut line = StackLine::default();
    line.push(b"error: ");
    parts.iter().for_each(|part| line.push(part));
    line.push(b"\nhint: in a worker it would end only its own calls: `[plugins] isolated = [\"");
    line.push(name.to_bytes());
    line.push(b"\"]`\n");
    line.write_to(libc::STDERR_FILENO);
    let Some(path) = LOG.get() else { return };
    let mut line = StackLine::default();
    line.push_time();
    line.push(b" error host: ");
    parts.iter().for_each(|part| line.push(part));
    line.push(b"\n");
    let flags =
        libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the path ends with a zero; `open` and `close` may be called in a handler.
    unsafe {
        let log = libc::open(path.as_ptr(), flags, 0o600);
        if log >= 0 {
            line.write_to(log);
            libc::close(log);
        }
    }
}

/// A line of bounded length on the stack.
struct StackLine {
    bytes: [u8; 512],
    length: usize,
}

impl Default for StackLine {
    fn default() -> Self {
        Self { bytes: [0; 512], length: 0 }
    }
}

impl StackLine {
    fn push(&mut self, text: &[u8]) {
        for byte in text {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
    }

    /// Writes seconds since 1970 with three decimals, like the lines of the log.
    fn push_time(&mut self) {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: it writes into the structure, and may be called in a handler.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut now) };
        self.push_number(now.tv_sec.unsigned_abs(), 1);
        self.push(b".");
        self.push_number(now.tv_nsec.unsigned_abs() / 1_000_000, 3);
    }

    fn push_number(&mut self, mut number: u64, digits_min: usize) {
        let (mut digits, mut count) = ([b'0'; 20], 0);
        while number > 0 || count < digits_min {
            digits[19 - count] = b'0' + (number % 10) as u8;
            number /= 10;
            count += 1;
        }
        self.push(&digits[20 - count..]);
    }

    fn write_to(&self, descriptor: c_int) {
        // SAFETY: `bytes` holds at least `length` bytes. A failed write cannot be reported.
        let _ = unsafe { libc::write(descriptor, self.bytes.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_line_formats_numbers_and_truncates_long_text() {
        let mut line = StackLine::default();
        line.push_number(1_784_766_836, 1);
        line.push(b".");
        line.push_number(7, 3);
        line.push_number(u64::MAX, 1);
        assert_eq!(&line.bytes[..line.length], b"1784766836.00718446744073709551615");
        line.push(&[b'x'; 600]);
        assert_eq!(line.length, 512);
    }
}

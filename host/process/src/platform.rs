//! Code that needs `unsafe` or differs between systems: descriptors, fork, signals, process names.
//!
//! Linux has everything. Other Unix systems have no subreaper, no signal descriptor and no `/proc`.
//! There, a command's process group is ended but not what left it, and the loops poll every
//! [`POLL_MS_WITHOUT_SIGNALS`] milliseconds.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod without_proc;

#[cfg(target_os = "linux")]
pub(crate) use linux::{
    find_children_named, find_marked_children, list_children, name_if_alive, parent_pid,
    with_descendants,
};
#[cfg(not(target_os = "linux"))]
pub(crate) use without_proc::{
    find_children_named, find_marked_children, list_children, name_if_alive, parent_pid,
    with_descendants,
};

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::PollTimeout;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use nix::unistd::{ForkResult, Pid, dup2_raw, fork, setsid};

use crate::command::ProcessLimits;
use crate::wire::{START_REQUEST_BYTES, SessionInput};

/// Descriptor of the guardian's and each keeper's socket. Because it is always taken, nothing that
/// std opens while it starts a command can take the place of the command's descriptor 3.
pub(crate) const SOCKET_DESCRIPTOR: RawFd = 3;

/// The limit on `RLIMIT_LOCKS` that marks a session's children. Linux no longer enforces it. It
/// survives `env -i`, `setsid`, `unshare` and the end of every parent, and raising it takes
/// privileges over the whole machine. Children of a session that runs inside another one have a
/// limit that is lower by one.
pub const SESSION_MARK: u64 = 0x6a61_6174;

/// How often the loops check their children on systems without a signal descriptor.
#[cfg(not(target_os = "linux"))]
const POLL_MS_WITHOUT_SIGNALS: u16 = 20;

/// Returns how long a poll with this timeout may wait.
#[cfg(target_os = "linux")]
pub(crate) fn limit_poll_timeout(timeout: PollTimeout) -> PollTimeout {
    timeout
}

/// Returns how long a poll may wait on a system where signals do not wake it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn limit_poll_timeout(timeout: PollTimeout) -> PollTimeout {
    let often = PollTimeout::from(POLL_MS_WITHOUT_SIGNALS);
    if timeout.is_none() || timeout > often { often } else { timeout }
}

/// Maximum number of descriptors in a request: the keeper's socket and four of the command.
const DESCRIPTORS_MAX: usize = 5;

/// Moves standard input to descriptor 3 and closes all other inherited descriptors. Descriptor 0
/// becomes `/dev/null`.
pub(crate) fn take_socket_from_stdin() -> io::Result<OwnedFd> {
    let inherited: Vec<RawFd> = std::fs::read_dir("/dev/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in inherited {
        // The descriptor that read the directory is in the list and already closed.
        let _ = nix::unistd::close(fd);
    }
    let number = fcntl(io::stdin(), FcntlArg::F_DUPFD_CLOEXEC(SOCKET_DESCRIPTOR))?;
    // SAFETY: the number was made by the call above, so nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    if number != SOCKET_DESCRIPTOR {
        return Err(io::Error::other("descriptor 3 is taken"));
    }
    nix::unistd::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(socket)
}

/// Reads one request with its descriptors. Returns `None` at the end of the stream.
pub(crate) fn receive_start_request(
    socket: &OwnedFd,
) -> io::Result<Option<([u8; START_REQUEST_BYTES], Vec<OwnedFd>)>> {
    let mut bytes = [0; START_REQUEST_BYTES];
    let mut space = nix::cmsg_space!([RawFd; DESCRIPTORS_MAX]);
    let mut descriptors = Vec::new();
    let length = {
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let message =
            recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut space), receive_flags())?;
        for part in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(numbers) = part {
                for number in numbers {
                    // SAFETY: the kernel has just made this descriptor for this process.
                    descriptors.push(unsafe { OwnedFd::from_raw_fd(number) });
                }
            }
        }
        message.bytes
    };
    match length {
        0 => Ok(None),
        START_REQUEST_BYTES => Ok(Some((bytes, descriptors))),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

/// Sends one request with its descriptors. Fails at once if the socket is full.
pub(crate) fn send_start_request(
    socket: &impl AsRawFd,
    bytes: [u8; START_REQUEST_BYTES],
    descriptors: &[RawFd],
) -> io::Result<()> {
    let control = [ControlMessage::ScmRights(descriptors)];
    let sent =
        sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&bytes)], &control, send_flags(), None)?;
    if sent == START_REQUEST_BYTES {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::WriteZero))
    }
}

#[cfg(target_os = "linux")]
fn receive_flags() -> MsgFlags {
    MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT
}

#[cfg(not(target_os = "linux"))]
fn receive_flags() -> MsgFlags {
    MsgFlags::MSG_DONTWAIT
}

#[cfg(target_os = "linux")]
fn send_flags() -> MsgFlags {
    MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL
}

#[cfg(not(target_os = "linux"))]
fn send_flags() -> MsgFlags {
    MsgFlags::MSG_DONTWAIT
}

/// The side of a fork.
pub(crate) enum ForkSide {
    Parent(Pid),
    Child,
}

/// Forks the guardian.
pub(crate) fn fork_guardian() -> Result<ForkSide, Errno> {
    // SAFETY: the guardian has one thread (checked when it starts), so the child may do anything.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(ForkSide::Parent(child)),
        ForkResult::Child => Ok(ForkSide::Child),
    }
}

/// Resumes a command's keeper if it was stopped. A command that has ended remains its keeper's
/// child until the keeper has reaped it.
pub(crate) fn continue_parent(command: u32) {
    let keeper = parent_pid(command as i32).filter(|pid| is_keeper(*pid));
    if let Some(keeper) = keeper {
        // If it is gone, the end of its socket shows that.
        let _ = nix::sys::signal::kill(Pid::from_raw(keeper), Signal::SIGCONT);
    }
}

/// Resumes every keeper of a guardian, because a command may have stopped its own keeper before
/// that reported its start.
pub(crate) fn continue_keepers(guardian: u32) {
    let below = with_descendants(vec![guardian as i32]);
    for keeper in below.into_iter().filter(|pid| is_keeper(*pid)) {
        // If it is gone, the end of its socket shows that.
        let _ = nix::sys::signal::kill(Pid::from_raw(keeper), Signal::SIGCONT);
    }
}

fn is_keeper(pid: i32) -> bool {
    name_if_alive(pid).is_some_and(|name| crate::keeper::KEEPER_NAME.to_str() == Ok(name.as_str()))
}

/// Gives the command its own session, terminal, default signals, limits and descriptor 3, between
/// its fork and its exec.
pub(crate) fn prepare_child(
    command: &mut process::Command,
    limits: ProcessLimits,
    input: SessionInput,
    descriptor3: Option<OwnedFd>,
) {
    let prepare = move || {
        setsid()?;
        if input == SessionInput::Terminal {
            take_terminal()?;
        }
        default_signals()?;
        set_session_mark()?;
        lower_limit(Resource::RLIMIT_NOFILE, limits.open_files)?;
        lower_limit(Resource::RLIMIT_CPU, limits.cpu_seconds)?;
        if let Some(descriptor) = &descriptor3 {
            // SAFETY: this descriptor is the keeper's socket, which exec closes in the child
            // anyway.
            let third = unsafe { dup2_raw(descriptor, SOCKET_DESCRIPTOR) }?;
            std::mem::forget(third);
        }
        lower_limit(Resource::RLIMIT_AS, limits.memory_bytes)?;
        Ok(())
    };
    // SAFETY: only system calls that are safe between fork and exec; nothing is allocated.
    unsafe { command.pre_exec(prepare) };
}

/// Makes standard input the controlling terminal of this session. Fails with `ENOTTY` if it cannot
/// be, for example because another session has it. No failure to start a program has that error.
fn take_terminal() -> Result<(), Errno> {
    // SAFETY: the call takes a number, and touches no memory of this process.
    let done = unsafe { nix::libc::ioctl(0, nix::libc::TIOCSCTTY as _, 0) };
    if done == 0 { Ok(()) } else { Err(Errno::ENOTTY) }
}

/// Unblocks all signals and resets ignored ones. The guardian blocks all signals, and a host
/// started in the background ignores some, which a shell could not even trap.
fn default_signals() -> Result<(), Errno> {
    for number in Signal::iterator().filter(|s| !matches!(s, Signal::SIGKILL | Signal::SIGSTOP)) {
        // SAFETY: the default action is not a handler, so it runs no code here.
        unsafe { signal(number, SigHandler::SigDfl) }?;
    }
    SigSet::empty().thread_set_mask()
}

/// Marks the child and all its descendants, see [`SESSION_MARK`].
#[cfg(target_os = "linux")]
fn set_session_mark() -> Result<(), Errno> {
    let (_, hard) = getrlimit(Resource::RLIMIT_LOCKS)?;
    // A session inside a session: its children must differ from itself.
    let value = if hard > SESSION_MARK { SESSION_MARK } else { hard.saturating_sub(1) };
    setrlimit(Resource::RLIMIT_LOCKS, value, value)
}

#[cfg(not(target_os = "linux"))]
fn set_session_mark() -> Result<(), Errno> {
    Ok(())
}

/// Resets SIGCHLD, so that children can be waited for. If a parent made this process ignore it, the
/// system forgets children before anyone asks for their status.
pub(crate) fn default_child_signal() -> io::Result<()> {
    // SAFETY: the default action is not a handler, so it runs no code here.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
    Ok(())
}

/// Resets the signals that terminals and users send. A program inherits ignored signals, and a
/// shell without job control makes programs started with `&` ignore Ctrl-C. Programs in a session
/// must still receive these signals.
pub(crate) fn default_signals_of_terminals() -> io::Result<()> {
    for number in [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
        Signal::SIGTSTP,
        Signal::SIGTTIN,
        Signal::SIGTTOU,
    ] {
        // SAFETY: the default action is not a handler, so it runs no code here.
        unsafe { signal(number, SigHandler::SigDfl) }?;
    }
    Ok(())
}

/// Lowers a limit. Never raises it, because that needs privileges or would undo the host's own
/// limit.
fn lower_limit(resource: Resource, wanted: Option<u64>) -> Result<(), Errno> {
    let Some(wanted) = wanted else { return Ok(()) };
    let (_, hard) = getrlimit(resource)?;
    let value = wanted.min(hard);
    setrlimit(resource, value, value)
}

/// Signals when a child changes its state.
pub(crate) struct ChildSignals {
    #[cfg(target_os = "linux")]
    descriptor: nix::sys::signalfd::SignalFd,
}

#[cfg(target_os = "linux")]
impl ChildSignals {
    /// Begins to listen. Signals must be blocked.
    pub(crate) fn new() -> io::Result<Self> {
        use nix::sys::signalfd::{SfdFlags, SignalFd};
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { descriptor: SignalFd::with_flags(&mask, flags)? })
    }

    /// Returns the descriptor to poll, if there is one.
    pub(crate) fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        Some(std::os::fd::AsFd::as_fd(&self.descriptor))
    }

    /// Discards pending signals, before the children are checked.
    pub(crate) fn clear(&self) {
        while let Ok(Some(_)) = self.descriptor.read_signal() {}
    }
}

#[cfg(not(target_os = "linux"))]
impl ChildSignals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    pub(crate) fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    pub(crate) fn clear(&self) {}
}

/// Blocks every signal that can be blocked, so that signals to a terminal's or a user's processes
/// do not end the process that cleans up after them.
pub(crate) fn block_signals() -> io::Result<()> {
    Ok(SigSet::all().thread_block()?)
}

/// Makes orphaned descendants children of this process.
#[cfg(target_os = "linux")]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Sets the name that `ps` and `top` show. A failure has no other effect.
#[cfg(target_os = "linux")]
pub(crate) fn name_process(name: &std::ffi::CStr) {
    let _ = nix::sys::prctl::set_name(name);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn name_process(_name: &std::ffi::CStr) {}

/// Returns true if this process has only the calling thread.
pub(crate) fn is_single_threaded() -> bool {
    // Without `/proc` this is unknown, so the documentation asks callers to ensure it.
    std::fs::read_dir("/proc/self/task").map_or(true, |tasks| tasks.count() == 1)
}

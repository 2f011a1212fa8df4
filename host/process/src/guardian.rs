//! The guardian: forks a keeper for each child, and outlives the host until it has ended everything
//! that the host started.
//!
//! It has one thread and no runtime, only a loop over a socket and a signal descriptor. It never
//! reads the commands, which go from the host to the keeper.
//!
//! Invariants: its only children are keepers, so anything else that the kernel gives it is an
//! orphan whose keeper died, and it ends the orphan at once. It exits only when it has no child
//! left. Since it is a subreaper, it then has no descendant either.

use std::collections::HashSet;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::Signal;
use nix::sys::socket::{SockType, getsockopt, sockopt};
use nix::unistd::{Pid, dup2};

use crate::child::Exit;
use crate::connection::GuardianCommand;
use crate::descendants::{read_until_stable, signal_all};
use crate::keeper::{self, KeeperStart, Stdio};
use crate::platform::{self, ChildSignals, ForkSide, list_children, with_descendants};
use crate::waiting::{SignalRounds, reap_children, wait_for};
use crate::wire::{KeeperEvent, START_REQUEST_BYTES, StartRefusal, StartRequest};

/// How long keepers may take to end their processes before the guardian does it for them, because a
/// keeper may have been stopped by its command.
const KEEPERS_ALONE: Duration = Duration::from_millis(500);

/// Exit code if it was not started by a supervisor.
const NOT_A_GUARDIAN: u8 = 2;

/// Exit code if the system refuses what the guardian needs.
const BROKEN: u8 = 70;

/// Runs the guardian. The binary's hidden subcommand calls it before it starts any thread.
///
/// The supervisor passes its socket as standard input. It is moved to descriptor 3.
pub fn guardian_main() -> ExitCode {
    if getsockopt(&io::stdin(), sockopt::SockType) != Ok(SockType::Stream) {
        eprintln!("`guardian` is started by jaato itself, to watch the processes that it starts");
        return ExitCode::from(NOT_A_GUARDIAN);
    }
    if !platform::is_single_threaded() {
        eprintln!("the guardian must be started before any thread");
        return ExitCode::from(BROKEN);
    }
    // The host sees the end of the socket. Standard error leads nowhere.
    match GuardianProcess::start().and_then(GuardianProcess::serve_requests) {
        Ok(GuardianLoopEnd::HostGone(guardian)) => {
            guardian.end_all();
            ExitCode::SUCCESS
        }
        Ok(GuardianLoopEnd::Keeper(start)) => keeper::run_keeper(start),
        Err(_) => ExitCode::from(BROKEN),
    }
}

/// Returns true if a supervisor with such a command started this process, which should have become
/// its guardian by now.
pub(crate) fn is_started_with(command: &GuardianCommand) -> bool {
    std::env::args_os().skip(1).eq(command.args.iter().cloned())
        && getsockopt(&io::stdin(), sockopt::SockType) == Ok(SockType::Stream)
}

/// How the guardian's loop ended. `Keeper` is returned in a fork.
enum GuardianLoopEnd {
    HostGone(GuardianProcess),
    Keeper(KeeperStart),
}

/// The process that continues after a request.
enum NextProcess {
    Guardian(GuardianProcess),
    Keeper(KeeperStart),
}

struct GuardianProcess {
    socket: OwnedFd,
    signals: ChildSignals,
    keepers: HashSet<Pid>,
    /// Passed to each keeper. Hangs up when no process holds the other end.
    life: OwnedFd,
    /// The other end, held only by the guardian.
    life_holder: OwnedFd,
    /// Rounds of ending orphans, after a keeper died.
    orphans: Option<SignalRounds>,
}

impl GuardianProcess {
    fn start() -> io::Result<Self> {
        platform::default_child_signal()?;
        platform::block_signals()?;
        platform::default_signals_of_terminals()?;
        platform::name_process(c"jaato-guardian");
        platform::adopt_orphans()?;
        let socket = platform::take_socket_from_stdin()?;
        std::env::set_current_dir("/")?;
        let (life, life_holder) = io::pipe()?;
        let signals = ChildSignals::new()?;
        let (life, life_holder) = (life.into(), life_holder.into());
        Ok(Self { socket, signals, keepers: HashSet::new(), life, life_holder, orphans: None })
    }

    fn serve_requests(mut self) -> io::Result<GuardianLoopEnd> {
        loop {
            self.reap_keepers();
            self.end_orphans();
            let timeout = self.orphans.as_ref().map(SignalRounds::due_in);
            let [from_host] = wait_for(&self.signals, [Some(self.socket.as_fd())], timeout)?;
            if !from_host {
                continue;
            }
            let (bytes, descriptors) = match platform::receive_start_request(&self.socket) {
                Ok(Some(request)) => request,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                // An unreadable message cannot come from our host.
                Ok(None) | Err(_) => return Ok(GuardianLoopEnd::HostGone(self)),
            };
            self = match self.handle_start_request(bytes, descriptors)? {
                NextProcess::Guardian(guardian) => guardian,
                NextProcess::Keeper(start) => return Ok(GuardianLoopEnd::Keeper(start)),
            };
        }
    }

    /// Forks a keeper. In the keeper, returns what it starts with.
    fn handle_start_request(
        mut self,
        bytes: [u8; START_REQUEST_BYTES],
        descriptors: Vec<OwnedFd>,
    ) -> io::Result<NextProcess> {
        let mut descriptors = descriptors.into_iter();
        let Some(connection) = descriptors.next() else { return Ok(NextProcess::Guardian(self)) };
        let Some(request) = StartRequest::decode(bytes) else {
            send_refusal(connection, StartRefusal::Version);
            return Ok(NextProcess::Guardian(self));
        };
        let [stdin, stdout, stderr, descriptor3] =
            request.present.map(|present| present.then(|| descriptors.next()).flatten());
        match platform::fork_guardian() {
            Ok(ForkSide::Parent(keeper)) => {
                self.keepers.insert(keeper);
                Ok(NextProcess::Guardian(self))
            }
            Ok(ForkSide::Child) => {
                let Self { mut socket, life, .. } = self;
                // In place of the guardian's socket, so that descriptor 3 stays taken.
                dup2(&connection, &mut socket)?;
                fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
                let stdio = Stdio { stdin, stdout, stderr, descriptor3 };
                Ok(NextProcess::Keeper(KeeperStart { socket: socket.into(), stdio, life }))
            }
            Err(errno) => {
                send_refusal(connection, StartRefusal::Fork(errno as i32));
                Ok(NextProcess::Guardian(self))
            }
        }
    }

    /// Reaps keepers that ended. A keeper that failed left its process tree here.
    fn reap_keepers(&mut self) {
        for (pid, exit) in reap_children().ended {
            if self.keepers.remove(&pid) && exit != Exit::Code(0) {
                self.orphans = Some(SignalRounds::begin());
            }
        }
    }

    fn end_orphans(&mut self) {
        let Some(rounds) = self.orphans.as_mut().filter(|rounds| rounds.is_due()) else { return };
        let is_orphan = |pid: &i32| !self.keepers.contains(&Pid::from_raw(*pid));
        let orphans = read_until_stable(list_children).into_iter().filter(is_orphan);
        let tree = with_descendants(orphans.collect());
        if tree.is_empty() {
            self.orphans = None;
        } else {
            rounds.record_round(signal_all(&tree, Signal::SIGKILL));
        }
    }

    /// Ends everything, then returns. The socket stays open until then, because its end signals
    /// completion to the host.
    fn end_all(self) {
        let Self { socket: _socket, signals, life_holder, .. } = self;
        // Each keeper sees this and ends its processes.
        drop(life_holder);
        let alone_until = Instant::now() + KEEPERS_ALONE;
        let mut rounds = SignalRounds::begin();
        while reap_children().more {
            let alone = alone_until.saturating_duration_since(Instant::now());
            if alone.is_zero() && rounds.is_due() {
                let tree = with_descendants(list_children());
                rounds.record_round(signal_all(&tree, Signal::SIGKILL));
            }
            // An error here could only cause a busy loop, never leave a process behind.
            let _ = wait_for(&signals, [], Some(alone.max(rounds.due_in())));
        }
    }
}

/// Tells the host that there will be no keeper. A host that is gone needs no message.
fn send_refusal(connection: OwnedFd, refusal: StartRefusal) {
    let _ = UnixStream::from(connection).write_all(&KeeperEvent::Refused(refusal).encode());
}

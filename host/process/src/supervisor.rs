//! The host's side: starts the guardian with the first child and asks it for keepers.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use parking_lot::{Mutex, MutexGuard};
use tokio::net::UnixStream;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use crate::child::{ChildInput, ChildOutput, ChildProcess, KeeperConnection};
use crate::command::ChildCommand;
use crate::connection::{GuardianCommand, GuardianConnection};
use crate::error::ProcessError;
use crate::guardian::is_started_with;
use crate::orphans::{Orphan, end_orphans};
use crate::platform;
use crate::stdio::{FarEnds, open_stdio};
use crate::wire::{
    KeeperEvent, KeeperRequest, REQUEST_BYTES_MAX, StartRefusal, StartRequest, VERSION,
};

/// Maximum number of children that start at the same time. Others wait. The guardian's socket has
/// room for more, so sending to it never blocks.
pub const SPAWNS_IN_FLIGHT_MAX: usize = 32;

/// How long the guardian may take to start a child. It needs a millisecond, but a stopped guardian
/// must not hang a session.
const SPAWN_PATIENCE: Duration = Duration::from_secs(10);

/// How long a keeper may take to report that its command runs before the host resumes all keepers,
/// because the command may have stopped its own.
const KEEPER_PATIENCE: Duration = Duration::from_millis(250);

/// Starts children. Cheap to clone. All clones share one guardian. Dropping the last clone kills
/// all children, just like the end of the host.
#[derive(Debug, Clone)]
pub struct Supervisor {
    shared: Arc<SupervisorState>,
}

#[derive(Debug)]
struct SupervisorState {
    command: GuardianCommand,
    guardian: Mutex<Option<GuardianConnection>>,
    turns: Semaphore,
    /// The processes ended after a guardian was lost, until a caller takes them.
    orphans: Mutex<Vec<Orphan>>,
    /// Locked while orphans are ended.
    ending: AsyncMutex<()>,
}

impl Supervisor {
    /// Creates a supervisor. Nothing is started before the first child.
    pub fn new(command: GuardianCommand) -> Self {
        let (guardian, orphans) = (Mutex::default(), Mutex::default());
        let turns = Semaphore::new(SPAWNS_IN_FLIGHT_MAX);
        Self {
            shared: Arc::new(SupervisorState {
                command,
                guardian,
                turns,
                orphans,
                ending: AsyncMutex::default(),
            }),
        }
    }

    /// Starts a command. Needs a tokio runtime with I/O and time, which drives the child's pipes.
    ///
    /// A dropped call leaves nothing behind. An error concerns only this command, with one
    /// exception: after [`ProcessError::GuardianLost`] all earlier children are lost too, and the
    /// next call starts another guardian.
    pub async fn spawn(&self, command: ChildCommand) -> Result<ChildProcess, ProcessError> {
        command.check_command()?;
        let request = KeeperRequest::encode(&command);
        if request.len() > REQUEST_BYTES_MAX {
            let (bytes, bytes_max) = (request.len(), REQUEST_BYTES_MAX);
            return Err(ProcessError::CommandTooLarge { bytes, bytes_max });
        }
        let Ok(_turn) = self.shared.turns.acquire().await else {
            unreachable!("the semaphore is never closed")
        };
        let names = (command.program.clone(), command.directory.clone());
        let (near, far) = open_stdio(command).map_err(no_descriptors_error)?;
        let (stream, for_keeper) = BlockingStream::pair().map_err(no_descriptors_error)?;
        stream.set_nonblocking(true).map_err(no_descriptors_error)?;
        let keeper =
            KeeperConnection::new(UnixStream::from_std(stream).map_err(no_descriptors_error)?);
        let position = self.shared.send_start_request(&for_keeper, &far)?;
        // Closed here, so that the end of a keeper or of a pipe becomes visible.
        drop((for_keeper, far));
        let started =
            tokio::time::timeout(SPAWN_PATIENCE, self.start_with_keeper(&keeper, &request)).await;
        let silent = ProcessError::GuardianSilent { waited_ms: SPAWN_PATIENCE.as_millis() as u64 };
        let started = started.unwrap_or(Err(silent)).map_err(|error| match (error, position) {
            (ProcessError::GuardianLost, StartRequestPosition::First) => {
                self.shared.no_guardian_error()
            }
            (error, _) => error,
        });
        let pid = match started? {
            Ok(pid) => pid,
            Err(refusal) => return Err(refusal_error(refusal, names, request.len())),
        };
        let mut child = ChildProcess::new(pid, keeper);
        let reading = ChildOutput::from_owned_fd;
        let stdin = near.stdin.map(ChildInput::from_owned_fd);
        child.stdin = stdin.transpose().map_err(no_descriptors_error)?;
        child.stdout = near.stdout.map(reading).transpose().map_err(no_descriptors_error)?;
        child.stderr = near.stderr.map(reading).transpose().map_err(no_descriptors_error)?;
        Ok(child)
    }

    /// Kills every child and its leftover processes at the same time, and waits until all have
    /// ended. The guardian ends too, and a later [`Supervisor::spawn`] starts another one. Tasks
    /// that wait for a child get [`ProcessError::GuardianLost`].
    pub async fn end_all(&self) -> Result<(), ProcessError> {
        let Some(guardian) = self.shared.lock_guardian().take() else { return Ok(()) };
        let pid = guardian.pid();
        if !guardian.end().await? {
            self.shared.end_orphans(pid).await;
        }
        Ok(())
    }

    /// Returns, once, the processes that the host had to end itself because a command had ended its
    /// keeper and the guardian.
    pub fn take_orphans(&self) -> Vec<Orphan> {
        std::mem::take(&mut *self.shared.orphans.lock())
    }

    /// Starts a command through its keeper, even if the command stops that keeper.
    async fn start_with_keeper(
        &self,
        keeper: &KeeperConnection,
        request: &[u8],
    ) -> Result<Result<u32, StartRefusal>, ProcessError> {
        let mut start = std::pin::pin!(request_command_start(keeper, request));
        loop {
            if let Ok(started) = tokio::time::timeout(KEEPER_PATIENCE, &mut start).await {
                return started;
            }
            if let Some(guardian) = self.guardian_pid() {
                platform::continue_keepers(guardian);
            }
        }
    }

    /// Returns the guardian's process id, if it runs.
    pub fn guardian_pid(&self) -> Option<u32> {
        self.shared.lock_guardian().as_ref().map(GuardianConnection::pid)
    }
}

/// Tells the first start request to a guardian from later ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StartRequestPosition {
    /// The first start request to a guardian that was started for it.
    First,
    Later,
}

fn no_descriptors_error(source: io::Error) -> ProcessError {
    ProcessError::NoDescriptors { source }
}

/// Sends a keeper its request and waits for the answer.
async fn request_command_start(
    keeper: &KeeperConnection,
    request: &[u8],
) -> Result<Result<u32, StartRefusal>, ProcessError> {
    // A keeper that stops reading has reported why.
    let _ = keeper.send(request).await;
    match keeper.read_event().await? {
        Some(KeeperEvent::Started { pid }) => Ok(Ok(pid)),
        Some(KeeperEvent::Refused(refusal)) => Ok(Err(refusal)),
        Some(KeeperEvent::Exited(_) | KeeperEvent::Leftovers(_) | KeeperEvent::Ended { .. }) => {
            Err(ProcessError::GuardianAnswer {
                what: "it reported the end of a child before its start",
            })
        }
        None => Err(ProcessError::GuardianLost),
    }
}

fn refusal_error(refusal: StartRefusal, names: (OsString, PathBuf), bytes: usize) -> ProcessError {
    let (program, directory) = names;
    match refusal {
        StartRefusal::Version => ProcessError::GuardianVersion { wants: VERSION },
        StartRefusal::Malformed => {
            ProcessError::GuardianAnswer { what: "it cannot read a request" }
        }
        StartRefusal::Fork(errno) => {
            ProcessError::CannotStart { program, source: system_error(errno) }
        }
        StartRefusal::Directory(errno) => {
            ProcessError::BadDirectory { directory, source: system_error(errno) }
        }
        StartRefusal::Program(errno) => match Errno::from_raw(errno) {
            Errno::ENOENT | Errno::ENOTDIR => ProcessError::ProgramNotFound { program },
            Errno::E2BIG => ProcessError::ArgumentsTooLong { program, bytes },
            Errno::EACCES | Errno::EPERM | Errno::ENOEXEC | Errno::EISDIR | Errno::ELOOP => {
                ProcessError::NotExecutable { program, source: system_error(errno) }
            }
            _ => ProcessError::CannotStart { program, source: system_error(errno) },
        },
    }
}

fn system_error(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}

impl SupervisorState {
    /// Asks the guardian for a keeper. Starts the guardian if there is none or it has died.
    fn send_start_request(
        self: &Arc<Self>,
        for_keeper: &BlockingStream,
        far: &FarEnds,
    ) -> Result<StartRequestPosition, ProcessError> {
        let places = [&far.stdin, &far.stdout, &far.stderr, &far.descriptor3];
        let request = StartRequest { present: places.map(|place| place.is_some()) }.encode();
        let given = places.into_iter().flatten().map(AsRawFd::as_raw_fd);
        let descriptors: Vec<RawFd> =
            std::iter::once(for_keeper.as_raw_fd()).chain(given).collect();
        let mut guardian = self.lock_guardian();
        if let Some(running) = guardian.as_ref() {
            match running.send_start_request(request, &descriptors) {
                Ok(()) => return Ok(StartRequestPosition::Later),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(ProcessError::GuardianSilent { waited_ms: 0 });
                }
                Err(_) => *guardian = None,
            }
        }
        if is_started_with(&self.command) {
            return Err(ProcessError::IsGuardian);
        }
        let started = GuardianConnection::start(&self.command)?;
        self.watch_guardian(&started);
        let sent = started.send_start_request(request, &descriptors);
        *guardian = Some(started);
        sent.map_err(|_| self.no_guardian_error()).map(|()| StartRequestPosition::First)
    }

    fn no_guardian_error(&self) -> ProcessError {
        let GuardianCommand { program, args } = self.command.clone();
        ProcessError::NoGuardian { program, args }
    }

    /// Ends the processes of a lost guardian at once instead of with the next child.
    fn watch_guardian(self: &Arc<Self>, guardian: &GuardianConnection) {
        let Ok(lost) = guardian.wait_until_lost() else { return };
        let (own, pid) = (Arc::downgrade(self), guardian.pid());
        tokio::spawn(async move {
            lost.await;
            // A guardian that was asked to end leaves nothing.
            if let Some(own) = own.upgrade().filter(|own| own.lock_guardian().is_some()) {
                own.end_orphans(pid).await;
            }
        });
    }

    async fn end_orphans(&self, guardian: u32) {
        // One after the other, so that a later caller gets the processes that both have found.
        let _alone = self.ending.lock().await;
        let orphans = end_orphans(guardian).await;
        self.orphans.lock().extend(orphans);
    }

    fn lock_guardian(&self) -> MutexGuard<'_, Option<GuardianConnection>> {
        // No code that holds the lock can panic halfway through a change.
        self.guardian.lock()
    }
}

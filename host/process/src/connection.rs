//! A running guardian as the host sees it: its process and the socket that keeps it alive.

use std::ffi::OsString;
use std::io;
use std::net::Shutdown;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::net::UnixStream;

use crate::error::ProcessError;
use crate::keeper::KEEPER_NAME;
use crate::platform;
use crate::platform::{name_if_alive, with_descendants};
use crate::wire::START_REQUEST_BYTES;

/// How long to wait for the end of all children.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// The only variable that the guardian gets, because its program may need it to find its libraries.
const LIBRARY_PATH: &str =
    if cfg!(target_vendor = "apple") { "DYLD_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };

/// How to start the guardian.
#[derive(Debug, Clone)]
pub struct GuardianCommand {
    /// Its program.
    pub program: PathBuf,
    /// Its arguments. The program must call [`guardian_main`](crate::guardian_main) for them,
    /// before it starts a thread.
    pub args: Vec<OsString>,
}

impl GuardianCommand {
    /// Uses the running program itself with these arguments. On Linux this works even if its file
    /// was replaced or removed.
    pub fn own_executable(args: impl IntoIterator<Item = impl Into<OsString>>) -> io::Result<Self> {
        let program = match cfg!(target_os = "linux") {
            true => PathBuf::from("/proc/self/exe"),
            false => std::env::current_exe()?,
        };
        Ok(Self { program, args: args.into_iter().map(Into::into).collect() })
    }
}

/// A running guardian. Dropping it ends it and everything that it watches.
#[derive(Debug)]
pub(crate) struct GuardianConnection {
    socket: BlockingStream,
    /// `None` once a task waits for it.
    process: Option<Child>,
    pid: u32,
}

impl GuardianConnection {
    /// Starts the guardian. The socket is its standard input, because that needs no hook between
    /// fork and exec, which would make std copy the host's address space.
    pub(crate) fn start(command: &GuardianCommand) -> Result<Self, ProcessError> {
        let (socket, theirs) =
            BlockingStream::pair().map_err(|source| ProcessError::NoDescriptors { source })?;
        let mut process = Command::new(&command.program);
        process.args(&command.args).env_clear();
        process.envs(std::env::var_os(LIBRARY_PATH).map(|value| (LIBRARY_PATH, value)));
        // Not in the user's directory, because a child of jaato must not depend on its content.
        if command.program.is_absolute() {
            process.current_dir("/");
        }
        process.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C goes to the host's group, and the guardian must outlive it from the start.
        process.process_group(0);
        let process = process.spawn().map_err(|source| {
            let program = command.program.clone();
            ProcessError::GuardianNotStarted { program, source }
        })?;
        let pid = process.id();
        Ok(Self { socket, process: Some(process), pid })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends one request with its descriptors. Fails at once if the socket is full.
    pub(crate) fn send_start_request(
        &self,
        request: [u8; START_REQUEST_BYTES],
        descriptors: &[RawFd],
    ) -> io::Result<()> {
        platform::send_start_request(&self.socket, request, descriptors)
    }

    /// Returns a future that completes when the guardian has ended for any reason.
    pub(crate) fn wait_until_lost(&self) -> io::Result<impl Future<Output = ()> + Send + use<>> {
        let socket = self.socket.try_clone()?;
        Ok(async move {
            let waiting = socket.set_nonblocking(true).and_then(|()| UnixStream::from_std(socket));
            match waiting {
                Ok(socket) => wait_until_closed(&socket).await,
                // The next child will then detect the loss.
                Err(_) => std::future::pending().await,
            }
        })
    }

    /// Makes the guardian end everything and then itself, and waits for that. Returns false if it
    /// ended in another way and may have left processes.
    pub(crate) async fn end(mut self) -> Result<bool, ProcessError> {
        let broken = |source| ProcessError::NoDescriptors { source };
        let socket = self.socket.try_clone().map_err(broken)?;
        socket.set_nonblocking(true).map_err(broken)?;
        let socket = UnixStream::from_std(socket).map_err(broken)?;
        // Fails only if the guardian has already exited.
        let _ = self.socket.shutdown(Shutdown::Write);
        match tokio::time::timeout(END_PATIENCE, wait_until_closed(&socket)).await {
            Ok(()) => Ok(self.has_exited_cleanly().await),
            Err(_) => Err(ProcessError::Survivors { pids: self.survivors() }),
        }
    }

    /// Waits for the process after its socket closed. Its status shows a kill or a failure. Before
    /// that nothing is certain, because a process that is being killed may look alive.
    async fn has_exited_cleanly(&mut self) -> bool {
        let Some(mut process) = self.process.take() else { return false };
        let waited = tokio::task::spawn_blocking(move || process.wait()).await;
        waited.is_ok_and(|status| status.is_ok_and(|status| status.success()))
    }

    /// Returns the living descendants of the guardian, without keepers.
    fn survivors(&self) -> Vec<u32> {
        let own = self.pid as i32;
        let below = with_descendants(vec![own]).into_iter().filter(|pid| *pid != own);
        let named = below.filter_map(|pid| Some((pid, name_if_alive(pid)?)));
        let foreign = named.filter(|(_, name)| KEEPER_NAME.to_str() != Ok(name.as_str()));
        let mut pids: Vec<_> = foreign.map(|(pid, _)| pid as u32).collect();
        pids.sort_unstable();
        pids.truncate(crate::LEFTOVERS_MAX);
        pids
    }
}

/// Waits for the end of a stream that carries no data.
async fn wait_until_closed(socket: &UnixStream) {
    let mut byte = [0];
    while socket.readable().await.is_ok() {
        match socket.try_read(&mut byte) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => return,
        }
    }
}

impl Drop for GuardianConnection {
    fn drop(&mut self) {
        // Fails only if the guardian has already exited.
        let _ = self.socket.shutdown(Shutdown::Both);
        let Some(mut process) = self.process.take() else { return };
        if let Ok(Some(_)) = process.try_wait() {
            return;
        }
        // The process must be reaped, and it may still have processes to end. Without a thread, its
        // entry in the process table stays until the host ends.
        let wait = move || process.wait();
        let _ = std::thread::Builder::new().name("guardian-end".into()).spawn(wait);
    }
}

//! A started command: its pipes, its exit, and how to end it.

use std::io::ErrorKind;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::{Mutex as AsyncMutex, Notify};

use crate::error::ProcessError;
use crate::platform;
use crate::wire::{EVENT_BYTES_MAX, KeeperEvent, KeeperOrder, LENGTH_BYTES, ORDER_BYTES};

/// How long a keeper may be silent before the host resumes it, because the command may have stopped
/// it.
const KEEPER_PATIENCE: Duration = Duration::from_secs(1);

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// A signal with this number ended it.
    Signal(i32),
}

/// A signal for a command's process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupSignal {
    /// SIGHUP.
    Hangup = 1,
    /// SIGINT, the signal of Ctrl-C.
    Interrupt,
    /// SIGQUIT.
    Quit,
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
    /// SIGUSR1.
    User1,
    /// SIGUSR2.
    User2,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
}

impl GroupSignal {
    /// Every signal.
    pub const ALL: [Self; 9] = [
        Self::Hangup,
        Self::Interrupt,
        Self::Quit,
        Self::Terminate,
        Self::Kill,
        Self::User1,
        Self::User2,
        Self::Stop,
        Self::Continue,
    ];
}

/// A process that a command started and that is still alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its process id.
    pub pid: u32,
    /// Its name as `ps` shows it, at most 15 bytes.
    pub name: String,
}

/// The writing end of a command's standard input.
pub type ChildInput = pipe::Sender;

/// The reading end of a command's output.
pub type ChildOutput = pipe::Receiver;

/// A started command. Dropping it ends the command and all of its descendants, as
/// [`ChildProcess::end`] does, without waiting for it.
///
/// Every method takes `&self` and may be called from several tasks at once. All methods are cancel
/// safe.
#[derive(Debug)]
pub struct ChildProcess {
    /// Writes its standard input, if that is piped.
    pub stdin: Option<ChildInput>,
    /// Reads its standard output, if that is piped.
    pub stdout: Option<ChildOutput>,
    /// Reads its error output, if that has its own pipe.
    pub stderr: Option<ChildOutput>,
    pid: u32,
    keeper: KeeperConnection,
}

impl ChildProcess {
    pub(crate) fn new(pid: u32, keeper: KeeperConnection) -> Self {
        Self { stdin: None, stdout: None, stderr: None, pid, keeper }
    }

    /// Returns its process id, which is also the id of its session and process group.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the command itself ends, regardless of processes that it left running or that
    /// hold its pipes. Later calls return the same result at once.
    pub async fn wait(&self) -> Result<Exit, ProcessError> {
        let mut exit = std::pin::pin!(self.keeper.wait_for_answer(|seen| seen.exit));
        loop {
            match tokio::time::timeout(KEEPER_PATIENCE, &mut exit).await {
                Ok(exit) => return exit,
                // A command may stop its keeper and then exit. A stopped keeper reports nothing.
                Err(_) => platform::continue_parent(self.pid),
            }
        }
    }

    /// Sends a signal to the command's process group. Does nothing if the group is empty.
    pub async fn signal(&self, signal: GroupSignal) -> Result<(), ProcessError> {
        self.keeper.send_order(KeeperOrder::Signal(signal)).await
    }

    /// Ends the command and all of its descendants, and waits for their end: sends TERM to each,
    /// and KILL after [`END_GRACE`](crate::END_GRACE). An error names the processes that could not
    /// be killed.
    pub async fn end(&self) -> Result<(), ProcessError> {
        self.keeper.send_order(KeeperOrder::End).await?;
        let ended = self.keeper.wait_for_answer(|seen| seen.survivors.clone());
        let mut ended = std::pin::pin!(ended);
        let survivors = match tokio::time::timeout(KEEPER_PATIENCE, &mut ended).await {
            Ok(survivors) => survivors?,
            Err(_) => {
                platform::continue_parent(self.pid);
                ended.await?
            }
        };
        if survivors.is_empty() { Ok(()) } else { Err(ProcessError::Survivors { pids: survivors }) }
    }

    /// Returns the living processes that the command started, at most
    /// [`LEFTOVERS_MAX`](crate::LEFTOVERS_MAX), without the command itself.
    pub async fn leftovers(&self) -> Result<Vec<Leftover>, ProcessError> {
        let asked = self.keeper.ask_for_leftovers();
        self.keeper.send_order(KeeperOrder::Leftovers).await?;
        let answer = |seen: &KeeperReport| match &seen.survivors {
            _ if seen.answers >= asked => Some(seen.leftovers.clone()),
            Some(_) => Some(Vec::new()),
            None => None,
        };
        self.keeper.wait_for_answer(answer).await
    }

    /// Detaches the child without ending anything. Its processes run until
    /// [`Supervisor::end_all`](crate::Supervisor::end_all) or the end of the host.
    pub async fn release(self) -> Result<(), ProcessError> {
        self.keeper.send_order(KeeperOrder::Release).await
    }
}

/// The connection to the process that watches one command.
#[derive(Debug)]
pub(crate) struct KeeperConnection {
    stream: UnixStream,
    reader: Mutex<KeeperEventReader>,
    writer: AsyncMutex<()>,
    seen: Mutex<KeeperReport>,
    /// Wakes the tasks that wait while another one reads.
    news: Notify,
}

/// The reports of the keeper.
#[derive(Debug, Default)]
struct KeeperReport {
    exit: Option<Exit>,
    leftovers: Vec<Leftover>,
    questions: u64,
    answers: u64,
    /// Set by the keeper's last message.
    survivors: Option<Vec<u32>>,
    /// Whether the stream has ended.
    closed: bool,
}

impl KeeperConnection {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            reader: Mutex::default(),
            writer: AsyncMutex::default(),
            seen: Mutex::default(),
            news: Notify::new(),
        }
    }

    /// Writes all of these bytes.
    pub(crate) async fn send(&self, mut bytes: &[u8]) -> std::io::Result<()> {
        let _writing = self.writer.lock().await;
        while !bytes.is_empty() {
            self.stream.writable().await?;
            match self.stream.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads one event. Returns `None` at the end.
    pub(crate) async fn read_event(&self) -> Result<Option<KeeperEvent>, ProcessError> {
        loop {
            if let Some(event) = self.lock_reader().take_event()? {
                return Ok(Some(event));
            }
            self.readable().await?;
            if !self.lock_reader().read_available(&self.stream) {
                return Ok(None);
            }
        }
    }

    async fn send_order(&self, order: KeeperOrder) -> Result<(), ProcessError> {
        let bytes: [u8; ORDER_BYTES] = order.encode();
        match self.send(&bytes).await {
            Ok(()) => Ok(()),
            // The keeper has exited: either nothing was left to do, which it reported, or it died.
            Err(_) => self.wait_for_answer(|seen| seen.survivors.as_ref().map(|_| ())).await,
        }
    }

    fn ask_for_leftovers(&self) -> u64 {
        let mut seen = self.lock_report();
        seen.questions += 1;
        seen.questions
    }

    /// Waits until the reported events contain an answer. Whichever waiting task is polled reads
    /// for all, so a task that is not polled blocks no other.
    async fn wait_for_answer<T>(
        &self,
        answer: impl Fn(&KeeperReport) -> Option<T>,
    ) -> Result<T, ProcessError> {
        loop {
            let news = self.news.notified();
            if let Some(found) = self.find_answer(&answer) {
                return found;
            }
            tokio::select! {
                () = news => {}
                readable = self.readable() => {
                    readable?;
                    self.read_reports()?;
                }
            }
        }
    }

    async fn readable(&self) -> Result<(), ProcessError> {
        self.stream.readable().await.map_err(|source| ProcessError::NoDescriptors { source })
    }

    /// Reads what has arrived.
    fn read_reports(&self) -> Result<(), ProcessError> {
        let mut reader = self.lock_reader();
        let is_open = reader.read_available(&self.stream);
        while let Some(event) = reader.take_event()? {
            self.record_event(Some(event));
        }
        if !is_open {
            self.record_event(None);
        }
        Ok(())
    }

    fn lock_reader(&self) -> MutexGuard<'_, KeeperEventReader> {
        // As below.
        self.reader.lock()
    }

    fn find_answer<T>(
        &self,
        answer: impl Fn(&KeeperReport) -> Option<T>,
    ) -> Option<Result<T, ProcessError>> {
        let seen = self.lock_report();
        let closed = || seen.closed.then_some(Err(ProcessError::GuardianLost));
        answer(&seen).map(Ok).or_else(closed)
    }

    fn record_event(&self, event: Option<KeeperEvent>) {
        let mut seen = self.lock_report();
        match event {
            // Sent only once, before this stream belonged to a child.
            Some(KeeperEvent::Started { .. } | KeeperEvent::Refused(_)) => {}
            Some(KeeperEvent::Exited(exit)) => seen.exit = Some(exit),
            Some(KeeperEvent::Leftovers(leftovers)) => {
                seen.leftovers = leftovers;
                seen.answers += 1;
            }
            Some(KeeperEvent::Ended { survivors }) => seen.survivors = Some(survivors),
            None => seen.closed = true,
        }
        drop(seen);
        self.news.notify_waiters();
    }

    fn lock_report(&self) -> MutexGuard<'_, KeeperReport> {
        // No code that holds the lock can panic halfway through a change.
        self.seen.lock()
    }
}

/// Assembles events. Received bytes stay here if a read is dropped.
#[derive(Debug, Default)]
struct KeeperEventReader {
    bytes: Vec<u8>,
}

impl KeeperEventReader {
    /// Reads what has arrived. Returns false at the end.
    fn read_available(&mut self, stream: &UnixStream) -> bool {
        let mut chunk = [0; EVENT_BYTES_MAX];
        match stream.try_read(&mut chunk) {
            Ok(0) => false,
            Ok(length) => {
                self.bytes.extend_from_slice(&chunk[..length]);
                true
            }
            // Any other error means that the other end died with unread data in its queue.
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    fn take_event(&mut self) -> Result<Option<KeeperEvent>, ProcessError> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > EVENT_BYTES_MAX {
            return Err(ProcessError::GuardianAnswer { what: "an event is too long" });
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let what = "an event cannot be read";
        let event = KeeperEvent::decode(body).ok_or(ProcessError::GuardianAnswer { what })?;
        self.bytes.drain(..LENGTH_BYTES + length);
        Ok(Some(event))
    }
}

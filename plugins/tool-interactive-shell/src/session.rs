//! A session: a program, its screen, and the state of both.
//!
//! A separate task reads the program's output, and calls wait for changes. While no call waits, a
//! flooding program is read slowly, so that it uses little processor time but never stops
//! completely.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{LeftoverProcess, ProcessExit};
use jaato_plugin_sdk::terminal::{TerminalUpdate, TerminalWait};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, watch};

use crate::backend::{BackendControl, BackendEvents, BackendName};
use crate::gather::GatheredEvents;
use crate::marks::{MarkKind, MarkNonce, MarkScanner};
use crate::output::is_streamed;
use crate::raw_bytes::RawOutputBuffer;
use crate::ready::ProgramObservation;
use crate::screen::EmulatedScreen;
use crate::transcript::SessionTranscript;
use crate::wait::{ProgramActivity, SilencePolicy};

/// The number of bytes read without a pause while no call waits.
const BACKGROUND_BYTES: u64 = 64 * 1024;

/// The pause after [`BACKGROUND_BYTES`]. The rate of 2.5 MiB per second exceeds any log and takes
/// two percent of a processor. All flooding sessions share it, so that they do not slow down a
/// waiting call.
const BACKGROUND_PAUSE: Duration = Duration::from_millis(25);

/// How long a flood waits for the call that streams it.
const STREAMING_PAUSE: Duration = Duration::from_millis(2);

/// The maximum number of waiting replies of the terminal. A program that asks for more without
/// reading gets no more.
const REPLIES_MAX: usize = 16;

/// How long after its time limit a backend may still report how much was read. After that, the
/// session stops waiting for it.
const ANSWER_DELAY: Duration = Duration::from_millis(100);

/// The maximum time for a program to read the input before a reply. A program that does not read
/// gets no reply.
const REPLY_LONGEST: Duration = Duration::from_secs(1);

/// Shells whose lines jaato can parse, by their process names.
const SHELLS: [&str; 4] = ["ash", "bash", "dash", "sh"];

/// How much of an input the program read. The rest is not typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumedInput {
    /// All of it.
    All,
    /// This many bytes.
    Bytes(usize),
    /// Unknown.
    Unknown,
}

/// A session.
pub struct ShellSession {
    /// The name, such as `session_0`.
    pub id: String,
    /// The command as the model gave it.
    pub command: String,
    /// The backend that runs the program.
    pub backend: BackendName,
    /// The start time.
    pub begun: Instant,
    /// The events of a program that has ended and left processes running. While they exist, the
    /// processes can be ended.
    held: Mutex<Option<Box<dyn BackendEvents>>>,
    control: Box<dyn BackendControl>,
    /// The number of calls that stream new output into their results.
    pub streaming: AtomicU32,
    live: Mutex<LiveSessionState>,
    changes: watch::Sender<u64>,
    replies: mpsc::Sender<Vec<u8>>,
    /// The number of calls that wait for output, and of tasks that show it to users.
    wanted: AtomicU32,
    /// The number of users who watch.
    pub watchers: AtomicU32,
    /// Whether a task shows each change to users.
    pub is_shown_live: AtomicBool,
}

/// The changing state of a session.
pub struct LiveSessionState {
    /// The visible screen.
    pub screen: EmulatedScreen,
    /// The raw bytes.
    pub raw: RawOutputBuffer,
    /// The new text for results.
    pub transcript: SessionTranscript,
    /// The program's activity in the last result.
    pub told_doing: Option<ProgramActivity>,
    /// The number of bytes shown at the last result.
    told_bytes: u64,
    /// How the program ended.
    pub end: Option<ProgramEnd>,
    /// The time of the last use by a call.
    pub used: Instant,
    /// The rows of a drawn screen that users saw last. Empty if no program draws.
    pub shown_rows: Vec<String>,
    /// Input from the model whose echo was not reported yet.
    pub typed: String,
    /// Whether users have typed since the last result.
    pub typed_by_person: bool,
    /// The exit code from the last mark.
    pub exit_code: Option<i32>,
    marks: MarkScanner,
    is_at_prompt: bool,
    has_typed: bool,
    /// The row in which the program waited before any input: a shell's prompt.
    first_prompt: Option<String>,
    moved: Instant,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramEnd {
    /// The program exited, or a signal ended it.
    Exit(ProcessExit),
    /// The program was lost, for this reason.
    Lost(String),
}

impl fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(ProcessExit { code: Some(code), .. }) => write!(f, "exit_status={code}"),
            Self::Exit(ProcessExit { signal: Some(signal), .. }) => write!(f, "signal={signal}"),
            Self::Exit(_) => f.write_str("exit_status=None"),
            Self::Lost(why) => write!(f, "lost: {why}"),
        }
    }
}

/// While this exists, the program's output is read without pauses.
pub struct UnpausedReading<'a>(&'a ShellSession);

impl ShellSession {
    /// Creates a session, and the queue of its terminal's replies.
    pub fn new(
        id: String,
        command: String,
        backend: BackendName,
        control: Box<dyn BackendControl>,
        size: (u16, u16),
        nonce: &MarkNonce,
    ) -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (replies, queue) = mpsc::channel(REPLIES_MAX);
        let session = Self {
            id,
            command,
            backend,
            begun: Instant::now(),
            held: Mutex::default(),
            control,
            streaming: AtomicU32::new(0),
            live: Mutex::new(LiveSessionState::new(size, nonce)),
            changes: watch::Sender::new(0),
            replies,
            wanted: AtomicU32::new(0),
            watchers: AtomicU32::new(0),
            is_shown_live: AtomicBool::new(false),
        };
        (session, queue)
    }

    /// Returns the handle that controls the program.
    pub fn program_control(&self) -> &dyn BackendControl {
        &*self.control
    }

    /// Locks the changing state.
    pub fn lock_live(&self) -> MutexGuard<'_, LiveSessionState> {
        self.live.lock()
    }

    /// Returns true while the program runs.
    pub fn is_alive(&self) -> bool {
        self.lock_live().end.is_none()
    }

    /// Returns a receiver of changes. Each change is a different number.
    pub fn change_receiver(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Makes the session read the program's output without pauses.
    pub fn read_without_pauses(&self) -> UnpausedReading<'_> {
        self.wanted.fetch_add(1, SeqCst);
        self.notify_change();
        UnpausedReading(self)
    }

    /// Returns true while a call waits.
    pub fn has_waiting_call(&self) -> bool {
        self.wanted.load(SeqCst) > 0
    }

    /// Returns true while a user watches.
    pub fn is_watched(&self) -> bool {
        self.watchers.load(SeqCst) > 0
    }

    /// Types within the time limit. Earlier output no longer shows whether the program waits.
    ///
    /// # Errors
    /// If the input cannot be typed.
    pub async fn type_bytes(
        &self,
        host: &Reporter,
        bytes: &[u8],
        longest: Duration,
    ) -> Result<ConsumedInput> {
        self.record_input();
        let write = pin!(self.control.write_within(bytes, longest));
        let late = pin!(host.sleep(longest + ANSWER_DELAY));
        Ok(match select(write, late).await {
            Either::Left((taken, _)) => match taken? {
                taken if taken >= bytes.len() => ConsumedInput::All,
                taken => ConsumedInput::Bytes(taken),
            },
            Either::Right((slept, _)) => {
                slept?;
                ConsumedInput::Unknown
            }
        })
    }

    /// Types the terminal's own reply. Errors are ignored, because a closed terminal needs no
    /// reply.
    pub async fn send_reply(&self, bytes: &[u8]) {
        let _ = self.control.write_within(bytes, REPLY_LONGEST).await;
    }

    /// Records that something was typed.
    pub fn record_input(&self) {
        let mut live = self.lock_live();
        live.is_at_prompt = false;
        live.has_typed = true;
        live.moved = Instant::now();
    }

    /// Records the row in which the program waits before any input.
    pub fn record_first_prompt(&self) {
        let mut live = self.lock_live();
        if !live.has_typed {
            live.first_prompt = Some(live.screen.cursor_line().trim_end().to_owned());
        }
    }

    /// Returns true if a shell waits at its prompt without any input: the system reports that it
    /// reads, and the cursor's row equals its first prompt. A continued line, a question of `read`
    /// and a half-typed line look different. So does the prompt of another folder, which leads to
    /// one unnecessary question.
    pub async fn is_shell_at_prompt(&self) -> bool {
        let Ok(state) = self.control.state().await else { return false };
        let name = state.foreground_name.as_deref().unwrap_or_default();
        let reads = state.waits == Some(TerminalWait::Reading)
            && state.waiter_pid.is_some()
            && state.waiter_pid == state.foreground_pid
            && state.has_input != Some(true);
        let live = self.lock_live();
        let row = live.screen.cursor_line();
        let row = row.trim_end();
        let is_prompt = !row.is_empty() && live.first_prompt.as_deref() == Some(row);
        reads && is_prompt && SHELLS.contains(&name)
    }

    /// Returns true if the shell's last mark was the end of its prompt.
    pub fn is_at_prompt(&self) -> bool {
        self.lock_live().is_at_prompt
    }

    /// Returns the number of bytes shown so far.
    pub fn shown_bytes(&self) -> u64 {
        self.lock_live().screen.processed_bytes()
    }

    /// Asks the system for the program's state and adds the screen's information.
    ///
    /// # Errors
    /// `cancelled`. A closed terminal gives an empty state.
    pub async fn observe_program(&self, silence: SilencePolicy) -> Result<ProgramObservation> {
        let state = match self.control.state().await {
            Ok(state) => state,
            Err(error) if error.kind == ErrorKind::Cancelled => return Err(error),
            Err(_) => Default::default(),
        };
        let live = self.lock_live();
        Ok(ProgramObservation {
            state,
            taken_bytes: live.screen.processed_bytes(),
            silence: live.moved.elapsed(),
            idle_timeout: silence.time,
            ends_busy_waits: silence.ends_busy_waits,
            is_mid_line: live.screen.is_mid_line(),
            is_on_terminal: self.backend != BackendName::Pipes,
            is_drawn: live.screen.is_drawn(),
        })
    }

    /// Reads events until the program has ended.
    pub async fn read_events(&self, events: Box<dyn BackendEvents>, host: &Reporter) {
        let (mut events, mut unpaid) = (GatheredEvents::new(events), 0);
        loop {
            match events.next(host, || self.has_waiting_call()).await {
                Ok(Some(TerminalUpdate::Output(bytes))) => {
                    self.process_output(&bytes);
                    self.wait_for_room(host).await;
                    unpaid += bytes.len() as u64;
                    if unpaid >= BACKGROUND_BYTES {
                        let pauses = u32::try_from(unpaid / BACKGROUND_BYTES).unwrap_or(u32::MAX);
                        unpaid = 0;
                        self.pause_reading(host, BACKGROUND_PAUSE.saturating_mul(pauses)).await;
                    }
                }
                Ok(Some(TerminalUpdate::Exited(exit))) => {
                    if !exit.left_running.is_empty() {
                        *self.lock_events() = Some(events.into_events());
                    }
                    return self.record_end(ProgramEnd::Exit(exit));
                }
                Ok(None) => {
                    return self.record_end(ProgramEnd::Lost(
                        "its terminal ended without reporting an exit".to_owned(),
                    ));
                }
                Err(error) => return self.record_end(ProgramEnd::Lost(error.message)),
            }
        }
    }

    /// Waits for a call that takes new output. If there is none, drops the oldest text.
    async fn wait_for_room(&self, host: &Reporter) {
        while self.lock_live().transcript.is_full() {
            let is_over = host.sleep(STREAMING_PAUSE).await.is_err();
            if is_over || !is_streamed(&self.streaming) {
                self.lock_live().transcript.drop_older_half();
            }
        }
    }

    fn process_output(&self, bytes: &[u8]) {
        let replies = {
            let mut live = self.lock_live();
            live.moved = Instant::now();
            live.screen.feed_output(bytes);
            if let Some(scrolled) = live.screen.take_scrolled() {
                live.transcript.push_text(&scrolled);
            }
            live.raw.push_bytes(bytes);
            for mark in live.marks.scan(bytes) {
                live.record_mark(mark.kind);
            }
            live.screen.take_replies()
        };
        if !replies.is_empty() {
            // If the queue is full, the program does not read.
            let _ = self.replies.try_send(replies);
        }
        self.notify_change();
    }

    /// Pauses a flood while no call waits for it. The more floods pause, the longer the pause.
    async fn pause_reading(&self, host: &Reporter, pause: Duration) {
        static PAUSING: AtomicU32 = AtomicU32::new(0);
        let _pausing = CounterGuard::increment(&PAUSING);
        let mut changes = self.change_receiver();
        let mut slept = pin!(host.sleep(pause.saturating_mul(PAUSING.load(SeqCst))));
        while !self.has_waiting_call() {
            let changed = pin!(changes.changed());
            match select(changed, slept).await {
                Either::Left((_, rest)) => slept = rest,
                Either::Right(_) => return,
            }
        }
    }

    /// Ends the processes that an ended program left running, and returns them.
    ///
    /// # Errors
    /// If they cannot be ended.
    pub async fn end_leftover_processes(&self) -> Result<Vec<LeftoverProcess>> {
        let left = match &self.lock_live().end {
            Some(ProgramEnd::Exit(exit)) => exit.left_running.clone(),
            Some(ProgramEnd::Lost(_)) | None => Vec::new(),
        };
        if left.is_empty() {
            return Ok(left);
        }
        self.control.end().await?;
        if let Some(ProgramEnd::Exit(exit)) = &mut self.lock_live().end {
            exit.left_running.clear();
        }
        drop(self.lock_events().take());
        Ok(left)
    }

    fn lock_events(&self) -> MutexGuard<'_, Option<Box<dyn BackendEvents>>> {
        self.held.lock()
    }

    fn record_end(&self, end: ProgramEnd) {
        self.lock_live().end = Some(end);
        self.notify_change();
    }

    /// Wakes all tasks that wait for a change.
    pub fn notify_change(&self) {
        self.changes.send_modify(|number| *number = number.wrapping_add(1));
    }
}

/// Increments a counter while this exists.
struct CounterGuard(&'static AtomicU32);

impl CounterGuard {
    fn increment(counter: &'static AtomicU32) -> Self {
        counter.fetch_add(1, SeqCst);
        Self(counter)
    }
}

impl Drop for CounterGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl LiveSessionState {
    /// Creates the state of a program without output.
    pub fn new(size: (u16, u16), nonce: &MarkNonce) -> Self {
        let now = Instant::now();
        Self {
            screen: EmulatedScreen::new(size.0, size.1),
            raw: RawOutputBuffer::default(),
            transcript: SessionTranscript::default(),
            told_doing: None,
            told_bytes: 0,
            end: None,
            used: now,
            shown_rows: Vec::new(),
            typed: String::new(),
            typed_by_person: false,
            exit_code: None,
            marks: MarkScanner::new(nonce),
            is_at_prompt: false,
            has_typed: false,
            first_prompt: None,
            moved: now,
        }
    }

    /// Marks all output as reported.
    pub fn mark_reported(&mut self) {
        self.screen.mark_seen();
        self.told_bytes = self.screen.processed_bytes();
    }

    /// Returns true if there is unreported visible output. Moving the cursor does not count.
    pub fn has_new_output(&self) -> bool {
        if self.screen.processed_bytes() == self.told_bytes {
            return false;
        }
        self.screen.is_drawn()
            || !self.transcript.text().is_empty()
            || !self.screen.unseen_text().text.is_empty()
    }

    fn record_mark(&mut self, mark: MarkKind) {
        match mark {
            MarkKind::InputStart => self.is_at_prompt = true,
            MarkKind::PromptStart | MarkKind::CommandStart => self.is_at_prompt = false,
            MarkKind::CommandEnd(exit_code) => {
                self.is_at_prompt = false;
                // The first prompt does not follow a command.
                self.exit_code = exit_code.filter(|_| self.has_typed);
            }
        }
    }
}

impl Drop for UnpausedReading<'_> {
    fn drop(&mut self) {
        self.0.lock_live().used = Instant::now();
        self.0.wanted.fetch_sub(1, SeqCst);
    }
}

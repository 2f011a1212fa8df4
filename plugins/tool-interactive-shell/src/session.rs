//! One session: a program, its screen, and what is known of both.
//!
//! A task of its own reads what the program shows; calls wait for changes. While no call waits, a
//! program that floods is read slowly, so that it costs little and never stands still for good.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{LeftRunning, ProcessExit};
use jaato_plugin_sdk::terminal::{TerminalHappened, TerminalWait};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, watch};

use crate::backend::{Control, Events, Name};
use crate::gather::Gathered;
use crate::marks::{MarkKind, MarkScanner, Nonce};
use crate::output::is_streamed;
use crate::raw::Raw;
use crate::ready::Look;
use crate::screen::Screen;
use crate::transcript::Transcript;
use crate::wait::{Doing, Silence};

/// Bytes that are read at once while no call waits, before the program must wait
const BACKGROUND_BYTES: u64 = 64 * 1024;

/// for so long: 2.5 MiB a second, which no log needs and which costs two percent of a processor.
/// All that flood so share them, so that what a call waits for is not held up.
const BACKGROUND_PAUSE: Duration = Duration::from_millis(25);

/// How long a flood waits for the call that streams it to its result.
const STREAMING_PAUSE: Duration = Duration::from_millis(2);

/// Answers of the terminal to the program's questions that may wait to be typed. A program that
/// asks more and reads none gets no more.
const REPLIES_MAX: usize = 16;

/// How much later than it should a way of typing may tell how much was taken. One that cannot tell
/// is given up then.
const ANSWER_DELAY: Duration = Duration::from_millis(100);

/// How long an answer of the terminal's waits for a program to take what is before it: one that
/// reads nothing gets none.
const REPLY_LONGEST: Duration = Duration::from_secs(1);

/// Shells whose lines jaato can read, by the names of their processes.
const SHELLS: [&str; 4] = ["ash", "bash", "dash", "sh"];

/// How much of what was to be typed was taken. The rest is not typed any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// All of it.
    All,
    /// So many bytes.
    Bytes(usize),
    /// It cannot be known.
    Unknown,
}

/// A session.
pub struct Session {
    /// By what it is named: `session_0`.
    pub id: String,
    /// What runs in it, as the model gave it.
    pub command: String,
    /// Which way it runs.
    pub backend: Name,
    /// When it began.
    pub begun: Instant,
    /// The events of a program that has ended and left something running: as long as they are
    /// there, that can be ended.
    held: Mutex<Option<Box<dyn Events>>>,
    control: Box<dyn Control>,
    /// Calls that stream new output into their results.
    pub streaming: AtomicU32,
    live: Mutex<Live>,
    changes: watch::Sender<u64>,
    replies: mpsc::Sender<Vec<u8>>,
    /// Calls that wait for what is shown, and people who look at it.
    wanted: AtomicU32,
    /// People who look at it.
    pub watchers: AtomicU32,
    /// Whether each change is shown to them.
    pub is_shown_live: AtomicBool,
}

/// What changes.
pub struct Live {
    /// What is to be seen.
    pub screen: Screen,
    /// The bytes as they came.
    pub raw: Raw,
    /// What is new of the text that results tell.
    pub transcript: Transcript,
    /// What the program did when that was told last.
    pub told_doing: Option<Doing>,
    /// The bytes that had been shown by then.
    told_bytes: u64,
    /// How the program ended.
    pub end: Option<End>,
    /// When it was last used by a call.
    pub used: Instant,
    /// The rows of a drawn screen that people were shown last; none where nothing draws.
    pub shown_rows: Vec<String>,
    /// What the model has typed whose echo was not told yet.
    pub typed: String,
    /// Whether people have typed since the last result.
    pub typed_by_person: bool,
    /// The exit code that the last mark told.
    pub exit_code: Option<i32>,
    marks: MarkScanner,
    is_at_prompt: bool,
    has_typed: bool,
    /// The row in which the program waited before anything was typed: a shell's prompt.
    first_prompt: Option<String>,
    moved: Instant,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// By itself, or by a signal.
    Exit(ProcessExit),
    /// It was lost: why.
    Lost(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(ProcessExit { code: Some(code), .. }) => write!(f, "exit_status={code}"),
            Self::Exit(ProcessExit { signal: Some(signal), .. }) => write!(f, "signal={signal}"),
            Self::Exit(_) => f.write_str("exit_status=None"),
            Self::Lost(why) => write!(f, "lost: {why}"),
        }
    }
}

/// As long as it lives, what the program shows is read as fast as it comes.
pub struct Wanted<'a>(&'a Session);

impl Session {
    /// Makes one, and the queue of what its terminal answers by itself.
    pub fn new(
        id: String,
        command: String,
        backend: Name,
        control: Box<dyn Control>,
        size: (u16, u16),
        nonce: &Nonce,
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
            live: Mutex::new(Live::new(size, nonce)),
            changes: watch::Sender::new(0),
            replies,
            wanted: AtomicU32::new(0),
            watchers: AtomicU32::new(0),
            is_shown_live: AtomicBool::new(false),
        };
        (session, queue)
    }

    /// Returns what can be done with the program.
    pub fn control(&self) -> &dyn Control {
        &*self.control
    }

    /// Locks what changes.
    pub fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock()
    }

    /// Tells whether the program runs.
    pub fn is_alive(&self) -> bool {
        self.live().end.is_none()
    }

    /// Follows changes: each is a number that was not there before.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Has what the program shows read as fast as it comes.
    pub fn want(&self) -> Wanted<'_> {
        self.wanted.fetch_add(1, SeqCst);
        self.tell();
        Wanted(self)
    }

    /// Tells whether a call waits.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(SeqCst) > 0
    }

    /// Tells whether somebody looks at it.
    pub fn is_watched(&self) -> bool {
        self.watchers.load(SeqCst) > 0
    }

    /// Types within that time. What was shown before says nothing any more of whether the program
    /// waits.
    ///
    /// # Errors
    /// What keeps it from being typed.
    pub async fn write(&self, host: &Reporter, bytes: &[u8], longest: Duration) -> Result<Taken> {
        self.note_typed();
        let write = pin!(self.control.write(bytes, longest));
        let late = pin!(host.sleep(longest + ANSWER_DELAY));
        Ok(match select(write, late).await {
            Either::Left((taken, _)) => match taken? {
                taken if taken >= bytes.len() => Taken::All,
                taken => Taken::Bytes(taken),
            },
            Either::Right((slept, _)) => {
                slept?;
                Taken::Unknown
            }
        })
    }

    /// Types what the terminal answers by itself. A terminal that is closed asks no more.
    pub async fn reply(&self, bytes: &[u8]) {
        let _ = self.control.write(bytes, REPLY_LONGEST).await;
    }

    /// Notes that something was typed.
    pub fn note_typed(&self) {
        let mut live = self.live();
        live.is_at_prompt = false;
        live.has_typed = true;
        live.moved = Instant::now();
    }

    /// Notes where the program waits before anything is typed.
    pub fn note_first_prompt(&self) {
        let mut live = self.live();
        if !live.has_typed {
            live.first_prompt = Some(live.screen.cursor_line().trim_end().to_owned());
        }
    }

    /// Tells whether a shell waits at its prompt, with nothing typed behind it: the system says
    /// that it reads, and its row is that of its first prompt. A continued line, a question of
    /// `read`, a line that is half typed look different; so does the prompt of another folder,
    /// which costs a question.
    pub async fn is_shell_at_prompt(&self) -> bool {
        let Ok(state) = self.control.state().await else { return false };
        let name = state.foreground_name.as_deref().unwrap_or_default();
        let reads = state.waits == Some(TerminalWait::Reading)
            && state.waiter_pid.is_some()
            && state.waiter_pid == state.foreground_pid
            && state.has_input != Some(true);
        let live = self.live();
        let row = live.screen.cursor_line();
        let row = row.trim_end();
        let is_prompt = !row.is_empty() && live.first_prompt.as_deref() == Some(row);
        reads && is_prompt && SHELLS.contains(&name)
    }

    /// Tells whether the last mark of a shell was the end of its prompt.
    pub fn is_at_prompt(&self) -> bool {
        self.live().is_at_prompt
    }

    /// Counts what was shown so far, in bytes.
    pub fn bytes(&self) -> u64 {
        self.live().screen.bytes()
    }

    /// Asks the system and adds what the screen tells.
    ///
    /// # Errors
    /// `cancelled`. A terminal that is closed tells nothing.
    pub async fn look(&self, silence: Silence) -> Result<Look> {
        let state = match self.control.state().await {
            Ok(state) => state,
            Err(error) if error.kind == ErrorKind::Cancelled => return Err(error),
            Err(_) => Default::default(),
        };
        let live = self.live();
        Ok(Look {
            state,
            taken_bytes: live.screen.bytes(),
            silence: live.moved.elapsed(),
            idle_timeout: silence.time,
            ends_busy_waits: silence.ends_busy_waits,
            is_mid_line: live.screen.is_mid_line(),
            is_on_terminal: self.backend != Name::Pipes,
            is_drawn: live.screen.is_drawn(),
        })
    }

    /// Reads what happens until the program has ended.
    pub async fn read(&self, events: Box<dyn Events>, host: &Reporter) {
        let (mut events, mut unpaid) = (Gathered::new(events), 0);
        loop {
            match events.next(host, || self.is_wanted()).await {
                Ok(Some(TerminalHappened::Output(bytes))) => {
                    self.take(&bytes);
                    self.make_room(host).await;
                    unpaid += bytes.len() as u64;
                    if unpaid >= BACKGROUND_BYTES {
                        let pauses = u32::try_from(unpaid / BACKGROUND_BYTES).unwrap_or(u32::MAX);
                        unpaid = 0;
                        self.pause(host, BACKGROUND_PAUSE.saturating_mul(pauses)).await;
                    }
                }
                Ok(Some(TerminalHappened::Exited(exit))) => {
                    if !exit.left_running.is_empty() {
                        *self.held() = Some(events.into_events());
                    }
                    return self.finish(End::Exit(exit));
                }
                Ok(None) => {
                    return self.finish(End::Lost("its terminal tells no more".to_owned()));
                }
                Err(error) => return self.finish(End::Lost(error.message)),
            }
        }
    }

    /// Waits for a call that takes new output; if there is none, drops the oldest text.
    async fn make_room(&self, host: &Reporter) {
        while self.live().transcript.is_full() {
            let is_over = host.sleep(STREAMING_PAUSE).await.is_err();
            if is_over || !is_streamed(&self.streaming) {
                self.live().transcript.drop_oldest();
            }
        }
    }

    fn take(&self, bytes: &[u8]) {
        let replies = {
            let mut live = self.live();
            live.moved = Instant::now();
            live.screen.feed(bytes);
            if let Some(scrolled) = live.screen.take_scrolled() {
                live.transcript.push(&scrolled);
            }
            live.raw.push(bytes);
            for mark in live.marks.scan(bytes) {
                live.note(mark.kind);
            }
            live.screen.take_replies()
        };
        if !replies.is_empty() {
            // One that is full belongs to a program that reads nothing.
            let _ = self.replies.try_send(replies);
        }
        self.tell();
    }

    /// Lets a flood wait while nobody wants it: the longer, the more of them there are.
    async fn pause(&self, host: &Reporter, pause: Duration) {
        static PAUSING: AtomicU32 = AtomicU32::new(0);
        let _pausing = Counted::in_(&PAUSING);
        let mut changes = self.changes();
        let mut slept = pin!(host.sleep(pause.saturating_mul(PAUSING.load(SeqCst))));
        while !self.is_wanted() {
            let changed = pin!(changes.changed());
            match select(changed, slept).await {
                Either::Left((_, rest)) => slept = rest,
                Either::Right(_) => return,
            }
        }
    }

    /// Ends what a program that has ended left running; returns what that was.
    ///
    /// # Errors
    /// What keeps it from being ended.
    pub async fn end_left(&self) -> Result<Vec<LeftRunning>> {
        let left = match &self.live().end {
            Some(End::Exit(exit)) => exit.left_running.clone(),
            Some(End::Lost(_)) | None => Vec::new(),
        };
        if left.is_empty() {
            return Ok(left);
        }
        self.control.end().await?;
        if let Some(End::Exit(exit)) = &mut self.live().end {
            exit.left_running.clear();
        }
        drop(self.held().take());
        Ok(left)
    }

    fn held(&self) -> MutexGuard<'_, Option<Box<dyn Events>>> {
        self.held.lock()
    }

    fn finish(&self, end: End) {
        self.live().end = Some(end);
        self.tell();
    }

    /// Wakes whoever waits for a change.
    pub fn tell(&self) {
        self.changes.send_modify(|number| *number = number.wrapping_add(1));
    }
}

/// Counts as long as it lives.
struct Counted(&'static AtomicU32);

impl Counted {
    fn in_(counter: &'static AtomicU32) -> Self {
        counter.fetch_add(1, SeqCst);
        Self(counter)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Live {
    /// Makes one for a program that has shown nothing yet.
    pub fn new(size: (u16, u16), nonce: &Nonce) -> Self {
        let now = Instant::now();
        Self {
            screen: Screen::new(size.0, size.1),
            raw: Raw::default(),
            transcript: Transcript::default(),
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

    /// Takes note that everything that was shown was told.
    pub fn mark_told(&mut self) {
        self.screen.mark_seen();
        self.told_bytes = self.screen.bytes();
    }

    /// Returns whether something was shown that was not told yet. What moves a cursor and shows
    /// nothing is not new.
    pub fn has_new_output(&self) -> bool {
        if self.screen.bytes() == self.told_bytes {
            return false;
        }
        self.screen.is_drawn()
            || !self.transcript.text().is_empty()
            || !self.screen.unseen().text.is_empty()
    }

    fn note(&mut self, mark: MarkKind) {
        match mark {
            MarkKind::InputStart => self.is_at_prompt = true,
            MarkKind::PromptStart | MarkKind::CommandStart => self.is_at_prompt = false,
            MarkKind::CommandEnd(exit_code) => {
                self.is_at_prompt = false;
                // The first prompt stands behind no command.
                self.exit_code = exit_code.filter(|_| self.has_typed);
            }
        }
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.live().used = Instant::now();
        self.0.wanted.fetch_sub(1, SeqCst);
    }
}

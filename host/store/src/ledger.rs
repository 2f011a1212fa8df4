//! The ledger of a process: takes records from any thread and never makes it wait.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::LedgerError;
use crate::record::{Record, Stage};
use crate::writer::{Written, write_all};

/// Most records that wait for a slow disk; what comes then is lost, counted and told.
pub const RECORDS_WAITING_MAX: usize = 4096;

/// How long the end of a process waits for records that are not written yet. A write takes
/// microseconds; a disk that needs longer is told of.
const WRITES_WAIT: Duration = Duration::from_secs(1);

/// How long the end of a process waits for the disk to have it all: only a power cut within the
/// next half minute would tell the difference.
const SYNC_WAIT: Duration = Duration::from_millis(50);

/// Takes what is worth a line in the host's log.
pub type Log = Box<dyn Fn(&str) + Send + Sync>;

/// The ledger. Clones are the same. Its thread starts with the first record; the file is opened
/// there.
#[derive(Clone)]
pub struct Ledger(Arc<Inner>);

struct Inner {
    target: Result<PathBuf, String>,
    thread: Mutex<Thread>,
    shared: Arc<Shared>,
}

enum Thread {
    NotStarted,
    Runs { waiting: SyncSender<Waiting>, written: Receiver<Written> },
    Ended,
}

/// What waits for the thread.
pub(crate) enum Waiting {
    /// A record's line.
    Line(Vec<u8>),
    /// A turn has ended: what was written must reach the disk.
    Sync,
}

/// What the thread and its ledger both see.
pub(crate) struct Shared {
    lost: AtomicU64,
    /// Records that were taken and are neither written nor lost.
    open: Mutex<usize>,
    all_written: Condvar,
    has_notice: AtomicBool,
    trouble: Mutex<Trouble>,
    log: Log,
}

#[derive(Default)]
struct Trouble {
    /// What went wrong first; all else follows from it.
    text: Option<String>,
    is_told: bool,
}

impl Ledger {
    /// Makes a ledger; touches nothing yet. Without a path, the text says why there is none.
    pub fn new(path: Result<PathBuf, String>, log: Log) -> Self {
        let shared = Shared {
            lost: AtomicU64::new(0),
            open: Mutex::new(0),
            all_written: Condvar::new(),
            has_notice: AtomicBool::new(false),
            trouble: Mutex::default(),
            log,
        };
        let thread = Mutex::new(Thread::NotStarted);
        Self(Arc::new(Inner { target: path, thread, shared: Arc::new(shared) }))
    }

    /// Takes a record. Returns at once: what finds no place is lost and counted.
    pub fn record(&self, record: &Record) {
        let line = match record.line() {
            Ok(line) => line,
            Err(error) => {
                self.0.shared.count_lost(1);
                (self.0.shared.log)(&format!("a record of the ledger cannot be written: {error}"));
                return;
            }
        };
        self.send(Waiting::Line(line));
        if matches!(record.stage, Stage::Turn { .. }) {
            self.send(Waiting::Sync);
        }
    }

    /// Returns what a person must be told at this moment, once: the ledger cannot be written.
    pub fn notice(&self) -> Option<String> {
        let shared = &self.0.shared;
        if !shared.has_notice.swap(false, Ordering::AcqRel) {
            return None;
        }
        let mut trouble = shared.trouble();
        trouble.is_told = true;
        trouble.text.as_ref().map(|text| format!("{text}; {REMEDY}"))
    }

    /// Waits shortly until everything is written, and ends the ledger. Returns what a person must
    /// be told about it in the end: what was not told before, and how much is lost. Blocks.
    pub fn finish(&self) -> Vec<String> {
        let thread = std::mem::replace(&mut *self.thread(), Thread::Ended);
        if let Thread::Runs { waiting, written } = thread {
            drop(waiting);
            let late = self.0.shared.wait_for_writes();
            if late == 0 {
                // What is written survives everything but a power cut.
                let _ = written.recv_timeout(SYNC_WAIT);
            } else {
                self.lose_to_slow_disk(late);
            }
        }
        self.0.shared.last_words()
    }

    fn send(&self, waiting: Waiting) {
        let mut thread = self.thread();
        if let Thread::NotStarted = *thread {
            match self.start() {
                Ok(started) => *thread = started,
                Err(error) => {
                    *thread = Thread::Ended;
                    self.0.shared.lose(0, &LedgerError::NoThread(error));
                }
            }
        }
        let is_line = matches!(waiting, Waiting::Line(_));
        if is_line {
            *self.0.shared.open() += 1;
        }
        let taken = match &*thread {
            Thread::Runs { waiting: queue, .. } => queue.try_send(waiting),
            Thread::NotStarted | Thread::Ended => Err(TrySendError::Disconnected(waiting)),
        };
        match taken {
            Ok(()) => {}
            // The next turn's end brings this one's records to the disk too.
            Err(_) if !is_line => {}
            Err(TrySendError::Full(_)) => {
                self.0.shared.settle(1);
                self.lose_to_slow_disk(1);
            }
            Err(TrySendError::Disconnected(_)) => {
                self.0.shared.settle(1);
                self.0.shared.count_lost(1);
            }
        }
    }

    fn lose_to_slow_disk(&self, records: usize) {
        let path = self.0.target.clone().unwrap_or_default();
        self.0.shared.lose(records, &LedgerError::TooSlow(path));
    }

    fn start(&self) -> std::io::Result<Thread> {
        let (waiting, queue) = sync_channel(RECORDS_WAITING_MAX);
        let (done, written) = channel();
        let (target, shared) = (self.0.target.clone(), Arc::clone(&self.0.shared));
        std::thread::Builder::new()
            .name("jaato-ledger".into())
            .spawn(move || write_all(target, &queue, &shared, &done))?;
        Ok(Thread::Runs { waiting, written })
    }

    fn thread(&self) -> MutexGuard<'_, Thread> {
        self.0.thread.lock()
    }
}

/// What to do about a ledger that cannot be written.
const REMEDY: &str = "the session goes on without it; `LEDGER_PATH` may name another file";

impl Shared {
    /// Counts records that are lost, and remembers why.
    pub(crate) fn lose(&self, records: usize, error: &LedgerError) {
        self.count_lost(records);
        let text = error.to_string();
        let mut trouble = self.trouble();
        if trouble.text.is_none() {
            (self.log)(&text);
            trouble.text = Some(text);
            self.has_notice.store(true, Ordering::Release);
        }
    }

    pub(crate) fn cut(&self, bytes: u64) {
        (self.log)(&format!("cut a torn record of {bytes} bytes off the end of the ledger"));
    }

    fn count_lost(&self, records: usize) {
        self.lost.fetch_add(records as u64, Ordering::AcqRel);
    }

    /// Notes that so many records are written or lost.
    pub(crate) fn settle(&self, records: usize) {
        let mut open = self.open();
        *open = open.saturating_sub(records);
        if *open == 0 {
            self.all_written.notify_all();
        }
    }

    /// Waits until every record is written or lost; returns how many are not in time.
    fn wait_for_writes(&self) -> usize {
        let mut open = self.open();
        self.all_written.wait_while_for(&mut open, |open| *open > 0, WRITES_WAIT);
        *open
    }

    fn open(&self) -> MutexGuard<'_, usize> {
        self.open.lock()
    }

    fn last_words(&self) -> Vec<String> {
        let lost = self.lost.load(Ordering::Acquire);
        let mut trouble = self.trouble();
        self.has_notice.store(false, Ordering::Release);
        let count = match lost {
            0 => None,
            1 => Some("1 record of this run is not in the ledger".to_owned()),
            lost => Some(format!("{lost} records of this run are not in the ledger")),
        };
        let told = std::mem::replace(&mut trouble.is_told, true);
        let words = match (&trouble.text, count) {
            (Some(text), Some(count)) if !told => Some(format!("{text}; {count}")),
            (Some(text), None) if !told => Some(text.clone()),
            (_, count) => count,
        };
        words.into_iter().collect()
    }

    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.trouble.lock()
    }
}

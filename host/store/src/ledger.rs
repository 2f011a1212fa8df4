//! The ledger of a process. Accepts records from any thread without blocking it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::LedgerError;
use crate::record::{LedgerRecord, LedgerStage};
use crate::writer::{FlushSignal, write_queued_records};

/// Maximum number of records queued for a slow disk. Further ones are lost, counted and reported.
pub const RECORDS_WAITING_MAX: usize = 4096;

/// How long the end of a process waits for queued records. A write takes microseconds. A slower
/// disk is reported.
const WRITES_WAIT: Duration = Duration::from_secs(1);

/// How long the end of a process waits for the disk to flush. Without the flush, only a power
/// failure within half a minute would lose data.
const SYNC_WAIT: Duration = Duration::from_millis(50);

/// Receives lines for the host's log.
pub type LedgerLog = Box<dyn Fn(&str) + Send + Sync>;

/// The ledger. Clones share it. The first record starts its thread, which opens the file.
#[derive(Clone)]
pub struct Ledger(Arc<LedgerInner>);

struct LedgerInner {
    target: Result<PathBuf, String>,
    thread: Mutex<LedgerThread>,
    shared: Arc<LedgerShared>,
}

enum LedgerThread {
    NotStarted,
    Runs { waiting: SyncSender<LedgerQueueItem>, written: Receiver<FlushSignal> },
    Ended,
}

/// An item in the thread's queue.
pub(crate) enum LedgerQueueItem {
    /// A record's line.
    Line(Vec<u8>),
    /// A turn has ended, so flush the written records to the disk.
    Sync,
}

/// The state that the thread shares with its ledger.
pub(crate) struct LedgerShared {
    lost: AtomicU64,
    /// Number of accepted records that are neither written nor lost.
    open: Mutex<usize>,
    all_written: Condvar,
    has_notice: AtomicBool,
    trouble: Mutex<LedgerTrouble>,
    log: LedgerLog,
}

#[derive(Default)]
struct LedgerTrouble {
    /// The first error, which causes all later ones.
    text: Option<String>,
    is_told: bool,
}

impl Ledger {
    /// Creates a ledger without touching the file. Without a path, the text explains why there is
    /// none.
    pub fn new(path: Result<PathBuf, String>, log: LedgerLog) -> Self {
        let shared = LedgerShared {
            lost: AtomicU64::new(0),
            open: Mutex::new(0),
            all_written: Condvar::new(),
            has_notice: AtomicBool::new(false),
            trouble: Mutex::default(),
            log,
        };
        let thread = Mutex::new(LedgerThread::NotStarted);
        Self(Arc::new(LedgerInner { target: path, thread, shared: Arc::new(shared) }))
    }

    /// Accepts a record. Returns at once. A record that does not fit is lost and counted.
    pub fn add_record(&self, record: &LedgerRecord) {
        let line = match record.to_line() {
            Ok(line) => line,
            Err(error) => {
                self.0.shared.count_lost(1);
                (self.0.shared.log)(&format!("a record of the ledger cannot be written: {error}"));
                return;
            }
        };
        self.send_item(LedgerQueueItem::Line(line));
        if matches!(record.stage, LedgerStage::Turn { .. }) {
            self.send_item(LedgerQueueItem::Sync);
        }
    }

    /// Returns the notice for the user, once, if the ledger cannot be written.
    pub fn notice(&self) -> Option<String> {
        let shared = &self.0.shared;
        if !shared.has_notice.swap(false, Ordering::AcqRel) {
            return None;
        }
        let mut trouble = shared.lock_trouble();
        trouble.is_told = true;
        trouble.text.as_ref().map(|text| format!("{text}; {REMEDY}"))
    }

    /// Waits briefly until everything is written, and ends the ledger. Returns the final lines for
    /// the user: errors not yet reported, and the number of lost records. Blocks.
    pub fn finish(&self) -> Vec<String> {
        let thread = std::mem::replace(&mut *self.lock_thread(), LedgerThread::Ended);
        if let LedgerThread::Runs { waiting, written } = thread {
            drop(waiting);
            let late = self.0.shared.wait_for_writes();
            if late == 0 {
                // Written data survives everything except a power failure.
                let _ = written.recv_timeout(SYNC_WAIT);
            } else {
                self.drop_records_of_slow_disk(late);
            }
        }
        self.0.shared.final_messages()
    }

    fn send_item(&self, waiting: LedgerQueueItem) {
        let mut thread = self.lock_thread();
        if let LedgerThread::NotStarted = *thread {
            match self.start_thread() {
                Ok(started) => *thread = started,
                Err(error) => {
                    *thread = LedgerThread::Ended;
                    self.0.shared.record_loss(0, &LedgerError::NoThread(error));
                }
            }
        }
        let is_line = matches!(waiting, LedgerQueueItem::Line(_));
        if is_line {
            *self.0.shared.lock_open_records() += 1;
        }
        let taken = match &*thread {
            LedgerThread::Runs { waiting: queue, .. } => queue.try_send(waiting),
            LedgerThread::NotStarted | LedgerThread::Ended => {
                Err(TrySendError::Disconnected(waiting))
            }
        };
        match taken {
            Ok(()) => {}
            // The end of the next turn flushes these records too.
            Err(_) if !is_line => {}
            Err(TrySendError::Full(_)) => {
                self.0.shared.count_settled(1);
                self.drop_records_of_slow_disk(1);
            }
            Err(TrySendError::Disconnected(_)) => {
                self.0.shared.count_settled(1);
                self.0.shared.count_lost(1);
            }
        }
    }

    fn drop_records_of_slow_disk(&self, records: usize) {
        let path = self.0.target.clone().unwrap_or_default();
        self.0.shared.record_loss(records, &LedgerError::TooSlow(path));
    }

    fn start_thread(&self) -> std::io::Result<LedgerThread> {
        let (waiting, queue) = sync_channel(RECORDS_WAITING_MAX);
        let (done, written) = channel();
        let (target, shared) = (self.0.target.clone(), Arc::clone(&self.0.shared));
        std::thread::Builder::new()
            .name("jaato-ledger".into())
            .spawn(move || write_queued_records(target, &queue, &shared, &done))?;
        Ok(LedgerThread::Runs { waiting, written })
    }

    fn lock_thread(&self) -> MutexGuard<'_, LedgerThread> {
        self.0.thread.lock()
    }
}

/// The advice if a ledger cannot be written.
const REMEDY: &str = "the session continues without it; `LEDGER_PATH` may name another file";

impl LedgerShared {
    /// Counts lost records, and remembers why.
    pub(crate) fn record_loss(&self, records: usize, error: &LedgerError) {
        self.count_lost(records);
        let text = error.to_string();
        let mut trouble = self.lock_trouble();
        if trouble.text.is_none() {
            (self.log)(&text);
            trouble.text = Some(text);
            self.has_notice.store(true, Ordering::Release);
        }
    }

    pub(crate) fn count_truncated(&self, bytes: u64) {
        (self.log)(&format!("cut a torn record of {bytes} bytes off the end of the ledger"));
    }

    fn count_lost(&self, records: usize) {
        self.lost.fetch_add(records as u64, Ordering::AcqRel);
    }

    /// Marks records as written or lost.
    pub(crate) fn count_settled(&self, records: usize) {
        let mut open = self.lock_open_records();
        *open = open.saturating_sub(records);
        if *open == 0 {
            self.all_written.notify_all();
        }
    }

    /// Waits until every record is written or lost. Returns the number of records that are still
    /// open.
    fn wait_for_writes(&self) -> usize {
        let mut open = self.lock_open_records();
        self.all_written.wait_while_for(&mut open, |open| *open > 0, WRITES_WAIT);
        *open
    }

    fn lock_open_records(&self) -> MutexGuard<'_, usize> {
        self.open.lock()
    }

    fn final_messages(&self) -> Vec<String> {
        let lost = self.lost.load(Ordering::Acquire);
        let mut trouble = self.lock_trouble();
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

    fn lock_trouble(&self) -> MutexGuard<'_, LedgerTrouble> {
        self.trouble.lock()
    }
}

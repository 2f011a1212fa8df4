//! The thread that writes the ledger, so that no session ever waits for a disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use crate::error::LedgerError;
use crate::file::LedgerFile;
use crate::ledger::{LedgerQueueItem, LedgerShared};

/// Maximum number of records to write at once, under one lock.
const BATCH_RECORDS_MAX: usize = 64;

/// Writes items until all senders are gone.
pub(crate) fn write_queued_records(
    target: Result<PathBuf, String>,
    waiting: &Receiver<LedgerQueueItem>,
    shared: &Arc<LedgerShared>,
    written: &Sender<FlushSignal>,
) {
    let mut file = None;
    while let Ok(first) = waiting.recv() {
        let batch = LedgerBatch::collect_batch(first, waiting);
        if !batch.lines.is_empty() {
            write_lines(&target, &mut file, &batch.lines, shared);
            shared.count_settled(batch.lines.len());
        }
        if batch.must_sync
            && let Some(file) = &file
            && let Err(error) = file.sync()
        {
            shared.record_loss(0, &error);
        }
    }
    // Only the end of the process waits for this.
    let _ = written.send(FlushSignal);
}

/// Signals that everything is in the file.
pub(crate) struct FlushSignal;

struct LedgerBatch {
    lines: Vec<Vec<u8>>,
    must_sync: bool,
}

impl LedgerBatch {
    fn collect_batch(first: LedgerQueueItem, waiting: &Receiver<LedgerQueueItem>) -> Self {
        let mut batch = Self { lines: Vec::new(), must_sync: false };
        for one in std::iter::once(first).chain(waiting.try_iter().take(BATCH_RECORDS_MAX - 1)) {
            match one {
                LedgerQueueItem::Line(line) => batch.lines.push(line),
                LedgerQueueItem::Sync => batch.must_sync = true,
            }
        }
        batch
    }
}

/// Opens the file if it is not open, because a full disk may have space again.
fn write_lines(
    target: &Result<PathBuf, String>,
    file: &mut Option<LedgerFile>,
    lines: &[Vec<u8>],
    shared: &LedgerShared,
) {
    if file.is_none() {
        let opened = match target {
            Ok(path) => LedgerFile::open(path),
            Err(cause) => Err(LedgerError::NoPlace(cause.clone())),
        };
        match opened {
            Ok(opened) => *file = Some(opened),
            Err(error) => return shared.record_loss(lines.len(), &error),
        }
    }
    let Some(open) = file else { return };
    let appended = open.append(lines);
    if appended.cut_bytes > 0 {
        shared.count_truncated(appended.cut_bytes);
    }
    if let Some(error) = appended.error {
        shared.record_loss(lines.len() - appended.lines, &error);
        // Open the file again next time, because its disk may be gone.
        *file = None;
    }
}

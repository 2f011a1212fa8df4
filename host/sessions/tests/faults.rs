//! A script of appends, forks and deletions on a disk that fails at each of its steps in turn: it
//! is full, refuses, writes a part, or the process is killed or loses its power there.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use jaato_sessions::{
    DiskHook, DiskStep, Durability, SessionIndex, SessionStore, SessionStoreError,
};
use tempfile::TempDir;

use crate::{prompt_record, session_id, stored_texts};

/// The behaviour of the disk at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskFault {
    /// The step fails, and nothing happens.
    Error(io::ErrorKind),
    /// A write writes half of its bytes. Other steps fail.
    ShortWrite,
    /// As a short write. The step after it, which takes the half back, fails too.
    ShortWriteThatStays,
    /// Half of a write, or nothing, happens. After that no step happens.
    End,
}

const FAULTS: [DiskFault; 5] = [
    DiskFault::Error(io::ErrorKind::StorageFull),
    DiskFault::Error(io::ErrorKind::Other),
    DiskFault::ShortWrite,
    DiskFault::ShortWriteThatStays,
    DiskFault::End,
];

/// A disk with a fault at one step, and what it would keep without power.
#[derive(Debug)]
struct FailingDisk {
    fault: DiskFault,
    at: usize,
    steps: AtomicUsize,
    durable: Mutex<DurableState>,
}

/// The content of files and folders at their last sync, by inode.
#[derive(Debug, Default)]
struct DurableState {
    files: HashMap<u64, Vec<u8>>,
    folders: HashMap<u64, Vec<DurableName>>,
}

#[derive(Debug, Clone)]
struct DurableName {
    name: std::ffi::OsString,
    inode: u64,
    is_folder: bool,
}

/// The effect of a power loss on names and bytes that are not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PowerLoss {
    /// They are lost.
    Lost,
    /// Names stay, and half of the bytes.
    HalfStays,
    /// Names stay, and zeros instead of the bytes.
    Zeros,
}

impl FailingDisk {
    fn new(fault: DiskFault, at: usize) -> Arc<Self> {
        let (steps, durable) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(Self { fault, at, steps, durable })
    }

    fn lock_durable(&self) -> std::sync::MutexGuard<'_, DurableState> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskHook for FailingDisk {
    fn before_step(&self, step: &DiskStep<'_>) -> io::Result<()> {
        let now = self.steps.fetch_add(1, Relaxed);
        let half = |step: &DiskStep<'_>| {
            if let DiskStep::Write { file, bytes } = step {
                let mut file = *file;
                file.write_all(&bytes[..bytes.len() / 2]).unwrap();
            }
        };
        match self.fault {
            DiskFault::Error(kind) if now == self.at => Err(kind.into()),
            DiskFault::ShortWrite | DiskFault::ShortWriteThatStays | DiskFault::End
                if now == self.at =>
            {
                half(step);
                Err(io::ErrorKind::StorageFull.into())
            }
            DiskFault::ShortWriteThatStays if now == self.at + 1 => {
                Err(io::ErrorKind::StorageFull.into())
            }
            DiskFault::End if now > self.at => Err(io::ErrorKind::Other.into()),
            DiskFault::Error(_)
            | DiskFault::ShortWrite
            | DiskFault::ShortWriteThatStays
            | DiskFault::End => Ok(()),
        }
    }

    fn after_step(&self, step: &DiskStep<'_>) {
        match step {
            DiskStep::Create(path) => {
                let found = fs::symlink_metadata(path).unwrap();
                let mut durable = self.lock_durable();
                durable.folders.remove(&found.ino());
                // The inode may be that of a file that was removed, unless this is a link.
                if found.nlink() == 1 {
                    durable.files.remove(&found.ino());
                }
            }
            DiskStep::Sync(path) => self.lock_durable().sync_path(path),
            DiskStep::Write { .. }
            | DiskStep::Cut { .. }
            | DiskStep::Rename(_)
            | DiskStep::Remove(_) => {}
        }
    }
}

impl DurableState {
    fn sync_path(&mut self, path: &Path) {
        let found = fs::metadata(path).unwrap();
        if found.is_dir() {
            self.folders.insert(found.ino(), durable_names(path));
        } else {
            self.files.insert(found.ino(), fs::read(path).unwrap());
        }
    }

    /// Writes the folder as it is after the power is back.
    fn restore_folder(&self, folder: &Path, loss: PowerLoss, to: &Path) {
        fs::create_dir(to).unwrap();
        let inode = fs::metadata(folder).unwrap().ino();
        let names = match loss {
            PowerLoss::Lost => self.folders.get(&inode).cloned().unwrap_or_default(),
            PowerLoss::HalfStays | PowerLoss::Zeros => durable_names(folder),
        };
        for DurableName { name, inode, is_folder } in names {
            // A name that is durable may have been renamed or removed since.
            let place = find_inode(folder, inode);
            if is_folder {
                let place = place.unwrap_or_else(|| folder.join(&name));
                if place.exists() {
                    self.restore_folder(&place, loss, &to.join(&name));
                }
                continue;
            }
            let mut content = self.files.get(&inode).cloned().unwrap_or_default();
            let unsynced = place.map(|place| fs::read(place).unwrap()).unwrap_or_default();
            let unsynced = unsynced.get(content.len()..).unwrap_or_default();
            match loss {
                PowerLoss::Lost => {}
                PowerLoss::HalfStays => content.extend(&unsynced[..unsynced.len() / 2]),
                PowerLoss::Zeros => content.extend(vec![0; unsynced.len()]),
            }
            fs::write(to.join(&name), content).unwrap();
        }
    }
}

fn durable_names(folder: &Path) -> Vec<DurableName> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let name = |entry: fs::DirEntry| {
        let found = entry.metadata().unwrap();
        DurableName { name: entry.file_name(), inode: found.ino(), is_folder: found.is_dir() }
    };
    entries.map(name).collect()
}

/// Finds a file that may have been renamed.
fn find_inode(folder: &Path, inode: u64) -> Option<std::path::PathBuf> {
    let names = durable_names(folder);
    let found = names.into_iter().find(|name| name.inode == inode)?;
    Some(folder.join(found.name))
}

/// The records that were confirmed to the script.
#[derive(Debug, Default)]
struct PromisedRecords {
    /// The texts whose append succeeded.
    written: Vec<String>,
    /// How many of them were before the last append that was synced.
    synced: usize,
    /// The attachment, if it was stored.
    attachment: Option<String>,
    /// Whether the fork succeeded.
    is_forked: bool,
    /// Whether the deletion succeeded.
    is_deleted: bool,
}

/// The texts of the script, in the order in which it appends them.
const TEXTS: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

/// Appends, stores an attachment, forks and deletes. Continues after each failure.
fn run_script(store: &SessionStore) -> PromisedRecords {
    let mut promises = PromisedRecords::default();
    drop(store.create_session(&session_id("gone"), "/w", None));
    let (mut writer, mut texts) = (None, TEXTS.into_iter());
    for (count, durability) in [
        (1, Durability::Written),
        (1, Durability::Synced),
        (2, Durability::Written),
        (1, Durability::Synced),
        (1, Durability::Written),
    ] {
        let texts: Vec<&str> = texts.by_ref().take(count).collect();
        if writer.is_none() {
            writer = match store.create_session(&session_id("a"), "/w", None) {
                Err(SessionStoreError::AlreadyExists(_)) => {
                    store.open_session(&session_id("a"), false).ok().map(|opened| opened.writer)
                }
                created => created.ok(),
            };
        }
        let Some(writer) = &mut writer else { continue };
        if writer.append_records(texts.iter().map(|text| prompt_record(text)), durability).is_ok() {
            promises.written.extend(texts.iter().map(|text| (*text).to_owned()));
            if durability == Durability::Synced {
                promises.synced = promises.written.len();
            }
        }
    }
    promises.attachment = store.store_attachment(&session_id("a"), b"large").ok();
    promises.is_forked = store.fork_session(&session_id("a"), &session_id("b"), None).is_ok();
    promises.is_deleted = store.delete_session(&session_id("gone")).is_ok();
    promises
}

/// Returns the texts of a session, if there is one.
fn session_texts(store: &SessionStore, name: &str) -> Option<Vec<String>> {
    match store.list_sessions().unwrap().contains(&session_id(name)) {
        true => {
            let texts = stored_texts(store, name).into_iter();
            Some(texts.map(|text| text.as_str().unwrap().to_owned()).collect())
        }
        false => None,
    }
}

/// Checks that a session has the confirmed records, in order, and can be continued.
#[track_caller]
fn check_session(store: &SessionStore, promised: &[String]) {
    let is_begun = store.list_sessions().unwrap().contains(&session_id("a"));
    if promised.is_empty() {
        // The header may be lost. Then the session is refused, and no panic.
        if !is_begun || store.open_session(&session_id("a"), false).is_err() {
            return;
        }
    }
    let found = session_texts(store, "a").unwrap();
    let mut rest = TEXTS.iter();
    for text in &found {
        assert!(rest.any(|known| known == text), "in order and once: {found:?}");
    }
    assert!(promised.iter().all(|text| found.contains(text)), "{promised:?} of {found:?}");
    let mut opened = store.open_session(&session_id("a"), false).unwrap();
    opened.writer.append_records([prompt_record("next")], Durability::Synced).unwrap();
    assert_eq!(session_texts(store, "a").unwrap(), [&found[..], &["next".to_owned()]].concat());
    drop(opened);
    let (index, _) = SessionIndex::open(store).unwrap();
    assert_eq!(index.search_messages("next", None, 10).unwrap().len(), 1);
}

/// Checks that a copy and a deletion have happened completely or not at all.
#[track_caller]
fn check_copies(store: &SessionStore, promises: &PromisedRecords, promised: &[String]) {
    if let Some(name) = &promises.attachment {
        let attachment = store.read_attachment(&session_id("a"), name).unwrap();
        assert!(attachment.is_some() || promised.is_empty());
    }
    let forked = session_texts(store, "b");
    assert!(forked.is_some() || !promises.is_forked);
    if let Some(forked) = forked {
        assert!(promises.written.iter().all(|text| forked.contains(text)), "{forked:?}");
        if let Some(name) = &promises.attachment {
            assert_eq!(store.read_attachment(&session_id("b"), name).unwrap().unwrap(), b"large");
        }
    }
    if promises.is_deleted {
        assert!(!store.list_sessions().unwrap().contains(&session_id("gone")));
    }
}

/// Creates a folder in memory if the system has one, because hundreds of indexes are made there,
/// and a busy disk would take minutes.
fn fast_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn run_with(
    fault: DiskFault,
    at: usize,
) -> (TempDir, SessionStore, Arc<FailingDisk>, PromisedRecords) {
    let folder = fast_folder();
    let disk = FailingDisk::new(fault, at);
    let store = SessionStore::new(folder.path().join("sessions"));
    let promises = run_script(&store.clone().with_disk_hook(disk.clone()));
    (folder, store, disk, promises)
}

/// Returns the number of steps of the script on a healthy disk.
fn count_steps() -> usize {
    let (_folder, _store, disk, promises) = run_with(DiskFault::End, usize::MAX);
    assert_eq!((promises.written.len(), promises.synced), (TEXTS.len(), 5));
    assert!(promises.attachment.is_some() && promises.is_forked && promises.is_deleted);
    disk.steps.load(Relaxed)
}

#[test]
fn no_record_is_lost_when_a_step_fails_or_the_process_is_killed() {
    for fault in FAULTS {
        for at in 0..count_steps() {
            let (_folder, store, _disk, promises) = run_with(fault, at);
            println!("{fault:?} at {at}: {promises:?}");
            if fault != DiskFault::End {
                // One failure is survived: what follows succeeds.
                let least = if fault == DiskFault::ShortWriteThatStays { 3 } else { 4 };
                assert!(promises.written.len() >= least, "{promises:?}");
            }
            check_session(&store, &promises.written);
            check_copies(&store, &promises, &promises.written);
        }
    }
}

#[test]
fn no_synced_record_is_lost_without_power() {
    for at in 0..=count_steps() {
        let (folder, _store, disk, promises) = run_with(DiskFault::End, at);
        let promised = &promises.written[..promises.synced];
        for loss in [PowerLoss::Lost, PowerLoss::HalfStays, PowerLoss::Zeros] {
            println!("{loss:?} at {at}: {promises:?}");
            let to = folder.path().join(format!("{loss:?}"));
            disk.lock_durable().restore_all(&folder.path().join("sessions"), loss, &to);
            // Without real syncs, which take long.
            let healthy = FailingDisk::new(DiskFault::End, usize::MAX);
            let store = SessionStore::new(to).with_disk_hook(healthy);
            check_session(&store, promised);
            check_copies(&store, &promises, promised);
        }
    }
}

impl DurableState {
    /// Restores the folder of all sessions, if there is one.
    fn restore_all(&self, sessions: &Path, loss: PowerLoss, to: &Path) {
        match sessions.exists() {
            true => self.restore_folder(sessions, loss, to),
            false => fs::create_dir(to).unwrap(),
        }
    }
}

//! Tests of questions and pages between the engine and the calls.
#![allow(clippy::unwrap_used)]

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use jaato_plugin_sdk::__private::detached_home;
use jaato_types::files::{FileDelete, FileKind, FileWrite, FolderEntry, FolderMake};

use super::*;

/// A folder `a` with a file `b`. The test decides how long listing `a` takes.
#[derive(Default)]
struct SlowFolder {
    lists: AtomicUsize,
    is_quick: AtomicBool,
}

fn missing_file<T>() -> Result<T> {
    Err(Error::new(ErrorKind::NotFound, "it is not there"))
}

impl Files for SlowFolder {
    async fn read(&self, _: &Reporter, _: FileRead) -> Result<(FileBytes, Vec<u8>)> {
        missing_file()
    }

    async fn write(&self, _: &Reporter, _: FileWrite, _: Vec<u8>) -> Result<FileFacts> {
        missing_file()
    }

    async fn stat(&self, _: &Reporter, _: FilePath) -> Result<FileFacts> {
        missing_file()
    }

    async fn list(&self, _: &Reporter, list: FolderList) -> Result<FolderEntries> {
        self.lists.fetch_add(1, SeqCst);
        let (name, kind) = match list.path.as_str() {
            "" => ("a", FileKind::Folder),
            _ if self.is_quick.load(SeqCst) => ("b", FileKind::File),
            _ => pending().await,
        };
        let entry = FolderEntry { name: name.into(), kind, ..FolderEntry::default() };
        Ok(FolderEntries { entries: vec![entry], count: 1, ..FolderEntries::default() })
    }

    async fn delete(&self, _: &Reporter, _: FileDelete) -> Result<()> {
        missing_file()
    }

    async fn make_folder(&self, _: &Reporter, _: FolderMake) -> Result<()> {
        missing_file()
    }
}

/// Polls until the future is ready or `is_enough` returns true.
fn poll<T>(future: impl Future<Output = T>, is_enough: impl Fn() -> bool) -> Option<T> {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => return Some(answer),
            Poll::Pending if is_enough() => return None,
            Poll::Pending => thread::yield_now(),
        }
    }
}

#[test]
fn dropped_call_loses_no_pending_request() {
    let home = detached_home();
    let files = SlowFolder::default();
    let work = move |line| engine::walk_pages(&RemoteFiles::new(line, None), &FileWalk::default());
    let mut walk =
        poll(EnginePageExchange::start_engine(&files, &home, work), || false).unwrap().unwrap();
    let dropped = poll(walk.next_page(&files, &home), || files.lists.load(SeqCst) == 2);
    assert!(dropped.is_none());
    files.is_quick.store(true, SeqCst);
    let page = poll(walk.next_page(&files, &home), || false).unwrap().unwrap().unwrap();
    let paths: Vec<_> = page.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!((paths, files.lists.load(SeqCst)), (vec!["a", "a/b"], 3));
    assert_eq!(poll(walk.next_page(&files, &home), || false).unwrap().unwrap(), None);
}

//! Open files that a worker lends: they come with the answer that lends them, and none stays open
//! that nobody asked for.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;
use std::io::{IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jaato_loader::remote::Start;
use jaato_loader::remote::link::{Link, Reader};
use jaato_loader::remote::wire::{self, Flag, Header, Kind};
use jaato_loader::{Executor, Instance, NoServices, RunningCall};
use jaato_types::{Error, ErrorKind, Frame, Manifest};
use parking_lot::Mutex;
use rustix::io::{FdFlags, fcntl_getfd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[path = "support/workers.rs"]
mod workers;

use workers::{EndsWithItsSocket, Silent};

/// Longer than any of this takes; a test that would hang fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a test on a runtime of its own and alone: descriptors are counted for the whole process.
fn alone(test: impl Future<Output = ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test);
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The worker's end of the socket, written and read by hand.
struct Worker(UnixStream);

impl Worker {
    /// Sends a message, with files beside its first byte.
    fn send(&self, (kind, flag): (Kind, Flag), id: u64, payload: &[u8], files: &[BorrowedFd<'_>]) {
        let header = Header { kind, flag, id, length: payload.len() }.write();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(200))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(beside.push(SendAncillaryMessage::ScmRights(files)));
        }
        let parts = [IoSlice::new(&header), IoSlice::new(payload)];
        let sent = sendmsg(&self.0, &parts, &mut beside, SendFlags::empty()).unwrap();
        assert_eq!(sent, header.len() + payload.len());
    }

    /// Waits for a message of the host's; gives its number.
    fn asked(&mut self, kind: Kind) -> u64 {
        let mut header = [0; wire::HEADER_BYTES];
        self.0.read_exact(&mut header).unwrap();
        let header = Header::read(&header).unwrap();
        assert_eq!(header.kind, kind);
        self.0.read_exact(&mut vec![0; header.length]).unwrap();
        header.id
    }
}

async fn guarded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("hangs")
}

async fn begun() -> (Instance, Worker) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_read_timeout(Some(PATIENCE)).unwrap();
    let worker = tokio::task::spawn_blocking(move || {
        let mut worker = Worker(theirs);
        worker.send((Kind::Ready, Flag::Frame), 0, &[wire::VERSION], &[]);
        let id = worker.asked(Kind::Create);
        worker.send((Kind::Created, Flag::Frame), id, &[0, 0, 0, 1], &[]);
        worker
    });
    let manifest =
        br#"{"v":1,"name":"environment-moon","version":"1","api":"1.1.0","kinds":["environment"]}"#;
    let start = Start {
        manifest: Manifest::parse(manifest).unwrap(),
        socket: ours,
        process: Arc::new(EndsWithItsSocket),
        services: Arc::new(NoServices),
        saved: None,
    };
    let executor = Executor::new(tokio::runtime::Handle::current(), Arc::new(Silent));
    let instance = guarded(Instance::in_worker(&executor, start)).await.unwrap();
    (instance, worker.await.unwrap())
}

fn call(instance: &Instance, worker: &mut Worker) -> (RunningCall, u64) {
    let services = Arc::new(NoServices);
    let call = instance.environment("files.read_stream", Frame::empty(), services).unwrap();
    let id = worker.asked(Kind::Call);
    (call, id)
}

/// Waits until as many are open as before; what is not needed is closed a moment later.
async fn are_left(before: usize) {
    let begun = Instant::now();
    while descriptors() != before {
        assert!(begun.elapsed() < PATIENCE, "{} are open, not {before}", descriptors());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Has a worker do something while a call is in flight; gives the call's error. Nothing stays open.
async fn refused(misdeed: impl FnOnce(&Worker, u64, BorrowedFd<'_>)) -> Error {
    let file = File::open("/proc/self/exe").unwrap();
    let before = descriptors();
    let (instance, mut worker) = begun().await;
    let (call, id) = call(&instance, &mut worker);
    misdeed(&worker, id, file.as_fd());
    let error = guarded(call.answer()).await.unwrap_err();
    assert!(instance.ended().is_some());
    drop((instance, worker));
    are_left(before).await;
    error
}

#[test]
fn a_file_comes_with_the_answer_that_lends_it_and_is_closed_where_it_is_not_taken() {
    alone(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "moon").unwrap();
        let file = File::open(&path).unwrap();
        let before = descriptors();
        let (instance, mut worker) = begun().await;
        let open = descriptors();
        let answer = Frame::empty();
        for _ in 0..3 {
            let (call, id) = call(&instance, &mut worker);
            worker.send((Kind::Answer, Flag::Lent), id, &answer, &[file.as_fd()]);
            let (frame, lent) = guarded(call.answer_lending()).await.unwrap();
            assert_eq!(*frame, *answer);
            let lent = lent.unwrap();
            assert!(fcntl_getfd(&lent).unwrap().contains(FdFlags::CLOEXEC));
            let mut text = String::new();
            // The place is shared with who lent it.
            rustix::fs::seek(&lent, rustix::fs::SeekFrom::Start(0)).unwrap();
            File::from(lent).read_to_string(&mut text).unwrap();
            assert_eq!(text, "moon");
        }
        let (without, id) = call(&instance, &mut worker);
        worker.send((Kind::Answer, Flag::Lent), id, &answer, &[]);
        assert!(guarded(without.answer_lending()).await.unwrap().1.is_none());
        let (not_taken, id) = call(&instance, &mut worker);
        worker.send((Kind::Answer, Flag::Lent), id, &answer, &[file.as_fd()]);
        guarded(not_taken.answer()).await.unwrap();
        are_left(open).await;
        let (cancelled, id) = call(&instance, &mut worker);
        drop(cancelled);
        assert_eq!(worker.asked(Kind::Cancel), id);
        worker.send((Kind::Answer, Flag::Lent), id, &answer, &[file.as_fd()]);
        let (after, id) = call(&instance, &mut worker);
        worker.send((Kind::Answer, Flag::Frame), id, &answer, &[]);
        assert!(guarded(after.answer_lending()).await.unwrap().1.is_none());
        assert_eq!(descriptors(), open);
        drop((instance, worker));
        are_left(before).await;
    });
}

#[test]
fn files_that_nobody_asked_for_end_the_worker_and_none_stays_open() {
    alone(async {
        let check = |error: Error, what: &str| {
            assert_eq!(error.kind, ErrorKind::PluginCrashed, "{error}");
            assert!(error.message.contains(what), "{error}");
        };
        let answer = Frame::empty();
        let error = refused(|worker, id, file| {
            worker.send((Kind::Emit, Flag::Frame), id, &answer, &[file]);
        });
        check(error.await, "sent what is no message: a file that no message lends");
        for files in [2, 4, 200] {
            let file = File::open("/proc/self/exe").unwrap();
            let before = descriptors();
            let (instance, mut worker) = begun().await;
            let (_call, id) = call(&instance, &mut worker);
            worker.send((Kind::Answer, Flag::Lent), id, &answer, &vec![file.as_fd(); files]);
            let begun = Instant::now();
            while instance.ended().is_none() {
                assert!(begun.elapsed() < PATIENCE, "{files} files do not end the worker");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            drop((_call, instance, worker));
            are_left(before).await;
        }
        // More than messages, in the middle of one: it never ends.
        let error = refused(|worker, id, file| {
            let header =
                Header { kind: Kind::Answer, flag: Flag::Lent, id, length: 1 << 20 }.write();
            for byte in &header[..8] {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut beside = SendAncillaryBuffer::new(&mut space);
                let files = [file];
                assert!(beside.push(SendAncillaryMessage::ScmRights(&files)));
                let byte = [*byte];
                sendmsg(&worker.0, &[IoSlice::new(&byte)], &mut beside, SendFlags::empty())
                    .unwrap();
            }
        });
        check(error.await, "sent what is no message: more files than messages");
    });
}

#[test]
fn what_is_lent_keeps_its_place_among_large_messages_and_does_not_wait_for_room() {
    alone(async {
        let file = File::open("/proc/self/exe").unwrap();
        let before = descriptors();
        let (host, worker) = UnixStream::pair().unwrap();
        let (host, worker) = (Link::new(host).unwrap(), Arc::new(Link::new(worker).unwrap()));
        let writing = tokio::spawn({
            let worker = Arc::clone(&worker);
            async move { worker.write_waiting().await }
        });
        let mut reader = Reader::taking_files();
        // Lent with a large one of which a part has to wait, and with one right behind others.
        let large = vec![7; 1 << 20];
        assert!(worker.send_lending(Kind::Answer, 1, &large, file.as_fd()));
        assert!(worker.send_lending(Kind::Answer, 2, b"no room", file.as_fd()));
        for (id, flag, bytes) in [(1, Flag::Lent, large.len()), (2, Flag::Frame, 7)] {
            let message = guarded(reader.next(&host)).await.unwrap().unwrap();
            assert_eq!((message.id, message.flag, message.payload.len()), (id, flag, bytes));
            assert_eq!(message.lent.is_some(), flag == Flag::Lent);
        }
        assert!(worker.send(Kind::Emit, Flag::Frame, 3, b"", b"before"));
        assert!(worker.send_lending(Kind::Answer, 4, b"lends", file.as_fd()));
        assert!(worker.send(Kind::Emit, Flag::Frame, 5, b"", b"after"));
        assert!(worker.send_lending(Kind::Answer, 6, b"lends", file.as_fd()));
        for id in 3..=6 {
            let message = guarded(reader.next(&host)).await.unwrap().unwrap();
            assert_eq!((message.id, message.lent.is_some()), (id, id % 2 == 0));
        }
        // This process has no room for a descriptor more: the message comes without, and takes no
        // other's.
        let other = File::open("/dev/null").unwrap();
        assert!(worker.send_lending(Kind::Answer, 7, b"lost", file.as_fd()));
        assert!(worker.send_lending(Kind::Answer, 8, b"lends", other.as_fd()));
        let room = getrlimit(Resource::Nofile);
        let first_free = file.try_clone().unwrap().as_raw_fd();
        let current = Some(u64::try_from(first_free).unwrap());
        setrlimit(Resource::Nofile, Rlimit { current, ..room }).unwrap();
        let message = guarded(reader.next(&host)).await;
        setrlimit(Resource::Nofile, room).unwrap();
        let message = message.unwrap().unwrap();
        assert_eq!((message.id, message.lent.is_some()), (7, false));
        let message = guarded(reader.next(&host)).await.unwrap().unwrap();
        let stat = |file: &dyn AsFd| rustix::fs::fstat(file.as_fd()).unwrap().st_rdev;
        assert_eq!((message.id, stat(&message.lent.unwrap())), (8, stat(&other)));
        drop(other);
        worker.close();
        guarded(writing).await.unwrap();
        drop((host, worker, reader));
        are_left(before).await;
    });
}

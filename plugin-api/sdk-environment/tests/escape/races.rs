//! Runs file operations while files and folders are repeatedly replaced by links.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use jaato_types::files::{FileRead, FileWrite};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::operations::OPERATIONS;
use super::trap::EscapeTrap;

/// The number of tries per operation while names are exchanged.
const ROUNDS: usize = 60;

/// The minimum number of exchanges during the tries.
const EXCHANGES_MIN: usize = 300;

/// Exchanges two names repeatedly until it must stop, and counts the exchanges.
fn exchange_until(is_done: &AtomicBool, count: &AtomicUsize, one: &str, other: &str) {
    while !is_done.load(Ordering::Relaxed) {
        let done = renameat_with(CWD.as_fd(), one, CWD.as_fd(), other, RenameFlags::EXCHANGE);
        // A name that was just moved or deleted cannot be exchanged.
        if done.is_err() {
            thread::yield_now();
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs operations on a path while two names are exchanged.
fn run_race(one: &str, other: &str, paths: &[&str]) {
    for operation in OPERATIONS {
        let trap = EscapeTrap::new();
        for name in ["real/secret.txt", "real/canary-free/secret.txt"] {
            trap.ground.put_file(&format!("work/{name}"), "harmless");
        }
        trap.ground.make_link(trap.ground.path("outside"), "work/fake");
        trap.ground.put_file("work/real_file", "harmless");
        trap.ground.make_link(trap.ground.path("outside/secret.txt"), "work/fake_file");
        let (one, other) = (trap.ground.shown_path(one), trap.ground.shown_path(other));
        let (is_done, count) = (AtomicBool::new(false), AtomicUsize::new(0));
        let told = thread::scope(|scope| {
            scope.spawn(|| exchange_until(&is_done, &count, &one, &other));
            let (mut told, mut round) = (Vec::new(), 0);
            while round < ROUNDS || count.load(Ordering::Relaxed) < EXCHANGES_MIN {
                round += 1;
                for path in paths {
                    told.extend((operation.run)(&trap.confined, path));
                }
            }
            is_done.store(true, Ordering::Relaxed);
            told
        });
        for told in told {
            assert!(!told.contains("CANARY"), "{} told {told}", operation.name);
            assert!(!told.contains("canary-name"), "{} told {told}", operation.name);
        }
        trap.check_untouched(operation.name, "");
    }
}

#[test]
fn folder_swapped_with_a_link_allows_no_access_outside() {
    run_race("work/real", "work/fake", &["real/secret.txt", "real/deep/secret.txt", "real"]);
}

#[test]
fn file_swapped_with_a_link_allows_no_access_outside() {
    run_race("work/real_file", "work/fake_file", &["real_file"]);
}

#[test]
fn folder_moved_during_parent_lookup_allows_no_access_outside() {
    let paths = ["folder/in/../../file.txt", "folder/in/../../../outside/secret.txt"];
    run_race("work/folder/in", "second/in", &paths);
}

#[test]
fn readers_see_the_old_or_the_new_file_and_never_part_of_one() {
    let trap = EscapeTrap::new();
    let is_done = AtomicBool::new(false);
    let contents = [vec![b'a'; 100_000], vec![b'b'; 50_000]];
    let write = |content: &[u8]| {
        let request = FileWrite { path: "file.txt".to_owned(), ..FileWrite::default() };
        trap.confined.write(&request, content).unwrap();
    };
    write(&contents[0]);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..300 {
                write(&contents[round % 2]);
            }
            is_done.store(true, Ordering::Relaxed);
        });
        while !is_done.load(Ordering::Relaxed) {
            let request = FileRead { path: "file.txt".to_owned(), ..FileRead::default() };
            let (_, bytes) = trap.confined.read(&request).unwrap();
            assert!(contents.contains(&bytes), "{} bytes", bytes.len());
        }
    });
    let left = std::fs::read_dir(trap.ground.path("work")).unwrap();
    let drafts =
        left.filter(|it| it.as_ref().unwrap().file_name().to_string_lossy().starts_with(".jaato-"));
    assert_eq!(drafts.count(), 0);
}

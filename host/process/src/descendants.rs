//! Finds and signals the descendants of this process.
//!
//! On Linux they are read from `/proc`, by the lists of children that each thread has, or, where
//! the kernel was built without those, by the parents of all processes. Both see a moving tree:
//! callers repeat until the kernel says that no child is left, which for a subreaper means that no
//! descendant is left.

use std::collections::HashMap;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid, getpgrp};

/// Sends a signal to each of these processes, by its process group where it has one of its own: a
/// group is signalled at one stroke, so that a member that forks meanwhile does not escape. Nobody
/// gets it twice, because to many programs a second TERM means something else; but for KILL, which
/// each one gets by itself too. Tells who got it: not who has ended, or is not ours to signal.
pub(crate) fn signal_all(pids: &[i32], signal: Signal) -> Vec<i32> {
    let own_group = getpgrp();
    let mut groups: HashMap<Pid, bool> = HashMap::new();
    let mut reached = Vec::new();
    for number in pids {
        let pid = Pid::from_raw(*number);
        // A command that has not reached its own session yet still stands in our group.
        let group = getpgid(Some(pid)).ok().filter(|group| *group != own_group);
        let by_group = group.is_some_and(|group| {
            *groups.entry(group).or_insert_with(|| killpg(group, signal).is_ok())
        });
        if by_group && signal != Signal::SIGKILL || kill(pid, signal).is_ok() {
            reached.push(*number);
        }
    }
    reached
}

/// Most looks at a tree that does not stand still.
const LOOKS_MAX: usize = 10;

/// Looks until two looks agree: a tree in which somebody moves up while it is read shows neither
/// the one that goes nor the ones that it leaves. Sorted.
pub(crate) fn settled(look: impl Fn() -> Vec<i32>) -> Vec<i32> {
    let sorted = || {
        let mut pids = look();
        pids.sort_unstable();
        pids
    };
    let mut last = sorted();
    for _ in 1..LOOKS_MAX {
        let next = sorted();
        if next == last {
            break;
        }
        last = next;
    }
    last
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{children, name_if_alive, with_descendants};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::fs;

    /// These processes and all of their descendants.
    pub(crate) fn with_descendants(roots: Vec<i32>) -> Vec<i32> {
        let scan = (!has_lists()).then(all_parents);
        let mut next = roots;
        let mut found = HashSet::new();
        while let Some(pid) = next.pop() {
            // A process that moved up while the tree was read can be met twice.
            if found.insert(pid) {
                next.extend(children_of(pid, scan.as_deref()));
            }
        }
        found.into_iter().collect()
    }

    /// The children of this process.
    pub(crate) fn children() -> Vec<i32> {
        let own = nix::unistd::getpid().as_raw();
        children_of(own, (!has_lists()).then(all_parents).as_deref())
    }

    /// The name of a process, unless it has ended.
    pub(crate) fn name_if_alive(pid: i32) -> Option<String> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let (name, state, _) = parse_stat(&stat)?;
        (!matches!(state, b'Z' | b'X')).then(|| String::from_utf8_lossy(name).into_owned())
    }

    fn has_lists() -> bool {
        fs::metadata("/proc/thread-self/children").is_ok()
    }

    fn children_of(pid: i32, scan: Option<&[(i32, i32)]>) -> Vec<i32> {
        if let Some(pairs) = scan {
            return pairs.iter().filter(|pair| pair.1 == pid).map(|pair| pair.0).collect();
        }
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
        let lists = tasks.flatten().filter_map(|task| {
            let list = fs::read_to_string(task.path().join("children")).ok()?;
            Some(list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
        });
        lists.collect::<Vec<Vec<i32>>>().concat()
    }

    /// Each process with its parent.
    pub(super) fn all_parents() -> Vec<(i32, i32)> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let pairs = pids.filter_map(|pid: i32| {
            let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
            let (_, _, parent) = parse_stat(&stat)?;
            Some((pid, parent))
        });
        pairs.collect()
    }

    /// Name, state and parent out of `/proc/PID/stat`. The name may contain anything, `)` too.
    pub(super) fn parse_stat(stat: &[u8]) -> Option<(&[u8], u8, i32)> {
        let open = stat.iter().position(|byte| *byte == b'(')?;
        let close = stat.iter().rposition(|byte| *byte == b')')?;
        let name = stat.get(open + 1..close)?;
        let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        Some((name, state, fields.next()?.parse().ok()?))
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{children, name_if_alive, with_descendants};

/// Without `/proc` nothing is found: keepers signal the command's own group beside this.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    pub(crate) fn with_descendants(roots: Vec<i32>) -> Vec<i32> {
        roots
    }

    pub(crate) fn children() -> Vec<i32> {
        Vec::new()
    }

    pub(crate) fn name_if_alive(_pid: i32) -> Option<String> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::linux::{all_parents, parse_stat};
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_is_read() {
        let stat = b"12 (a) b (c) S 7 12 12 0 -1";
        assert_eq!(parse_stat(stat), Some((&b"a) b (c"[..], b'S', 7)));
        assert_eq!(parse_stat(b"12 (cut"), None);
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn a_moving_tree_is_read_until_two_looks_agree_or_often_enough() {
        let looks = std::cell::RefCell::new(vec![vec![3, 2], vec![2, 3], vec![], vec![1]]);
        assert_eq!(settled(|| looks.borrow_mut().pop().unwrap()), [2, 3]);
        let count = std::cell::Cell::new(0);
        let moving = || {
            count.set(count.get() + 1);
            vec![count.get()]
        };
        assert_eq!(settled(moving), [LOOKS_MAX as i32]);
    }

    #[test]
    fn both_ways_find_the_same_child() {
        let mut child = std::process::Command::new("sleep").arg("300").spawn().unwrap();
        let pid = child.id() as i32;
        let own = std::process::id() as i32;
        assert!(all_parents().contains(&(pid, own)));
        assert!(children().contains(&pid));
        assert!(with_descendants(children()).contains(&pid));
        assert!(name_if_alive(own).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!with_descendants(children()).contains(&pid));
        assert_eq!(name_if_alive(pid), None);
    }
}

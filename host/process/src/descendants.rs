//! Finds and signals the descendants of this process.
//!
//! On Linux they are read from `/proc` (`platform::linux`): from each thread's list of children or,
//! if the kernel was built without these lists, from the parents of all processes. In both cases
//! the tree changes during the read. Callers repeat until the kernel reports that no child is left,
//! which for a subreaper means that no descendant is left.

use std::collections::HashMap;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid, getpgrp};

/// Sends a signal to each of these processes, through its process group if it has its own. A group
/// is signalled at once, so that a member that forks at the same time does not escape. No process
/// gets the signal twice, because many programs react differently to a second TERM. KILL is the
/// exception: each process also gets it directly. Returns the processes that got the signal,
/// without those that have ended or that we may not signal.
pub(crate) fn signal_all(pids: &[i32], signal: Signal) -> Vec<i32> {
    let own_group = getpgrp();
    let mut groups: HashMap<Pid, bool> = HashMap::new();
    let mut reached = Vec::new();
    for number in pids {
        let pid = Pid::from_raw(*number);
        // A command that has not yet created its own session is still in our group.
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

/// Maximum number of reads of a changing tree.
const LOOKS_MAX: usize = 10;

/// Reads until two reads agree. If a process gets a new parent during a read, the read may miss
/// both it and the children of the process that ended. Sorted.
pub(crate) fn read_until_stable(look: impl Fn() -> Vec<i32>) -> Vec<i32> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changing_process_tree_is_read_until_stable_or_the_limit() {
        let looks = std::cell::RefCell::new(vec![vec![3, 2], vec![2, 3], vec![], vec![1]]);
        assert_eq!(read_until_stable(|| looks.borrow_mut().pop().unwrap()), [2, 3]);
        let count = std::cell::Cell::new(0);
        let moving = || {
            count.set(count.get() + 1);
            vec![count.get()]
        };
        assert_eq!(read_until_stable(moving), [LOOKS_MAX as i32]);
    }
}

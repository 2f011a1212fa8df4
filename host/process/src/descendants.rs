//! Finds and signals the descendants of this process.
//!
//! On Linux they are read from `/proc` (`platform::linux`), by the lists of children that each
//! thread has, or, where the kernel was built without those, by the parents of all processes. Both
//! see a moving tree: callers repeat until the kernel says that no child is left, which for a
//! subreaper means that no descendant is left.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}

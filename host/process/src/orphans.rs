//! Finds and ends the processes that no one watches because a command has ended its keeper and the
//! guardian.
//!
//! Not needed for a guardian that ends normally, because it leaves nothing. The kernel gives such
//! orphans only to a host that has called [`prepare_host`]. Only processes with the mark of a
//! session's children are ended, so that children of the host's own program stay.
//!
//! Invariant: every process named here had a living parent of ours when the guardian was lost, or
//! descends from such a process.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::descendants::{read_until_stable, signal_all};
use crate::keeper::KEEPER_NAME;
use crate::platform::{
    self, find_children_named, find_marked_children, name_if_alive, with_descendants,
};
use crate::wire::LEFTOVERS_MAX;

/// How long keepers may take to end their processes before the host ends them too.
const KEEPERS_ALONE: Duration = Duration::from_millis(500);

/// How long to search for orphans and end them.
const PATIENCE: Duration = Duration::from_secs(3);

/// Pause between two searches. During this time, living keepers end their own processes, and the
/// host inherits the rest.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Number of consecutive searches that must find nothing.
const QUIET_LOOKS: u32 = 3;

/// A process without keeper and guardian that the host has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Its process id.
    pub pid: u32,
    /// Its name as `ps` shows it, at most 15 bytes.
    pub name: String,
}

impl fmt::Display for Orphan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, name } = self;
        write!(f, "ended process {pid} ({name}): a command had ended its keeper")
    }
}

/// Prepares this process to be a host. Its children can be waited for, whatever its parent ignored.
/// If a command ends its keeper and the guardian, the command's processes become children of this
/// process, which ends them.
///
/// For a dedicated host program, before it starts a thread. A program that also starts processes
/// itself gets their orphans too, and should wait for them.
///
/// # Errors
/// If the system refuses that.
pub fn prepare_host() -> io::Result<()> {
    platform::default_child_signal()?;
    platform::adopt_orphans()
}

/// Ends the orphans of a lost guardian and returns them.
pub(crate) async fn end_orphans(guardian: u32) -> Vec<Orphan> {
    let began = Instant::now();
    let mut looks = OrphanSearch::default();
    while looks.quiet < QUIET_LOOKS && began.elapsed() < PATIENCE {
        // Running keepers end their processes themselves, but one may have been stopped.
        looks.search_and_kill(began.elapsed() > KEEPERS_ALONE);
        // A dying process closes its socket first, and its children are reassigned later.
        if name_if_alive(guardian as i32).is_some() {
            looks.quiet = 0;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    looks.ended
}

#[derive(Default)]
struct OrphanSearch {
    ended: Vec<Orphan>,
    /// Children that the kernel gave to this process and that it has not reaped.
    adopted: BTreeSet<i32>,
    /// Consecutive searches that found nothing.
    quiet: u32,
}

impl OrphanSearch {
    fn search_and_kill(&mut self, with_keepers: bool) {
        let keepers = find_children_named(KEEPER_NAME);
        let roots = read_until_stable(find_marked_children);
        let mut tree = with_descendants(roots.clone());
        for pid in &tree {
            let is_known = self.ended.iter().any(|orphan| orphan.pid == *pid as u32);
            if is_known || self.ended.len() >= LEFTOVERS_MAX {
                continue;
            }
            self.ended.extend(name_if_alive(*pid).map(|name| Orphan { pid: *pid as u32, name }));
        }
        self.adopted.extend(roots.iter().chain(&keepers));
        if with_keepers {
            tree.extend(keepers);
        }
        signal_all(&tree, Signal::SIGKILL);
        // By number, because the code that started this process's other children waits for them.
        let waits = |pid: &i32| {
            let waited = waitpid(Pid::from_raw(*pid), Some(WaitPidFlag::WNOHANG));
            matches!(waited, Ok(WaitStatus::StillAlive))
        };
        self.adopted.retain(waits);
        self.quiet = if self.adopted.is_empty() { self.quiet + 1 } else { 0 };
    }
}

//! A command with all its descendants, which are started, signalled, and observed to their end.
//!
//! This process makes itself a subreaper, so that orphaned processes become its children and are
//! waited for here. This gives two exact values without looking at `/proc`: the time at which the
//! last process has ended (no child is left to wait for), and the processor time of all of them,
//! which the system adds up in nanoseconds instead of ticks.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::time::TimeVal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::bench::processes::descendants_of;
use xtask::child;

/// How often to kill processes that should have ended, until none is left.
const KILL_EVERY: Duration = Duration::from_millis(10);

/// A running command. It leads a process group, like a command that a shell starts.
pub struct ProcessTree {
    root: Pid,
    started: Instant,
    cpu_before: Duration,
}

/// The end of the whole tree.
#[derive(Debug)]
pub struct ProcessTreeOutcome {
    /// The exit code or signal of the command itself.
    pub status: WaitStatus,
    /// The time until the command itself ended.
    pub wall: Duration,
    /// When all processes were gone.
    pub gone: Instant,
    /// The user and system time of the command and all its descendants.
    pub cpu: Duration,
    /// The number of processes that were killed here because they did not end in time.
    pub killed: usize,
}

impl ProcessTree {
    /// Starts the command. This process must have no other child, because it would count as a
    /// descendant of the command.
    pub fn start_tree(command: &mut Command) -> Result<Self> {
        set_child_subreaper(true).context("becoming a subreaper")?;
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => {}
            other => bail!("another child is in the way of the measurement: {other:?}"),
        }
        let cpu_before = children_cpu_time()?;
        command.process_group(0);
        let started = Instant::now();
        // This handle does not wait for the child: `wait_for_end` waits for all children.
        let child = command
            .spawn()
            .with_context(|| format!("starting {}", child::command_text(command)))?;
        let root = Pid::from_raw(i32::try_from(child.id()).context("a process id is too big")?);
        Ok(Self { root, started, cpu_before })
    }

    /// The command's process id.
    pub fn process_id(&self) -> u32 {
        self.root.as_raw().unsigned_abs()
    }

    /// Interrupts the command like a terminal does: sends the signal to the whole process group.
    pub fn send_interrupt(&self) -> Result<Instant> {
        let at = Instant::now();
        killpg(self.root, Signal::SIGINT).context("interrupting")?;
        Ok(at)
    }

    /// Kills only the command, without time to clean up.
    pub fn kill_command(&self) -> Result<Instant> {
        let at = Instant::now();
        kill(self.root, Signal::SIGKILL).context("killing")?;
        Ok(at)
    }

    /// Waits until all processes are gone. Kills and counts those that are alive after `within`.
    pub fn wait_for_end(self, within: Duration) -> Result<ProcessTreeOutcome> {
        let killer = DescendantKiller::start_killer(within);
        let mut ended = None;
        let gone = loop {
            match waitpid(None, None) {
                Ok(status) if status.pid() == Some(self.root) => {
                    ended = Some((status, self.started.elapsed()));
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(Errno::ECHILD) => break Instant::now(),
                Err(error) => return Err(error).context("waiting for processes"),
            }
        };
        let killed = killer.stop_killer()?;
        let (status, wall) = ended.context("the command was waited for by someone else")?;
        let cpu = children_cpu_time()?.saturating_sub(self.cpu_before);
        Ok(ProcessTreeOutcome { status, wall, gone, cpu, killed })
    }
}

/// Returns the processor time of all children that were waited for, and of their descendants.
fn children_cpu_time() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("asking for the processor time")?;
    Ok(duration_from_timeval(usage.user_time()) + duration_from_timeval(usage.system_time()))
}

fn duration_from_timeval(time: TimeVal) -> Duration {
    let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
    Duration::from_micros(micros.unsigned_abs())
}

/// Kills all descendants of this process when their time is up.
struct DescendantKiller {
    stop: Sender<()>,
    thread: JoinHandle<usize>,
}

impl DescendantKiller {
    fn start_killer(within: Duration) -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let mut wait = within;
            let mut killed = Vec::new();
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                for process in descendants_of(std::process::id()) {
                    // It may have ended since it was listed.
                    let _ = kill(Pid::from_raw(process.cast_signed()), Signal::SIGKILL);
                    if !killed.contains(&process) {
                        killed.push(process);
                    }
                }
                wait = KILL_EVERY;
            }
            killed.len()
        });
        Self { stop, thread }
    }

    fn stop_killer(self) -> Result<usize> {
        drop(self.stop);
        self.thread.join().ok().context("the thread that kills the remaining processes panicked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set in the process that a test starts for itself, where other tests have no children.
    const ALONE: &str = "JAATO_XTASK_TEST_ALONE";

    /// Runs the test in its own process. Returns true inside that process.
    #[track_caller]
    fn is_in_own_process(name: &str) -> bool {
        if std::env::var_os(ALONE).is_some() {
            return true;
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--test-threads=1"]).env(ALONE, "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "no test `{name}`");
        false
    }

    fn shell_process_tree(script: &str) -> ProcessTree {
        ProcessTree::start_tree(Command::new("sh").arg("-c").arg(script)).unwrap()
    }

    #[test]
    fn detached_child_is_awaited_and_its_processor_time_counts() {
        if !is_in_own_process(
            "bench::agent::tree::tests::detached_child_is_awaited_and_its_processor_time_counts",
        ) {
            return;
        }
        let spin = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let ended = shell_process_tree(&format!("setsid sh -c '{spin}' & exit 7"))
            .wait_for_end(Duration::from_secs(60));
        let ended = ended.unwrap();
        assert!(matches!(ended.status, WaitStatus::Exited(_, 7)), "{ended:?}");
        assert!(ended.cpu > Duration::from_millis(5), "{ended:?}");
        assert_eq!(ended.killed, 0);
        // The time of one run does not count for the next.
        let next = shell_process_tree(":").wait_for_end(Duration::from_secs(60)).unwrap();
        assert!(next.cpu < ended.cpu, "{next:?} {ended:?}");
    }

    #[test]
    fn process_that_does_not_end_is_killed_and_counted() {
        if !is_in_own_process(
            "bench::agent::tree::tests::process_that_does_not_end_is_killed_and_counted",
        ) {
            return;
        }
        let ended = shell_process_tree("setsid sleep 600 & exit 0")
            .wait_for_end(Duration::from_secs(1))
            .unwrap();
        assert!(matches!(ended.status, WaitStatus::Exited(_, 0)), "{ended:?}");
        assert_eq!(ended.killed, 1, "{ended:?}");
    }

    #[test]
    fn interrupt_reaches_the_process_group_and_kill_only_the_command() {
        if !is_in_own_process(
            "bench::agent::tree::tests::interrupt_reaches_the_process_group_and_kill_only_the_command",
        ) {
            return;
        }
        let tree = shell_process_tree("sleep 600; exit 3");
        let (at, root) = (tree.send_interrupt().unwrap(), tree.root);
        // A shell that is about to start its child may swallow the signal, so send it again like a
        // user would.
        let pressing = std::thread::spawn(move || {
            while killpg(root, Signal::SIGINT).is_ok() {
                std::thread::sleep(KILL_EVERY);
            }
        });
        let ended = tree.wait_for_end(Duration::from_secs(60)).unwrap();
        pressing.join().unwrap();
        assert!(matches!(ended.status, WaitStatus::Signaled(_, Signal::SIGINT, _)), "{ended:?}");
        assert!(ended.gone > at);
        let tree = shell_process_tree("exec sleep 600");
        tree.kill_command().unwrap();
        let ended = tree.wait_for_end(Duration::from_secs(60)).unwrap();
        assert!(matches!(ended.status, WaitStatus::Signaled(_, Signal::SIGKILL, _)), "{ended:?}");
    }
}

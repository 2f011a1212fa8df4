//! A command and all that descends from it: started, signalled, and seen to its very end.
//!
//! This process makes itself a subreaper, so that whatever loses its parent becomes its child and
//! is waited for here. That makes two things exact without a look at `/proc`: when the last process
//! has ended (there is no child left to wait for), and the processor time of all of them together,
//! which the system adds up as they are waited for, in nanoseconds, not in ticks.

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

/// How often what should have ended long ago is killed again, until nothing is left.
const KILL_EVERY: Duration = Duration::from_millis(10);

/// A running command. It leads a process group, as one that a shell starts.
pub struct Tree {
    root: Pid,
    started: Instant,
    cpu_before: Duration,
}

/// How all of it has ended.
#[derive(Debug)]
pub struct Ended {
    /// Of the command itself: its exit code, or the signal that ended it.
    pub status: WaitStatus,
    /// Until the command itself has ended.
    pub wall: Duration,
    /// When nothing of it was left.
    pub gone: Instant,
    /// User and system time of the command and all its descendants.
    pub cpu: Duration,
    /// How many had to be killed here, because they had not ended in time.
    pub killed: usize,
}

impl Tree {
    /// Starts the command. No other child of this process may live: it would be taken for one of
    /// the command's.
    pub fn start(command: &mut Command) -> Result<Self> {
        set_child_subreaper(true).context("becoming a subreaper")?;
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => {}
            other => bail!("another child is in the way of the measurement: {other:?}"),
        }
        let cpu_before = cpu_of_children()?;
        command.process_group(0);
        let started = Instant::now();
        // Not waited for by this handle: `end` waits for every child, whoever started it.
        let child =
            command.spawn().with_context(|| format!("starting {}", child::shown(command)))?;
        let root = Pid::from_raw(i32::try_from(child.id()).context("a process id is too big")?);
        Ok(Self { root, started, cpu_before })
    }

    /// The command's process id.
    pub fn id(&self) -> u32 {
        self.root.as_raw().unsigned_abs()
    }

    /// Interrupts it as a terminal does: the whole process group gets the signal.
    pub fn interrupt(&self) -> Result<Instant> {
        let at = Instant::now();
        killpg(self.root, Signal::SIGINT).context("interrupting")?;
        Ok(at)
    }

    /// Kills the command alone, with no time to clean up.
    pub fn kill(&self) -> Result<Instant> {
        let at = Instant::now();
        kill(self.root, Signal::SIGKILL).context("killing")?;
        Ok(at)
    }

    /// Waits until nothing is left of it. What lives after `within` is killed and counted.
    pub fn end(self, within: Duration) -> Result<Ended> {
        let killer = Killer::start(within);
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
        let killed = killer.stop()?;
        let (status, wall) = ended.context("the command was waited for by someone else")?;
        let cpu = cpu_of_children()?.saturating_sub(self.cpu_before);
        Ok(Ended { status, wall, gone, cpu, killed })
    }
}

/// What all children that were waited for, and theirs, have taken.
fn cpu_of_children() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("asking for the processor time")?;
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}

fn duration(time: TimeVal) -> Duration {
    let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
    Duration::from_micros(micros.unsigned_abs())
}

/// Kills all descendants of this process when their time is up.
struct Killer {
    stop: Sender<()>,
    thread: JoinHandle<usize>,
}

impl Killer {
    fn start(within: Duration) -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let mut wait = within;
            let mut killed = Vec::new();
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                for process in descendants_of(std::process::id()) {
                    // It may have ended since it was seen.
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

    fn stop(self) -> Result<usize> {
        drop(self.stop);
        self.thread.join().ok().context("the thread that kills what is left panicked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set in the process that a test starts for itself: other tests' children are not there.
    const ALONE: &str = "JAATO_XTASK_TEST_ALONE";

    /// Runs the test in a process of its own; true inside it.
    #[track_caller]
    fn alone(name: &str) -> bool {
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

    fn shell(script: &str) -> Tree {
        Tree::start(Command::new("sh").arg("-c").arg(script)).unwrap()
    }

    #[test]
    fn what_left_its_parent_is_waited_for_and_its_time_counts() {
        if !alone(
            "bench::agent::tree::tests::what_left_its_parent_is_waited_for_and_its_time_counts",
        ) {
            return;
        }
        let spin = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let ended = shell(&format!("setsid sh -c '{spin}' & exit 7")).end(Duration::from_secs(60));
        let ended = ended.unwrap();
        assert!(matches!(ended.status, WaitStatus::Exited(_, 7)), "{ended:?}");
        assert!(ended.cpu > Duration::from_millis(5), "{ended:?}");
        assert_eq!(ended.killed, 0);
        // The time of one run is not that of the next.
        let next = shell(":").end(Duration::from_secs(60)).unwrap();
        assert!(next.cpu < ended.cpu, "{next:?} {ended:?}");
    }

    #[test]
    fn what_does_not_end_is_killed_and_counted() {
        if !alone("bench::agent::tree::tests::what_does_not_end_is_killed_and_counted") {
            return;
        }
        let ended = shell("setsid sleep 600 & exit 0").end(Duration::from_secs(1)).unwrap();
        assert!(matches!(ended.status, WaitStatus::Exited(_, 0)), "{ended:?}");
        assert_eq!(ended.killed, 1, "{ended:?}");
    }

    #[test]
    fn a_signal_reaches_the_group_and_a_kill_the_command_alone() {
        if !alone(
            "bench::agent::tree::tests::a_signal_reaches_the_group_and_a_kill_the_command_alone",
        ) {
            return;
        }
        let tree = shell("sleep 600; exit 3");
        let (at, root) = (tree.interrupt().unwrap(), tree.root);
        // A shell that is about to start its child may swallow one: a person presses again.
        let pressing = std::thread::spawn(move || {
            while killpg(root, Signal::SIGINT).is_ok() {
                std::thread::sleep(KILL_EVERY);
            }
        });
        let ended = tree.end(Duration::from_secs(60)).unwrap();
        pressing.join().unwrap();
        assert!(matches!(ended.status, WaitStatus::Signaled(_, Signal::SIGINT, _)), "{ended:?}");
        assert!(ended.gone > at);
        let tree = shell("exec sleep 600");
        tree.kill().unwrap();
        let ended = tree.end(Duration::from_secs(60)).unwrap();
        assert!(matches!(ended.status, WaitStatus::Signaled(_, Signal::SIGKILL, _)), "{ended:?}");
    }
}

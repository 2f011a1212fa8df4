//! A keeper: the guardian's fork that starts one command and watches its descendants.
//!
//! Each child has its own keeper, because only then is it clear to whom an orphan belongs. To the
//! kernel, a process that left its session, its parent and its variables is still the keeper's.
//!
//! Invariants: a keeper exits only when it has no child left. When the host or the guardian ends,
//! the keeper ends its children, whatever it is doing.

use std::ffi::CStr;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{self, ExitCode};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal as SystemSignal, killpg};
use nix::unistd::{Pid, getpgid, setsid};

use crate::child::{GroupSignal, Leftover};
use crate::descendants::{read_until_stable, signal_all};
use crate::platform::{self, ChildSignals, list_children, name_if_alive, with_descendants};
use crate::waiting::{SignalRounds, reap_children, wait_for};
use crate::wire::{
    KeeperEvent, KeeperOrder, KeeperRequest, LEFTOVERS_MAX, LENGTH_BYTES, ORDER_BYTES,
    REQUEST_BYTES_MAX, StartRefusal,
};

/// Time for cleanup between TERM and KILL. A cancel must be over within 100 ms.
pub const END_GRACE: Duration = Duration::from_millis(50);

/// How long after the first KILL the keeper reports the survivors to the host.
const REPORT_AFTER: Duration = Duration::from_secs(2);

/// The keeper's name in `ps`.
pub(crate) const KEEPER_NAME: &CStr = c"jaato-keeper";

/// The state that a keeper takes over from the guardian.
pub(crate) struct KeeperStart {
    /// The connection to the host, at descriptor 3.
    pub socket: UnixStream,
    /// The command's descriptors.
    pub stdio: Stdio,
    /// Hangs up when the guardian or the host has ended.
    pub life: OwnedFd,
}

/// The command's descriptors. A missing one is `/dev/null`.
pub(crate) struct Stdio {
    pub stdin: Option<OwnedFd>,
    pub stdout: Option<OwnedFd>,
    pub stderr: Option<OwnedFd>,
    pub descriptor3: Option<OwnedFd>,
}

/// Reads a request, starts the command and watches it until all its processes are gone.
pub(crate) fn run_keeper(start: KeeperStart) -> ExitCode {
    let KeeperStart { mut socket, stdio, life } = start;
    platform::name_process(KEEPER_NAME);
    let started = prepare_keeper().and_then(|signals| {
        let request = read_request(&mut socket)?;
        Ok((signals, request.and_then(|request| start_command(request, stdio))))
    });
    match started {
        Ok((signals, Ok(command))) => {
            let mut keeper = KeeperProcess {
                host: Some(socket),
                life: Some(life),
                signals,
                command,
                exited: false,
                phase: KeeperPhase::Watching,
                held: TreeLifetime::ByHost,
                silent: false,
            };
            keeper.send_event(&KeeperEvent::Started { pid: command.as_raw() as u32 });
            keeper.run_event_loop();
        }
        Ok((_, Err(refusal))) => {
            // A host that is gone needs no message.
            let _ = socket.write_all(&KeeperEvent::Refused(refusal).encode());
        }
        // The host ended before it sent a request, or it sees the end of this keeper.
        Err(_) => {}
    }
    ExitCode::SUCCESS
}

fn prepare_keeper() -> io::Result<ChildSignals> {
    // Leave the guardian's group, so that a signal to that group reaches only one process.
    setsid()?;
    platform::adopt_orphans()?;
    ChildSignals::new()
}

fn read_request(socket: &mut UnixStream) -> io::Result<Result<KeeperRequest, StartRefusal>> {
    let mut length = [0; LENGTH_BYTES];
    socket.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > REQUEST_BYTES_MAX {
        return Ok(Err(StartRefusal::Malformed));
    }
    let mut bytes = vec![0; length];
    socket.read_exact(&mut bytes)?;
    Ok(KeeperRequest::decode(&bytes))
}

fn start_command(request: KeeperRequest, stdio: Stdio) -> Result<Pid, StartRefusal> {
    let errno = |error: &io::Error| error.raw_os_error().unwrap_or(0);
    // Changed here rather than in the child, to distinguish this failure from the program's.
    std::env::set_current_dir(&request.directory)
        .map_err(|error| StartRefusal::Directory(errno(&error)))?;
    let Stdio { stdin, stdout, stderr, descriptor3 } = stdio;
    let place = |fd: Option<OwnedFd>| fd.map_or_else(process::Stdio::null, process::Stdio::from);
    let mut command = process::Command::new(&request.program);
    command.args(request.args).env_clear().envs(request.variables);
    command.stdin(place(stdin)).stdout(place(stdout)).stderr(place(stderr));
    platform::prepare_child(&mut command, request.limits, request.input, descriptor3);
    let spawned = command.spawn();
    // Keep none of the command's descriptors open here, or its pipes would never end.
    drop(command);
    // A keeper must not keep a directory in use. `/` always exists.
    let _ = std::env::set_current_dir("/");
    match spawned {
        Ok(child) => Ok(Pid::from_raw(child.id() as i32)),
        Err(error) => Err(StartRefusal::Program(errno(&error))),
    }
}

enum KeeperPhase {
    /// The command may run.
    Watching,
    /// Its tree was asked to end before this time.
    Asked { until: Instant },
    /// Its tree is being killed.
    Killing { rounds: SignalRounds, report_at: Instant },
}

/// The handles that keep the tree alive.
#[derive(PartialEq, Eq)]
enum TreeLifetime {
    /// The host's end of the socket.
    ByHost,
    /// Only the host's life, because the child was released.
    Released,
}

struct KeeperProcess {
    host: Option<UnixStream>,
    /// `None` once it has hung up.
    life: Option<OwnedFd>,
    signals: ChildSignals,
    command: Pid,
    /// Whether the command has ended and was reaped.
    exited: bool,
    phase: KeeperPhase,
    held: TreeLifetime,
    /// Whether to stop reporting.
    silent: bool,
}

impl KeeperProcess {
    fn run_event_loop(&mut self) {
        loop {
            let reaped = reap_children();
            if let Some((_, exit)) = reaped.ended.iter().find(|(pid, _)| *pid == self.command) {
                self.exited = true;
                self.send_event(&KeeperEvent::Exited(*exit));
            }
            if !reaped.more && !self.group_outlives_command() {
                self.send_event(&KeeperEvent::Ended { survivors: Vec::new() });
                return;
            }
            let timeout = self.advance_phase();
            let places = [self.life.as_ref().map(AsFd::as_fd), self.host.as_ref().map(AsFd::as_fd)];
            match wait_for(&self.signals, places, timeout) {
                Ok([life_ended, from_host]) => {
                    if life_ended {
                        // The host must see an end without messages once nothing is left, because
                        // the command's exit is now caused by the keeper.
                        self.life = None;
                        self.silent = true;
                        self.kill_tree();
                    }
                    if from_host {
                        self.handle_order();
                    }
                }
                // Without polling the keeper cannot watch, so end everything.
                Err(_) => self.kill_tree(),
            }
        }
    }

    /// Performs due work and returns how long the keeper may sleep.
    fn advance_phase(&mut self) -> Option<Duration> {
        let now = Instant::now();
        match &mut self.phase {
            KeeperPhase::Watching => return None,
            KeeperPhase::Asked { until } if *until > now => return Some(*until - now),
            KeeperPhase::Asked { .. } => self.kill_tree(),
            KeeperPhase::Killing { .. } => {}
        }
        let KeeperPhase::Killing { rounds, report_at } = &self.phase else { return None };
        let report_at = *report_at;
        let reached = rounds.is_due().then(|| self.signal_tree(SystemSignal::SIGKILL));
        let KeeperPhase::Killing { rounds, .. } = &mut self.phase else { return None };
        if let Some(reached) = reached {
            rounds.record_round(reached);
        }
        let mut due_in = rounds.due_in();
        if self.host.is_some() {
            let report_in = report_at.saturating_duration_since(now);
            if report_in.is_zero() {
                self.report_survivors();
            } else {
                due_in = due_in.min(report_in);
            }
        }
        Some(due_in)
    }

    fn ask_to_end(&mut self) {
        if matches!(self.phase, KeeperPhase::Watching) {
            self.signal_tree(SystemSignal::SIGTERM);
            // A stopped process handles the signal only after it continues.
            self.signal_tree(SystemSignal::SIGCONT);
            self.phase = KeeperPhase::Asked { until: Instant::now() + END_GRACE };
        }
    }

    fn kill_tree(&mut self) {
        if !matches!(self.phase, KeeperPhase::Killing { .. }) {
            let report_at = Instant::now() + REPORT_AFTER;
            self.phase = KeeperPhase::Killing { rounds: SignalRounds::begin(), report_at };
        }
    }

    /// Reads one order. The end of the host's socket is an order too, unless the child was
    /// released.
    fn handle_order(&mut self) {
        let Some(host) = self.host.as_mut() else { return };
        let mut bytes = [0; ORDER_BYTES];
        match host.read_exact(&mut bytes).ok().and_then(|()| KeeperOrder::decode(bytes)) {
            Some(KeeperOrder::Signal(signal)) => self.signal_group(system_signal(signal)),
            Some(KeeperOrder::End) => self.ask_to_end(),
            Some(KeeperOrder::Leftovers) => {
                let leftovers = self.leftovers();
                self.send_event(&KeeperEvent::Leftovers(leftovers));
            }
            Some(KeeperOrder::Release) => self.held = TreeLifetime::Released,
            None => {
                self.host = None;
                if self.held == TreeLifetime::ByHost {
                    self.ask_to_end();
                }
            }
        }
    }

    /// Signals all descendants and returns the processes that it reached.
    fn signal_tree(&self, signal: SystemSignal) -> Vec<i32> {
        let mut tree = with_descendants(list_children());
        // Without `/proc`, no process can be found, so signal the command's group. No other group
        // can have its number while a member lives.
        if tree.is_empty() && (!self.exited || self.group_outlives_command()) {
            tree.push(self.command.as_raw());
            // An ended command has no group to look up, but its members still have one.
            let _ = killpg(self.command, signal);
        }
        signal_all(&tree, signal)
    }

    /// Returns true if members of the command's group still run, on systems that do not give
    /// orphans to the keeper.
    fn group_outlives_command(&self) -> bool {
        cfg!(not(target_os = "linux")) && killpg(self.command, None).is_ok()
    }

    fn signal_group(&self, signal: SystemSignal) {
        // After the command is reaped, another process could have its number, unless one of our
        // processes is in that group.
        let is_ours = !self.exited
            || with_descendants(list_children())
                .into_iter()
                .any(|pid| getpgid(Some(Pid::from_raw(pid))) == Ok(self.command));
        if is_ours {
            // If the group has just ended, the host learns that from the next event.
            let _ = killpg(self.command, signal);
        }
    }

    /// Returns every living process of the tree except the command itself.
    fn leftovers(&self) -> Vec<Leftover> {
        let pids = read_until_stable(|| with_descendants(list_children()));
        let others = pids.into_iter().filter(|pid| *pid != self.command.as_raw());
        let named = others.filter_map(|pid| Some((pid as u32, name_if_alive(pid)?)));
        named.take(LEFTOVERS_MAX).map(|(pid, name)| Leftover { pid, name }).collect()
    }

    fn report_survivors(&mut self) {
        let living = read_until_stable(|| with_descendants(list_children())).into_iter();
        let living = living.filter(|pid| name_if_alive(*pid).is_some());
        let survivors = living.map(|pid| pid as u32).collect();
        self.send_event(&KeeperEvent::Ended { survivors });
        self.host = None;
    }

    /// Sends an event. If the host no longer listens, the end of its socket shows that.
    fn send_event(&mut self, event: &KeeperEvent) {
        if let Some(host) = self.host.as_mut().filter(|_| !self.silent) {
            let _ = host.write_all(&event.encode());
        }
    }
}

fn system_signal(signal: GroupSignal) -> SystemSignal {
    match signal {
        GroupSignal::Hangup => SystemSignal::SIGHUP,
        GroupSignal::Interrupt => SystemSignal::SIGINT,
        GroupSignal::Quit => SystemSignal::SIGQUIT,
        GroupSignal::Terminate => SystemSignal::SIGTERM,
        GroupSignal::Kill => SystemSignal::SIGKILL,
        GroupSignal::User1 => SystemSignal::SIGUSR1,
        GroupSignal::User2 => SystemSignal::SIGUSR2,
        GroupSignal::Stop => SystemSignal::SIGSTOP,
        GroupSignal::Continue => SystemSignal::SIGCONT,
    }
}

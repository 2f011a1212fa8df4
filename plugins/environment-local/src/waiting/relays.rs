//! Looks behind programs that relay input.

use std::time::{Duration, Instant};

use jaato_plugin_sdk_environment::waiting::WaitingProcess;

use super::group::{ForegroundGroup, WaitEvidence, foreground_members};
use super::process::{ProcessStat, TerminalDevice, is_terminal_descriptor, list_terminal_holders};

/// Programs that relay input. Their own wait does not show which program gets the input.
pub(super) const RELAYS: [&str; 10] = [
    "ssh",
    "docker",
    "podman",
    "kubectl",
    "sudo",
    "su",
    "script",
    "screen",
    "rlwrap",
    "tmux: client",
];

/// Clients whose server reads their terminal, with the server's name.
const SERVED: [(&str, &str); 2] = [("tmux: client", "tmux: server"), ("screen", "screen")];

/// Relays that create one terminal and start one program on it.
const SINGLE: [&str; 4] = ["sudo", "su", "script", "rlwrap"];

/// Levels of nested terminals (`sudo` in `script`) to inspect.
const DEPTH_MAX: usize = 4;

/// Time between two failed searches for a server, because each goes through all processes.
const SEARCH_PAUSE: Duration = Duration::from_millis(100);

/// State kept between looks at a terminal.
#[derive(Debug, Default)]
pub struct RelayCache {
    /// The server that reads the terminal, and its descriptor.
    server: Option<(u32, u32)>,
    /// Relays that start one program on a terminal of their own, with that terminal. At most
    /// [`DEPTH_MAX`] entries.
    inner: Vec<(u32, TerminalDevice)>,
    searched: Option<Instant>,
}

/// A terminal that a relay created for another program.
struct RelayedTerminal {
    device: TerminalDevice,
    foreground: u32,
    tree: Vec<ProcessStat>,
}

impl ForegroundGroup<'_> {
    /// Follows relays into their own terminals, and collects the evidence there.
    pub(super) fn follow_relays(&mut self, tree: Vec<ProcessStat>, memory: &mut RelayCache) {
        let outer = self.terminal;
        let mut at = RelayedTerminal { device: outer.device, foreground: outer.foreground, tree };
        let mut passed = Vec::new();
        for _ in 0..DEPTH_MAX {
            let is_relay = |process: &&ProcessStat| {
                RELAYS.contains(&process.name.as_str()) && !passed.contains(&process.pid)
            };
            let relay =
                foreground_members(&at.tree, at.device, at.foreground).find(is_relay).cloned();
            let Some(relay) = relay else { return };
            let (passes_on, mut inners) = self.find_terminals_behind_relay(&relay, &at, memory);
            // A server has no controlling terminal, so it also appears in the terminals that it
            // created.
            passed.extend([relay.pid, passes_on.pid]);
            match inners.len() {
                // The program behind the relay is unknown.
                0 => return self.record_unknown_relay(&relay),
                1 => at = inners.remove(0),
                _ => return self.add_window_terminals(&relay, &passes_on, &inners),
            }
            // The relay's own wait does not count.
            self.best = None;
            self.add_inner_terminal(&at, &passes_on);
        }
    }

    /// Finds the terminals behind a relay, and the process that relays to them.
    fn find_terminals_behind_relay(
        &mut self,
        relay: &ProcessStat,
        at: &RelayedTerminal,
        memory: &mut RelayCache,
    ) -> (ProcessStat, Vec<RelayedTerminal>) {
        let served = SERVED.iter().find(|(client, _)| *client == relay.name);
        // A client whose name differs from its server's name has no terminals of its own.
        let own = match served {
            Some((client, server)) if client != server => Vec::new(),
            Some(_) | None => memory.find_relayed_terminals(relay, &at.tree),
        };
        let Some((_, server)) = served.filter(|_| own.is_empty()) else {
            return (relay.clone(), own);
        };
        let server =
            memory.find_server(server, relay.pid, at.device).and_then(ProcessStat::read_stat);
        let Some(server) = server else { return (relay.clone(), own) };
        let tree = self.process_tree(server.clone());
        let inners = relayed_terminals(&server, &tree);
        (server, inners)
    }

    /// Records a relay whose inner program is unknown.
    fn record_unknown_relay(&mut self, relay: &ProcessStat) {
        // Other relays wait on the terminal themselves, but a server does it for these clients.
        if self.best.is_none() && SERVED.iter().any(|(client, _)| *client == relay.name) {
            let run = relay.run_time(relay.pid);
            let waiter = WaitingProcess { pid: relay.pid, thread: relay.pid, run, takes_ms: None };
            self.best = Some((WaitEvidence::Relaying, waiter));
        }
    }

    fn add_inner_terminal(&mut self, inner: &RelayedTerminal, passes_on: &ProcessStat) {
        // The relay may have read input that it has not yet passed on.
        if self.is_process_running(passes_on) || inner.device.has_input() == Some(true) {
            return;
        }
        for process in foreground_members(&inner.tree, inner.device, inner.foreground) {
            self.add_process(process, inner.device);
        }
        if let Some((_, waiter)) = &mut self.best {
            // The program's last output may still be on its way through the relay.
            let run = passes_on.run_time(passes_on.pid).unwrap_or_default();
            waiter.run = waiter.run.take().map(|own| own + &run);
        }
    }

    /// Adds the evidence of several windows. The visible one is unknown, so evidence must hold for
    /// all of them.
    fn add_window_terminals(
        &mut self,
        relay: &ProcessStat,
        passes_on: &ProcessStat,
        windows: &[RelayedTerminal],
    ) {
        let mut first = None;
        for window in windows {
            self.best = None;
            self.add_inner_terminal(window, passes_on);
            if !self.is_certain() {
                self.best = None;
                return self.record_unknown_relay(relay);
            }
            first = first.or_else(|| self.best.take());
        }
        self.best = first;
    }
}

/// Lists the terminals whose controlling side a process holds, with their foreground processes.
fn relayed_terminals(holder: &ProcessStat, tree: &[ProcessStat]) -> Vec<RelayedTerminal> {
    let terminals = holder.inner_terminals().into_iter();
    terminals.filter_map(|device| RelayedTerminal::find_on_device(device, tree)).collect()
}

impl RelayedTerminal {
    /// Returns the inner terminal of a device, if a process is on it.
    fn find_on_device(device: TerminalDevice, tree: &[ProcessStat]) -> Option<Self> {
        let member = tree.iter().find(|process| process.terminal == device)?;
        Some(Self { device, foreground: member.foreground, tree: tree.to_vec() })
    }
}

impl RelayCache {
    /// Finds a relay's own terminals. The result for a relay with a single terminal is cached while
    /// a process is on that terminal, so that its descriptors do not have to be searched each time.
    fn find_relayed_terminals(
        &mut self,
        relay: &ProcessStat,
        tree: &[ProcessStat],
    ) -> Vec<RelayedTerminal> {
        let kept = self.inner.iter().position(|(pid, _)| *pid == relay.pid);
        if let Some(at) = kept {
            let (_, device) = self.inner.remove(at);
            if let Some(inner) = RelayedTerminal::find_on_device(device, tree) {
                self.inner.push((relay.pid, device));
                return vec![inner];
            }
        }
        let inners = relayed_terminals(relay, tree);
        if let [inner] = &inners[..]
            && SINGLE.contains(&relay.name.as_str())
        {
            self.inner.push((relay.pid, inner.device));
            // Drop the entry that was unused for the longest time.
            let excess = self.inner.len().saturating_sub(DEPTH_MAX);
            self.inner.drain(..excess);
        }
        inners
    }

    /// Finds the server that reads a terminal.
    fn find_server(&mut self, name: &str, client: u32, terminal: TerminalDevice) -> Option<u32> {
        if let Some((server, number)) = self.server
            && is_terminal_descriptor(server, number, terminal)
        {
            return Some(server);
        }
        if self.searched.is_some_and(|at| at.elapsed() < SEARCH_PAUSE) {
            return None;
        }
        self.searched = Some(Instant::now());
        self.server =
            list_terminal_holders(name, terminal).into_iter().find(|(pid, _)| *pid != client);
        self.server.map(|(server, _)| server)
    }
}

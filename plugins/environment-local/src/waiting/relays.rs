//! Behind programs that pass on what is typed.

use std::time::{Duration, Instant};

use jaato_plugin_sdk_environment::waiting::Waiter;

use super::group::{Evidence, Group, members};
use super::process::{Device, Process, holders, holds};

/// Programs that pass on what is typed: that they wait for it says nothing of who gets it.
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

/// Clients of a server that has their terminal open and reads it, and what the server is called.
const SERVED: [(&str, &str); 2] = [("tmux: client", "tmux: server"), ("screen", "screen")];

/// Relays that make one terminal, and start one program on it.
const SINGLE: [&str; 4] = ["sudo", "su", "script", "rlwrap"];

/// Terminals inside of terminals (`sudo` in `script`) that are gone into.
const DEPTH_MAX: usize = 4;

/// Time between two searches for a server that is not found: one goes through all processes.
const SEARCH_PAUSE: Duration = Duration::from_millis(100);

/// What is kept of a terminal from look to look.
#[derive(Debug, Default)]
pub struct Memory {
    /// The server that reads the terminal, and as which descriptor.
    server: Option<(u32, u32)>,
    /// Relays that start one program on a terminal of their own, and that terminal: at most
    /// [`DEPTH_MAX`].
    inner: Vec<(u32, Device)>,
    searched: Option<Instant>,
}

/// A terminal that a relay has for whom it relays to.
struct Inner {
    device: Device,
    foreground: u32,
    tree: Vec<Process>,
}

impl Group<'_> {
    /// Where a relay has a terminal of its own for whom it relays to, that one tells who waits.
    pub(super) fn go_into_relays(&mut self, tree: Vec<Process>, memory: &mut Memory) {
        let outer = self.terminal;
        let mut at = Inner { device: outer.device, foreground: outer.foreground, tree };
        let mut passed = Vec::new();
        for _ in 0..DEPTH_MAX {
            let is_relay = |process: &&Process| {
                RELAYS.contains(&process.name.as_str()) && !passed.contains(&process.pid)
            };
            let relay = members(&at.tree, at.device, at.foreground).find(is_relay).cloned();
            let Some(relay) = relay else { return };
            let (passes_on, mut inners) = self.inside(&relay, &at, memory);
            // A server has no terminal of its own, so that it is seen in those that it made too.
            passed.extend([relay.pid, passes_on.pid]);
            match inners.len() {
                // Nothing is known of whom it relays to.
                0 => return self.relays(&relay),
                1 => at = inners.remove(0),
                _ => return self.add_windows(&relay, &passes_on, &inners),
            }
            // What the relay itself waits for counts no more.
            self.best = None;
            self.add_inner(&at, &passes_on);
        }
    }

    /// Finds the terminals behind a relay, and who passes on to them.
    fn inside(
        &mut self,
        relay: &Process,
        at: &Inner,
        memory: &mut Memory,
    ) -> (Process, Vec<Inner>) {
        let served = SERVED.iter().find(|(client, _)| *client == relay.name);
        // A client that is called otherwise than its server has no terminals, so they are not
        // looked for.
        let own = match served {
            Some((client, server)) if client != server => Vec::new(),
            Some(_) | None => memory.inners(relay, &at.tree),
        };
        let Some((_, server)) = served.filter(|_| own.is_empty()) else {
            return (relay.clone(), own);
        };
        let server = memory.server(server, relay.pid, at.device).and_then(Process::read);
        let Some(server) = server else { return (relay.clone(), own) };
        let tree = self.tree(server.clone());
        let inners = inners(&server, &tree);
        (server, inners)
    }

    /// Notes a relay of which nothing else is known.
    fn relays(&mut self, relay: &Process) {
        // Others wait for the terminal by themselves; these let a server do it.
        if self.best.is_none() && SERVED.iter().any(|(client, _)| *client == relay.name) {
            let run = relay.run_of(relay.pid);
            let waiter = Waiter { pid: relay.pid, thread: relay.pid, run, takes_ms: None };
            self.best = Some((Evidence::Relaying, waiter));
        }
    }

    fn add_inner(&mut self, inner: &Inner, passes_on: &Process) {
        // Who passes on may have taken something and not yet handed it over.
        if self.is_at_work(passes_on) || inner.device.has_input() == Some(true) {
            return;
        }
        for process in members(&inner.tree, inner.device, inner.foreground) {
            self.add(process, inner.device);
        }
        if let Some((_, waiter)) = &mut self.best {
            // What it wrote last may still be on its way out.
            let run = passes_on.run_of(passes_on.pid).unwrap_or_default();
            waiter.run = waiter.run.take().map(|own| own + &run);
        }
    }

    /// Of several windows it is not known which one is shown: what holds for all of them holds.
    fn add_windows(&mut self, relay: &Process, passes_on: &Process, windows: &[Inner]) {
        let mut first = None;
        for window in windows {
            self.best = None;
            self.add_inner(window, passes_on);
            if !self.is_certain() {
                self.best = None;
                return self.relays(relay);
            }
            first = first.or_else(|| self.best.take());
        }
        self.best = first;
    }
}

/// Lists the terminals whose other side a process holds, with who is in their foreground.
fn inners(holder: &Process, tree: &[Process]) -> Vec<Inner> {
    let terminals = holder.inner_terminals().into_iter();
    terminals.filter_map(|device| Inner::of(device, tree)).collect()
}

impl Inner {
    /// Makes it of a terminal that somebody is on.
    fn of(device: Device, tree: &[Process]) -> Option<Self> {
        let member = tree.iter().find(|process| process.terminal == device)?;
        Some(Self { device, foreground: member.foreground, tree: tree.to_vec() })
    }
}

impl Memory {
    /// Finds the terminals that a relay has itself. One of those that make a single one keeps it as
    /// long as somebody is on it, so that its descriptors need not be looked through each time.
    fn inners(&mut self, relay: &Process, tree: &[Process]) -> Vec<Inner> {
        let kept = self.inner.iter().position(|(pid, _)| *pid == relay.pid);
        if let Some(at) = kept {
            let (_, device) = self.inner.remove(at);
            if let Some(inner) = Inner::of(device, tree) {
                self.inner.push((relay.pid, device));
                return vec![inner];
            }
        }
        let inners = inners(relay, tree);
        if let [inner] = &inners[..]
            && SINGLE.contains(&relay.name.as_str())
        {
            self.inner.push((relay.pid, inner.device));
            // The one that was not needed for the longest time goes.
            let excess = self.inner.len().saturating_sub(DEPTH_MAX);
            self.inner.drain(..excess);
        }
        inners
    }

    /// Finds the server that reads a terminal.
    fn server(&mut self, name: &str, client: u32, terminal: Device) -> Option<u32> {
        if let Some((server, number)) = self.server
            && holds(server, number, terminal)
        {
            return Some(server);
        }
        if self.searched.is_some_and(|at| at.elapsed() < SEARCH_PAUSE) {
            return None;
        }
        self.searched = Some(Instant::now());
        self.server = holders(name, terminal).into_iter().find(|(pid, _)| *pid != client);
        self.server.map(|(server, _)| server)
    }
}

//! Identifies the owner of a container with a label, to find containers that a killed host left
//! behind.
//!
//! A process is identified by its number, its start time, and the boot and process namespace in
//! which these numbers are valid. If they cannot be compared, the container counts as someone
//! else's and is left alone.

use std::fs;
use std::path::Path;

/// The label with the owner of a container.
pub const LABEL: &str = "io.jaato.owner";

/// The label with the workspace's path, as information for users.
pub const WORKSPACE_LABEL: &str = "io.jaato.workspace";

/// A process that made a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerOwner {
    machine: String,
    boot: String,
    namespace: String,
    pid: u32,
    started: String,
}

impl ContainerOwner {
    /// Returns the current process, or `None` if the system has no `/proc`.
    pub fn current_process() -> Option<Self> {
        let pid = std::process::id();
        let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
        Some(Self {
            // Some containers have no machine ID. Another boot then looks like another machine.
            machine: read("/etc/machine-id").unwrap_or_default(),
            boot: read("/proc/sys/kernel/random/boot_id").ok()?,
            namespace: namespace.to_string_lossy().into_owned(),
            pid,
            started: start_time(Path::new("/proc"), pid)?,
        })
    }

    /// Returns the label's value.
    pub fn to_label(&self) -> String {
        let Self { machine, boot, namespace, pid, started } = self;
        format!("{machine} {boot} {namespace} {pid} {started}")
    }

    /// Parses a label's value.
    pub fn parse(label: &str) -> Option<Self> {
        let mut words = label.split(' ');
        let mut word = || words.next().map(str::to_owned);
        let owner = Self {
            machine: word()?,
            boot: word()?,
            namespace: word()?,
            pid: word()?.parse().ok()?,
            started: word()?,
        };
        words.next().is_none().then_some(owner)
    }

    /// Returns true if the process is known to have ended, from the point of view of `me`.
    pub fn has_ended(&self, me: &Self) -> bool {
        self.has_ended_according_to(me, Path::new("/proc"))
    }

    fn has_ended_according_to(&self, me: &Self, proc: &Path) -> bool {
        if self.boot != me.boot {
            return !self.machine.is_empty() && self.machine == me.machine;
        }
        self.namespace == me.namespace && start_time(proc, self.pid) != Some(self.started.clone())
    }
}

/// Returns the start time of a process, in ticks since boot. It is the 22nd field, counted after
/// the name, which may contain any character. A zombie counts as ended.
fn start_time(proc: &Path, pid: u32) -> Option<String> {
    let stat = fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let is_dead = fields.starts_with(['Z', 'X']);
    fields.split(' ').nth(19).filter(|_| !is_dead).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_owner(text: &str) -> ContainerOwner {
        ContainerOwner::parse(text).unwrap()
    }

    /// Creates a `/proc` with process 7, started at 100, whose name is misleading, and the zombie
    /// 9.
    fn fake_proc() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let rest: Vec<String> = (5..22).map(|field| field.to_string()).collect();
        for (pid, state) in [(7, 'S'), (9, 'Z')] {
            let process = folder.path().join(pid.to_string());
            fs::create_dir(&process).unwrap();
            let stat = format!("{pid} (a ) b) {state} 1 {} 100 9 9\n", rest.join(" "));
            fs::write(process.join("stat"), stat).unwrap();
        }
        folder
    }

    #[track_caller]
    fn check_has_ended(label: &str, ended: bool) {
        let me = parse_owner("m b1 n1 1 5");
        assert_eq!(parse_owner(label).has_ended_according_to(&me, fake_proc().path()), ended);
    }

    #[test]
    fn a_process_that_lives_has_not_ended() {
        check_has_ended("m b1 n1 7 100", false);
    }

    #[test]
    fn reused_pid_counts_as_an_ended_owner() {
        check_has_ended("m b1 n1 7 99", true);
        check_has_ended("m b1 n1 8 100", true);
    }

    #[test]
    fn zombie_process_counts_as_an_ended_owner() {
        check_has_ended("m b1 n1 9 100", true);
    }

    #[test]
    fn owner_ends_with_a_reboot_but_not_on_another_machine() {
        check_has_ended("m b0 n1 7 100", true);
        check_has_ended("other b0 n1 7 100", false);
    }

    #[test]
    fn owner_in_another_pid_namespace_counts_as_running() {
        check_has_ended("m b1 n2 8 100", false);
    }

    #[test]
    fn machine_without_an_id_is_never_taken_for_this_machine() {
        let me = parse_owner(" b1 n1 1 5");
        assert!(!parse_owner(" b0 n1 7 100").has_ended_according_to(&me, fake_proc().path()));
    }

    #[test]
    fn a_label_is_read_as_it_was_written() {
        for text in ["m b n 1 5", " b n 1 5"] {
            assert_eq!(parse_owner(text).to_label(), text);
        }
        for text in ["", "m b n x 5", "m b n 1", "m b n 1 5 6"] {
            assert_eq!(ContainerOwner::parse(text), None, "{text}");
        }
    }

    #[test]
    fn current_process_has_not_ended() {
        if !cfg!(target_os = "linux") {
            return jaato_plugin_testkit::skip("the system does not report when a process began");
        }
        let me = ContainerOwner::current_process().unwrap();
        assert!(!me.has_ended(&me));
        assert_eq!(ContainerOwner::parse(&me.to_label()), Some(me));
    }
}

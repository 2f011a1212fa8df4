//! Detects whether a session started this process. Trust is the user's decision, and a model must
//! not trust itself.
//!
//! There are three signs, and each is enough: the variable that sessions set for their children, a
//! jaato process among the parents, and on Linux a limit on `RLIMIT_LOCKS` that every child of a
//! session has and that the kernel no longer enforces. A child can clear the variable, and hide its
//! parents in its own namespace or end them. It can only lower the limit, unless it has rights over
//! the whole machine.
//!
//! Limits: a process that another program starts for it (cron, systemd, a container's daemon, ssh)
//! lacks all of these signs. Root can remove the limit. Outside Linux only the variable counts.

use std::ffi::OsStr;
use std::path::Path;

use super::TrustError;
use crate::platform;
use crate::variables::EnvironmentVariables;

/// Set for every process that a session starts.
pub const SESSION_MARKER: &str = "JAATO_SESSION_ID";

/// The limit on `RLIMIT_LOCKS` that identifies children of sessions. `jaato-process` sets it, or a
/// limit one lower in a session within a session.
pub const SESSION_MARK: u64 = 0x6a61_6174;

/// The maximum number of parents that are checked, because real process trees are not deeper.
const ANCESTORS_MAX: usize = 256;

/// The relevant facts about a process.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StatProcess {
    parent: u32,
    is_jaato: bool,
}

/// Returns true if a session started this process, directly or not.
pub fn is_inside_session(variables: &EnvironmentVariables) -> bool {
    variables.get(SESSION_MARKER).is_some()
        || has_session_mark()
        || has_jaato_ancestor(std::process::id(), process_in_proc)
}

/// Returns true if a session started another process, directly or not.
pub fn is_session_process(pid: u32) -> bool {
    has_process_session_mark(pid) || has_jaato_ancestor(pid, process_in_proc)
}

/// Returns an error for a trust command inside a session.
pub fn refuse_inside_session(variables: &EnvironmentVariables) -> Result<(), TrustError> {
    if is_inside_session(variables) { Err(TrustError::InsideSession) } else { Ok(()) }
}

/// Asks the kernel instead of `/proc`, which a process can hide from itself.
fn has_session_mark() -> bool {
    platform::file_lock_limit().is_some_and(|bound| bound <= SESSION_MARK)
}

/// Returns true if another process has the limit, if `/proc` shows that.
fn has_process_session_mark(pid: u32) -> bool {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let locks = limits.lines().find_map(|line| line.strip_prefix("Max file locks"));
    let hard = locks.and_then(|bounds| bounds.split_ascii_whitespace().nth(1));
    hard.and_then(|hard| hard.parse().ok()).is_some_and(|bound: u64| bound <= SESSION_MARK)
}

/// Checks only the parents of the process, not the process itself.
fn has_jaato_ancestor(own: u32, read: impl Fn(u32) -> Option<StatProcess>) -> bool {
    let mut current = read(own).map(|process| process.parent);
    for _ in 0..ANCESTORS_MAX {
        let Some(parent) = current.filter(|parent| *parent > 0).and_then(&read) else {
            return false;
        };
        if parent.is_jaato {
            return true;
        }
        current = Some(parent.parent);
    }
    // The tree is deeper than any honest one, so it may hide something.
    true
}

fn process_in_proc(pid: u32) -> Option<StatProcess> {
    let folder = Path::new("/proc").join(pid.to_string());
    let stat = std::fs::read(folder.join("stat")).ok()?;
    let (name, parent) = parse_stat(&stat)?;
    // A process can fake its name, but not its executable. For another user's process, only the
    // name is known.
    let is_jaato = match folder.join("exe").read_link() {
        Ok(executable) => is_jaato_executable(&executable),
        Err(_) => name == b"jaato",
    };
    Some(StatProcess { parent, is_jaato })
}

fn is_jaato_executable(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    // The kernel marks an executable that was replaced while it ran, for example by an update.
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    name == "jaato"
}

/// Parses the name and parent in `/proc/PID/stat`: `PID (NAME) STATE PARENT …`. The name may itself
/// contain parentheses and spaces.
fn parse_stat(stat: &[u8]) -> Option<(&[u8], u32)> {
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let name = stat.get(open + 1..close)?;
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    let parent = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some((name, parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_ancestors(tree: &[(u32, u32, bool)], own: u32, expected: bool) {
        let read = |pid| {
            let (_, parent, is_jaato) = *tree.iter().find(|(known, _, _)| *known == pid)?;
            Some(StatProcess { parent, is_jaato })
        };
        assert_eq!(has_jaato_ancestor(own, read), expected);
    }

    #[test]
    fn a_jaato_among_the_parents_is_found() {
        check_ancestors(&[(9, 5, true), (5, 3, false), (3, 1, true), (1, 0, false)], 9, true);
    }

    #[test]
    fn command_itself_does_not_count_as_its_session() {
        check_ancestors(&[(9, 5, true), (5, 1, false), (1, 0, false)], 9, false);
    }

    #[test]
    fn parents_that_cannot_be_read_end_the_search() {
        check_ancestors(&[(9, 5, false)], 9, false);
        check_ancestors(&[], 9, false);
    }

    #[test]
    fn endless_parent_chain_counts_as_a_session() {
        check_ancestors(&[(9, 9, false)], 9, true);
    }

    #[test]
    fn the_name_in_stat_may_hold_parentheses() {
        assert_eq!(parse_stat(b"12 (a) 7 (b) S 34 12 12"), Some((&b"a) 7 (b"[..], 34)));
        assert_eq!(parse_stat(b"12 a S 34"), None);
        assert_eq!(parse_stat(b")("), None);
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn a_replaced_executable_is_still_jaato() {
        assert!(is_jaato_executable(Path::new("/opt/bin/jaato")));
        assert!(is_jaato_executable(Path::new("/opt/bin/jaato (deleted)")));
        assert!(!is_jaato_executable(Path::new("/home/jaato/bin/bash")));
        assert!(!is_jaato_executable(Path::new("/opt/bin/jaato-helper")));
    }

    #[test]
    fn session_marker_variable_alone_refuses_the_command() {
        let variables: EnvironmentVariables = [(SESSION_MARKER, "s1")].into_iter().collect();
        assert!(is_inside_session(&variables));
        assert!(matches!(refuse_inside_session(&variables), Err(TrustError::InsideSession)));
    }
}

//! Finds descendants of this process in `/proc`.

use std::collections::HashSet;
use std::fs;

/// Returns these processes and all of their descendants.
pub(crate) fn with_descendants(roots: Vec<i32>) -> Vec<i32> {
    let scan = (!has_children_files()).then(list_process_parents);
    let mut next = roots;
    let mut found = HashSet::new();
    while let Some(pid) = next.pop() {
        // A process that gets a new parent during the read can appear twice.
        if found.insert(pid) {
            next.extend(children_of(pid, scan.as_deref()));
        }
    }
    found.into_iter().collect()
}

/// Returns the children of this process.
pub(crate) fn list_children() -> Vec<i32> {
    let own = nix::unistd::getpid().as_raw();
    children_of(own, (!has_children_files()).then(list_process_parents).as_deref())
}

/// Returns the name of a process, unless it has ended.
pub(crate) fn name_if_alive(pid: i32) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let (name, state, _) = parse_stat(&stat)?;
    (!matches!(state, b'Z' | b'X')).then(|| String::from_utf8_lossy(name).into_owned())
}

/// Returns the children of this process that are, or descend from, children of its sessions. Their
/// limit is lower than its own.
pub(crate) fn find_marked_children() -> Vec<i32> {
    let Some(own) = session_mark_of_process("self") else { return Vec::new() };
    let is_marked =
        |pid: &i32| session_mark_of_process(&pid.to_string()).is_some_and(|mark| mark < own);
    list_children().into_iter().filter(is_marked).collect()
}

/// Returns the children of this process with that name, including those that have ended but were
/// not reaped.
pub(crate) fn find_children_named(name: &std::ffi::CStr) -> Vec<i32> {
    let is_named = |pid: &i32| {
        let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        parse_stat(&stat).is_some_and(|(found, ..)| found == name.to_bytes())
    };
    list_children().into_iter().filter(is_named).collect()
}

/// Returns the limit that marks children of sessions. Returns `None` for a process that has ended.
fn session_mark_of_process(pid: &str) -> Option<u64> {
    parse_session_mark(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
}

fn parse_session_mark(limits: &str) -> Option<u64> {
    let locks = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    let hard = locks.split_ascii_whitespace().nth(1)?;
    if hard == "unlimited" { Some(u64::MAX) } else { hard.parse().ok() }
}

/// Returns the parent of a process, unless the process is gone.
pub(crate) fn parent_pid(pid: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    Some(parse_stat(&stat)?.2)
}

fn has_children_files() -> bool {
    fs::metadata("/proc/thread-self/children").is_ok()
}

fn children_of(pid: i32, scan: Option<&[(i32, i32)]>) -> Vec<i32> {
    if let Some(pairs) = scan {
        return pairs.iter().filter(|pair| pair.1 == pid).map(|pair| pair.0).collect();
    }
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| {
        let list = fs::read_to_string(task.path().join("children")).ok()?;
        Some(list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
    });
    lists.collect::<Vec<Vec<i32>>>().concat()
}

/// Returns each process with its parent.
fn list_process_parents() -> Vec<(i32, i32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pairs = pids.filter_map(|pid: i32| {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let (_, _, parent) = parse_stat(&stat)?;
        Some((pid, parent))
    });
    pairs.collect()
}

/// Parses name, state and parent from `/proc/PID/stat`. The name may contain any character, even
/// `)`.
fn parse_stat(stat: &[u8]) -> Option<(&[u8], u8, i32)> {
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let name = stat.get(open + 1..close)?;
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    Some((name, state, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_is_read() {
        let stat = b"12 (a) b (c) S 7 12 12 0 -1";
        assert_eq!(parse_stat(stat), Some((&b"a) b (c"[..], b'S', 7)));
        assert_eq!(parse_stat(b"12 (cut"), None);
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn session_mark_is_parsed_from_the_hard_limit_of_locks() {
        let line = "Max msgqueue size  819200  819200  bytes\nMax file locks            7  1784766836  locks\n";
        assert_eq!(parse_session_mark(line), Some(super::super::SESSION_MARK));
        let unlimited = "Max file locks            unlimited            unlimited            locks";
        assert_eq!(parse_session_mark(unlimited), Some(u64::MAX));
        assert_eq!(parse_session_mark(""), None);
    }

    #[test]
    fn both_process_lookups_find_the_same_child() {
        let mut child = std::process::Command::new("sleep").arg("300").spawn().unwrap();
        let pid = child.id() as i32;
        let own = std::process::id() as i32;
        assert!(list_process_parents().contains(&(pid, own)));
        assert!(list_children().contains(&pid));
        assert!(with_descendants(list_children()).contains(&pid));
        assert!(name_if_alive(own).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!with_descendants(list_children()).contains(&pid));
        assert_eq!(name_if_alive(pid), None);
    }
}

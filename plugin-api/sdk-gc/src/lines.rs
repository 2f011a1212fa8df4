//! Lists of lines that must fit. Pure.

use std::collections::HashSet;

/// Keeps the last one of equal lines.
pub(crate) fn remove_earlier_duplicates(lines: &mut Vec<String>) {
    let mut seen = HashSet::new();
    lines.reverse();
    lines.retain(|line| seen.insert(line.clone()));
    lines.reverse();
}

/// Removes lines that may go, the oldest first, until the rest has at most this many bytes. Returns
/// the removed lines.
pub(crate) fn drop_oldest_lines(
    lines: &mut Vec<String>,
    bytes_max: u64,
    may_go: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut bytes: u64 = lines.iter().map(|line| line.len() as u64).sum();
    let mut removed = Vec::new();
    lines.retain(|line| {
        let goes = bytes > bytes_max && may_go(line);
        if goes {
            bytes -= line.len() as u64;
            removed.push(line.clone());
        }
        !goes
    });
    removed
}

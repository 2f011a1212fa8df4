//! Services that came after the first release of the boundary: a host may lack them.

/// Whole names.
const NAMES: &[&str] = &["ask", "count", "model.complete", "notify", "tools.call", "tools.set"];

/// Names that begin with one of these.
const GROUPS: &[&str] = &["host_process.", "secret.", "session.", "store.", "tasks."];

/// Tells whether an older host lacks a service.
pub(super) fn is_later(operation: &str) -> bool {
    NAMES.contains(&operation) || GROUPS.iter().any(|group| operation.starts_with(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_from_the_first_is_never_missing() {
        for first in ["session", "config", "files.read", "process.spawn", "http.request", "asset"] {
            assert!(!is_later(first), "{first}");
        }
        for later in ["session.history", "store.get", "ask", "tools.call", "host_process.spawn"] {
            assert!(is_later(later), "{later}");
        }
    }
}

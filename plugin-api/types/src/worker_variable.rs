//! A variable for a plugin's worker, as listed in the manifest.
//!
//! ```text
//! NAME                           the user's value, if it is set
//! NAME=VALUE                     the user's value, else this one
//! NAME=VALUE if memory < 6 GiB   the same, if less memory than that is available
//! ```
//!
//! More forms may be added. An entry in an unknown form sets nothing.

/// A parsed entry of [`Manifest::variables`](crate::Manifest::variables).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerVariable<'a> {
    /// The variable.
    pub name: &'a str,
    /// The value if the user did not set the variable.
    pub value: Option<&'a str>,
    /// The available memory, in bytes, below which the value applies. If absent, it always applies.
    pub memory_below: Option<u64>,
}

impl<'a> WorkerVariable<'a> {
    /// Parses an entry. Returns `None` if its form is unknown.
    pub fn parse(entry: &'a str) -> Option<Self> {
        let (entry, memory_below) = match entry.split_once(" if memory < ") {
            Some((entry, size)) => (entry, Some(parse_gib(size)?)),
            None => (entry, None),
        };
        let (name, value) = match entry.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None if memory_below.is_some() => return None,
            None => (entry, None),
        };
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = !name.is_empty() && name.chars().all(is_part);
        let is_word = value.is_none_or(|value| !value.contains(char::is_whitespace));
        (is_name && is_word).then_some(Self { name, value, memory_below })
    }
}

fn parse_gib(size: &str) -> Option<u64> {
    size.strip_suffix(" GiB")?.parse::<u64>().ok()?.checked_mul(1 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_variable(entry: &str, expected: Option<(&str, Option<&str>, Option<u64>)>) {
        let found = WorkerVariable::parse(entry);
        assert_eq!(found.map(|it| (it.name, it.value, it.memory_below)), expected);
    }

    #[test]
    fn variable_names_values_and_conditions_are_read() {
        check_variable("RAYON_NUM_THREADS", Some(("RAYON_NUM_THREADS", None, None)));
        check_variable("OMP_NUM_THREADS=2", Some(("OMP_NUM_THREADS", Some("2"), None)));
        check_variable("EMPTY=", Some(("EMPTY", Some(""), None)));
        check_variable("A=b=c", Some(("A", Some("b=c"), None)));
        check_variable("SMALL=1 if memory < 6 GiB", Some(("SMALL", Some("1"), Some(6 << 30))));
    }

    #[test]
    fn malformed_variable_entries_are_ignored() {
        let others = [
            "",
            "=1",
            "A B",
            "A=b c",
            "A if memory < 6 GiB",
            "A=1 if memory < 6 GB",
            "A=1 if memory < -1 GiB",
            "A=1 if memory < 99999999999999 GiB",
            "A=1 if cores < 2",
            "A-B",
        ];
        for entry in others {
            check_variable(entry, None);
        }
    }
}

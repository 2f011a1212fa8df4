//! The variables of the process, taken once, so that the rest is a function of its inputs.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// Operating-system variables. Tests make their own; the binary takes the process's once.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    values: BTreeMap<String, OsString>,
}

impl Variables {
    /// The variables of this process. Names that are not UTF-8 cannot be ours and are left out.
    pub fn of_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .collect()
    }

    /// The value of a variable; one that is empty counts as not set.
    pub fn get(&self, name: &str) -> Option<&OsString> {
        self.values.get(name).filter(|value| !value.is_empty())
    }

    /// All variables as they are, empty ones too, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OsString)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The names of all variables that are set, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().filter(|(_, value)| !value.is_empty()).map(|(name, _)| name.as_str())
    }
}

impl<N: Into<String>, V: Into<OsString>> FromIterator<(N, V)> for Variables {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let values = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { values }
    }
}

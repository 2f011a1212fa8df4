//! The variables of the process, read once, so that everything else depends only on its inputs.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// Environment variables. Tests make their own, and the binary reads the process's once.
#[derive(Debug, Clone, Default)]
pub struct EnvironmentVariables {
    values: BTreeMap<String, OsString>,
}

impl EnvironmentVariables {
    /// Returns the variables of this process. Names that are not UTF-8 cannot be ours and are left
    /// out.
    pub fn from_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .collect()
    }

    /// Returns the value of a variable. An empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&OsString> {
        self.values.get(name).filter(|value| !value.is_empty())
    }

    /// Lists all variables, including empty ones, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OsString)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Lists the names of all non-empty variables, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().filter(|(_, value)| !value.is_empty()).map(|(name, _)| name.as_str())
    }
}

impl<N: Into<String>, V: Into<OsString>> FromIterator<(N, V)> for EnvironmentVariables {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let values = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { values }
    }
}

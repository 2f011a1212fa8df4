//! The variables of a variables file that are not jaato's own, for plugins that ask for them by
//! name.
//!
//! Most of them belong to other programs and many are secret, so they are never listed or shown.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::origin::ValueOrigin;
use jaato_types::dotenv::Assignment;

/// A variables file. The last assignment of a name counts, and an empty one counts as not set.
#[derive(Clone, Default)]
pub(crate) struct EnvFile {
    values: BTreeMap<String, (String, ValueOrigin)>,
    /// Whether the user named the file. Otherwise it is the workspace's.
    pub is_own: bool,
}

/// A variable of a variables file.
#[derive(Clone, Copy)]
pub struct EnvFileVariable<'a> {
    /// The value, often a secret.
    pub value: &'a str,
    /// The place where it is set.
    pub origin: &'a ValueOrigin,
    /// Whether the user named the file on the command line. Otherwise it is the workspace's.
    pub is_own: bool,
}

impl EnvFile {
    pub(crate) fn store_assignment(&mut self, path: &Path, one: Assignment) {
        let origin =
            ValueOrigin::EnvFile { path: path.to_owned(), line: one.line, name: one.name.clone() };
        self.values.insert(one.name, (one.value, origin));
    }

    pub(crate) fn get(&self, name: &str) -> Option<EnvFileVariable<'_>> {
        let (value, origin) = self.values.get(name).filter(|(value, _)| !value.is_empty())?;
        Some(EnvFileVariable { value, origin, is_own: self.is_own })
    }
}

/// Shows how many variables there are, but no values.
impl fmt::Debug for EnvFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvFile").field("variables", &self.values.len()).finish_non_exhaustive()
    }
}

/// Shows the place of the variable, but not its value.
impl fmt::Debug for EnvFileVariable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvFileVariable").field("origin", self.origin).finish_non_exhaustive()
    }
}

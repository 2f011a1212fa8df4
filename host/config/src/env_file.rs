//! What a variables file holds beside jaato's own variables, for those that plugins ask for by
//! name.
//!
//! Most of it belongs to other programs and much of it is secret, so it is never listed nor shown.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::origin::Origin;
use jaato_types::dotenv::Assignment;

/// A variables file; the last assignment of a name counts, one that is empty counts as not set.
#[derive(Clone, Default)]
pub(crate) struct EnvFile {
    values: BTreeMap<String, (String, Origin)>,
    /// Whether the person named the file; else it is the workspace's.
    pub is_own: bool,
}

/// A variable of a variables file.
#[derive(Clone, Copy)]
pub struct EnvFileVariable<'a> {
    /// The value, often a secret.
    pub value: &'a str,
    /// Its place.
    pub origin: &'a Origin,
    /// Whether the person named the file on the command line; else it is the workspace's.
    pub is_own: bool,
}

impl EnvFile {
    pub(crate) fn keep(&mut self, path: &Path, one: Assignment) {
        let origin =
            Origin::EnvFile { path: path.to_owned(), line: one.line, name: one.name.clone() };
        self.values.insert(one.name, (one.value, origin));
    }

    pub(crate) fn get(&self, name: &str) -> Option<EnvFileVariable<'_>> {
        let (value, origin) = self.values.get(name).filter(|(value, _)| !value.is_empty())?;
        Some(EnvFileVariable { value, origin, is_own: self.is_own })
    }
}

/// Shows how many there are, and none of them.
impl fmt::Debug for EnvFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvFile").field("variables", &self.values.len()).finish_non_exhaustive()
    }
}

/// Shows where it stands, not what it is.
impl fmt::Debug for EnvFileVariable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvFileVariable").field("origin", self.origin).finish_non_exhaustive()
    }
}

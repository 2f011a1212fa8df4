//! Decides which calls only change unprotected files in the working directory.

use std::path::PathBuf;
use std::sync::LazyLock;

use jaato_types::protected::{ProtectedFiles, fold_name};
use serde::Deserialize;

use crate::facts::PolicyFacts;
use crate::{PluginSource, PolicyCall};

/// The shipped plugin whose tools change the files that their arguments name, and keep a copy.
const EDITING_PLUGIN: &str = "tool-file-edit";

/// The protected files, with the reasons.
const FILE: &str = include_str!("../data/protected.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProtectedFilesTable {
    harmless: Vec<String>,
    protected: Vec<ProtectedFileGroup>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProtectedFileGroup {
    /// For readers of the file.
    #[serde(rename = "why")]
    _why: String,
    names: Vec<String>,
    last_names: Vec<String>,
    top_names: Vec<String>,
}

static NAMES: LazyLock<ProtectedFiles> = LazyLock::new(|| {
    let Ok(file) = toml::from_str::<ProtectedFilesTable>(FILE) else {
        unreachable!("a test reads `protected.toml`");
    };
    let folded = |names: &[String]| -> Vec<String> {
        let fold = |name: &String| name.split('/').map(fold_name).collect::<Vec<_>>().join("/");
        names.iter().map(fold).collect()
    };
    let all = |names: fn(&ProtectedFileGroup) -> &Vec<String>| -> Vec<String> {
        file.protected.iter().flat_map(|group| folded(names(group))).collect()
    };
    ProtectedFiles {
        names: all(|group| &group.names),
        last_names: all(|group| &group.last_names),
        top_names: all(|group| &group.top_names),
        harmless: folded(&file.harmless),
        ..ProtectedFiles::default()
    }
});

/// Returns the files that `accept-edits` does not cover for a call. Returns `None` if the working
/// directory is unknown.
pub fn protected_files(call: &PolicyCall<'_>) -> Option<ProtectedFiles> {
    Some(ProtectedFiles {
        directory: call.directory?.to_owned(),
        home: call.home.map(PathBuf::from),
        folders: call.own_folders.to_vec(),
        ..NAMES.clone()
    })
}

/// Returns true if a call's tool changes files.
pub(crate) fn may_change_files(call: &PolicyCall<'_>) -> bool {
    call.source == PluginSource::Shipped && call.plugin.as_str() == EDITING_PLUGIN
}

/// Returns the protected files that a call of a file-changing tool names.
pub(crate) fn protected_paths(call: &PolicyCall<'_>) -> Vec<PathBuf> {
    let Some(protected) = protected_files(call).filter(|_| may_change_files(call)) else {
        return Vec::new();
    };
    let paths = call.touched_paths(&call.collect_touched()).into_iter();
    paths.filter(|path| protected.is_protected(path)).collect()
}

/// Returns true if a call changes unprotected files below its working directory and nothing else.
pub(crate) fn is_safe_workspace_edit(facts: &PolicyFacts<'_>) -> bool {
    let call = facts.call;
    let Some(protected) = protected_files(call) else { return false };
    may_change_files(call)
        && !call.annotations.open_world
        && facts.touched.is_complete()
        && facts.hosts.is_empty()
        && facts.shell.is_none()
        && facts.call.has_known_paths()
        && !facts.paths.is_empty()
        && !facts.paths.iter().any(|path| protected.is_protected(path))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn load_protected_files() -> ProtectedFiles {
        let directory = PathBuf::from("/srv/project");
        let home = Some("/home/ann".into());
        ProtectedFiles { directory, home, ..NAMES.clone() }
    }

    /// Lists every name in the file, as a call could name it.
    fn protected_entries(names: fn(&ProtectedFileGroup) -> &Vec<String>) -> Vec<String> {
        let file: ProtectedFilesTable = toml::from_str(FILE).unwrap();
        let entries = file.protected.iter().flat_map(names);
        entries.map(|name| name.replace('*', "x")).collect()
    }

    #[track_caller]
    fn check_protected(path: &str, expected: bool) {
        let path = Path::new("/srv/project").join(path);
        assert_eq!(load_protected_files().is_protected(&path), expected, "{}", path.display());
    }

    #[test]
    fn each_entry_is_protected_at_any_depth_and_in_any_spelling() {
        for name in protected_entries(|group| &group.names) {
            let spellings = [name.clone(), name.to_uppercase(), format!("{name}.")];
            for name in &spellings {
                check_protected(name, true);
                check_protected(&format!("sub/{name}"), true);
                check_protected(&format!("sub/{name}/deep/file"), true);
            }
        }
    }

    #[test]
    fn bare_repository_files_are_protected_where_they_form_a_repository() {
        for name in protected_entries(|group| &group.last_names) {
            check_protected(&name, true);
            check_protected(&format!("sub/{}", name.to_uppercase()), true);
            check_protected(&format!("sub/{name}/routes.rb"), false);
        }
        for name in protected_entries(|group| &group.top_names) {
            check_protected(&name, true);
            check_protected(&format!("{name}/x"), true);
            check_protected(&format!("src/{name}/x"), false);
        }
    }

    #[test]
    fn harmless_names_and_source_files_are_not_protected() {
        let file: ProtectedFilesTable = toml::from_str(FILE).unwrap();
        for name in &file.harmless {
            check_protected(name, false);
            check_protected(&format!("sub/{name}"), false);
        }
        for name in ["src/main.rs", "Makefile", "package.json", "docs/agents.txt", "environment"] {
            check_protected(name, false);
        }
        check_protected(".anything-else", true);
    }
}

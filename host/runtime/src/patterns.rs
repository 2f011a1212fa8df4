//! Expands shell patterns to file names.

use std::path::{Component, Path, PathBuf};

use jaato_policy::{is_shell_pattern, may_match_name};

/// Maximum number of folder entries examined for one pattern. A shell would be slow here as well.
const ENTRIES_MAX: usize = 20_000;

/// Returns every name that a pattern may match, and possibly more. Returns `None` if there are too
/// many, or if the pattern includes folders of any depth.
pub(crate) fn expand_pattern(pattern: &Path) -> Option<Vec<PathBuf>> {
    let mut names = vec![PathBuf::new()];
    let mut left = ENTRIES_MAX;
    for part in pattern.components() {
        let text = part.as_os_str().to_string_lossy();
        if !matches!(part, Component::Normal(_)) || !is_shell_pattern(&text) {
            names.iter_mut().for_each(|name| name.push(part));
            continue;
        }
        if text.contains("**") {
            return None;
        }
        names = matching_entries(&names, &text, &mut left)?;
    }
    Some(names)
}

/// Returns the entries of folders whose names a pattern may match. An unreadable folder has no
/// entries for a shell of the same user either.
fn matching_entries(folders: &[PathBuf], pattern: &str, left: &mut usize) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in folders {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            *left = left.checked_sub(1)?;
            if may_match_name(pattern, &entry.file_name().to_string_lossy()) {
                found.push(entry.path());
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn file_pattern_expands_to_the_matching_paths() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/x.rs", "b/x.rs", "b/y.md", ".c/x.rs"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let names = |pattern: &str| {
            let mut names: Vec<String> = expand_pattern(&folder.path().join(pattern))
                .unwrap()
                .iter()
                .map(|name| name.strip_prefix(folder.path()).unwrap().display().to_string())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names("*/x.rs"), [".c/x.rs", "a/x.rs", "b/x.rs"]);
        assert_eq!(names("b/*.md"), ["b/y.md"]);
        // Brackets match any letter.
        assert_eq!(names("[ab]/[xy]*").len(), 4);
        assert_eq!(names("none/*").len(), 0);
        assert_eq!(expand_pattern(&folder.path().join("**/x.rs")), None);
    }
}

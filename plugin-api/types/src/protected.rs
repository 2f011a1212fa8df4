//! Files that no approval mode covers, as data that the host and the file engine share.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::glob::is_match;

/// Names and folders that the user must be asked about before they are edited.
///
/// Names are compared without letter case, trailing dots and spaces, and characters that some file
/// systems ignore, because a file must not have a second, unprotected name. The lists contain names
/// in the form of [`fold_name`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProtectedFiles {
    /// The folder in which edits are allowed. Names below it that begin with a dot are protected.
    pub directory: PathBuf,
    /// The user's home folder. Names in it that begin with a dot are protected.
    pub home: Option<PathBuf>,
    /// Folders that are protected as a whole, for example those of jaato.
    pub folders: Vec<PathBuf>,
    /// Protected names at any depth. A name with `/` is a path of several names. `*` matches any
    /// characters.
    pub names: Vec<String>,
    /// Names that are protected as the last part of a path.
    pub last_names: Vec<String>,
    /// Protected names directly in [`Self::directory`].
    pub top_names: Vec<String>,
    /// Names that begin with a dot but are not protected.
    pub harmless: Vec<String>,
}

impl ProtectedFiles {
    /// Returns true if a path is protected. The path must be absolute, with `..` and links
    /// resolved. A path outside [`Self::directory`] is always protected.
    pub fn is_protected(&self, path: &Path) -> bool {
        let Ok(inside) = path.strip_prefix(&self.directory) else { return true };
        if inside.components().any(|part| part == Component::ParentDir) {
            return true;
        }
        let (whole, inside) = (folded_names(path), folded_names(inside));
        self.names.iter().any(|name| has_match(&whole, name))
            || self.is_dotted(&inside)
            || inside.last().is_some_and(|last| is_any_match(&self.last_names, last))
            || inside.first().is_some_and(|first| is_any_match(&self.top_names, first))
            || self.home.as_deref().is_some_and(|home| is_dotted_below(&whole, home))
            || self.folders.iter().any(|folder| is_at_or_below(&whole, &folded_names(folder)))
    }

    fn is_dotted(&self, inside: &[String]) -> bool {
        inside.iter().any(|name| name.starts_with('.') && !is_any_match(&self.harmless, name))
    }
}

/// Returns the names of a path, folded for comparison.
fn folded_names(path: &Path) -> Vec<String> {
    path.components().map(|part| fold_name(&part.as_os_str().to_string_lossy())).collect()
}

/// Returns a name in a form that is equal for all names of the same file on any file system.
pub fn fold_name(name: &str) -> String {
    // Some file systems treat the part after `:` as a stream of the file.
    let name = name.split_once(':').map_or(name, |(name, _)| name);
    let letters = name.chars().filter(|letter| !is_ignored(*letter));
    // Both directions, because `ſ` and `K` (Kelvin) have an ASCII letter on one side only.
    let folded: String =
        letters.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
    folded.trim_end_matches(['.', ' ']).to_owned()
}

/// Returns true if HFS+ ignores a character in names.
fn is_ignored(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
    )
}

fn is_any_match(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| is_match(pattern, name))
}

/// Returns true if a path contains a protected path of one or more names. A path that ends inside
/// the protected path counts too, because a folder can be moved there.
fn has_match(names: &[String], pattern: &str) -> bool {
    let is_at = |at: usize| {
        let mut pairs = names[at..].iter().zip(pattern.split('/'));
        pairs.all(|(name, wanted)| is_match(wanted, name))
    };
    (0..names.len()).any(is_at)
}

/// Returns true if one path is at or below the other.
fn is_at_or_below(path: &[String], folder: &[String]) -> bool {
    path.iter().zip(folder).all(|(one, other)| one == other)
}

/// Returns true if a path is in the home folder, under a name that begins with a dot.
fn is_dotted_below(path: &[String], home: &Path) -> bool {
    let home = folded_names(home);
    path.starts_with(&home) && path.get(home.len()).is_some_and(|name| name.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protected_files() -> ProtectedFiles {
        let fold = |path: &str| path.split('/').map(fold_name).collect::<Vec<_>>().join("/");
        let texts = |texts: &[&str]| texts.iter().map(|text| fold(text)).collect();
        ProtectedFiles {
            directory: "/home/ann/work".into(),
            home: Some("/home/ann".into()),
            folders: vec!["/home/ann/work/data/jaato".into()],
            names: texts(&["AGENTS.md", ".github/workflows", "*.code-workspace", "husky"]),
            last_names: texts(&["config"]),
            top_names: texts(&["refs"]),
            harmless: texts(&[".gitignore"]),
        }
    }

    #[track_caller]
    fn check_protection(path: &str, expected: bool) {
        let whole = Path::new("/home/ann/work").join(path);
        assert_eq!(protected_files().is_protected(&whole), expected, "{path}");
    }

    #[test]
    fn ordinary_files_are_not_protected() {
        for path in ["a", "src/main.rs", "config/a", "src/refs/a", "data/a", ".gitignore", "a.md"] {
            check_protection(path, false);
        }
    }

    #[test]
    fn protected_names_are_protected_with_everything_below_them() {
        for path in
            ["AGENTS.md", "sub/AGENTS.md", "sub/.github/workflows/ci.yml", "x.code-workspace"]
        {
            check_protection(path, true);
        }
        for path in ["config", "sub/config", "refs", "refs/heads/x", ".new", "sub/.new/a"] {
            check_protection(path, true);
        }
        for path in ["data/jaato", "data/jaato/a", "data", "/etc/passwd", "/home/ann/.bashrc"] {
            check_protection(path, true);
        }
    }

    #[test]
    fn alternative_spellings_of_a_protected_name_are_protected() {
        for path in ["agents.MD", "AGENTS.md.", "AGENTS.md ", "AG\u{200c}ENTS.md", "hu\u{17f}ky"] {
            check_protection(path, true);
        }
        for path in ["hus\u{212a}y", "AGENTS.md::$DATA", "\u{200b}.new"] {
            check_protection(path, true);
        }
    }
}

//! Finds plugin files in their places, in a fixed order. Reads directories and nothing else.

use std::env::consts::DLL_SUFFIX;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Most files that one folder is searched for: more is a mistake such as `--plugin-dir /usr/lib`.
pub const FILES_PER_FOLDER_MAX: usize = 1000;

/// Where a plugin file lies, from the most trusted on: of two that claim a name, the earlier has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlaceKind {
    /// Beside the executable, where only its owner can write.
    Shipped,
    /// `--plugin-dir`.
    CommandLine,
    /// `JAATO_PLUGIN_PATH`.
    Variable,
    /// `plugins` of the user's data folder.
    User,
    /// `.jaato/plugins` of the workspace.
    Workspace,
}

/// A folder that is searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What it is.
    pub kind: PlaceKind,
    /// The folder.
    pub folder: PathBuf,
}

/// A file that by its name may be a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Its path, as the folder was given.
    pub path: PathBuf,
    /// Where it was found.
    pub place: PlaceKind,
}

/// What the search gave: files in order, and a line for each folder or file that could not be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The files, by place and then by name.
    pub files: Vec<FoundFile>,
    /// What was wrong, one line each.
    pub problems: Vec<PlaceProblem>,
}

/// Why a folder, or a file by its place, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceProblem {
    /// A folder that a person named is missing or cannot be read.
    Unreadable(PathBuf, String),
    /// More files than [`FILES_PER_FOLDER_MAX`]; the rest is left out.
    TooMany(PathBuf),
    /// A shipped folder or file that others can write to.
    Writable(PathBuf),
}

impl fmt::Display for PlaceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, text) => {
                write!(f, "cannot search `{}` for plugins: {text}", path.display())
            }
            Self::TooMany(path) => write!(
                f,
                "`{}` holds more than {FILES_PER_FOLDER_MAX} libraries, the rest is left out\nhint: give the plugins a folder of their own",
                path.display()
            ),
            Self::Writable(path) => write!(
                f,
                "`{0}` is not used: others than its owner can write to it\nhint: chmod go-w '{0}'",
                path.display()
            ),
        }
    }
}

impl PlaceKind {
    /// Returns the word for lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::CommandLine => "--plugin-dir",
            Self::Variable => "JAATO_PLUGIN_PATH",
            Self::User => "user",
            Self::Workspace => "workspace",
        }
    }
}

/// Returns the shipped folders of an executable: `../plugins` and `../lib/jaato/plugins` from its real
/// path, never from the working directory or a variable.
pub fn shipped_places(executable: &Path) -> Vec<Place> {
    let real = fs::canonicalize(executable);
    let Some(root) =
        real.ok().as_deref().and_then(Path::parent).and_then(Path::parent).map(Path::to_owned)
    else {
        return Vec::new();
    };
    [root.join("plugins"), root.join("lib/jaato/plugins")]
        .into_iter()
        .map(|folder| Place { kind: PlaceKind::Shipped, folder })
        .collect()
}

/// Searches folders for files with the suffix of dynamic libraries. Skips dot files.
pub fn find(places: &[Place]) -> Found {
    let mut places: Vec<_> = places.iter().collect();
    places.sort_by_key(|place| place.kind);
    let mut found = Found::default();
    for place in places {
        search(place, &mut found);
    }
    found
}

fn search(place: &Place, found: &mut Found) {
    let entries = match names(&place.folder) {
        Ok(names) => names,
        Err(error) => {
            let was_named = matches!(place.kind, PlaceKind::CommandLine | PlaceKind::Variable);
            if was_named || error.kind() != io::ErrorKind::NotFound {
                found
                    .problems
                    .push(PlaceProblem::Unreadable(place.folder.clone(), error.to_string()));
            }
            return;
        }
    };
    if place.kind == PlaceKind::Shipped && others_can_write(&place.folder) {
        found.problems.push(PlaceProblem::Writable(place.folder.clone()));
        return;
    }
    if entries.len() > FILES_PER_FOLDER_MAX {
        found.problems.push(PlaceProblem::TooMany(place.folder.clone()));
    }
    for name in entries.into_iter().take(FILES_PER_FOLDER_MAX) {
        let path = place.folder.join(name);
        if place.kind == PlaceKind::Shipped && others_can_write(&path) {
            found.problems.push(PlaceProblem::Writable(path));
        } else {
            found.files.push(FoundFile { path, place: place.kind });
        }
    }
}

fn names(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        if text.ends_with(DLL_SUFFIX) && !text.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn others_can_write(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    const GROUP_AND_OTHERS_WRITE: u32 = 0o022;
    // A path that cannot be looked at is not trusted either.
    fs::metadata(path).map_or(true, |metadata| metadata.mode() & GROUP_AND_OTHERS_WRITE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(format!("{name}{DLL_SUFFIX}"));
        fs::write(&path, "").unwrap();
        path
    }

    #[test]
    fn files_come_by_trust_and_then_by_name() {
        let (mine, given) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let expected = [touch(given.path(), "z"), touch(mine.path(), "a"), touch(mine.path(), "b")];
        touch(mine.path(), ".hidden");
        fs::write(mine.path().join("notes.txt"), "").unwrap();
        let found = find(&[
            Place { kind: PlaceKind::User, folder: mine.path().into() },
            Place { kind: PlaceKind::CommandLine, folder: given.path().into() },
        ]);
        let paths: Vec<_> = found.files.into_iter().map(|file| file.path).collect();
        assert_eq!(paths, expected);
        assert!(found.problems.is_empty());
    }

    #[test]
    fn a_missing_folder_is_said_only_where_a_person_named_it() {
        let missing = PathBuf::from("/nonexistent/plugins");
        let problems = |kind| find(&[Place { kind, folder: missing.clone() }]).problems.len();
        assert_eq!((problems(PlaceKind::User), problems(PlaceKind::CommandLine)), (0, 1));
    }

    #[test]
    fn what_others_can_write_to_is_not_shipped() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (ours, theirs) = (touch(folder.path(), "ours"), touch(folder.path(), "theirs"));
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o775)).unwrap();
        let place = Place { kind: PlaceKind::Shipped, folder: folder.path().into() };
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let found = find(std::slice::from_ref(&place));
        assert_eq!(found.files, [FoundFile { path: ours, place: PlaceKind::Shipped }]);
        assert_eq!(found.problems, [PlaceProblem::Writable(theirs)]);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(find(&[place]).files.is_empty());
    }

    #[test]
    fn shipped_folders_hang_on_the_real_path_of_the_executable() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir(root.join("bin")).unwrap();
        fs::write(root.join("bin/jaato"), "").unwrap();
        let folders: Vec<_> =
            shipped_places(&root.join("bin/jaato")).into_iter().map(|place| place.folder).collect();
        assert_eq!(folders, [root.join("plugins"), root.join("lib/jaato/plugins")]);
    }
}

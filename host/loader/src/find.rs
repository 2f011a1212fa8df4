//! Finds plugin files in their folders, in a fixed order. Only reads directories.

use std::env::consts::DLL_SUFFIX;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jaato_places::{TrustedOwners, check_file_in, check_folder};

/// Maximum number of files per folder. More files mean a mistake such as `--plugin-dir /usr/lib`.
pub const FILES_PER_FOLDER_MAX: usize = 1000;

/// Where a plugin file was found, from most to least trusted. If two plugins claim a name, the
/// earlier place wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlaceKind {
    /// Next to the executable, in folders that only their owner, this user and root can write.
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

/// A folder to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginSearchFolder {
    /// The kind of place.
    pub kind: PlaceKind,
    /// The folder.
    pub folder: PathBuf,
    /// Who may own its files, if ownership matters.
    owners: TrustedOwners,
}

/// A file that may be a plugin, judging by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Its path, based on the folder as given.
    pub path: PathBuf,
    /// Where it was found.
    pub place: PlaceKind,
}

/// The result of a search: files in order, and a problem for each folder or file that could not be
/// used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginSearchResult {
    /// The files, by place and then by name.
    pub files: Vec<FoundFile>,
    /// The problems.
    pub problems: Vec<PlaceProblem>,
}

/// Why a folder, or a file because of its place, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceProblem {
    /// A folder that the user named is missing or cannot be read.
    Unreadable(PathBuf, String),
    /// More files than [`FILES_PER_FOLDER_MAX`]. The rest is ignored.
    TooMany(PathBuf),
    /// Links among a workspace's plugins: the first link, and their number.
    Links(PathBuf, usize),
    /// A folder or file that another user may have written: why, and what to do.
    NotUsed(String),
}

impl fmt::Display for PlaceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, text) => {
                write!(f, "cannot search `{}` for plugins: {text}", path.display())
            }
            Self::TooMany(path) => write!(
                f,
                "`{}` contains more than {FILES_PER_FOLDER_MAX} libraries, the rest is ignored\nhint: put the plugins into a separate folder",
                path.display()
            ),
            Self::Links(first, count) => {
                write!(
                    f,
                    "`{}` is not used: links are not followed in a workspace",
                    first.display()
                )?;
                if *count > 1 { write!(f, " ({count} there)") } else { Ok(()) }
            }
            Self::NotUsed(why) => f.write_str(why),
        }
    }
}

impl PluginSearchFolder {
    /// Creates a place whose files this user may own.
    pub fn new(kind: PlaceKind, folder: &Path) -> Self {
        Self { kind, folder: folder.to_owned(), owners: TrustedOwners::this_user_and_root() }
    }
}

impl PlaceKind {
    /// Returns true if files there are used only if no other user can write them. In a folder that
    /// the user named, each file is trusted by its content instead.
    fn must_be_private(self) -> bool {
        match self {
            Self::Shipped | Self::User => true,
            Self::CommandLine | Self::Variable | Self::Workspace => false,
        }
    }

    /// Returns the name for lists.
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

/// Returns the shipped folders of an executable: `../plugins` and `../lib/jaato/plugins` relative
/// to its real path, never to the working directory or a variable.
pub fn shipped_plugin_folders(executable: &Path) -> Vec<PluginSearchFolder> {
    let real = fs::canonicalize(executable);
    let Some(root) =
        real.ok().as_deref().and_then(Path::parent).and_then(Path::parent).map(Path::to_owned)
    else {
        return Vec::new();
    };
    let owners = TrustedOwners::this_user_and_root().with_writers_of(executable);
    [root.join("plugins"), root.join("lib/jaato/plugins")]
        .into_iter()
        .map(|folder| PluginSearchFolder {
            kind: PlaceKind::Shipped,
            folder,
            owners: owners.clone(),
        })
        .collect()
}

/// Searches folders for files with the suffix of dynamic libraries. Skips dot files.
pub fn find_plugin_files(places: &[PluginSearchFolder]) -> PluginSearchResult {
    let mut places: Vec<_> = places.iter().collect();
    places.sort_by_key(|place| place.kind);
    let mut found = PluginSearchResult::default();
    for place in places {
        search_folder(place, &mut found);
    }
    found
}

fn search_folder(place: &PluginSearchFolder, found: &mut PluginSearchResult) {
    if place.kind == PlaceKind::Workspace && !is_plain_folder(&place.folder) {
        return;
    }
    let entries = match list_file_names(&place.folder) {
        Ok(names) => names,
        Err(error) => {
            let was_named = matches!(place.kind, PlaceKind::CommandLine | PlaceKind::Variable);
            let is_nowhere =
                matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
            if was_named || !is_nowhere {
                found
                    .problems
                    .push(PlaceProblem::Unreadable(place.folder.clone(), error.to_string()));
            }
            return;
        }
    };
    if place.kind.must_be_private()
        && let Err(error) = check_folder(&place.folder, &place.owners)
    {
        found.problems.push(PlaceProblem::NotUsed(error.with_hint()));
        return;
    }
    if entries.len() > FILES_PER_FOLDER_MAX {
        found.problems.push(PlaceProblem::TooMany(place.folder.clone()));
    }
    let mut links = Vec::new();
    for name in entries.into_iter().take(FILES_PER_FOLDER_MAX) {
        let path = place.folder.join(name);
        if place.kind == PlaceKind::Workspace && path.is_symlink() {
            links.push(path);
            continue;
        }
        if place.kind.must_be_private()
            && let Err(error) = check_file_in(&path, &place.owners)
        {
            found.problems.push(PlaceProblem::NotUsed(error.with_hint()));
        } else {
            found.files.push(FoundFile { path, place: place.kind });
        }
    }
    let count = links.len();
    found.problems.extend(links.into_iter().next().map(|first| PlaceProblem::Links(first, count)));
}

/// Returns true if `.jaato/plugins` is a folder of the workspace itself. A link could lead to files
/// that the user's trust in the workspace does not cover.
fn is_plain_folder(folder: &Path) -> bool {
    let is_plain = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    is_plain(folder) && folder.parent().is_none_or(is_plain)
}

fn list_file_names(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn create_empty_plugin(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(format!("{name}{DLL_SUFFIX}"));
        fs::write(&path, "").unwrap();
        path
    }

    #[test]
    fn plugin_files_are_ordered_by_trust_and_then_by_name() {
        let (mine, given) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let expected = [
            create_empty_plugin(given.path(), "z"),
            create_empty_plugin(mine.path(), "a"),
            create_empty_plugin(mine.path(), "b"),
        ];
        create_empty_plugin(mine.path(), ".hidden");
        fs::write(mine.path().join("notes.txt"), "").unwrap();
        let found = find_plugin_files(&[
            PluginSearchFolder::new(PlaceKind::User, mine.path()),
            PluginSearchFolder::new(PlaceKind::CommandLine, given.path()),
        ]);
        let paths: Vec<_> = found.files.into_iter().map(|file| file.path).collect();
        assert_eq!(paths, expected);
        assert!(found.problems.is_empty());
    }

    #[test]
    fn missing_plugin_folder_is_reported_only_if_the_user_named_it() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let problems =
            |kind| find_plugin_files(&[PluginSearchFolder::new(kind, &missing)]).problems.len();
        assert_eq!((problems(PlaceKind::User), problems(PlaceKind::CommandLine)), (0, 1));
    }

    #[test]
    fn plugin_files_and_folders_writable_by_others_are_not_used() {
        for kind in [PlaceKind::Shipped, PlaceKind::User] {
            check_writable(kind);
        }
    }

    #[track_caller]
    fn check_writable(kind: PlaceKind) {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (ours, theirs) = (
            create_empty_plugin(folder.path(), "ours"),
            create_empty_plugin(folder.path(), "theirs"),
        );
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o775)).unwrap();
        let place = PluginSearchFolder::new(kind, folder.path());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let found = find_plugin_files(std::slice::from_ref(&place));
        assert_eq!(found.files, [FoundFile { path: ours, place: kind }]);
        let [problem] = &found.problems[..] else { unreachable!("{found:?}") };
        let theirs = theirs.canonicalize().unwrap();
        assert!(
            problem
                .to_string()
                .starts_with(&format!("`{}` is not used: users other", theirs.display()))
        );
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(find_plugin_files(&[place]).files.is_empty());
    }

    #[test]
    fn links_of_a_workspace_are_not_followed() {
        use std::os::unix::fs::symlink;
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let plugins = root.path().join(".jaato/plugins");
        fs::create_dir_all(&plugins).unwrap();
        let (own, other) =
            (create_empty_plugin(&plugins, "own"), create_empty_plugin(elsewhere.path(), "other"));
        let links = ["a", "b"].map(|name| plugins.join(format!("{name}{DLL_SUFFIX}")));
        links.iter().for_each(|link| symlink(&other, link).unwrap());
        let place = PluginSearchFolder::new(PlaceKind::Workspace, &plugins);
        let found = find_plugin_files(std::slice::from_ref(&place));
        assert_eq!(found.files, [FoundFile { path: own, place: PlaceKind::Workspace }]);
        assert_eq!(found.problems, [PlaceProblem::Links(links[0].clone(), 2)]);

        fs::remove_dir_all(&plugins).unwrap();
        symlink(elsewhere.path(), &plugins).unwrap();
        assert_eq!(find_plugin_files(std::slice::from_ref(&place)), PluginSearchResult::default());
        fs::remove_dir_all(root.path().join(".jaato")).unwrap();
        symlink(elsewhere.path(), root.path().join(".jaato")).unwrap();
        fs::create_dir(elsewhere.path().join("plugins")).unwrap();
        create_empty_plugin(&elsewhere.path().join("plugins"), "moon");
        assert_eq!(find_plugin_files(&[place]), PluginSearchResult::default());
    }

    #[test]
    fn shipped_plugin_folders_are_relative_to_the_real_executable() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir(root.join("bin")).unwrap();
        fs::write(root.join("bin/jaato"), "").unwrap();
        let folders: Vec<_> = shipped_plugin_folders(&root.join("bin/jaato"))
            .into_iter()
            .map(|place| place.folder)
            .collect();
        assert_eq!(folders, [root.join("plugins"), root.join("lib/jaato/plugins")]);
    }
}

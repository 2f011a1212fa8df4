//! Finds the files of prompts and skills below a folder.
//!
//! The depth and the number of folders are limited. A link counts only if it stays inside the
//! folder, and no folder is read twice, so that a loop of links ends.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The deepest nesting of folders.
pub const DEPTH_MAX: usize = 4;
/// The maximum number of folders to read in all places together.
pub const FOLDERS_MAX: usize = 2000;
/// The largest file of a prompt, in bytes.
pub const PROMPT_BYTES_MAX: u64 = 64 * 1024;
/// The largest file of a skill, in bytes.
pub const SKILL_BYTES_MAX: u64 = 256 * 1024;

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// The owner of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptSource {
    /// The workspace.
    Project,
    /// The user.
    User,
}

impl PromptSource {
    /// Returns the name in answers.
    pub fn source_name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// The kind of files to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptFileKind {
    /// Folders with a `SKILL.md`.
    Skills,
    /// Folders with a `SKILL.md`, and all other `*.md` files.
    Prompts,
    /// The same as [`Self::Prompts`], in the syntax of Claude Code.
    ClaudeCommands,
}

/// A folder with prompts or skills.
#[derive(Debug, Clone)]
pub struct PromptFolder {
    pub folder: PathBuf,
    pub source: PromptSource,
    pub wanted: PromptFileKind,
}

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFile {
    /// The file's canonical path.
    pub path: PathBuf,
    /// The path to show.
    pub shown: PathBuf,
    /// Whether the file is a `SKILL.md`.
    pub is_skill: bool,
    /// Whether the file has the syntax of Claude Code's commands.
    pub is_claude: bool,
}

/// A walk over places, with one line per problem.
#[derive(Debug, Default)]
pub struct PromptScan {
    pub found: Vec<PromptFile>,
    pub wrong: Vec<String>,
    folders: usize,
    seen: HashSet<PathBuf>,
}

impl PromptScan {
    /// Searches a place. A missing folder counts as empty.
    pub fn scan_folder(&mut self, place: &PromptFolder) {
        let root = match fs::canonicalize(&place.folder) {
            Ok(root) => root,
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => return self.report_problem(&place.folder, &error.to_string()),
        };
        // The user has not trusted the target of a link. The user's own folders may be links.
        if place.source == PromptSource::Project && root != place.folder {
            return self.report_problem(&place.folder, "its path contains a link");
        }
        if root.is_dir() {
            self.scan_subfolders(place, &root, &root, &place.folder, 0);
        }
    }

    fn scan_subfolders(
        &mut self,
        place: &PromptFolder,
        root: &Path,
        folder: &Path,
        shown: &Path,
        depth: usize,
    ) {
        if !self.seen.insert(folder.to_owned()) {
            return;
        }
        if self.folders >= FOLDERS_MAX {
            if self.folders == FOLDERS_MAX {
                self.folders += 1;
                self.report_problem(
                    shown,
                    &format!(
                        "there are more than {FOLDERS_MAX} folders, and the others are skipped"
                    ),
                );
            }
            return;
        }
        self.folders += 1;
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.report_problem(shown, &error.to_string()),
        };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        // On file systems where case matters, users write both `skill.md` and `SKILL.md`. Capitals
        // sort first.
        let skill = names.iter().find(|name| name.eq_ignore_ascii_case(SKILL_FILE));
        if let Some(name) = skill.and_then(|name| name.to_str()).filter(|_| depth > 0) {
            // Other files in this folder belong to the skill.
            return self.add_file(place, root, (folder, shown), name);
        }
        for name in names {
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            let Ok(path) = fs::canonicalize(folder.join(name)) else { continue };
            if !path.starts_with(root) {
                self.report_problem(&shown.join(name), "a link leads out of the folder");
            } else if path.is_dir() {
                match depth < DEPTH_MAX {
                    true => self.scan_subfolders(place, root, &path, &shown.join(name), depth + 1),
                    false => self.report_problem(
                        &shown.join(name),
                        &format!("nested deeper than {DEPTH_MAX} folders"),
                    ),
                }
            } else if place.wanted != PromptFileKind::Skills && name.ends_with(".md") {
                self.add_file(place, root, (folder, shown), name);
            }
        }
    }

    fn add_file(
        &mut self,
        place: &PromptFolder,
        root: &Path,
        (folder, shown): (&Path, &Path),
        name: &str,
    ) {
        let shown = shown.join(name);
        match fs::canonicalize(folder.join(name)) {
            Ok(path) if !path.starts_with(root) => {
                self.report_problem(&shown, "a link leads out of the folder")
            }
            Ok(path) if self.seen.insert(path.clone()) => {
                let is_skill = name.eq_ignore_ascii_case(SKILL_FILE);
                let is_claude = place.wanted == PromptFileKind::ClaudeCommands;
                self.found.push(PromptFile { path, shown, is_skill, is_claude });
            }
            Ok(_) => {}
            Err(error) => self.report_problem(&shown, &error.to_string()),
        }
    }

    fn report_problem(&mut self, path: &Path, why: &str) {
        self.wrong.push(format!("{}: {why}", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write_prompt(root: &Path, name: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }

    fn scan_test_folder(root: &Path, source: PromptSource, wanted: PromptFileKind) -> PromptScan {
        let mut walk = PromptScan::default();
        walk.scan_folder(&PromptFolder { folder: root.to_owned(), source, wanted });
        walk
    }

    fn found_names(walk: &PromptScan, root: &Path) -> Vec<String> {
        let name =
            |found: &PromptFile| found.shown.strip_prefix(root).unwrap().display().to_string();
        walk.found.iter().map(name).collect()
    }

    fn test_folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        (folder, root)
    }

    #[test]
    fn a_skill_is_a_folder_and_a_prompt_a_file() {
        let (_folder, root) = test_folder();
        for name in ["b.md", "a/c.md", "moon/SKILL.md", "moon/more.md", ".git/x.md", "d.txt"] {
            write_prompt(&root, name);
        }
        let prompts = scan_test_folder(&root, PromptSource::Project, PromptFileKind::Prompts);
        assert_eq!(found_names(&prompts, &root), ["a/c.md", "b.md", "moon/SKILL.md"]);
        let skills = scan_test_folder(&root, PromptSource::Project, PromptFileKind::Skills);
        assert_eq!(found_names(&skills, &root), ["moon/SKILL.md"]);
        assert!(skills.found[0].is_skill && skills.wrong.is_empty());
        let nothing =
            scan_test_folder(&root.join("none"), PromptSource::User, PromptFileKind::Skills);
        assert!(nothing.found.is_empty() && nothing.wrong.is_empty());
    }

    #[test]
    fn symlink_loops_end_and_links_out_of_the_folder_are_reported() {
        let (_folder, root) = test_folder();
        let (_other, outside) = test_folder();
        write_prompt(&outside, "secret/SKILL.md");
        write_prompt(&outside, "p.md");
        write_prompt(&root, "moon/SKILL.md");
        fs::create_dir(root.join("sub")).unwrap();
        symlink(&root, root.join("sub/loop")).unwrap();
        symlink(root.join("moon"), root.join("again")).unwrap();
        symlink("me", root.join("me")).unwrap();
        symlink(outside.join("secret"), root.join("secret")).unwrap();
        symlink(outside.join("p.md"), root.join("p.md")).unwrap();
        fs::create_dir(root.join("lies")).unwrap();
        symlink(outside.join("p.md"), root.join("lies/SKILL.md")).unwrap();
        let walk = scan_test_folder(&root, PromptSource::User, PromptFileKind::Prompts);
        assert_eq!(found_names(&walk, &root), ["again/SKILL.md"]);
        assert_eq!(walk.wrong.len(), 3, "{:?}", walk.wrong);
        assert!(walk.wrong.iter().all(|line| line.ends_with("a link leads out of the folder")));
    }

    #[test]
    fn workspace_prompt_folder_must_not_be_a_symlink() {
        let (_folder, root) = test_folder();
        write_prompt(&root, "real/moon/SKILL.md");
        symlink(root.join("real"), root.join("link")).unwrap();
        let project =
            scan_test_folder(&root.join("link"), PromptSource::Project, PromptFileKind::Skills);
        assert!(project.found.is_empty() && project.wrong[0].ends_with("its path contains a link"));
        assert_eq!(
            scan_test_folder(&root.join("link"), PromptSource::User, PromptFileKind::Skills)
                .found
                .len(),
            1
        );
    }

    #[test]
    fn folder_depth_and_count_are_limited() {
        let (_folder, root) = test_folder();
        write_prompt(&root, "1/2/3/4/SKILL.md");
        write_prompt(&root, "a/b/c/d/e/SKILL.md");
        let deep = scan_test_folder(&root, PromptSource::User, PromptFileKind::Skills);
        assert_eq!(found_names(&deep, &root), ["1/2/3/4/SKILL.md"]);
        assert!(deep.wrong[0].ends_with("a/b/c/d/e: nested deeper than 4 folders"));

        let (_folder, root) = test_folder();
        for number in 0..FOLDERS_MAX {
            fs::create_dir(root.join(format!("{number:04}"))).unwrap();
        }
        write_prompt(&root, "1998/SKILL.md");
        write_prompt(&root, "1999/SKILL.md");
        let wide = scan_test_folder(&root, PromptSource::User, PromptFileKind::Skills);
        assert_eq!(found_names(&wide, &root), ["1998/SKILL.md"]);
        assert_eq!(wide.wrong.len(), 1);
    }
}

//! Plans the changes of a call before it makes them, so that the user sees exactly what is applied.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::file_change::{FileChange, FileChangeKind};

use crate::content::HashedContent;
use crate::diff::{FileTexts, file_change};
use crate::files::{CHANGED_BYTES_MAX, FileSnapshot, read_facts, read_snapshot};
use crate::text::{decode_bytes, display_text};

/// The maximum number of bytes of all files of one change, before and after, because they are in
/// memory.
const PLAN_BYTES_MAX: u64 = 4 * CHANGED_BYTES_MAX;

/// The planned state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedContent {
    /// The file does not change.
    Same,
    /// The file is deleted.
    Gone,
    /// The file gets these bytes. They differ from its old bytes, unless the file moves.
    Bytes(HashedContent),
    /// The file gets the old bytes of another file, given by its number.
    From(usize),
}

/// A path of a plan.
#[derive(Debug, Clone)]
pub struct PlannedFile {
    /// The path as given in the call.
    pub path: String,
    /// The absolute path without links.
    pub target: String,
    /// The current file.
    pub before: Option<Arc<FileSnapshot>>,
    /// The planned state.
    pub after: PlannedContent,
    /// The number of the file that moves here.
    pub moved_from: Option<usize>,
    /// Permission bits of a new file. `None` means the default.
    pub permissions: Option<u32>,
}

/// The planned changes of a call.
#[derive(Debug, Clone, Default)]
pub struct EditPlan {
    /// The files. Each path occurs once.
    pub files: Vec<PlannedFile>,
    numbers: HashMap<String, usize>,
    targets: HashMap<String, usize>,
    /// The folder to which relative paths refer.
    folder: String,
    bytes: u64,
}

impl EditPlan {
    /// Creates an empty plan.
    pub fn new(folder: &str) -> Self {
        Self { folder: folder.to_owned(), ..Self::default() }
    }

    /// Reads a file, unless it is already in the plan, and returns its number.
    ///
    /// # Errors
    /// An error if the path is not a file, the file is too large, or the path is not allowed.
    pub async fn open_file(&mut self, cx: &Reporter, path: &str) -> Result<usize> {
        let absolute = absolute_path(&self.folder, path);
        if let Some(number) = self.numbers.get(&absolute) {
            return Ok(*number);
        }
        let before = read_snapshot(cx, path).await?;
        let target = resolve_links(cx, &absolute).await;
        if let Some(number) = self.file_number(&target) {
            return Err(same_file_error(&self.files[number].path, path));
        }
        self.add_file(path, target, before)
    }

    /// Returns the number of the file with this path without links.
    pub fn file_number(&self, target: &str) -> Option<usize> {
        self.targets.get(target).copied()
    }

    /// Adds a file that was already read, with its path without links, and returns its number.
    ///
    /// # Errors
    /// An error if all files together are too large.
    pub fn add_file(
        &mut self,
        path: &str,
        target: String,
        before: Option<FileSnapshot>,
    ) -> Result<usize> {
        self.add_planned_bytes(before.as_ref().map_or(0, |snapshot| snapshot.bytes.len()))?;
        let (path, number) = (path.to_owned(), self.files.len());
        self.numbers.insert(absolute_path(&self.folder, &path), number);
        self.targets.insert(target.clone(), number);
        let (after, moved_from, permissions) = (PlannedContent::Same, None, None);
        let before = before.map(Arc::new);
        self.files.push(PlannedFile { path, target, before, after, moved_from, permissions });
        Ok(number)
    }

    /// Returns the numbers of files that are written under an earlier name too.
    ///
    /// # Errors
    /// `conflict` if the plan changes one file under two names in different ways.
    pub fn check_names(&self) -> Result<BTreeSet<usize>> {
        let further = self.find_hard_links();
        for (number, earlier) in &further {
            let (file, earlier) = (&self.files[*number], &self.files[*earlier]);
            let is_written = matches!(file.after, PlannedContent::Bytes(_));
            if !is_written || file.after != earlier.after {
                return Err(same_file_error(&earlier.path, &file.path));
            }
        }
        Ok(further.into_keys().collect())
    }

    /// Returns the changed files that probably are the same file as an earlier one (hard links),
    /// because both have the same version, metadata and content. Maps them to the earlier one.
    fn find_hard_links(&self) -> BTreeMap<usize, usize> {
        let (mut first, mut further) = (HashMap::new(), BTreeMap::new());
        for number in self.changed_numbers() {
            let Some(before) = &self.files[number].before else { continue };
            let Some(version) = &before.facts.version else { continue };
            let facts = (version, before.facts.modified_ms, before.facts.mode);
            let (earlier, bytes) = *first.entry(facts).or_insert((number, &before.bytes));
            if earlier != number && *bytes == before.bytes {
                further.insert(number, earlier);
            }
        }
        further
    }

    /// Returns the planned bytes of a file, or `None` if there will be no file.
    pub fn planned_bytes(&self, number: usize) -> Option<&[u8]> {
        self.planned_content(number).map(|content| &**content)
    }

    /// Returns the planned content of a file, with its digest.
    pub fn planned_content(&self, number: usize) -> Option<&HashedContent> {
        let file = &self.files[number];
        let before = |number: usize| Some(&self.files[number].before.as_ref()?.bytes);
        match &file.after {
            PlannedContent::Same => before(number),
            PlannedContent::Gone => None,
            PlannedContent::Bytes(bytes) => Some(bytes),
            PlannedContent::From(other) => before(*other),
        }
    }

    /// Plans new bytes for a file.
    ///
    /// # Errors
    /// An error if the file, or all files together, are too large.
    pub fn plan_write(&mut self, number: usize, bytes: Vec<u8>) -> Result<()> {
        if bytes.len() as u64 > CHANGED_BYTES_MAX {
            let path = &self.files[number].path;
            let text = format!(
                "{path} would have {} bytes, but at most {CHANGED_BYTES_MAX} can be written",
                bytes.len()
            );
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        self.add_planned_bytes(bytes.len())?;
        self.files[number].after = PlannedContent::Bytes(bytes.into());
        self.mark_if_unchanged(number);
        Ok(())
    }

    /// Plans the deletion of a file.
    pub fn plan_delete(&mut self, number: usize) {
        let file = &mut self.files[number];
        (file.after, file.moved_from) = (PlannedContent::Gone, None);
    }

    /// Plans to move a file to another path and replace the file there.
    pub fn plan_rename(&mut self, from: usize, to: usize) {
        let permissions = self.planned_mode(from);
        let source = &mut self.files[from];
        let origin = source.moved_from.take().unwrap_or(from);
        let after = match std::mem::replace(&mut source.after, PlannedContent::Gone) {
            PlannedContent::Same => PlannedContent::From(from),
            after => after,
        };
        let target = &mut self.files[to];
        // A file that returns to its original path has not moved.
        match origin == to {
            true if after == PlannedContent::From(to) => {
                (target.after, target.moved_from) = (PlannedContent::Same, None)
            }
            true => (target.after, target.moved_from) = (after, None),
            false => (target.after, target.moved_from) = (after, Some(origin)),
        }
        target.permissions = permissions;
        self.mark_if_unchanged(to);
    }

    /// Marks a file as unchanged if its planned bytes equal its old bytes.
    fn mark_if_unchanged(&mut self, number: usize) {
        let file = &mut self.files[number];
        let (Some(before), PlannedContent::Bytes(bytes)) = (&file.before, &file.after) else {
            return;
        };
        if file.moved_from.is_none() && before.bytes == *bytes {
            file.after = PlannedContent::Same;
        }
    }

    fn planned_mode(&self, number: usize) -> Option<u32> {
        let file = &self.files[number];
        match &file.before {
            Some(before) if file.moved_from.is_none() => Some(before.facts.mode),
            _ => file.permissions,
        }
    }

    fn add_planned_bytes(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes <= PLAN_BYTES_MAX {
            return Ok(());
        }
        let text =
            format!("the files of one change have more than {PLAN_BYTES_MAX} bytes in total");
        Err(Error::new(ErrorKind::LimitReached, text).with_hint("change fewer files at a time"))
    }

    /// Returns true if the plan changes a file.
    pub fn is_changed(&self, number: usize) -> bool {
        let file = &self.files[number];
        match &file.after {
            PlannedContent::Same => file.moved_from.is_some(),
            PlannedContent::Gone => file.before.is_some(),
            PlannedContent::Bytes(_) | PlannedContent::From(_) => true,
        }
    }

    /// Returns the numbers of the changed files.
    pub fn changed_numbers(&self) -> impl Iterator<Item = usize> {
        (0..self.files.len()).filter(|number| self.is_changed(*number))
    }

    /// Returns true if only the path of a file changes.
    pub fn is_pure_move(&self, number: usize) -> bool {
        let file = &self.files[number];
        matches!(file.after, PlannedContent::From(from) if self.files[from].after == PlannedContent::Gone)
    }

    /// Returns true if a file moves to another path.
    pub fn is_moved_away(&self, number: usize) -> bool {
        self.files[number].after == PlannedContent::Gone
            && self.files.iter().any(|other| other.moved_from == Some(number))
    }

    /// Returns the changes of files for users and front ends. Takes long for large files.
    pub fn file_changes(&self) -> Vec<FileChange> {
        let told = self.changed_numbers().filter(|number| !self.is_moved_away(*number));
        told.map(|number| self.file_change(number)).collect()
    }

    fn file_change(&self, number: usize) -> FileChange {
        let file = &self.files[number];
        let source = file.moved_from.map(|from| &self.files[from]);
        let before = source.unwrap_or(file).before.as_ref();
        let kind = match (source, &file.before, self.planned_bytes(number)) {
            (Some(_), ..) => FileChangeKind::Moved,
            (None, None, _) => FileChangeKind::Created,
            (None, Some(_), None) => FileChangeKind::Deleted,
            (None, Some(_), Some(_)) => FileChangeKind::Changed,
        };
        let (old, new) = (
            decode_file_text(before.map(|before| &*before.bytes)),
            decode_file_text(self.planned_bytes(number)),
        );
        let texts = FileTexts { old: old.as_deref(), new: new.as_deref() };
        let moved_from = source.map(|source| source.path.clone());
        FileChange { moved_from, ..file_change(&file.path, kind, texts) }
    }
}

/// Returns the text of a file, if there is a file and it is text.
fn decode_file_text(bytes: Option<&[u8]>) -> Option<Cow<'_, str>> {
    Some(display_text(decode_bytes(bytes?).ok()?.text))
}

fn same_file_error(one: &str, other: &str) -> Error {
    let error = Error::new(ErrorKind::Conflict, format!("`{one}` and `{other}` are the same file"));
    error.with_hint("use one name for all changes of a file")
}

/// Returns the path without links, of a file or of the innermost folder that exists above it.
pub async fn resolve_links(cx: &Reporter, absolute: &str) -> String {
    let (mut there, mut missing) = (absolute, "");
    while !there.is_empty() {
        // An environment resolves links in the path of its answer if the given path goes up.
        match read_facts(cx, &format!("/..{there}")).await {
            Ok(Some(facts)) if facts.path.starts_with('/') => {
                return absolute_path("", &format!("{}{missing}", facts.path));
            }
            Ok(None) => {
                there = there.rsplit_once('/').map_or("", |(folder, _)| folder);
                missing = &absolute[there.len()..];
            }
            Ok(Some(_)) | Err(_) => break,
        }
    }
    absolute.to_owned()
}

/// Makes a path absolute, without `.` and `..`.
pub fn absolute_path(folder: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") };
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            ".." => _ = names.pop(),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::files::FileFacts;

    use super::*;

    /// Creates a plan with files `a`, `b` and so on with these texts. `-` means that there is no
    /// file.
    fn plan_with_files(texts: &[&str]) -> EditPlan {
        let mut plan = EditPlan::new("/w");
        for (number, text) in texts.iter().enumerate() {
            let path = ["a", "b", "c"][number];
            let facts =
                FileFacts { path: format!("/w/{path}"), mode: 0o644, ..FileFacts::default() };
            let snapshot = FileSnapshot { facts, bytes: text.as_bytes().to_vec().into() };
            plan.add_file(path, format!("/w/{path}"), (*text != "-").then_some(snapshot)).unwrap();
        }
        plan
    }

    #[track_caller]
    fn check_plan(plan: &EditPlan, expected: &[&str]) {
        let mut told = Vec::new();
        for change in plan.file_changes() {
            let from = change.moved_from.map(|from| format!("{from}>")).unwrap_or_default();
            let new = change.new.unwrap_or_else(|| "-".to_owned());
            told.push(format!("{from}{}:{new}", change.path));
        }
        assert_eq!(told, expected);
    }

    #[test]
    fn edits_of_one_file_are_one_change() {
        let mut plan = plan_with_files(&["1", "-"]);
        plan.plan_write(0, b"2".to_vec()).unwrap();
        assert_eq!(plan.planned_bytes(0), Some(&b"2"[..]));
        plan.plan_write(0, b"3".to_vec()).unwrap();
        plan.plan_write(1, b"new".to_vec()).unwrap();
        check_plan(&plan, &["a:3", "b:new"]);
        plan.plan_write(0, b"1".to_vec()).unwrap();
        plan.plan_delete(1);
        check_plan(&plan, &[]);
    }

    #[test]
    fn plan_follows_moved_files() {
        let mut moved = plan_with_files(&["1", "-", "-"]);
        moved.plan_rename(0, 1);
        assert!(moved.is_pure_move(1) && moved.is_moved_away(0));
        check_plan(&moved, &["a>b:1"]);
        moved.plan_rename(1, 2);
        check_plan(&moved, &["a>c:1"]);
        moved.plan_write(2, b"2".to_vec()).unwrap();
        assert!(!moved.is_pure_move(2));
        check_plan(&moved, &["a>c:2"]);
        moved.plan_write(0, b"again".to_vec()).unwrap();
        check_plan(&moved, &["a:again", "a>c:2"]);
        assert_eq!(moved.files[2].permissions, Some(0o644));
    }

    #[test]
    fn plan_handles_swapped_files_and_moves_back() {
        let mut swapped = plan_with_files(&["1", "2", "-"]);
        swapped.plan_rename(0, 2);
        swapped.plan_rename(1, 0);
        swapped.plan_rename(2, 1);
        check_plan(&swapped, &["b>a:2", "a>b:1"]);
        assert!(!swapped.is_pure_move(0) && !swapped.is_pure_move(1));
        let mut back = plan_with_files(&["1", "-"]);
        back.plan_rename(0, 1);
        back.plan_rename(1, 0);
        check_plan(&back, &[]);
    }

    #[test]
    fn paths_are_made_absolute() {
        let made = ["a", "./a//b", "../x", "/etc/../y", "", "../../.."]
            .map(|path| absolute_path("/w/v", path));
        assert_eq!(made, ["/w/v/a", "/w/v/a/b", "/w/x", "/y", "/w/v", "/"]);
    }

    #[test]
    fn plan_size_is_limited() {
        let mut large = plan_with_files(&["1"]);
        let too_long = vec![0; usize::try_from(CHANGED_BYTES_MAX).unwrap() + 1];
        assert_eq!(large.plan_write(0, too_long).unwrap_err().kind, ErrorKind::LimitReached);
        large.bytes = PLAN_BYTES_MAX - 1;
        assert!(large.add_planned_bytes(1).is_ok());
        assert_eq!(large.add_planned_bytes(1).unwrap_err().kind, ErrorKind::LimitReached);
    }
}

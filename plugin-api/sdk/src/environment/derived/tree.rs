//! Goes through a tree, folder by folder, over listing.

use jaato_types::files::{
    FileKind, FileWalk, FolderEntry, FolderList, UNREADABLE_MAX, WALK_BYTES_MAX, WALK_ENTRIES_MAX,
    WalkedEntry, WalkedPage,
};
use jaato_types::{Error, ErrorKind, Result};

use super::ignored::{Rules, Said};
use super::{DEPTH_MAX, ENTRIES_MAX, joined, whole};
use crate::context::Reporter;
use crate::environment::Files;
use crate::environment::searched::json_bytes;

/// The files whose rules count, the stronger ones behind.
const RULES: [&str; 2] = [".gitignore", ".ignore"];

/// Bytes of JSON that an entry has beside its path.
const ENTRY_BYTES: usize = 30;

/// A tree that is gone through: a folder before what is in it, each sorted by name, no link
/// followed.
pub(in crate::environment) struct Tree {
    /// Where it begins, as it was asked for.
    top: String,
    levels: Vec<Level>,
    /// Rules of the folders above, each with the way from there to the top.
    above: Vec<(String, Rules)>,
    includes_ignored: bool,
    includes_hidden: bool,
    /// What is left out besides, with the way from where its paths begin to the top.
    leave_out: (String, Rules),
    depth_max: usize,
    /// The folder that was told last, to be entered next.
    enter: Option<String>,
    /// What is read of a page: it stays when nobody waits for the rest.
    page: WalkedPage,
    page_bytes: usize,
    unreadable_told: usize,
    looked_at: usize,
}

/// What of a tree is looked at.
#[derive(Default)]
pub(in crate::environment) struct Looks {
    pub(super) path: String,
    pub(super) include_ignored: bool,
    pub(super) include_hidden: bool,
    /// Patterns of what is left out besides, as in `.gitignore`.
    pub(super) leave_out: Vec<String>,
    /// The way from where these patterns begin to the path; empty or with `/` at its end.
    pub(super) way: String,
    pub(super) depth_max: Option<usize>,
}

/// A file, a folder or something else in a tree.
pub(super) struct Entry {
    /// From the top.
    pub(super) path: String,
    pub(super) kind: FileKind,
    pub(super) size: u64,
}

impl From<FileWalk> for Looks {
    fn from(walk: FileWalk) -> Self {
        Self {
            path: walk.path,
            include_ignored: walk.include_ignored,
            include_hidden: walk.include_ignored,
            depth_max: walk.depth_max,
            ..Self::default()
        }
    }
}

/// A folder that is open.
struct Level {
    /// From the top; empty for the top itself.
    path: String,
    entries: std::vec::IntoIter<FolderEntry>,
    rules: Rules,
}

impl Tree {
    /// Begins; the first folder must be there.
    pub(in crate::environment) async fn begin<F: Files + ?Sized>(
        files: &F,
        host: &Reporter,
        looks: impl Into<Looks>,
    ) -> Result<Self> {
        let looks = looks.into();
        let mut leave_out = Rules::default();
        looks.leave_out.iter().for_each(|pattern| leave_out.add(pattern));
        let mut tree = Self {
            top: looks.path,
            levels: Vec::new(),
            above: Vec::new(),
            includes_ignored: looks.include_ignored,
            includes_hidden: looks.include_hidden,
            leave_out: (looks.way, leave_out),
            depth_max: looks.depth_max.unwrap_or(DEPTH_MAX).clamp(1, DEPTH_MAX),
            enter: None,
            page: WalkedPage::default(),
            page_bytes: 0,
            unreadable_told: 0,
            looked_at: 0,
        };
        if !tree.includes_ignored {
            tree.above = above(files, host, &tree.top).await;
        }
        let entries = tree.list(files, host, "").await?;
        tree.open(files, host, String::new(), entries).await;
        Ok(tree)
    }

    /// Gives the next page; none at the end.
    pub(in crate::environment) async fn next<F: Files + ?Sized>(
        &mut self,
        files: &F,
        host: &Reporter,
    ) -> Result<Option<WalkedPage>> {
        while self.page.entries.len() < WALK_ENTRIES_MAX && self.page_bytes < WALK_BYTES_MAX {
            let Some(entry) = self.next_entry(files, host).await? else { break };
            let Entry { path, kind, .. } = entry;
            self.page_bytes += ENTRY_BYTES + json_bytes(&path);
            self.page.entries.push(WalkedEntry { path, kind, ..WalkedEntry::default() });
        }
        self.page_bytes = 0;
        let page = std::mem::take(&mut self.page);
        Ok((!page.entries.is_empty() || !page.unreadable.is_empty()).then_some(page))
    }

    /// Gives the next file or folder, from the top.
    pub(super) async fn next_entry<F: Files + ?Sized>(
        &mut self,
        files: &F,
        host: &Reporter,
    ) -> Result<Option<Entry>> {
        if let Some(path) = self.enter.clone() {
            self.go_in(files, host, path).await?;
            self.enter = None;
        }
        while let Some(level) = self.levels.last_mut() {
            let Some(entry) = level.entries.next() else {
                self.levels.pop();
                continue;
            };
            if entry.name == ".git" {
                continue;
            }
            let path = joined(&level.path, &entry.name);
            let is_folder = entry.kind == FileKind::Folder;
            if self.leaves_out(&entry.name, &path, is_folder) {
                continue;
            }
            if is_folder && self.levels.len() < self.depth_max {
                self.enter = Some(path.clone());
            } else if is_folder && self.depth_max == DEPTH_MAX {
                self.tell_unreadable(&path, &format!("more than {DEPTH_MAX} folders deep"));
            }
            return Ok(Some(Entry { path, kind: entry.kind, size: entry.size }));
        }
        Ok(None)
    }

    /// Takes the folders that could not be read.
    pub(super) fn take_unreadable(&mut self) -> Vec<String> {
        std::mem::take(&mut self.page.unreadable)
    }

    async fn go_in<F: Files + ?Sized>(
        &mut self,
        files: &F,
        host: &Reporter,
        path: String,
    ) -> Result<()> {
        match self.list(files, host, &path).await {
            Ok(entries) => self.open(files, host, path, entries).await,
            // It went, or became something else, meanwhile.
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) if [ErrorKind::LimitReached, ErrorKind::Cancelled].contains(&error.kind) => {
                return Err(error);
            }
            Err(error) => self.tell_unreadable(&path, &error.message),
        }
        Ok(())
    }

    async fn open<F: Files + ?Sized>(
        &mut self,
        files: &F,
        host: &Reporter,
        path: String,
        entries: Vec<FolderEntry>,
    ) {
        let mut rules = Rules::default();
        if !self.includes_ignored {
            let names = entries.iter().map(|entry| entry.name.as_str());
            let there: Vec<&str> = names.filter(|name| RULES.contains(name)).collect();
            for name in RULES.iter().filter(|name| there.contains(name)) {
                add_rules(&mut rules, files, host, &joined(&self.in_files(&path), name)).await;
            }
        }
        self.levels.push(Level { path, entries: entries.into_iter(), rules });
    }

    /// Lists a folder, all of it.
    async fn list<F: Files + ?Sized>(
        &mut self,
        files: &F,
        host: &Reporter,
        path: &str,
    ) -> Result<Vec<FolderEntry>> {
        let path = self.in_files(path);
        let mut entries: Vec<FolderEntry> = Vec::new();
        loop {
            let list =
                FolderList { path: path.clone(), skip: entries.len(), ..FolderList::default() };
            let listed = files.list(host, list).await?;
            let is_end = listed.entries.is_empty();
            self.looked_at += listed.entries.len();
            entries.extend(listed.entries);
            if self.looked_at > ENTRIES_MAX {
                let text = format!("`{path}`: the tree has more than {ENTRIES_MAX} files");
                let hint = "begin in a folder of it";
                return Err(Error::new(ErrorKind::LimitReached, text).with_hint(hint));
            }
            if is_end || entries.len() >= listed.count {
                return Ok(entries);
            }
        }
    }

    /// A path from the top, as the files take it.
    fn in_files(&self, path: &str) -> String {
        if path.is_empty() { self.top.clone() } else { joined(&self.top, path) }
    }

    fn leaves_out(&self, name: &str, path: &str, is_folder: bool) -> bool {
        let (way, rules) = &self.leave_out;
        if !rules.is_empty() && rules.say(&format!("{way}{path}"), is_folder) == Said::LeaveOut {
            return true;
        }
        let said = if self.includes_ignored { Said::Nothing } else { self.say(path, is_folder) };
        let is_hidden = !self.includes_hidden && name.starts_with('.');
        said == Said::LeaveOut || (is_hidden && said != Said::Keep)
    }

    fn say(&self, path: &str, is_folder: bool) -> Said {
        let inside = self.levels.iter().rev().map(|level| {
            let below = path.strip_prefix(level.path.as_str()).unwrap_or(path);
            level.rules.say(below.trim_start_matches('/'), is_folder)
        });
        let outside =
            self.above.iter().map(|(way, rules)| rules.say(&format!("{way}{path}"), is_folder));
        inside.chain(outside).find(|said| *said != Said::Nothing).unwrap_or(Said::Nothing)
    }

    fn tell_unreadable(&mut self, path: &str, why: &str) {
        if self.unreadable_told < UNREADABLE_MAX {
            self.unreadable_told += 1;
            let line = format!("`{}`: {why}", self.in_files(path));
            self.page_bytes += ENTRY_BYTES + line.len();
            self.page.unreadable.push(line);
        }
    }
}

/// Reads the rules of the folders above, up to the default folder, the nearest first. What is above
/// an absolute path may not be looked at.
async fn above<F: Files + ?Sized>(files: &F, host: &Reporter, top: &str) -> Vec<(String, Rules)> {
    let mut above = Vec::new();
    let names: Vec<&str> = top.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    if top.starts_with('/') || names.contains(&"..") {
        return above;
    }
    for depth in (0..names.len()).rev().take(DEPTH_MAX) {
        let mut rules = Rules::default();
        for name in RULES {
            add_rules(&mut rules, files, host, &joined(&names[..depth].join("/"), name)).await;
        }
        if !rules.is_empty() {
            above.push((format!("{}/", names[depth..].join("/")), rules));
        }
    }
    above
}

/// Adds the rules of a file, if it is there and can be read.
async fn add_rules<F: Files + ?Sized>(rules: &mut Rules, files: &F, host: &Reporter, path: &str) {
    if let Ok(bytes) = whole(files, host, path).await {
        rules.add(&String::from_utf8_lossy(&bytes));
    }
}

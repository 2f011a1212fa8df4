//! Tests that an environment with only the six required operations of files passes the same suite
//! as handwritten ones.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeMap;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::execution::{
    AllowedPath, EnvironmentFacts, EnvironmentSetup, EnvironmentSpec,
};
use jaato_plugin_sdk::types::files::{
    FileBytes, FileDelete, FileFacts, FileKind, FilePath, FileRead, FileWrite, FolderEntries,
    FolderEntry, FolderList, FolderMake, READ_BYTES_MAX, WriteMode,
};
use jaato_plugin_sdk_environment::{ExecutionEnvironment, Files, NoShell, NoTerminals};
use parking_lot::Mutex;

/// The only folder.
const TOP: &str = "/memory";

/// A file or a folder.
#[derive(Clone)]
enum MemoryNode {
    Folder,
    File { bytes: Vec<u8>, version: u64 },
}

/// Files in memory, by their path below the top.
#[derive(Default)]
struct MemoryFiles(Mutex<MemoryTree>);

#[derive(Default)]
struct MemoryTree {
    nodes: BTreeMap<String, MemoryNode>,
    written: u64,
}

/// Returns a path below the top, without `.` and `..`.
fn path_below(path: &str) -> Result<String> {
    let path = if path.starts_with('/') { path.to_owned() } else { format!("{TOP}/{path}") };
    let mut names = Vec::new();
    for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
        if name == ".." {
            names.pop();
        } else {
            names.push(name);
        }
    }
    match names.split_first() {
        Some((&"memory", rest)) => Ok(rest.join("/")),
        _ => {
            let text = format!("`{path}` lies outside of `{TOP}`");
            Err(Error::new(ErrorKind::PermissionDenied, text))
        }
    }
}

fn missing_file_error(path: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no `{path}`"))
}

impl MemoryTree {
    fn find_node(&self, path: &str) -> Result<MemoryNode> {
        if path.is_empty() {
            return Ok(MemoryNode::Folder);
        }
        self.nodes.get(path).cloned().ok_or_else(|| missing_file_error(path))
    }

    fn file_facts(&self, path: &str) -> Result<FileFacts> {
        let node = self.find_node(path)?;
        let path = format!("{TOP}/{path}").trim_end_matches('/').to_owned();
        Ok(match node {
            MemoryNode::Folder => {
                FileFacts { path, kind: FileKind::Folder, ..FileFacts::default() }
            }
            MemoryNode::File { bytes, version } => FileFacts {
                path,
                kind: FileKind::File,
                size: bytes.len() as u64,
                modified_ms: i64::try_from(version).unwrap_or(i64::MAX),
                version: Some(version.to_string()),
                ..FileFacts::default()
            },
        })
    }

    fn make_parents(&mut self, path: &str, makes: bool) -> Result<()> {
        for (at, _) in path.match_indices('/') {
            match self.find_node(&path[..at]) {
                Ok(MemoryNode::Folder) => {}
                Err(_) if makes => _ = self.nodes.insert(path[..at].to_owned(), MemoryNode::Folder),
                Ok(_) | Err(_) => return Err(missing_file_error(&path[..at])),
            }
        }
        Ok(())
    }

    fn paths_below(&self, path: &str) -> Vec<String> {
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.nodes.keys().filter(|name| name.starts_with(&folder)).cloned().collect()
    }
}

impl Files for MemoryFiles {
    async fn read(&self, _: &Reporter, read: FileRead) -> Result<(FileBytes, Vec<u8>)> {
        let path = path_below(&read.path)?;
        let MemoryNode::File { bytes, .. } = self.0.lock().find_node(&path)? else {
            return Err(Error::new(ErrorKind::InvalidArguments, format!("`{path}` is a folder")));
        };
        let start = usize::try_from(read.offset).unwrap_or(usize::MAX).min(bytes.len());
        let wanted = read.length.unwrap_or(READ_BYTES_MAX).min(READ_BYTES_MAX);
        let end = bytes.len().min(start + usize::try_from(wanted).unwrap());
        let facts = FileBytes {
            size: bytes.len() as u64,
            offset: read.offset,
            has_more: end < bytes.len(),
            ..FileBytes::default()
        };
        Ok((facts, bytes[start..end].to_vec()))
    }

    async fn write(&self, _: &Reporter, write: FileWrite, bytes: Vec<u8>) -> Result<FileFacts> {
        let (path, tree) = (path_below(&write.path)?, &mut *self.0.lock());
        tree.make_parents(&path, write.parents)?;
        let before = tree.file_facts(&path).ok();
        let conflict = |text: &str| Error::new(ErrorKind::Conflict, format!("`{path}` {text}"));
        if write.mode == WriteMode::CreateNew && before.is_some() {
            return Err(conflict("is there already"));
        }
        let version = before.and_then(|facts| facts.version);
        if write.expected.is_some() && write.expected != version {
            return Err(conflict("is another"));
        }
        let old = match (write.mode, tree.find_node(&path)) {
            (WriteMode::Append, Ok(MemoryNode::File { bytes, .. })) => bytes,
            _ => Vec::new(),
        };
        tree.written += 1;
        let node = MemoryNode::File { bytes: [old, bytes].concat(), version: tree.written };
        tree.nodes.insert(path.clone(), node);
        tree.file_facts(&path)
    }

    async fn stat(&self, _: &Reporter, path: FilePath) -> Result<FileFacts> {
        self.0.lock().file_facts(&path_below(&path.path)?)
    }

    async fn list(&self, _: &Reporter, list: FolderList) -> Result<FolderEntries> {
        let (path, tree) = (path_below(&list.path)?, &*self.0.lock());
        let MemoryNode::Folder = tree.find_node(&path)? else {
            return Err(missing_file_error(&path));
        };
        let start = if path.is_empty() { 0 } else { path.len() + 1 };
        let names = tree.paths_below(&path).into_iter().filter(|name| !name[start..].contains('/'));
        let entry = |name: String| {
            let facts = tree.file_facts(&name)?;
            let (name, kind, size) = (name[start..].to_owned(), facts.kind, facts.size);
            Ok(FolderEntry { name, kind, size, ..FolderEntry::default() })
        };
        let entries: Vec<FolderEntry> = names.map(entry).collect::<Result<_>>()?;
        let count = entries.len();
        // Two at a time, so that the caller must ask again.
        let entries = entries.into_iter().skip(list.skip).take(2).collect();
        Ok(FolderEntries { entries, count, ..FolderEntries::default() })
    }

    async fn delete(&self, _: &Reporter, delete: FileDelete) -> Result<()> {
        let (path, tree) = (path_below(&delete.path)?, &mut *self.0.lock());
        tree.find_node(&path)?;
        for name in tree.paths_below(&path) {
            tree.nodes.remove(&name);
        }
        tree.nodes.remove(&path);
        Ok(())
    }

    async fn make_folder(&self, _: &Reporter, make: FolderMake) -> Result<()> {
        let (path, tree) = (path_below(&make.path)?, &mut *self.0.lock());
        tree.make_parents(&path, make.parents)?;
        tree.nodes.insert(path, MemoryNode::Folder);
        Ok(())
    }
}

/// An environment that forgets everything.
struct MemoryEnvironment {
    files: MemoryFiles,
}

impl ExecutionEnvironment for MemoryEnvironment {
    type State = ();
    type Files = MemoryFiles;
    type Shell = NoShell;
    type Terminals = NoTerminals;

    fn spec() -> EnvironmentSpec {
        EnvironmentSpec {
            name: "memory".into(),
            title: "files in memory".into(),
            ..EnvironmentSpec::default()
        }
    }

    async fn setup(_cx: &Cx, _setup: EnvironmentSetup) -> Result<Self> {
        Ok(Self { files: MemoryFiles::default() })
    }

    async fn facts(&self, _cx: &Cx) -> Result<EnvironmentFacts> {
        let allowed = AllowedPath { path: TOP.to_owned(), ..AllowedPath::default() };
        Ok(EnvironmentFacts {
            name: "memory".into(),
            working_directory: TOP.to_owned(),
            allowed_paths: vec![allowed],
            ..EnvironmentFacts::default()
        })
    }

    fn files(&self) -> Option<&MemoryFiles> {
        Some(&self.files)
    }
}

export_plugin! { state: (), environment: MemoryEnvironment }

jaato_plugin_testkit::conformance!(crate: environment);

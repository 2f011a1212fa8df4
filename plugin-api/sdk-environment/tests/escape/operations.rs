//! All operations that take one path.

use jaato_plugin_sdk_environment::files::ConfinedFiles;
use jaato_types::Result;
use jaato_types::files::*;

/// An operation. Its answer is a text with everything that it returned.
pub struct TestedOperation {
    pub name: &'static str,
    pub run: fn(&ConfinedFiles, &str) -> Result<String>,
    /// How the operation treats a link at the end of the path.
    pub link: Link,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It follows the link.
    Followed,
    /// It acts on the link itself.
    Itself,
}

fn format_result(value: impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

fn format_bytes((facts, bytes): (FileBytes, Vec<u8>)) -> String {
    format!("{facts:?} {}", String::from_utf8_lossy(&bytes))
}

fn read_request(path: &str) -> FileRead {
    FileRead { path: path.to_owned(), ..FileRead::default() }
}

fn write_request(path: &str, mode: WriteMode) -> FileWrite {
    FileWrite { path: path.to_owned(), mode, ..FileWrite::default() }
}

fn file_pair(from: &str, to: &str) -> FilePair {
    FilePair { from: from.to_owned(), to: to.to_owned(), overwrite: true }
}

fn write_in_pieces(confined: &ConfinedFiles, path: &str, mode: WriteMode) -> Result<String> {
    let mut writer = confined.write_stream(&write_request(path, mode))?;
    writer.write(b"streamed")?;
    writer.finish().map(format_result)
}

fn find_paths(confined: &ConfinedFiles, pattern: &str, path: &str) -> Result<String> {
    let request = FileFind {
        pattern: pattern.to_owned(),
        path: path.to_owned(),
        include_ignored: true,
        include_hidden: true,
        ..FileFind::default()
    };
    let pages = confined.find(&request)?.map(Result::unwrap);
    let paths: Vec<_> = pages.flat_map(|page| page.files).map(|file| file.path).collect();
    Ok(paths.join(" "))
}

/// Patterns are relative, so an absolute pattern is searched from the root.
fn find_by_pattern(confined: &ConfinedFiles, pattern: &str) -> Result<String> {
    match pattern.strip_prefix('/') {
        Some(pattern) => find_paths(confined, pattern.trim_start_matches('/'), "/"),
        None => find_paths(confined, pattern, ""),
    }
}

const fn following_operation(
    name: &'static str,
    run: fn(&ConfinedFiles, &str) -> Result<String>,
) -> TestedOperation {
    TestedOperation { name, run, link: Link::Followed }
}

const fn link_operation(
    name: &'static str,
    run: fn(&ConfinedFiles, &str) -> Result<String>,
) -> TestedOperation {
    TestedOperation { name, run, link: Link::Itself }
}

pub const OPERATIONS: &[TestedOperation] = &[
    following_operation("read", |it, path| it.read(&read_request(path)).map(format_bytes)),
    following_operation("read, cached", |it, path| {
        it.read_cached(&read_request(path))
            .map(format_bytes)
            .map_or_else(|| it.read(&read_request(path)).map(format_bytes), Ok)
    }),
    following_operation("read text", |it, path| {
        let request = FileReadText { path: path.to_owned(), ..FileReadText::default() };
        it.read_text(&request).map(format_result)
    }),
    following_operation("read stream", |it, path| {
        let (_, mut pieces) = it.read_stream(&read_request(path))?;
        let piece = pieces.read_piece()?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&piece).into_owned())
    }),
    following_operation("write", |it, path| {
        it.write(&write_request(path, WriteMode::Replace), b"new").map(format_result)
    }),
    link_operation("write new", |it, path| {
        it.write(&write_request(path, WriteMode::CreateNew), b"new").map(format_result)
    }),
    following_operation("append", |it, path| {
        it.write(&write_request(path, WriteMode::Append), b"more").map(format_result)
    }),
    following_operation("write with parents", |it, path| {
        let request = FileWrite { parents: true, ..write_request(path, WriteMode::Replace) };
        it.write(&request, b"new").map(format_result)
    }),
    following_operation("write below with parents", |it, path| {
        let request = FileWrite { parents: true, ..write_request(path, WriteMode::Append) };
        let path = format!("{path}/a/b/new");
        it.write(&FileWrite { path, ..request }, b"new").map(format_result)
    }),
    following_operation("write stream", |it, path| write_in_pieces(it, path, WriteMode::Replace)),
    link_operation("write new stream", |it, path| write_in_pieces(it, path, WriteMode::CreateNew)),
    following_operation("append stream", |it, path| write_in_pieces(it, path, WriteMode::Append)),
    following_operation("edit", |it, path| {
        let edit = TextEdit { old: "N".to_owned(), new: "n".to_owned(), all: true };
        let request = FileEdit { path: path.to_owned(), edits: vec![edit], expected: None };
        it.edit(&request).map(format_result)
    }),
    link_operation("delete", |it, path| {
        it.delete(&FileDelete { path: path.to_owned(), recursive: false }).map(format_result)
    }),
    link_operation("delete all", |it, path| {
        it.delete(&FileDelete { path: path.to_owned(), recursive: true }).map(format_result)
    }),
    following_operation("list", |it, path| {
        it.list(&FolderList { path: path.to_owned(), skip: 0 }).map(format_result)
    }),
    following_operation("stat", |it, path| {
        it.stat(&FilePath { path: path.to_owned(), ..FilePath::default() }).map(format_result)
    }),
    following_operation("make folder", |it, path| {
        it.make_folder(&FolderMake { path: path.to_owned(), parents: false }).map(format_result)
    }),
    following_operation("make folders", |it, path| {
        it.make_folder(&FolderMake { path: format!("{path}/a/b"), parents: true })
            .map(format_result)
    }),
    link_operation("move away", |it, path| {
        it.move_to(&file_pair(path, "moved")).map(format_result)
    }),
    link_operation("move there", |it, path| {
        it.move_to(&file_pair("file.txt", path)).map(format_result)
    }),
    link_operation("move a folder there", |it, path| {
        it.move_to(&file_pair("folder", path)).map(format_result)
    }),
    following_operation("copy from", |it, path| {
        it.copy(&file_pair(path, "copied"))?;
        it.read(&read_request("copied"))
            .or_else(|_| it.read(&read_request("copied/secret.txt")))
            .map(format_bytes)
    }),
    link_operation("copy there", |it, path| {
        it.copy(&file_pair("file.txt", path)).map(format_result)
    }),
    link_operation("copy a folder there", |it, path| {
        it.copy(&file_pair("folder", path)).map(format_result)
    }),
    following_operation("find in it", |it, path| find_paths(it, "**/*", path)),
    following_operation("find by it", |it, path| find_by_pattern(it, &format!("{path}/*"))),
    following_operation("find it", find_by_pattern),
    following_operation("walk", |it, path| {
        let request =
            FileWalk { path: path.to_owned(), include_ignored: true, ..FileWalk::default() };
        it.walk(&request).map(|walk| format_result(walk.map(Result::unwrap).collect::<Vec<_>>()))
    }),
    following_operation("folder", |it, path| it.folder_paths(path).map(format_result)),
];

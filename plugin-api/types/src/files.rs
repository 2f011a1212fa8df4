//! The services `files.*`: access to files in the session's execution environment, for tools and as
//! operations of an environment plugin.
//!
//! A path is absolute in the environment's view (for a container, the container's), or relative to
//! the environment's default folder. Paths outside the allowed folders fail with
//! `permission_denied`, and the error lists the allowed folders. Text is UTF-8 and preserved
//! exactly, including line endings.

use serde::{Deserialize, Serialize};

use crate::protected::ProtectedFiles;

crate::operations::service_operations! { $ file_operations, None, passed_on;
    /// Reads bytes, at most 4 MiB in one answer.
    [reads] read READ "files.read": FileRead => FileBytes + bytes;
    /// Reads text. Fails with `invalid_arguments` if the file is not valid UTF-8.
    [reads] read_text READ_TEXT "files.read_text": FileReadText => FileText, sdk [(FileReadText)];
    /// Writes the bytes to a file.
    write WRITE "files.write": FileWrite + bytes => FileFacts;
    /// Replaces pieces of a text, all of them or none. Fails with `not_found` if a piece does not
    /// occur in the text, and with `conflict` if it occurs more than once.
    edit EDIT "files.edit": FileEdit => FileEditAnswer, sdk [(FileEdit)];
    /// Deletes a file, a link itself, or a folder.
    delete DELETE "files.delete": FileDelete => (), sdk [(FileDelete)];
    /// Lists a folder, sorted by name.
    [reads] list LIST "files.list": FolderList => FolderEntries, sdk [(FolderList)];
    /// Returns the facts about a file or folder. A link that leads outside the allowed folders is
    /// an error.
    [reads] stat STAT "files.stat": FilePath => FileFacts,
        sdk [{ path: impl Into<String> }];
    /// Creates a folder. Succeeds if the folder already exists, and fails with `conflict` if
    /// something else has the name.
    make_folder MAKE_FOLDER "files.mkdir": FolderMake => (), sdk [(FolderMake)];
    /// Moves a file or a folder to a new name. Fails with `conflict` if the name is taken.
    rename MOVE "files.move": FilePair => (), sdk [(FilePair)];
    /// Copies a file, or a folder with its content. Fails with `conflict` if the name is taken.
    copy COPY "files.copy": FilePair => (), sdk [(FilePair)];
    /// Finds files, but not folders, that match a pattern, with their facts. Each frame is a
    /// `FoundPage`. Fails with `invalid_arguments` if the pattern is not valid.
    [reads] find FIND "files.find": FileFind => StreamAnswer + stream,
        sdk [(FileFind) as SearchPages<FoundPage>];
    /// Searches text files. Each frame is a `SearchedPage`. Fails with `invalid_arguments` if the
    /// regular expression is not valid or becomes too large.
    [reads] search SEARCH "files.search": FileSearch => StreamAnswer + stream,
        sdk [(FileSearch) as SearchPages<SearchedPage>];
    /// Walks a folder tree, sorted within each folder. Each frame is a `WalkedPage`.
    [reads] walk WALK "files.walk": FileWalk => StreamAnswer + stream, sdk [(FileWalk) as FileTree];
    /// Reads a file piece by piece, in pieces of up to 1 MiB.
    [reads] stream READ_STREAM "files.read_stream": FileRead => FileStreamAnswer + stream,
        sdk [(FileRead) as ServiceStream];
    /// Begins to write a file piece by piece. The old file stays in place until
    /// `files.write_finish`. Closing the stream before that leaves it unchanged.
    upload WRITE_STREAM "files.write_stream": FileWrite => FileUploadAnswer + stream;
    /// Appends bytes to a file that was begun with `files.write_stream`.
    write_piece WRITE_PIECE "files.write_piece": FileUploadRef + bytes => ();
    /// Moves the written file into place.
    write_finish WRITE_FINISH "files.write_finish": FileUploadRef => FileFacts;
}

/// Resolves paths. Takes a [`FileResolve`], returns [`FileResolveAnswer`]. The host calls it;
/// plugins cannot. It also resolves paths outside the allowed folders if the environment's commands
/// can reach them.
pub const RESOLVE: &str = "files.resolve";

/// The maximum number of bytes in one answer. Read larger files in ranges or as a stream.
pub const READ_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The maximum number of bytes of text in one answer. It fits into a frame even if JSON escapes
/// each byte as six.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// The maximum number of folder entries in one answer.
pub const LIST_ENTRIES_MAX: usize = 10_000;
/// The approximate maximum size of all names in one listing, in bytes.
pub const LIST_BYTES_MAX: usize = 1024 * 1024;
/// The maximum number of files that one search by pattern returns.
pub const FIND_FILES_MAX: usize = 10_000;
/// The maximum number of matches that one search returns.
pub const SEARCH_MATCHES_MAX: usize = 10_000;
/// The maximum number of context lines before and after a matching line.
pub const SEARCH_CONTEXT_LINES_MAX: usize = 50;
/// The approximate maximum number of bytes of a line in a search result.
pub const SEARCH_LINE_BYTES_MAX: usize = 2000;
/// The maximum number of entries in one page of a walk.
pub const WALK_ENTRIES_MAX: usize = 1000;
/// The approximate maximum size of the JSON of one page of a walk, in bytes. One frame of a stream
/// holds twice that.
pub const WALK_BYTES_MAX: usize = 32 * 1024;
/// The key in each `files.*` request under which the host sends the [`FileLimits`] of the call.
pub const LIMITS_KEY: &str = "limits";
/// The maximum number of paths in one [`RESOLVE`] request.
pub const RESOLVE_PATHS_MAX: usize = 10_000;
/// The maximum number of unreadable folders that a result lists.
pub const UNREADABLE_MAX: usize = 100;

/// The path of a file or a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilePath {
    /// The path.
    pub path: String,
    /// Whether [`STAT`] describes a link itself. An environment that does not know this key follows
    /// the link.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub itself: bool,
}

/// A request to read bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileRead {
    /// The path.
    pub path: String,
    /// The offset of the first byte. Past the end, the result is empty.
    pub offset: u64,
    /// The maximum number of bytes. If absent, up to the end of the file, or up to
    /// [`READ_BYTES_MAX`] in a single answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
}

/// Bytes of a file, which are in the same frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileBytes {
    /// The size of the whole file, in bytes.
    pub size: u64,
    /// The offset of the first byte.
    pub offset: u64,
    /// Whether the file continues after these bytes.
    pub has_more: bool,
}

/// A request to read text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileReadText {
    /// The path.
    pub path: String,
    /// The offset at which to begin. Past the end, the result is empty.
    pub offset: u64,
    /// The maximum length. If absent, as much as an answer holds. An answer holds
    /// [`TEXT_BYTES_MAX`] bytes and may therefore end inside a line. To read such a line, use the
    /// unit `characters`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The unit of `offset` and `length`.
    pub unit: TextUnit,
}

/// The unit of a range of text. Unknown units are refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextUnit {
    /// Unicode scalar values.
    #[default]
    Characters,
    /// Lines, including their line endings.
    Lines,
}

/// Text from a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileText {
    /// The text.
    pub text: String,
    /// The size of the whole file, in bytes.
    pub size: u64,
    /// Whether the file continues after this text.
    pub has_more: bool,
    /// The version of the file. Pass it to a later write, so that the write does not overwrite
    /// changes by others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A request to write a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileWrite {
    /// The path. Its folder must exist unless `parents` is set.
    pub path: String,
    /// What to do if the file exists.
    pub mode: WriteMode,
    /// Whether to create missing folders.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub parents: bool,
    /// The expected version of the file, from [`FileText`] or [`FileFacts`]. If the file has
    /// another version, the write fails with `conflict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Permission bits of a new file; the default bits if absent. An existing file keeps its own.
    /// An environment that does not know this key uses the default bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<u32>,
}

/// What to do with an existing file. Unknown modes are refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteMode {
    /// Replace it atomically: a reader sees either the old or the new file. The permission bits
    /// stay.
    #[default]
    Replace,
    /// Refuse the write.
    CreateNew,
    /// Append the bytes. A missing file is created.
    Append,
}

/// A request to replace pieces of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileEdit {
    /// The path.
    pub path: String,
    /// The replacements, applied in order.
    pub edits: Vec<TextEdit>,
    /// The expected version, as in [`FileWrite`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

/// A replacement of a piece of text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextEdit {
    /// The text to replace, which must not be empty.
    pub old: String,
    /// The replacement.
    pub new: String,
    /// Whether to replace all occurrences. Otherwise the text must occur exactly once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// An edited file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileEditAnswer {
    /// The number of replacements of each edit.
    pub replaced: Vec<u64>,
    /// The facts about the file after the edit.
    pub facts: FileFacts,
}

/// A request to delete a file or a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileDelete {
    /// The path. A link itself is deleted, never its target.
    pub path: String,
    /// Whether to delete a folder with its content. Otherwise the folder must be empty.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recursive: bool,
}

/// A request to list a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FolderList {
    /// The path. If empty, the default folder.
    pub path: String,
    /// The number of entries to skip at the beginning.
    #[serde(skip_serializing_if = "is_zero")]
    pub skip: usize,
}

/// The content of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FolderEntries {
    /// The entries: at most [`LIST_ENTRIES_MAX`], with names of at most [`LIST_BYTES_MAX`] bytes in
    /// total. A name that is not valid UTF-8 contains `�` and cannot be used in a request.
    pub entries: Vec<FolderEntry>,
    /// The total number of entries, without those that are denied.
    pub count: usize,
    /// The number of entries that the limits of the call exclude.
    #[serde(skip_serializing_if = "is_zero")]
    pub denied: usize,
}

/// An entry of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FolderEntry {
    /// Its name.
    pub name: String,
    /// The kind. Links are not followed.
    pub kind: FileKind,
    /// The size in bytes, for a file.
    pub size: u64,
}

/// The kind of a file system entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, a pipe, a socket, or a kind from a newer version.
    #[default]
    #[serde(other)]
    Other,
}

/// Facts about a file or a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileFacts {
    /// The absolute path.
    pub path: String,
    /// The kind, with links followed.
    pub kind: FileKind,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change, in milliseconds since 1970 UTC.
    pub modified_ms: i64,
    /// The permission bits.
    pub mode: u32,
    /// The version, which differs after each change, as far as the file system can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A request to create a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FolderMake {
    /// The path.
    pub path: String,
    /// Whether to create missing parent folders too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub parents: bool,
}

/// A request to move or copy a file or a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilePair {
    /// The current path.
    pub from: String,
    /// The new path, including the name.
    pub to: String,
    /// Whether to replace an existing file. A folder is never replaced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub overwrite: bool,
}

/// The sort order of files. Unknown orders are refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOrder {
    /// By time of the last change, newest first.
    #[default]
    Newest,
    /// By path.
    Path,
}

/// The kind of entries to find. Unknown kinds are refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindKind {
    /// Files.
    #[default]
    Files,
    /// Folders.
    Folders,
    /// Both.
    All,
}

/// A request to find files or folders by a pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileFind {
    /// The pattern, relative to the folder, with `*`, `?`, `[…]`, `{a,b}` and `**`.
    pub pattern: String,
    /// The folder to search. If empty, the default folder.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Whether to include files that `.gitignore` and similar files exclude.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_ignored: bool,
    /// Whether to include hidden files.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_hidden: bool,
    /// Patterns of entries to exclude, as in `.gitignore`: a name at any depth, or a path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<String>,
    /// Patterns of entries to exclude outside git repositories. Inside a repository, its
    /// `.gitignore` files decide. Ignored if `include_ignored` is set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave_out_unless_git: Vec<String>,
    /// The kind of entries to find.
    #[serde(skip_serializing_if = "is_files")]
    pub kind: FindKind,
    /// The sort order.
    pub order: FileOrder,
    /// The maximum number of files to return, at most [`FIND_FILES_MAX`], which is also the
    /// default. Further files are only counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The approximate maximum duration, in milliseconds. The result then contains the files found
    /// by that time, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_ms: Option<u64>,
}

/// A part of the result of a search by pattern. Pages without files report progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FoundPage {
    /// Files, in the requested order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FoundFile>,
    /// The number of files found so far. In the last page, the total.
    pub count: u64,
    /// Whether time ran out before the search was complete.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
    /// The number of files and folders left out so far. In the last page, the total.
    #[serde(skip_serializing_if = "SkippedEntryCounts::is_empty")]
    pub left_out: SkippedEntryCounts,
    /// Unreadable folders, with the reason. At most [`UNREADABLE_MAX`] per search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// A file found by a pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FoundFile {
    /// The path, relative to the start of the search.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change, in milliseconds since 1970 UTC.
    pub modified_ms: i64,
    /// Whether the user must be asked before this call changes the file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// Whether the entry is a folder.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_folder: bool,
}

/// A request to search text files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileSearch {
    /// The pattern, a regular expression in the syntax of the crate `regex`.
    pub pattern: String,
    /// A file, or the folder to search. If empty, the default folder.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Whether to ignore case, so that `a` also matches `A`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_case: bool,
    /// Whether a match may span several lines, with `.` matching line ends. Otherwise a match lies
    /// within one line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub multi_line: bool,
    /// Whether to return the number of matches of each file instead of lines.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
    /// Patterns of the files to search, as in [`FileFind`]. A pattern without `/` matches names at
    /// any depth. If empty, all files are searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether to include files that `.gitignore` and similar files exclude.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_ignored: bool,
    /// Whether to include hidden files.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_hidden: bool,
    /// As in [`FileFind`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<String>,
    /// As in [`FileFind`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave_out_unless_git: Vec<String>,
    /// The maximum size of files in a folder; larger ones are skipped. If the path names a file,
    /// the file is searched regardless of its size and of exclusions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes_max: Option<u64>,
    /// The number of context lines before and after each matching line, at most
    /// [`SEARCH_CONTEXT_LINES_MAX`].
    #[serde(skip_serializing_if = "is_zero")]
    pub context_lines: usize,
    /// The maximum number of matches to return (with `counts`, of files), at most
    /// [`SEARCH_MATCHES_MAX`], which is also the default. Further matches are only counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// A part of a search result, ordered by path. Pages without files report progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchedPage {
    /// Files with matches. A file with many matches may occur in several pages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SearchedFile>,
    /// The totals so far. In the last page, the final totals.
    pub totals: SearchTotals,
    /// Unreadable files and folders, with the reason. At most [`UNREADABLE_MAX`] per search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// The totals of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchTotals {
    /// The number of matches. A line may have several.
    pub matches: u64,
    /// The number of files with matches.
    pub files_with_matches: u64,
    /// The number of text files that were searched.
    pub files_searched: u64,
    /// The number of files that were skipped because they exceed the requested size.
    pub files_too_large: u64,
    /// The number of files that were skipped because they are not text.
    pub files_binary: u64,
    /// The files and folders that were left out.
    #[serde(skip_serializing_if = "SkippedEntryCounts::is_empty")]
    pub left_out: SkippedEntryCounts,
}

/// The number of files and folders that a search left out. A folder counts as one, because its
/// content is not searched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkippedEntryCounts {
    /// Entries that `.gitignore`, `.ignore` or `.git/info/exclude` exclude.
    #[serde(skip_serializing_if = "is_zero")]
    pub ignored: u64,
    /// Hidden entries.
    #[serde(skip_serializing_if = "is_zero")]
    pub hidden: u64,
    /// Entries that the request excluded.
    #[serde(skip_serializing_if = "is_zero")]
    pub excluded: u64,
    /// Entries that the limits of the call deny.
    #[serde(skip_serializing_if = "is_zero")]
    pub denied: u64,
}

impl SkippedEntryCounts {
    /// Returns true if nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A file with matches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchedFile {
    /// The path, relative to the start of the search. Empty for a file that the request named.
    pub path: String,
    /// The matching lines and their context lines, in order and without duplicates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<SearchedLine>,
    /// The number of matches, if the request asked for counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<u64>,
}

/// A line in a search result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchedLine {
    /// The line number, counted from 1.
    pub number: u64,
    /// The line without its line ending. Invalid UTF-8 is replaced with `�`. A long line is
    /// truncated around its first match to about [`SEARCH_LINE_BYTES_MAX`].
    pub text: String,
    /// The number of characters of the line that are missing before the text.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped: usize,
    /// Whether the line continues after the text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
    /// The positions of matches in the text, in characters: start, and end (exclusive). Empty for a
    /// context line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<(usize, usize)>,
    /// Whether a match from an earlier line continues in this one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
}

/// A request to walk a folder tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileWalk {
    /// The folder at which to begin. If empty, the default folder.
    pub path: String,
    /// Whether to include hidden files and files that `.gitignore` and similar files exclude.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_ignored: bool,
    /// The maximum depth. 1 includes only the direct content of the folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth_max: Option<usize>,
}

/// A part of a folder tree. A folder comes before its content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WalkedPage {
    /// The entries. Links are not followed.
    pub entries: Vec<WalkedEntry>,
    /// Unreadable folders, with the reason. At most [`UNREADABLE_MAX`] per walk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// An entry of a folder tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WalkedEntry {
    /// The path, relative to the start of the walk.
    pub path: String,
    /// The kind.
    pub kind: FileKind,
}

/// A file that is being read piece by piece.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileStreamAnswer {
    /// The size of the whole file when it was opened, in bytes.
    pub size: u64,
}

/// A file that is being written piece by piece.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileUploadAnswer {
    /// The number by which pieces refer to it.
    pub file: u64,
}

/// The number of a file that is being written piece by piece.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileUploadRef {
    /// The number.
    pub file: u64,
}

/// The restrictions on the file operations of one call. The host derives them from the rules and
/// from the call's permission check, and sends them with each operation. A plugin can neither omit
/// nor replace them.
///
/// A pattern is a whole path in which `*` matches any characters and `?` a single one. It matches
/// that path and everything below it, after links and `..` are resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileLimits {
    /// Paths that a rule denies: they are neither read, listed, counted nor changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Paths that need the user's permission before they are read or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// Files that need the user's permission before they are changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected: Option<ProtectedFiles>,
    /// The targets of the call's paths at the time of its permission check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<ResolvedPath>,
}

impl FileLimits {
    /// Returns true if nothing is restricted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A request to resolve paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileResolve {
    /// The paths, at most [`RESOLVE_PATHS_MAX`].
    pub paths: Vec<String>,
}

/// The targets of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileResolveAnswer {
    /// The target of each path, in the same order. `None` if it cannot be determined.
    pub paths: Vec<Option<ResolvedPath>>,
}

/// The target of a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResolvedPath {
    /// The requested path, made absolute, without resolving links and `..`.
    pub asked: String,
    /// The target, with links and `..` resolved name by name.
    pub path: String,
    /// Like `path`, except that a link at the end is not followed.
    pub entry: String,
    /// The kind of the target. `None` if it does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<FileKind>,
    /// The path whose identity is known: `path`, or its innermost existing parent folder if nothing
    /// exists at `path`.
    pub found: String,
    /// The identity of `found`. `None` if the environment does not support identities. Paths are
    /// then compared as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<FileIdentity>,
}

/// The identity of a file, independent of its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The file system.
    pub device: u64,
    /// The number of the file in the file system.
    pub inode: u64,
}

impl FileIdentity {
    /// Creates an identity from the system's numbers for a file.
    pub fn new(device: u64, inode: u64) -> Self {
        Self { device, inode }
    }
}

/// Returns the temporary name under which a file is written before it is renamed.
pub fn draft_name(number: u64) -> String {
    format!("{DRAFT_BEGIN}{number:016x}{DRAFT_END}")
}

/// Returns true if [`draft_name`] creates names like this one. If its process ended, the file is a
/// leftover.
pub fn is_draft_name(name: &str) -> bool {
    let number = name.strip_prefix(DRAFT_BEGIN).and_then(|rest| rest.strip_suffix(DRAFT_END));
    number.is_some_and(|it| it.len() == 16 && it.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

const DRAFT_BEGIN: &str = ".jaato-";
const DRAFT_END: &str = ".tmp";

fn is_files(kind: &FindKind) -> bool {
    *kind == FindKind::Files
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

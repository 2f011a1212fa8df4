//! The services `files.*`: what tools ask of the files of the session's execution environment, and
//! what an environment plugin is asked.
//!
//! A path is absolute as the environment sees it (inside a container: the container's), or starts
//! at the environment's default folder. Paths outside of the allowed folders are refused with
//! `permission_denied`; the error names those that are allowed. Text is UTF-8 and stays as it is:
//! no line end is changed.

use serde::{Deserialize, Serialize};

use crate::protected::ProtectedFiles;

crate::operations::service_operations! { $ file_operations, None, passed_on;
    /// Reads bytes, at most 4 MiB in one answer.
    [reads] read READ "files.read": FileRead => FileBytes + bytes;
    /// Reads text. The error is `invalid_arguments` if the file is not valid UTF-8.
    [reads] read_text READ_TEXT "files.read_text": FileReadText => FileText, sdk [(FileReadText)];
    /// Writes the bytes into a file.
    write WRITE "files.write": FileWrite + bytes => FileFacts;
    /// Replaces pieces of a text: all of them, or none. The error is `not_found` for a piece that
    /// the text does not have, and `conflict` for one that it has more than once.
    edit EDIT "files.edit": FileEdit => FileEdited, sdk [(FileEdit)];
    /// Deletes a file, a link itself, or a folder.
    delete DELETE "files.delete": FileDelete => (), sdk [(FileDelete)];
    /// Lists a folder, sorted by name.
    [reads] list LIST "files.list": FolderList => FolderEntries, sdk [(FolderList)];
    /// Describes a file or folder. A link that leads outside is an error.
    [reads] stat STAT "files.stat": FilePath => FileFacts,
        sdk [{ path: impl Into<String> }];
    /// Makes a folder if it does not exist. The error is `conflict` if something else has the name.
    make_folder MAKE_FOLDER "files.mkdir": FolderMake => (), sdk [(FolderMake)];
    /// Moves a file or a folder to a new name. The error is `conflict` if the name is taken.
    rename MOVE "files.move": FilePair => (), sdk [(FilePair)];
    /// Copies a file, or a folder with its content. The error is `conflict` if the name is taken.
    copy COPY "files.copy": FilePair => (), sdk [(FilePair)];
    /// Finds files, and no folders, by a pattern, with their facts. Each frame is a `FoundPage`.
    /// The error is `invalid_arguments` if the pattern is not valid.
    [reads] find FIND "files.find": FileFind => StreamAnswer + stream,
        sdk [(FileFind) as SearchPages<FoundPage>];
    /// Searches texts. Each frame is a `SearchedPage`. The error is `invalid_arguments` if the
    /// regular expression is not valid, or becomes too large.
    [reads] search SEARCH "files.search": FileSearch => StreamAnswer + stream,
        sdk [(FileSearch) as SearchPages<SearchedPage>];
    /// Walks through a tree, sorted within each folder. Each frame is a `WalkedPage`.
    [reads] walk WALK "files.walk": FileWalk => StreamAnswer + stream, sdk [(FileWalk) as FileTree];
    /// Reads a file piece by piece, each of at most 1 MiB.
    [reads] stream READ_STREAM "files.read_stream": FileRead => FileStreamed + stream,
        sdk [(FileRead) as Stream];
    /// Begins to write a file piece by piece. The old file stays until `files.write_finish`, and
    /// also if the stream is closed before that.
    upload WRITE_STREAM "files.write_stream": FileWrite => FileBegun + stream;
    /// Appends bytes to a file that is written piece by piece.
    write_piece WRITE_PIECE "files.write_piece": FileNumber + bytes => ();
    /// Puts the written file in its place.
    write_finish WRITE_FINISH "files.write_finish": FileNumber => FileFacts;
}

/// Tells where paths lead: [`FileResolve`], [`FilesResolved`]. The host asks it, plugins cannot. It
/// looks beyond the allowed folders too, where the environment's commands can.
pub const RESOLVE: &str = "files.resolve";

/// Most bytes that one answer holds; more is read in ranges or as a stream.
pub const READ_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Most bytes of text that one answer holds: they fit into a frame also where JSON writes each of
/// them as six.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Entries of a folder that one answer holds.
pub const LIST_ENTRIES_MAX: usize = 10_000;
/// Bytes of names that one list holds, about.
pub const LIST_BYTES_MAX: usize = 1024 * 1024;
/// Files that one search by a pattern returns.
pub const FIND_FILES_MAX: usize = 10_000;
/// Matches that one search tells.
pub const SEARCH_MATCHES_MAX: usize = 10_000;
/// Lines that are told before and after one that matches.
pub const SEARCH_CONTEXT_LINES_MAX: usize = 50;
/// Bytes of a line that a search tells, about.
pub const SEARCH_LINE_BYTES_MAX: usize = 2000;
/// Entries of a page of a walk.
pub const WALK_ENTRIES_MAX: usize = 1000;
/// Bytes of JSON of a page of a walk, about: one frame of a stream holds twice that.
pub const WALK_BYTES_MAX: usize = 32 * 1024;
/// Key of every request `files.*` by which the host sends the [`FileLimits`] of the call.
pub const LIMITS_KEY: &str = "limits";
/// Paths that one [`RESOLVE`] takes.
pub const RESOLVE_PATHS_MAX: usize = 10_000;
/// Folders that could not be read that are told; the rest is left out.
pub const UNREADABLE_MAX: usize = 100;

/// Names a file or a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilePath {
    /// The path.
    pub path: String,
    /// Whether [`STAT`] tells of a link itself. An environment that does not know this key follows
    /// it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub itself: bool,
}

/// Reads bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileRead {
    /// The path.
    pub path: String,
    /// Where to begin, in bytes. Past the end there is nothing.
    pub offset: u64,
    /// Bytes at most; without it up to the end, or [`READ_BYTES_MAX`] where they come in one
    /// answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
}

/// Bytes of a file; they stand beside this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileBytes {
    /// Bytes of the whole file.
    pub size: u64,
    /// Where the bytes begin.
    pub offset: u64,
    /// Whether the file goes on behind them.
    pub has_more: bool,
}

/// Reads text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileReadText {
    /// The path.
    pub path: String,
    /// Where to begin. Past the end there is nothing.
    pub offset: u64,
    /// How much at most; without it as much as an answer holds. An answer holds [`TEXT_BYTES_MAX`]
    /// bytes, which may cut a line: such a line is read by characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// What both are counted in.
    pub unit: TextUnit,
}

/// What a range of text is counted in. A side that does not know the word refuses it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextUnit {
    /// Unicode scalar values.
    #[default]
    Characters,
    /// Lines, each with its end.
    Lines,
}

/// Text of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileText {
    /// The text.
    pub text: String,
    /// Bytes of the whole file.
    pub size: u64,
    /// Whether the file goes on behind it.
    pub has_more: bool,
    /// The file as it was read: to be given to a write that must not overwrite somebody else's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Writes a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileWrite {
    /// The path. Its folder must be there, unless `parents`.
    pub path: String,
    /// What becomes of a file that is there.
    pub mode: WriteMode,
    /// Whether folders that are missing are made.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub parents: bool,
    /// Refuses with `conflict` where the file is another than this version, from [`FileText`] or
    /// [`FileFacts`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Permission bits of a file that is made by it; as usual without. One that is there keeps its
    /// own. An environment that does not know this key makes files as usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<u32>,
}

/// What becomes of a file that is there. A side that does not know the word refuses it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteMode {
    /// It is replaced whole, at once: a reader sees the old or the new one. Its mode stays.
    #[default]
    Replace,
    /// The write is refused.
    CreateNew,
    /// The bytes come behind what is there; a file that is missing is made.
    Append,
}

/// Replaces pieces of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileEdit {
    /// The path.
    pub path: String,
    /// What is replaced, one after the other.
    pub edits: Vec<TextEdit>,
    /// As in [`FileWrite`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

/// Replaces a piece of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextEdit {
    /// What is there; not empty.
    pub old: String,
    /// What stands there after it.
    pub new: String,
    /// Whether it is replaced wherever it stands; else it must stand there exactly once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// An edited file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileEdited {
    /// Pieces that were replaced, by edit.
    pub replaced: Vec<u64>,
    /// The file as it is after that.
    pub facts: FileFacts,
}

/// Deletes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileDelete {
    /// The path. A link is deleted itself, never what it leads to.
    pub path: String,
    /// Whether a folder goes with all that is in it; else it must be empty.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recursive: bool,
}

/// Lists a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FolderList {
    /// The path; the default folder where empty.
    pub path: String,
    /// Entries that are left out at the beginning.
    #[serde(skip_serializing_if = "is_zero")]
    pub skip: usize,
}

/// What is in a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FolderEntries {
    /// At most [`LIST_ENTRIES_MAX`], and names of [`LIST_BYTES_MAX`] bytes. A name that is no text
    /// has `�` in it, and cannot be asked for.
    pub entries: Vec<FolderEntry>,
    /// Entries in all, without those that are denied.
    pub count: usize,
    /// Entries that the limits of the call leave out.
    #[serde(skip_serializing_if = "is_zero")]
    pub denied: usize,
}

/// One of a folder's entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FolderEntry {
    /// Its name.
    pub name: String,
    /// What it is; a link is a link.
    pub kind: FileKind,
    /// Bytes, for a file.
    pub size: u64,
}

/// What something in a file system is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, a pipe, a socket, or what this side does not know.
    #[default]
    #[serde(other)]
    Other,
}

/// What something is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileFacts {
    /// Its path, absolute.
    pub path: String,
    /// What it is, links followed.
    pub kind: FileKind,
    /// Bytes.
    pub size: u64,
    /// When it was changed, in milliseconds since 1970 UTC.
    pub modified_ms: i64,
    /// Its permission bits.
    pub mode: u32,
    /// Another word each time that the file was changed, as far as the file system tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Makes a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FolderMake {
    /// The path.
    pub path: String,
    /// Whether folders above it that are missing are made too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub parents: bool,
}

/// Moves or copies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilePair {
    /// What.
    pub from: String,
    /// Its new path, with its name.
    pub to: String,
    /// Whether a file that is there is replaced; a folder never is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub overwrite: bool,
}

/// How files are sorted. A side that does not know the word refuses it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOrder {
    /// Those that were changed last come first.
    #[default]
    Newest,
    /// By path.
    Path,
}

/// What a pattern finds. A side that does not know the word refuses it.
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

/// Finds files or folders by a pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileFind {
    /// `*`, `?`, `[…]`, `{a,b}` and `**`, relative to the folder.
    pub pattern: String,
    /// Where to look; the default folder where empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Whether what `.gitignore` and its like name is looked at too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_ignored: bool,
    /// Whether hidden files are looked at too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_hidden: bool,
    /// Patterns of what is left out, as in `.gitignore`: a name at any depth, or a path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<String>,
    /// The same for files that are in no git repository: in a repository, its `.gitignore` files
    /// decide. They do not count with `include_ignored`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave_out_unless_git: Vec<String>,
    /// Whether files or folders are found.
    #[serde(skip_serializing_if = "is_files")]
    pub kind: FindKind,
    /// Which come first.
    pub order: FileOrder,
    /// Files that are told at most; all are counted. [`FIND_FILES_MAX`] where there is none, and
    /// never more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Milliseconds that the search may take, about: then what was found by that time is told, in
    /// order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_ms: Option<u64>,
}

/// Some of what a pattern found. Pages without files tell how far the search has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FoundPage {
    /// Files, in the order that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FoundFile>,
    /// Files that were found so far; in all, with the last page.
    pub count: u64,
    /// Whether the time was over before all was looked at.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
    /// Files and folders that were left out so far; in all, with the last page.
    #[serde(skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
    /// Folders that could not be read, with the reason, at most [`UNREADABLE_MAX`] of a search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// A file that a pattern found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FoundFile {
    /// Its path, from where the search began.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// When it was changed, in milliseconds since 1970 UTC.
    pub modified_ms: i64,
    /// Whether the user must be asked before this call changes it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
    /// Whether it is a folder.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_folder: bool,
}

/// Searches texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileSearch {
    /// What is looked for: a regular expression of the crate `regex`.
    pub pattern: String,
    /// A file, or the folder to look in; the default folder where empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Whether `a` finds `A` too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_case: bool,
    /// Whether a match may go over several lines, and `.` matches the end of a line too. Else the
    /// pattern matches within one line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub multi_line: bool,
    /// Whether files are told with the number of their matches, and no lines.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
    /// Patterns of the files that are searched, as in [`FileFind`]; one without `/` fits names at
    /// any depth. All files where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether what `.gitignore` and its like name is looked at too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_ignored: bool,
    /// Whether hidden files are looked at too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_hidden: bool,
    /// As in [`FileFind`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<String>,
    /// As in [`FileFind`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave_out_unless_git: Vec<String>,
    /// Larger files of a folder are passed over. A file that the path names is searched whatever
    /// its size, and whatever is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes_max: Option<u64>,
    /// Lines that are told before and after each that matches, at most
    /// [`SEARCH_CONTEXT_LINES_MAX`].
    #[serde(skip_serializing_if = "is_zero")]
    pub context_lines: usize,
    /// Matches that are told at most, or files with `counts`; all are counted.
    /// [`SEARCH_MATCHES_MAX`] where there is none, and never more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Some of what a search found, in the order of the paths. Pages without files tell how far it has
/// come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchedPage {
    /// Files with matches. One with many may stand in several pages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SearchedFile>,
    /// What was found so far; in all, with the last page.
    pub totals: SearchTotals,
    /// Files and folders that could not be read, with the reason, at most [`UNREADABLE_MAX`] of a
    /// search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// How much a search found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchTotals {
    /// Matches; a line may have several.
    pub matches: u64,
    /// Files with matches.
    pub files_with_matches: u64,
    /// Texts that were searched.
    pub files_searched: u64,
    /// Files that were passed over because they are larger than asked for.
    pub files_too_large: u64,
    /// Files that were passed over because they are no text.
    pub files_binary: u64,
    /// Files and folders that were left out.
    #[serde(skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
}

/// Files and folders that a search left out. A folder counts as one: its content is not looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Those that `.gitignore`, `.ignore` or `.git/info/exclude` name.
    #[serde(skip_serializing_if = "is_zero")]
    pub ignored: u64,
    /// Hidden ones.
    #[serde(skip_serializing_if = "is_zero")]
    pub hidden: u64,
    /// Those that the request left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub excluded: u64,
    /// Those that the limits of the call deny.
    #[serde(skip_serializing_if = "is_zero")]
    pub denied: u64,
}

impl LeftOut {
    /// Tells whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A file with matches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchedFile {
    /// Its path, from where the search began; empty for a file that the search named.
    pub path: String,
    /// Lines that match, and those around them, in order and each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<SearchedLine>,
    /// The number of its matches, if counts were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<u64>,
}

/// A line of a file with matches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchedLine {
    /// Its number, from 1.
    pub number: u64,
    /// The line without its end; what is no UTF-8 has `�` in it. A long one is cut around its first
    /// match to about [`SEARCH_LINE_BYTES_MAX`].
    pub text: String,
    /// Characters of the line that are left out before the text.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped: usize,
    /// Whether something is left out behind the text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
    /// Where matches stand in the text, in characters: the first, and the one after the last. None
    /// for a line that is told because of its neighbours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<(usize, usize)>,
    /// Whether a match that began in an earlier line continues in this one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
}

/// Goes through a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileWalk {
    /// Where to begin; the default folder where empty.
    pub path: String,
    /// Whether what `.gitignore` and its like name, and hidden files, are looked at too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_ignored: bool,
    /// Folders deep at most; 1 is what the folder itself holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth_max: Option<usize>,
}

/// Some of what is in a tree; a folder comes before what is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WalkedPage {
    /// Entries; links are not followed.
    pub entries: Vec<WalkedEntry>,
    /// Folders that could not be read, with the reason, at most [`UNREADABLE_MAX`] of a walk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// One entry of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WalkedEntry {
    /// Its path, from where the walk began.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
}

/// A file that is read piece by piece.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileStreamed {
    /// Bytes of the whole file when it was opened.
    pub size: u64,
}

/// A file that is written piece by piece.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileBegun {
    /// Its number, by which pieces name it.
    pub file: u64,
}

/// Names a file that is written piece by piece.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileNumber {
    /// Its number.
    pub file: u64,
}

/// What the file operations of one call must keep off. The host makes it from the rules and from
/// what it found when it checked the call, and sends it with each operation; a plugin can neither
/// leave it out nor write its own.
///
/// A pattern is a whole path in which `*` stands for any characters and `?` for one. It matches
/// that path and all that is below it, after links and `..` were followed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileLimits {
    /// Paths that a rule denies: they are neither read, told, counted nor changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Paths that the user must be asked about before they are read or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// Files that the user must be asked about before they are changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected: Option<ProtectedFiles>,
    /// Where the paths of the call led when it was checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<ResolvedPath>,
}

impl FileLimits {
    /// Tells whether there is nothing to keep off.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Asks where paths lead.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileResolve {
    /// The paths, at most [`RESOLVE_PATHS_MAX`].
    pub paths: Vec<String>,
}

/// Where paths lead.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilesResolved {
    /// One for each path, in the same order; none where nobody can tell.
    pub paths: Vec<Option<ResolvedPath>>,
}

/// Where a path leads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResolvedPath {
    /// The path that was asked for, absolute; links and `..` are not followed.
    pub asked: String,
    /// Where it leads, links and `..` followed name by name.
    pub path: String,
    /// The same, but if the path ends at a link, the link itself.
    pub entry: String,
    /// What is there; none if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<FileKind>,
    /// Where the identity was found: at `path`, or if nothing is there, at the innermost folder
    /// above it that exists.
    pub found: String,
    /// The identity of what was found; none if the environment knows no identities. The path was
    /// then compared as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<FileIdentity>,
}

/// Tells files apart, whatever they are called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The file system.
    pub device: u64,
    /// The number of the file there.
    pub inode: u64,
}

impl FileIdentity {
    /// Makes the identity of a file by the numbers that the system has for it.
    pub fn new(device: u64, inode: u64) -> Self {
        Self { device, inode }
    }
}

/// Makes the name under which a file is written before it gets its own.
pub fn draft_name(number: u64) -> String {
    format!("{DRAFT_BEGIN}{number:016x}{DRAFT_END}")
}

/// Returns true if a name is one that [`draft_name`] makes: if its process ended, it is left over.
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

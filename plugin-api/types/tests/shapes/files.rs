//! The JSON of the services `files.*`.

use std::fmt::Write as _;

use jaato_types::files::*;
use jaato_types::protected::ProtectedFiles;

use super::ShapeList;

/// Adds the lines of this module.
pub fn add_shapes(shapes: &mut ShapeList) {
    shapes.start_section("services: files of the execution environment");
    writeln!(shapes.text, "{READ} {READ_TEXT} {WRITE} {EDIT} {DELETE} {LIST} {STAT}").unwrap();
    writeln!(shapes.text, "{MAKE_FOLDER} {MOVE} {COPY} {WALK} {FIND} {SEARCH}").unwrap();
    writeln!(shapes.text, "{READ_STREAM} {WRITE_STREAM} {WRITE_PIECE} {WRITE_FINISH}").unwrap();
    writeln!(shapes.text, "{RESOLVE} {LIMITS_KEY}").unwrap();
    shapes.add_all(&[TextUnit::Characters, TextUnit::Lines]);
    shapes.add_all(&[WriteMode::Replace, WriteMode::CreateNew, WriteMode::Append]);
    shapes.add_all(&[FileKind::File, FileKind::Folder, FileKind::Link, FileKind::Other]);
    shapes.add_all(&[FileOrder::Newest, FileOrder::Path]);
    add_read_write_shapes(shapes);
    add_folder_shapes(shapes);
    add_file_find_shapes(shapes);
    add_stream_shapes(shapes);
    add_limit_shapes(shapes);
}

fn sample_path() -> String {
    "/w/moon.txt".to_owned()
}

fn sample_file_facts() -> FileFacts {
    FileFacts {
        path: sample_path(),
        kind: FileKind::File,
        size: 4,
        modified_ms: 1,
        mode: 0o644,
        version: Some("v1".to_owned()),
    }
}

fn add_read_write_shapes(shapes: &mut ShapeList) {
    shapes.add(&FilePath { path: sample_path(), itself: true });
    shapes.add(&FileRead { path: sample_path(), offset: 1, length: Some(2) });
    shapes.add(&FileBytes { size: 4, offset: 1, has_more: true });
    let unit = TextUnit::Lines;
    shapes.add(&FileReadText { path: sample_path(), offset: 1, length: Some(2), unit });
    let version = Some("v1".to_owned());
    let text = "moon".to_owned();
    shapes.add(&FileText { text, size: 4, has_more: true, version: version.clone() });
    let mode = WriteMode::Append;
    let (expected, permissions) = (version.clone(), Some(0o755));
    shapes.add(&FileWrite { path: sample_path(), mode, parents: true, expected, permissions });
    let edit = TextEdit { old: "m".to_owned(), new: "n".to_owned(), all: true };
    shapes.add(&FileEdit { path: sample_path(), edits: vec![edit], expected: version });
    shapes.add(&FileEditAnswer { replaced: vec![1], facts: sample_file_facts() });
    shapes.add(&sample_file_facts());
}

fn add_folder_shapes(shapes: &mut ShapeList) {
    shapes.add(&FileDelete { path: sample_path(), recursive: true });
    shapes.add(&FolderList { path: sample_path(), skip: 1 });
    let entry = FolderEntry { name: "moon.txt".to_owned(), kind: FileKind::File, size: 4 };
    shapes.add(&FolderEntries { entries: vec![entry], count: 2, denied: 1 });
    shapes.add(&FolderMake { path: sample_path(), parents: true });
    shapes.add(&FilePair { from: sample_path(), to: "sun.txt".to_owned(), overwrite: true });
}

fn add_file_find_shapes(shapes: &mut ShapeList) {
    let unreadable = vec!["`/w/closed`: permission denied".to_owned()];
    shapes.add(&FileWalk { path: "/w".to_owned(), include_ignored: true, depth_max: Some(1) });
    shapes.add(&FileFind {
        pattern: "*.txt".to_owned(),
        path: "/w".to_owned(),
        include_ignored: true,
        include_hidden: true,
        leave_out: vec!["*.min.js".to_owned()],
        leave_out_unless_git: vec!["target".to_owned()],
        kind: FindKind::All,
        order: FileOrder::Path,
        limit: Some(1),
        within_ms: Some(1000),
    });
    let left_out = SkippedEntryCounts { ignored: 1, hidden: 2, excluded: 3, denied: 4 };
    let file = FoundFile {
        path: "moon.txt".to_owned(),
        size: 4,
        modified_ms: 1,
        protected: true,
        is_folder: true,
    };
    shapes.add(&FoundPage {
        files: vec![file],
        count: 2,
        is_partial: true,
        left_out,
        unreadable: unreadable.clone(),
    });
    add_search_shapes(shapes);
    let entry = WalkedEntry { path: "moon.txt".to_owned(), kind: FileKind::File };
    shapes.add(&WalkedPage { entries: vec![entry], unreadable });
}

fn add_stream_shapes(shapes: &mut ShapeList) {
    shapes.add(&FileStreamAnswer { size: 4 });
    shapes.add(&FileUploadAnswer { file: 1 });
    shapes.add(&FileUploadRef { file: 1 });
}

fn add_limit_shapes(shapes: &mut ShapeList) {
    let identity = FileIdentity::new(1, 2);
    shapes.add(&identity);
    let resolved = ResolvedPath {
        asked: "/w/link".to_owned(),
        path: sample_path(),
        entry: "/w/link".to_owned(),
        kind: Some(FileKind::File),
        found: sample_path(),
        identity: Some(identity),
    };
    shapes.add(&resolved);
    shapes.add(&FileResolve { paths: vec!["link".to_owned()] });
    shapes.add(&FileResolveAnswer { paths: vec![Some(resolved.clone()), None] });
    shapes.add(&FileLimits {
        denied: vec!["/w/secret".to_owned()],
        asked: vec!["/w/asked".to_owned()],
        protected: Some(ProtectedFiles::default()),
        expected: vec![resolved],
    });
}

fn add_search_shapes(shapes: &mut ShapeList) {
    shapes.add(&FileSearch {
        pattern: "mo+n".to_owned(),
        path: "/w".to_owned(),
        ignore_case: true,
        multi_line: true,
        counts: true,
        files: vec!["*.txt".to_owned()],
        include_ignored: true,
        include_hidden: true,
        leave_out: vec!["*.min.js".to_owned()],
        leave_out_unless_git: vec!["target".to_owned()],
        file_bytes_max: Some(1024),
        context_lines: 2,
        limit: Some(1),
    });
    let line = SearchedLine {
        number: 1,
        text: "moon".to_owned(),
        skipped: 3,
        is_cut: true,
        matches: vec![(0, 4)],
        continues: true,
    };
    let totals = SearchTotals {
        matches: 1,
        files_with_matches: 1,
        files_searched: 3,
        files_too_large: 1,
        files_binary: 1,
        left_out: SkippedEntryCounts { ignored: 1, ..SkippedEntryCounts::default() },
    };
    shapes.add(&SearchedPage {
        files: vec![SearchedFile {
            path: "moon.txt".to_owned(),
            lines: vec![line],
            matches: Some(1),
        }],
        totals,
        unreadable: Vec::new(),
    });
    let texts = |text: &str| vec![text.to_owned()];
    shapes.add(&ProtectedFiles {
        directory: "/work".into(),
        home: Some("/home/ann".into()),
        folders: vec!["/home/ann/.config/jaato".into()],
        names: texts("agents.md"),
        last_names: texts("config"),
        top_names: texts("refs"),
        harmless: texts(".gitignore"),
    });
}

//! Checks that operations respect the limits of a call. The same checks apply to an environment's
//! own operations and to the sdk's defaults.

use jaato_types::ErrorKind;
use jaato_types::files::{
    COPY, DELETE, EDIT, FIND, FileLimits, FileResolveAnswer, FolderEntries, FoundPage, LIST,
    MAKE_FOLDER, MOVE, READ, READ_STREAM, READ_TEXT, RESOLVE, SEARCH, STAT, SearchedPage, WALK,
    WRITE, WRITE_STREAM, WalkedPage,
};
use jaato_types::protected::ProtectedFiles;
use jaato_types::{Frame, files::FileFacts};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::files::FOLDER;
use super::{PreparedEnvironment, ask_with_bytes};
use crate::FakeHost;
use crate::conformance::{ConformanceSuite, ConformanceVerdict, ensure, prefix_error};

type LimitCheckResult<T> = Result<T, String>;

const FILES: [(&str, &str); 5] = [
    ("secret/key", "moon\n"),
    ("secret/deep/key", "moon\n"),
    ("plain.txt", "moon\n"),
    ("in/secret/key", "moon\n"),
    ("hidden/.key", "moon\n"),
];

/// Paths that lead to a denied file.
const WAYS: [&str; 3] = ["secret/key", "./secret//key", "in/../secret/deep/../key"];

/// Returns the full path of the folder of the checks.
fn checks_folder(ready: &PreparedEnvironment<'_>) -> LimitCheckResult<String> {
    let facts: FileFacts = ready
        .ask_environment(STAT, json!({ "path": FOLDER }))
        .map_err(prefix_error("its folder"))?;
    Ok(facts.path)
}

fn limit_request(limits: &FileLimits, mut request: Value) -> Value {
    if let (Some(request), Ok(limits)) = (request.as_object_mut(), serde_json::to_value(limits)) {
        request.insert("limits".to_owned(), limits);
    }
    request
}

fn path_below(path: &str) -> String {
    format!("{FOLDER}/{path}")
}

/// A denied file cannot be read, listed or changed, and the folders above it cannot be moved,
/// copied or deleted.
pub fn denied_files_are_unreachable(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let has = ready.has_files(READ, &FILES)?;
    if has {
        let top = checks_folder(&ready)?;
        let denied = vec![format!("{top}/secret"), format!("{top}/in/sec*")];
        let limits = FileLimits { denied, ..FileLimits::default() };
        let refuses = |operation: &str, request: Value| {
            ready.check_refused(
                operation,
                limit_request(&limits, request),
                ErrorKind::PermissionDenied,
            )
        };
        for way in WAYS {
            let path = path_below(way);
            for operation in [READ, READ_TEXT, READ_STREAM, STAT, WRITE, WRITE_STREAM, DELETE] {
                refuses(operation, json!({ "path": path }))?;
            }
            refuses(EDIT, json!({ "path": path, "edits": [{ "old": "moon", "new": "sun" }] }))?;
            for operation in [MOVE, COPY] {
                refuses(operation, json!({ "from": path, "to": path_below("new") }))?;
                refuses(operation, json!({ "from": path_below("plain.txt"), "to": path }))?;
            }
        }
        for operation in [LIST, WALK] {
            refuses(operation, json!({ "path": path_below("secret") }))?;
        }
        refuses(SEARCH, json!({ "path": path_below("secret"), "pattern": "moon" }))?;
        refuses(FIND, json!({ "path": FOLDER, "pattern": "secret/*" }))?;
        refuses(READ, json!({ "path": path_below("secret/no/such") }))?;
        refuses(MAKE_FOLDER, json!({ "path": path_below("secret/a/b"), "parents": true }))?;
        refuses(DELETE, json!({ "path": path_below("in"), "recursive": true }))?;
        for operation in [MOVE, COPY] {
            refuses(operation, json!({ "from": path_below("in"), "to": path_below("out") }))?;
        }
        let read = json!({ "path": path_below("plain.txt") });
        let plain: Result<Value, _> = ready.ask_environment(READ, limit_request(&limits, read));
        plain.map_err(prefix_error("reading what is not denied"))?;
        // Such a rule denies no folder.
        let limits = FileLimits { denied: vec![format!("{top}/*/.*")], ..FileLimits::default() };
        let hidden = limit_request(&limits, json!({ "path": path_below("hidden/.key") }));
        ready.check_refused(READ, hidden, ErrorKind::PermissionDenied)?;
        for operation in [LIST, STAT] {
            let request = limit_request(&limits, json!({ "path": path_below("hidden/") }));
            let answer: Result<Value, _> = ready.ask_environment(operation, request);
            answer.map_err(prefix_error("a folder with hidden files"))?;
        }
        let search = json!({ "path": path_below("hidden"), "pattern": "moon" });
        read_pages::<SearchedPage>(&ready, SEARCH, limit_request(&limits, search))?;
    }
    ready.clean_up(host, has)
}

/// Lists, walks and searches leave out denied files and count them separately.
pub fn searches_skip_denied_files(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let has = ready.has_files(SEARCH, &FILES)?;
    if has {
        let denied = vec!["*/secret".to_owned()];
        let limits = FileLimits { denied, ..FileLimits::default() };
        let in_folder = |more: Value| -> Value {
            let mut request = json!({ "path": FOLDER });
            super::searches::merge_json(&mut request, &more);
            limit_request(&limits, request)
        };
        let found: Vec<SearchedPage> =
            read_pages(&ready, SEARCH, in_folder(json!({ "pattern": "moon" })))?;
        let totals = found.last().map(|page| page.totals).unwrap_or_default();
        ensure(
            (totals.matches, totals.files_searched, totals.left_out.denied) == (1, 1, 2),
            || format!("a search tells {totals:?}"),
        )?;
        for pattern in ["**/*", "s*/*", "*/secret/*", "[st]ecret/**"] {
            let request = in_folder(json!({ "pattern": pattern }));
            let found: Vec<FoundPage> = read_pages(&ready, FIND, request)?;
            let count = found.last().map_or(0, |page| page.count);
            let mut files = found.iter().flat_map(|page| &page.files);
            ensure(count <= 1 && files.all(|file| file.path == "plain.txt"), || {
                format!("`{pattern}` finds {count} files: {found:?}")
            })?;
        }
        let walked: Vec<WalkedPage> = read_pages(&ready, WALK, in_folder(json!({})))?;
        let mut entries = walked.iter().flat_map(|page| &page.entries);
        ensure(entries.all(|entry| !entry.path.contains("secret")), || format!("{walked:?}"))?;
        let listed: FolderEntries =
            ready.ask_environment(LIST, in_folder(json!({}))).map_err(prefix_error("a list"))?;
        ensure(listed.entries.iter().all(|entry| entry.name != "secret"), || {
            format!("{listed:?}")
        })?;
        ensure((listed.count, listed.denied) == (listed.entries.len(), 1), || {
            format!("{listed:?}")
        })?;
    }
    ready.clean_up(host, has)
}

/// A protected file can be read but not changed, and the error says what to do.
pub fn protected_files_are_not_changed(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let has = ready.has_files(WRITE, &FILES)?;
    if has {
        let protected = ProtectedFiles {
            directory: checks_folder(&ready)?.into(),
            names: vec!["plain.txt".to_owned()],
            ..ProtectedFiles::default()
        };
        let limits = FileLimits { protected: Some(protected), ..FileLimits::default() };
        let path = path_below("plain.txt");
        let read: Result<Value, _> =
            ready.ask_environment(READ, limit_request(&limits, json!({ "path": path })));
        read.map_err(prefix_error("reading what is protected"))?;
        let write = limit_request(&limits, json!({ "path": path }));
        let written: Result<Value, _> = ask_with_bytes(ready.instance, WRITE, &write, b"x");
        let error = written.err().ok_or("what is protected is written")?;
        ensure(error.kind == ErrorKind::PermissionDenied && error.hint.is_some(), || {
            format!("writing what is protected says {error}")
        })?;
        let request = limit_request(&limits, json!({ "path": FOLDER, "pattern": "*.txt" }));
        let found: Vec<FoundPage> = read_pages(&ready, FIND, request)?;
        let mut files = found.iter().flat_map(|page| &page.files);
        ensure(files.all(|file| file.protected), || format!("not told as protected: {found:?}"))?;
        let request = limit_request(&limits, json!({ "path": FOLDER, "pattern": "plain.txt" }));
        let found: Vec<FoundPage> = read_pages(&ready, FIND, request)?;
        let mut files = found.iter().flat_map(|page| &page.files);
        ensure(files.any(|file| file.protected), || format!("not told as protected: {found:?}"))?;
    }
    ready.clean_up(host, has)
}

/// If an environment resolves paths, it returns the identities of files, and its operations refuse
/// a file that was replaced since.
pub fn file_changed_after_its_check_is_refused(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let has = ready.has_files(READ, &FILES)?;
    if has {
        let path = path_below("plain.txt");
        let resolved: FileResolveAnswer = ready
            .ask_environment(RESOLVE, json!({ "paths": [path] }))
            .map_err(prefix_error("resolving"))?;
        ensure(resolved.paths.len() == 1, || format!("{resolved:?}"))?;
        let known = resolved.paths.into_iter().flatten().filter(|it| it.identity.is_some());
        let limits = FileLimits { expected: known.collect(), ..FileLimits::default() };
        if !limits.is_empty() {
            let read = limit_request(&limits, json!({ "path": path }));
            let same: Result<Value, _> = ready.ask_environment(READ, read.clone());
            same.map_err(prefix_error("reading the same file"))?;
            let away = json!({ "from": path, "to": path_below("away") });
            ready.ask_environment::<Value>(MOVE, away).map_err(prefix_error("moving"))?;
            let pair = json!({ "from": path_below("away"), "to": path });
            ready.ask_environment::<Value>(COPY, pair).map_err(prefix_error("copying"))?;
            ready.check_refused(READ, read.clone(), ErrorKind::Conflict)?;
            ready.check_refused(WRITE, read, ErrorKind::Conflict)?;
        }
    }
    ready.clean_up(host, has)
}

fn read_pages<T: DeserializeOwned>(
    ready: &PreparedEnvironment<'_>,
    operation: &str,
    request: Value,
) -> LimitCheckResult<Vec<T>> {
    let (_, frames) = ready.read_frames(operation, &request)?;
    let read = |frame: &Vec<u8>| Frame::read(frame).map_err(|error| error.to_string());
    frames.iter().map(read).collect()
}

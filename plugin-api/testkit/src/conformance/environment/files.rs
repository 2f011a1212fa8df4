//! Checks of operations on files. The same checks apply to an author's own operations and to the
//! sdk's defaults.

use jaato_types::execution::{STREAM_CLOSE, STREAM_END, STREAM_KEY, STREAM_NEXT};
use jaato_types::files::{
    COPY, DELETE, EDIT, FileEditAnswer, FileFacts, FileText, MOVE, READ_STREAM, READ_TEXT, STAT,
    WALK, WRITE, WRITE_FINISH, WRITE_PIECE, WRITE_STREAM, WalkedPage,
};
use jaato_types::{ErrorKind, Frame, Result};
use serde_json::{Value, json};

use super::{PreparedEnvironment, ask_with_bytes, call_environment};
use crate::FakeHost;
use crate::conformance::{ConformanceSuite, ConformanceVerdict, ensure, prefix_error};

/// The folder of the checks.
pub(super) const FOLDER: &str = "conformance";

/// The maximum number of answers that are read from one stream.
const ANSWERS_MAX: usize = 1000;

impl PreparedEnvironment<'_> {
    /// Creates the folder with these files. Returns false if the environment lacks the operation.
    pub(super) fn has_files(
        &self,
        operation: &str,
        files: &[(&str, &str)],
    ) -> std::result::Result<bool, String> {
        let nothing = json!({ "path": "nothing", "from": "nothing", "to": "nothing2" });
        if !self.has_operation(STAT, nothing.clone()) || !self.has_operation(operation, nothing) {
            return Ok(false);
        }
        for (path, text) in files {
            self.write_file(path, text).map_err(prefix_error(format!("writing `{path}`")))?;
        }
        Ok(true)
    }

    fn write_file(&self, path: &str, text: &str) -> Result<Value> {
        let write = json!({ "path": path_below(path), "parents": true });
        ask_with_bytes(self.instance, WRITE, &write, text.as_bytes())
    }

    fn read_text(&self, path: &str) -> std::result::Result<String, String> {
        let read: FileText = self
            .ask_environment(READ_TEXT, json!({ "path": path_below(path) }))
            .map_err(prefix_error("reading"))?;
        Ok(read.text)
    }

    pub(super) fn check_refused(
        &self,
        operation: &str,
        request: Value,
        kind: ErrorKind,
    ) -> ConformanceVerdict {
        let found: Result<Value> = self.ask_environment(operation, request.clone());
        let found = found.map(drop).map_err(|error| error.kind);
        ensure(found == Err(kind), || format!("`{operation}` of {request}: {found:?}"))
    }

    /// Reads a stream to its end.
    pub(super) fn read_frames(
        &self,
        operation: &str,
        request: &Value,
    ) -> std::result::Result<(Value, Vec<Vec<u8>>), String> {
        let opened: Value =
            self.ask_environment(operation, request.clone()).map_err(prefix_error(operation))?;
        let next = json!({ "stream": opened[STREAM_KEY] });
        let mut frames = Vec::new();
        loop {
            let frame = call_environment(self.instance, STREAM_NEXT, &next, &[])
                .map_err(prefix_error("a piece"))?;
            if matches!(Frame::read::<Value>(&frame), Ok(end) if end == json!(STREAM_END)) {
                break;
            }
            frames.push(frame);
            ensure(frames.len() < ANSWERS_MAX, || format!("`{operation}` has no end"))?;
        }
        let close: Result<Value> = self.ask_environment(STREAM_CLOSE, next);
        close.map_err(prefix_error("closing a stream"))?;
        Ok((opened, frames))
    }

    /// Removes what a check has created.
    pub(super) fn clean_up(self, host: &FakeHost, has_files: bool) -> ConformanceVerdict {
        if has_files {
            let delete = json!({ "path": FOLDER, "recursive": true });
            self.ask_environment::<Value>(DELETE, delete)
                .map_err(prefix_error("deleting a folder"))?;
        }
        self.shut_down(host)
    }
}

fn path_below(path: &str) -> String {
    format!("{FOLDER}/{path}")
}

/// Text can be read by characters and by lines, in the requested range.
pub fn texts_are_read_in_ranges(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let has = ready.has_files(READ_TEXT, &[("a.txt", "eins\r\nzwei – 🌓\ndrei")])?;
    if has {
        let lines = |offset, length| (json!("lines"), offset, length);
        let characters = |offset, length| (json!("characters"), offset, length);
        for ((unit, offset, length), text, has_more) in [
            (lines(1, 1), "zwei – 🌓\n", true),
            (lines(2, 9), "drei", false),
            (lines(9, 1), "", false),
            (characters(6, 8), "zwei – 🌓", true),
            (characters(0, 4), "eins", true),
        ] {
            let read = json!({ "path": path_below("a.txt"), "unit": unit, "offset": offset, "length": length });
            let found: FileText =
                ready.ask_environment(READ_TEXT, read.clone()).map_err(prefix_error(&read))?;
            ensure((found.text.as_str(), found.has_more) == (text, has_more), || {
                format!("{read} is read as {:?}, more: {}", found.text, found.has_more)
            })?;
            ensure(found.size == 24, || format!("its reported size is {}", found.size))?;
        }
        let no_text = json!({ "path": path_below("bytes") });
        let write: Result<Value> = ask_with_bytes(ready.instance, WRITE, &no_text, b"a\xffb");
        write.map_err(prefix_error("writing bytes"))?;
        ready.check_refused(READ_TEXT, no_text, ErrorKind::InvalidArguments)?;
        ready.check_refused(
            READ_TEXT,
            json!({ "path": path_below("gone") }),
            ErrorKind::NotFound,
        )?;
    }
    ready.clean_up(host, has)
}

/// Edits replace pieces that occur once, and apply all changes or none.
pub fn edits_are_atomic(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let text = "moon\nsun\nsun\n";
    let has = ready.has_files(EDIT, &[("a.txt", text)])?;
    if has {
        let edit = |edits: Value| json!({ "path": path_below("a.txt"), "edits": edits });
        for (edits, kind) in [
            (json!([{ "old": "sun", "new": "star" }]), ErrorKind::Conflict),
            (
                json!([{ "old": "moon", "new": "m" }, { "old": "mars", "new": "" }]),
                ErrorKind::NotFound,
            ),
            (json!([{ "old": "", "new": "x" }]), ErrorKind::InvalidArguments),
            (json!([]), ErrorKind::InvalidArguments),
        ] {
            ready.check_refused(EDIT, edit(edits), kind)?;
            let left = ready.read_text("a.txt")?;
            ensure(left == text, || format!("a refused edit leaves {left:?}"))?;
        }
        let both = json!([
            { "old": "moon", "new": "luna" }, { "old": "sun", "new": "sol", "all": true },
        ]);
        let edited: FileEditAnswer =
            ready.ask_environment(EDIT, edit(both)).map_err(prefix_error("an edit"))?;
        ensure(edited.replaced == [1, 2], || format!("replaced: {:?}", edited.replaced))?;
        let left = ready.read_text("a.txt")?;
        ensure(left == "luna\nsol\nsol\n", || format!("the edits leave {left:?}"))?;
        let mut stale = edit(json!([{ "old": "luna", "new": "moon" }]));
        stale["expected"] = json!("a version that never was");
        if edited.facts.version.is_some() {
            ready.check_refused(EDIT, stale, ErrorKind::Conflict)?;
        }
    }
    ready.clean_up(host, has)
}

/// A copy keeps the source, a move removes it, and neither overwrites a file unless asked.
pub fn files_are_copied_and_moved(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let files = [("a.txt", "a"), ("b.txt", "b"), ("f/one", "1"), ("f/g/two", "2")];
    let has = ready.has_files(COPY, &files)? && ready.has_files(MOVE, &[])?;
    if has {
        let pair = |from: &str, to: &str| json!({ "from": path_below(from), "to": path_below(to) });
        let done = |operation, request: Value| {
            ready
                .ask_environment::<Value>(operation, request.clone())
                .map(drop)
                .map_err(prefix_error(request))
        };
        for operation in [COPY, MOVE] {
            ready.check_refused(operation, pair("a.txt", "b.txt"), ErrorKind::Conflict)?;
            ready.check_refused(operation, pair("f", "b.txt"), ErrorKind::Conflict)?;
            ready.check_refused(operation, pair("gone", "c.txt"), ErrorKind::NotFound)?;
        }
        ready.check_refused(COPY, pair("f", "f/inside"), ErrorKind::InvalidArguments)?;
        ready.check_refused(
            STAT,
            json!({ "path": path_below("f/inside") }),
            ErrorKind::NotFound,
        )?;
        let mut over = pair("a.txt", "b.txt");
        over["overwrite"] = json!(true);
        done(COPY, over)?;
        done(COPY, pair("f", "copy"))?;
        done(MOVE, pair("f", "moved"))?;
        done(MOVE, pair("a.txt", "c.txt"))?;
        for (path, text) in [
            ("b.txt", "a"),
            ("copy/g/two", "2"),
            ("moved/one", "1"),
            ("moved/g/two", "2"),
            ("c.txt", "a"),
        ] {
            let found = ready.read_text(path)?;
            ensure(found == text, || format!("`{path}` holds {found:?}, not {text:?}"))?;
        }
        for path in ["a.txt", "f"] {
            ready.check_refused(STAT, json!({ "path": path_below(path) }), ErrorKind::NotFound)?;
        }
    }
    ready.clean_up(host, has)
}

/// A tree is walked in order, with a folder before its content.
pub fn folder_trees_are_walked(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let files = [("b/two", ""), ("b/a/one", ""), ("c", ""), ("a", ""), (".git/x", "")];
    let has = ready.has_files(WALK, &files)?;
    if has {
        let walked = |request: Value| -> std::result::Result<Vec<String>, String> {
            let (_, frames) = ready.read_frames(WALK, &request)?;
            let mut paths = Vec::new();
            for frame in frames {
                let page: WalkedPage = Frame::read(&frame).map_err(|error| error.to_string())?;
                paths.extend(page.entries.into_iter().map(|entry| entry.path));
            }
            Ok(paths)
        };
        let all = walked(json!({ "path": FOLDER }))?;
        ensure(all == ["a", "b", "b/a", "b/a/one", "b/two", "c"], || format!("{all:?}"))?;
        let top = walked(json!({ "path": FOLDER, "depth_max": 1 }))?;
        ensure(top == ["a", "b", "c"], || format!("one folder deep: {top:?}"))?;
        ready.check_refused(WALK, json!({ "path": path_below("gone") }), ErrorKind::NotFound)?;
    }
    ready.clean_up(host, has)
}

/// A file can be read and written in pieces. An unfinished write keeps the old file.
pub fn files_are_streamed_in_pieces(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let has = ready.has_files(READ_STREAM, &[("a.txt", "0123456789")])?
        && ready.has_files(WRITE_STREAM, &[])?;
    if has {
        let read = |extra: Value| -> std::result::Result<(u64, Vec<u8>), String> {
            let mut request = json!({ "path": path_below("a.txt") });
            for (key, value) in extra.as_object().into_iter().flatten() {
                request[key] = value.clone();
            }
            let (opened, frames) = ready.read_frames(READ_STREAM, &request)?;
            let mut bytes = Vec::new();
            for frame in &frames {
                let parsed = Frame::parse(frame).map_err(|error| error.to_string())?;
                bytes.extend_from_slice(parsed.bytes);
            }
            Ok((opened["size"].as_u64().unwrap_or_default(), bytes))
        };
        let whole = read(json!({}))?;
        ensure(whole == (10, b"0123456789".to_vec()), || format!("{whole:?}"))?;
        let part = read(json!({ "offset": 3, "length": 4 }))?;
        ensure(part == (10, b"3456".to_vec()), || format!("a part: {part:?}"))?;

        let begin = || -> std::result::Result<Value, String> {
            let write = json!({ "path": path_below("a.txt") });
            let begun: Value =
                ready.ask_environment(WRITE_STREAM, write).map_err(prefix_error("a file"))?;
            let piece = json!({ "file": begun["file"] });
            for bytes in [&b"new "[..], b"text"] {
                let written: Result<Value> =
                    ask_with_bytes(ready.instance, WRITE_PIECE, &piece, bytes);
                written.map_err(prefix_error("a piece"))?;
            }
            let before = ready.read_text("a.txt")?;
            ensure(before == "0123456789", || format!("before its end it is {before:?}"))?;
            Ok(begun)
        };
        let left = begin()?;
        ready
            .ask_environment::<Value>(STREAM_CLOSE, json!({ "stream": left[STREAM_KEY] }))
            .map_err(prefix_error("leaving a file"))?;
        let finished = begin()?;
        let facts: FileFacts = ready
            .ask_environment(WRITE_FINISH, json!({ "file": finished["file"] }))
            .map_err(prefix_error("finishing a file"))?;
        ensure(facts.size == 8, || format!("{facts:?}"))?;
        let text = ready.read_text("a.txt")?;
        ensure(text == "new text", || format!("it holds {text:?}"))?;
    }
    ready.clean_up(host, has)
}

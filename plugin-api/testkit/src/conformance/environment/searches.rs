//! Checks of searches. The same checks apply to an author's own searches and to the sdk's defaults.

use jaato_types::files::{FIND, FoundPage, SEARCH, SearchTotals, SearchedPage};
use jaato_types::{ErrorKind, Frame};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::PreparedEnvironment;
use super::files::FOLDER;
use crate::FakeHost;
use crate::conformance::{ConformanceSuite, ConformanceVerdict, ensure};

type SearchCheckResult<T> = Result<T, String>;

const FILES: [(&str, &str); 7] = [
    ("a.rs", "no\nmoon moon\r\nno\nno\nMoon\n"),
    ("b/c.rs", "übermoon"),
    ("b/d.md", "moon\n"),
    (".hidden.rs", "moon\n"),
    (".gitignore", "ignored.rs\n"),
    ("ignored.rs", "moon\n"),
    ("left/e.rs", "moon\n"),
];

fn read_pages<T: DeserializeOwned>(
    ready: &PreparedEnvironment<'_>,
    operation: &str,
    request: &Value,
) -> SearchCheckResult<Vec<T>> {
    let (_, frames) = ready.read_frames(operation, request)?;
    let read = |frame: &Vec<u8>| Frame::read(frame).map_err(|error| error.to_string());
    frames.iter().map(read).collect()
}

/// Files are found with their facts, without folders, and all of them are counted.
pub fn files_are_found_with_their_facts(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let has = ready.has_files(FIND, &FILES)?;
    if has {
        let found = |pattern: &str, more: Value| -> SearchCheckResult<(Vec<String>, u64)> {
            let mut request = json!({ "pattern": pattern, "path": FOLDER, "order": "path" });
            merge_json(&mut request, &more);
            let pages: Vec<FoundPage> = read_pages(&ready, FIND, &request)?;
            let count = pages.last().map_or(0, |page| page.count);
            Ok((pages.into_iter().flat_map(|page| page.files).map(|it| it.path).collect(), count))
        };
        for (pattern, more, paths, count) in [
            ("**/*.rs", json!({}), &["a.rs", "b/c.rs", "left/e.rs"][..], 3),
            ("**/*.rs", json!({ "leave_out": ["left"] }), &["a.rs", "b/c.rs"], 2),
            ("**/*.rs", json!({ "limit": 1 }), &["a.rs"], 3),
            ("*.rs", json!({ "include_hidden": true }), &[".hidden.rs", "a.rs"], 2),
            ("*.rs", json!({ "include_ignored": true }), &["a.rs", "ignored.rs"], 2),
            ("b/*", json!({}), &["b/c.rs", "b/d.md"], 2),
            ("b/*.{rs,md}", json!({}), &["b/c.rs", "b/d.md"], 2),
            ("b/[!a-c].md", json!({}), &["b/d.md"], 1),
            ("?.rs", json!({}), &["a.rs"], 1),
            ("b/d.md", json!({}), &["b/d.md"], 1),
            ("b", json!({}), &[], 0),
            ("gone/**/*.rs", json!({}), &[], 0),
        ] {
            let told = found(pattern, more.clone())?;
            ensure(
                (told.0.iter().map(String::as_str).eq(paths.iter().copied())) && told.1 == count,
                || format!("`{pattern}` with {more} finds {told:?}"),
            )?;
        }
        let request = json!({ "pattern": "a.*", "path": FOLDER });
        let facts: Vec<FoundPage> = read_pages(&ready, FIND, &request)?;
        let size = facts.iter().flat_map(|page| &page.files).map(|file| file.size).next();
        ensure(size == Some(25), || format!("`a.rs` has {size:?} bytes"))?;
        for pattern in ["{a", "", "/a/*"] {
            let request = json!({ "pattern": pattern, "path": FOLDER });
            ready.check_refused(FIND, request, ErrorKind::InvalidArguments)?;
        }
        let gone = json!({ "pattern": "a/*", "path": format!("{FOLDER}/gone") });
        ready.check_refused(FIND, gone, ErrorKind::NotFound)?;
    }
    ready.clean_up(host, has)
}

/// Texts are searched line by line, in the order of the paths, and all matches are counted.
pub fn texts_are_searched(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let has = ready.has_files(SEARCH, &FILES)?;
    if has {
        let found = |pattern: &str,
                     more: Value|
         -> SearchCheckResult<(Vec<String>, SearchTotals)> {
            let mut request = json!({ "pattern": pattern, "path": FOLDER });
            merge_json(&mut request, &more);
            let pages: Vec<SearchedPage> = read_pages(&ready, SEARCH, &request)?;
            let totals = pages.last().map_or_else(SearchTotals::default, |page| page.totals);
            let mut lines = Vec::new();
            for file in pages.into_iter().flat_map(|page| page.files) {
                for line in file.lines {
                    let matches = line.matches.iter().map(|(start, end)| format!("{start}-{end}"));
                    let matches: Vec<_> = matches.collect();
                    lines.push(format!("{}:{}:{}", file.path, line.number, matches.join(",")));
                }
            }
            Ok((lines, totals))
        };
        for (pattern, more, lines, matches) in [
            (
                "moon$",
                json!({}),
                &["a.rs:2:5-9", "b/c.rs:1:4-8", "b/d.md:1:0-4", "left/e.rs:1:0-4"][..],
                4,
            ),
            (
                "moon",
                json!({ "path": format!("{FOLDER}/a.rs"), "context_lines": 1 }),
                &[":1:", ":2:0-4,5-9", ":3:"],
                2,
            ),
            (
                "MOON",
                json!({ "ignore_case": true, "files": ["a.*"] }),
                &["a.rs:2:0-4,5-9", "a.rs:5:0-4"],
                3,
            ),
            ("moon", json!({ "limit": 1 }), &["a.rs:2:0-4"], 5),
            (
                "moon",
                json!({ "leave_out": ["left", "*.md"], "files": ["b/**", "left/*"] }),
                &["b/c.rs:1:4-8"],
                1,
            ),
            (
                "^moon",
                json!({ "include_hidden": true, "include_ignored": true, "files": ["*.rs"] }),
                &[".hidden.rs:1:0-4", "a.rs:2:0-4", "ignored.rs:1:0-4", "left/e.rs:1:0-4"],
                4,
            ),
            ("sun", json!({}), &[], 0),
        ] {
            let (told, totals) = found(pattern, more.clone())?;
            ensure(told == lines && totals.matches == matches, || {
                format!("`{pattern}` with {more} finds {told:?}, {totals:?}")
            })?;
        }
        let large = found("moon", json!({ "file_bytes_max": 8 }))?.1;
        ensure(large.files_too_large == 2 && large.files_searched == 2, || format!("{large:?}"))?;
        for pattern in ["(", "((a{1000}){1000}){1000}", r"(a)\1"] {
            let request = json!({ "pattern": pattern, "path": FOLDER });
            ready.check_refused(SEARCH, request, ErrorKind::InvalidArguments)?;
        }
        let gone = json!({ "pattern": "moon", "path": format!("{FOLDER}/gone") });
        ready.check_refused(SEARCH, gone, ErrorKind::NotFound)?;
    }
    ready.clean_up(host, has)
}

pub(super) fn merge_json(request: &mut Value, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        request[key] = value.clone();
    }
}

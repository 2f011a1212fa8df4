//! The tool `glob_files`.

use std::time::Duration;

use jaato_plugin_sdk::files::{
    FIND_FILES_MAX, FileFind, FileKind, FileOrder, FindKind, FoundFile, FoundPage, SearchPages,
    SkippedEntryCounts,
};
use jaato_plugin_sdk::json_object;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;

use crate::config::FilesystemQueryPlugin;
use crate::entries::{ENTRY_BYTES, HEADING_BYTES, answer_bytes_max, estimate_json_bytes};
use crate::live_results::LiveSearchOutput;
use crate::search_start::{SearchStartPath, is_absolute_pattern, rephrase_error};
use crate::time_limit::{PageWaitResult, SearchTimeLimit, timeout_note};

/// Extra time after which the plugin gives up on a search. The search normally ends itself.
const GRACE: Duration = Duration::from_secs(5);

/// Find files by glob pattern, newest first, or list a folder (`src/`). Returns paths relative to
/// root, and the total.
#[derive(ToolInput)]
#[tool(
    core,
    read_only,
    idempotent,
    open_world = false,
    auto_approval,
    category = "search",
    available_if(
        environment_has = "files",
        reason = "in a session whose execution environment has files"
    ),
    example("Which Python files are here?", pattern = "**/*.py"),
    example("List the Go tests below src", pattern = "src/**/*_test.go"),
    example("What is in the folder docs?", pattern = "docs/")
)]
struct GlobFiles {
    /// Such as `**/*.py`, `src/*.{ts,tsx}` or `src/`.
    #[schemars(extend("x-jaato-touches" = "pattern"))]
    pattern: String,
    /// Folder to search. Default: working folder.
    #[schemars(extend("x-jaato-touches" = "search_root"))]
    root: Option<String>,
    /// Default `files`; folders end with `/`.
    #[serde(default)]
    kind: GlobEntryKind,
    /// Default 500.
    #[schemars(range(min = 1, max = 10000))]
    max_results: Option<usize>,
    /// Results to skip.
    #[serde(default)]
    #[schemars(range(min = 0, max = 9999))]
    offset: usize,
    /// Also hidden files.
    #[serde(default)]
    include_hidden: bool,
    /// Also files that .gitignore names.
    #[serde(default)]
    include_ignored: bool,
}

/// What is found.
#[tool_type]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum GlobEntryKind {
    #[default]
    Files,
    Folders,
    All,
}

impl Tool for GlobFiles {
    type State = FilesystemQueryPlugin;

    async fn call(self, cx: &Cx<FilesystemQueryPlugin>) -> Result<Output> {
        check_pattern(&self.pattern)?;
        let place = SearchStartPath::find_start(cx, self.root.clone(), "Root path").await?;
        if !place.is_folder {
            let text = format!("Root path is not a directory: {}", place.asked);
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        let limit = self.offset.saturating_add(self.max_results.unwrap_or(cx.state().results));
        let find = self.find_request(&place, limit);
        let mut found = self.find_paths(cx, &find).await?;
        if let Some(folder) = self.find_named_folder(cx, &place, &found).await {
            let list = FileFind {
                pattern: format!("{folder}*"),
                kind: FindKind::All,
                order: FileOrder::Path,
                ..find
            };
            found = self.find_paths(cx, &list).await?;
            let shown = if folder.is_empty() { "." } else { &folder };
            found.notes.push(format!("`{shown}` is a folder: these are its contents"));
        } else if self.is_name_pattern() {
            let deep = format!("**/{}", self.pattern);
            let limit = if found.count == 0 { limit } else { 0 };
            let below = FileFind { pattern: deep.clone(), limit: Some(limit), ..find };
            let below = self.find_paths(cx, &below).await?;
            if found.count == 0 && below.count > 0 {
                found = below;
                found.notes.push(format!("these match `{deep}`: the folder itself has no match"));
            } else if below.count > found.count {
                let more = below.count - found.count;
                found.notes.push(format!("{more} more in subfolders match `{deep}`"));
            }
        }
        let bytes_max = answer_bytes_max(cx).await;
        Ok(Output::json(self.format_answer(cx.state(), found, bytes_max).into()))
    }
}

impl GlobFiles {
    fn find_request(&self, place: &SearchStartPath, limit: usize) -> FileFind {
        let pattern = self.pattern.trim_start_matches("./");
        let is_folder = pattern.ends_with('/');
        FileFind {
            pattern: pattern.to_owned(),
            path: place.asked.clone(),
            include_hidden: self.include_hidden,
            include_ignored: self.include_ignored,
            kind: match self.kind {
                // As in a shell, `*/` matches folders.
                GlobEntryKind::Files if is_folder => FindKind::Folders,
                GlobEntryKind::Files => FindKind::Files,
                GlobEntryKind::Folders => FindKind::Folders,
                GlobEntryKind::All => FindKind::All,
            },
            order: FileOrder::Newest,
            limit: Some(limit),
            ..FileFind::default()
        }
    }

    async fn find_paths(
        &self,
        cx: &Cx<FilesystemQueryPlugin>,
        find: &FileFind,
    ) -> Result<GlobSearchResult> {
        let query = cx.state();
        let find = FileFind {
            leave_out: query.leave_out.clone(),
            leave_out_unless_git: query.leave_out_unless_git.clone(),
            within_ms: Some(u64::try_from(query.time_limit.as_millis()).unwrap_or(u64::MAX)),
            ..find.clone()
        };
        let found = cx.files().find(find).await;
        let found = found.map_err(|error| rephrase_error(error, "Path", &self.pattern))?;
        collect_paths(cx, found, query.time_limit).await
    }

    /// Returns the folder that the pattern names, with a trailing `/`.
    async fn find_named_folder(
        &self,
        cx: &Cx<FilesystemQueryPlugin>,
        place: &SearchStartPath,
        found: &GlobSearchResult,
    ) -> Option<String> {
        let name = self.pattern.trim_start_matches("./").trim_end_matches('/');
        let name = if name == "." { "" } else { name };
        let found_itself = self.kind == GlobEntryKind::Files || found.count == 0;
        if !found_itself || name.contains(['*', '?', '{', '[', '\\']) {
            return None;
        }
        let path = if name.is_empty() { "." } else { name };
        let facts = cx.files().stat(place.callable_path(path)).await.ok()?;
        let is_folder = facts.kind == FileKind::Folder;
        is_folder.then(|| if name.is_empty() { String::new() } else { format!("{name}/") })
    }

    /// Returns true if the pattern matches names at any depth, and not only the folder's own files.
    fn is_name_pattern(&self) -> bool {
        let pattern = self.pattern.as_str();
        !pattern.contains('/') && !pattern.starts_with("**") && pattern != "*"
    }

    fn format_answer(
        &self,
        query: &FilesystemQueryPlugin,
        mut found: GlobSearchResult,
        bytes_max: usize,
    ) -> Map<String, Value> {
        let mut bytes_left = bytes_max.saturating_sub(HEADING_BYTES);
        let mut files = Vec::new();
        for file in found.files.into_iter().skip(self.offset) {
            let path = if file.is_folder { format!("{}/", file.path) } else { file.path };
            let bytes = estimate_json_bytes(&path) + ENTRY_BYTES;
            if bytes > bytes_left && !files.is_empty() {
                break;
            }
            bytes_left = bytes_left.saturating_sub(bytes);
            files.push(json!({ "path": path }));
        }
        let seen = self.offset.saturating_add(files.len()) as u64;
        let is_more = seen < found.count;
        let returned = files.len();
        found.notes.extend(non_utf8_note(files.iter().filter_map(|file| file["path"].as_str())));
        let mut answer = json_object!({
            "files": files,
            "total": found.count,
            "returned": returned,
            "truncated": is_more || found.is_late,
        });
        if is_more && returned > 0 && seen < FIND_FILES_MAX as u64 {
            answer.insert("next_offset".to_owned(), seen.into());
        }
        if returned == 0 && found.count > 0 {
            let text = format!("there are only {} results: use a smaller offset", found.count);
            found.notes.push(text);
        }
        add_search_notes(&mut answer, query, found.left_out, found.unreadable, &found.notes);
        answer
    }
}

tool!(GlobFiles);

fn check_pattern(pattern: &str) -> Result<()> {
    let wrong =
        |text: &str, hint: &str| Err(Error::new(ErrorKind::InvalidArguments, text).with_hint(hint));
    if pattern.is_empty() {
        return wrong("Pattern is required", "for instance `**/*.py`");
    }
    if is_absolute_pattern(pattern) {
        let text = "Absolute patterns are not supported in glob_files.";
        return wrong(text, "give the folder as `root`, and the pattern relative to it");
    }
    Ok(())
}

/// The result of a search.
#[derive(Default)]
struct GlobSearchResult {
    files: Vec<FoundFile>,
    count: u64,
    left_out: SkippedEntryCounts,
    unreadable: Vec<String>,
    notes: Vec<String>,
    is_late: bool,
}

async fn collect_paths(
    cx: &Reporter,
    mut pages: SearchPages<FoundPage>,
    time: Duration,
) -> Result<GlobSearchResult> {
    let (mut limit, mut live) =
        (SearchTimeLimit::new(cx, time + GRACE), LiveSearchOutput::default());
    let mut found = GlobSearchResult::default();
    loop {
        let page = match limit.next_page(&mut pages).await? {
            PageWaitResult::Page(page) => page,
            PageWaitResult::End => break,
            PageWaitResult::Late => {
                found.is_late = true;
                break;
            }
        };
        for file in &page.files {
            live.add_line(&format!(
                "{} ({}B, {})",
                file.path,
                file.size,
                format_utc_time(file.modified_ms)
            ));
        }
        found.count = page.count;
        found.left_out = page.left_out;
        found.is_late |= page.is_partial;
        found.files.extend(page.files);
        found.unreadable.extend(page.unreadable);
        live.show_progress(cx, "files found", found.count);
    }
    if found.is_late {
        found.notes.push(timeout_note(time));
    }
    live.show_last_line(cx, &format!("Found {} files", found.count));
    Ok(found)
}

/// Returns a note if some of these paths are not UTF-8.
pub fn non_utf8_note<'a>(mut paths: impl Iterator<Item = &'a str>) -> Option<String> {
    let note = "names with � are not UTF-8: only shell commands can open them, with a pattern";
    paths.any(|path| path.contains('\u{FFFD}')).then(|| note.to_owned())
}

/// Adds the number of excluded files, unreadable paths and notes, if there are any.
pub fn add_search_notes(
    answer: &mut Map<String, Value>,
    query: &FilesystemQueryPlugin,
    left_out: SkippedEntryCounts,
    unreadable: Vec<String>,
    notes: &[String],
) {
    if !left_out.is_empty() {
        answer.insert("left_out".to_owned(), skipped_entries_json(query, left_out));
    }
    if !unreadable.is_empty() {
        answer.insert("unreadable".to_owned(), unreadable.into());
    }
    if !notes.is_empty() {
        answer.insert("note".to_owned(), notes.join("; ").into());
    }
}

/// Returns the number of excluded files and folders, with a way to include them.
fn skipped_entries_json(query: &FilesystemQueryPlugin, left_out: SkippedEntryCounts) -> Value {
    let SkippedEntryCounts { ignored, hidden, excluded, denied, .. } = left_out;
    let excluded_way = if query.leave_out.is_empty() {
        "include_ignored, or name the folder"
    } else {
        "name the folder, or include_ignored unless the user's exclude_patterns name it"
    };
    let counts = [
        ("ignored", ignored, "include_ignored"),
        ("hidden", hidden, "include_hidden"),
        ("excluded", excluded, excluded_way),
    ];
    let mut told = Map::new();
    let mut ways: Vec<&str> = Vec::new();
    for (key, count, way) in counts.into_iter().filter(|(_, count, _)| *count > 0) {
        told.insert(key.to_owned(), count.into());
        ways.push(way);
    }
    if !ways.is_empty() {
        told.insert("to_include".to_owned(), ways.join("; ").into());
    }
    if denied > 0 {
        told.insert("denied".to_owned(), denied.into());
    }
    told.into()
}

/// Formats a time in UTC.
fn format_utc_time(milliseconds: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

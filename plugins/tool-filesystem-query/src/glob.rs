//! The tool `glob_files`.

use std::time::Duration;

use jaato_plugin_sdk::files::{FileFind, FileOrder, FoundFile, FoundPage, LeftOut, SearchPages};
use jaato_plugin_sdk::json_object;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;

use crate::config::Query;
use crate::live::Live;
use crate::place::{Place, is_absolute, told};
use crate::time_limit::{Came, TimeLimit, late};

/// What is added to the time of a search before nobody waits for it any more: it ends itself.
const GRACE: Duration = Duration::from_secs(5);

/// Find files by a glob pattern, newest first. Returns path, size and modified of each, and the
/// total.
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
    example("List the Go tests below src", pattern = "src/**/*_test.go")
)]
struct GlobFiles {
    /// Such as `**/*.py` or `src/*.{ts,tsx}`.
    #[schemars(extend("x-jaato-touches" = "pattern"))]
    pattern: String,
    /// Folder to search in; default the workspace.
    #[schemars(extend("x-jaato-touches" = "search_root"))]
    root: Option<String>,
    /// Default 500.
    #[schemars(range(min = 1, max = 10000))]
    max_results: Option<usize>,
    /// Also hidden files.
    #[serde(default)]
    include_hidden: bool,
    /// Also files that .gitignore names.
    #[serde(default)]
    include_ignored: bool,
}

impl Tool for GlobFiles {
    type State = Query;

    async fn call(self, cx: &Cx<Query>) -> Result<Output> {
        check(&self.pattern)?;
        let place = Place::find(cx, self.root, "Root path").await?;
        if !place.is_folder {
            let text = format!("Root path is not a directory: {}", place.asked);
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        let (query, limit) = (cx.state(), self.max_results.unwrap_or(cx.state().results));
        let time = query.time_limit;
        let find = FileFind {
            pattern: self.pattern.clone(),
            path: place.asked.clone(),
            include_hidden: self.include_hidden,
            include_ignored: self.include_ignored,
            leave_out: query.leave_out.clone(),
            leave_out_unless_git: query.leave_out_unless_git.clone(),
            order: FileOrder::Newest,
            limit: Some(limit),
            within_ms: Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            ..FileFind::default()
        };
        let found =
            cx.files().find(find).await.map_err(|error| told(error, "Path", &self.pattern))?;
        let found = collect(cx, found, time).await?;
        Ok(Output::json(answer(query, &place, &self.pattern, found).into()))
    }
}

tool!(GlobFiles);

fn check(pattern: &str) -> Result<()> {
    let wrong =
        |text: &str, hint: &str| Err(Error::new(ErrorKind::InvalidArguments, text).with_hint(hint));
    if pattern.is_empty() {
        return wrong("Pattern is required", "for instance `**/*.py`");
    }
    if is_absolute(pattern) {
        let text = "Absolute patterns are not supported in glob_files.";
        return wrong(text, "give the folder as `root`, and the pattern relative to it");
    }
    Ok(())
}

/// What was found.
#[derive(Default)]
struct Found {
    files: Vec<FoundFile>,
    count: u64,
    left_out: LeftOut,
    unreadable: Vec<String>,
    notes: Vec<String>,
    is_late: bool,
}

async fn collect(
    cx: &Reporter,
    mut pages: SearchPages<FoundPage>,
    time: Duration,
) -> Result<Found> {
    let (mut limit, mut live) = (TimeLimit::new(cx, time + GRACE), Live::default());
    let mut found = Found::default();
    loop {
        let page = match limit.next(&mut pages).await? {
            Came::Page(page) => page,
            Came::End => break,
            Came::Late => {
                found.is_late = true;
                break;
            }
        };
        for file in &page.files {
            live.add(&format!("{} ({}B, {})", file.path, file.size, iso(file.modified_ms)));
        }
        found.count = page.count;
        found.left_out = page.left_out;
        found.is_late |= page.is_partial;
        found.files.extend(page.files);
        found.unreadable.extend(page.unreadable);
        live.show(cx, "files found", found.count);
    }
    if found.is_late {
        found.notes.push(late(time));
    }
    live.finish(cx, &format!("Found {} files", found.count));
    Ok(found)
}

fn answer(query: &Query, place: &Place, pattern: &str, found: Found) -> Map<String, Value> {
    let returned = found.files.len();
    let files: Vec<Value> = found
        .files
        .into_iter()
        .map(|file| {
            json!({
                "path": file.path,
                "absolute_path": place.absolute_of(&file.path),
                "size": file.size,
                "modified": iso(file.modified_ms),
            })
        })
        .collect();
    let mut answer = json_object!({
        "files": files,
        "total": found.count,
        "returned": returned,
        "truncated": (returned as u64) < found.count || found.is_late,
        "root": place.absolute,
        "pattern": pattern,
    });
    tell_beside(&mut answer, query, found.left_out, found.unreadable, &found.notes);
    answer
}

/// Adds how much was left out, what could not be read, and notes, if there are some.
pub fn tell_beside(
    answer: &mut Map<String, Value>,
    query: &Query,
    left_out: LeftOut,
    unreadable: Vec<String>,
    notes: &[String],
) {
    if !left_out.is_empty() {
        answer.insert("left_out".to_owned(), told_left_out(query, left_out));
    }
    if !unreadable.is_empty() {
        answer.insert("unreadable".to_owned(), unreadable.into());
    }
    if !notes.is_empty() {
        answer.insert("note".to_owned(), notes.join("; ").into());
    }
}

/// How many files and folders were left out, and how to look at them.
fn told_left_out(query: &Query, left_out: LeftOut) -> Value {
    let LeftOut { ignored, hidden, excluded, denied, .. } = left_out;
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

/// A moment in UTC.
fn iso(milliseconds: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

//! The tool `grep_content`.

use jaato_plugin_sdk::files::{FileSearch, SearchPages, SearchTotals, SearchedPage};
use jaato_plugin_sdk::json_object;
use jaato_plugin_sdk::prelude::*;

use crate::config::Query;
use crate::entries::{Entries, text};
use crate::glob::tell_beside;
use crate::live::Live;
use crate::place::{Place, is_absolute, told};
use crate::time_limit::{Came, TimeLimit, late};

/// Search text in files by a regular expression (Rust syntax), line by line. Returns each match
/// with its file, line, column and the lines around it, and true totals.
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
    example("Where is the function parse defined?", pattern = r"fn parse\b"),
    example("Where is mail sent in Python?", pattern = "sendmail", file_glob = "*.py")
)]
struct GrepContent {
    /// Regular expression.
    #[schemars(extend("x-jaato-touches" = { "text": "a regular expression" }))]
    pattern: String,
    /// Folder or file; default the workspace.
    #[schemars(extend("x-jaato-touches" = "search_root"))]
    path: Option<String>,
    /// Only files that fit, such as `*.py` or `src/**/*.ts`.
    #[schemars(extend("x-jaato-touches" = "pattern"))]
    file_glob: Option<Globs>,
    /// Lines around a match, default 2.
    #[schemars(range(min = 0, max = 50))]
    context_lines: Option<usize>,
    /// Default true.
    #[serde(default = "yes")]
    case_sensitive: bool,
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

/// One pattern or several.
#[tool_type]
#[serde(untagged)]
enum Globs {
    One(String),
    Several(Vec<String>),
}

fn yes() -> bool {
    true
}

impl Tool for GrepContent {
    type State = Query;

    async fn call(self, cx: &Cx<Query>) -> Result<Output> {
        let globs = match self.file_glob {
            None => Vec::new(),
            Some(Globs::One(glob)) => vec![glob],
            Some(Globs::Several(globs)) => globs,
        };
        check(&self.pattern, &globs)?;
        let place = Place::find(cx, self.path, "Path").await?;
        let query = cx.state();
        let context_lines = self.context_lines.unwrap_or(query.context_lines);
        let search = FileSearch {
            pattern: self.pattern.clone(),
            path: place.asked.clone(),
            ignore_case: !self.case_sensitive,
            files: globs.clone(),
            include_hidden: self.include_hidden,
            include_ignored: self.include_ignored,
            leave_out: query.leave_out.clone(),
            leave_out_unless_git: query.leave_out_unless_git.clone(),
            file_bytes_max: Some(query.file_bytes_max),
            context_lines,
            limit: Some(self.max_results.unwrap_or(query.results)),
            ..FileSearch::default()
        };
        let pages = cx.files().search(search).await.map_err(|error| wrong(error, &place.asked))?;
        let found = collect(cx, pages, &place, context_lines).await?;
        let told = found.entries.len() as u64;
        let totals = found.totals;
        let mut answer = json_object!({
            "matches": found.entries,
            "total_matches": totals.matches,
            "files_with_matches": totals.files_with_matches,
            "files_searched": totals.files_searched,
            "truncated": told < totals.matches || found.is_late,
            "pattern": self.pattern,
            "path": place.absolute,
            "file_glob": if globs.is_empty() { Value::Null } else { globs.into() },
        });
        for (key, count) in
            [("skipped_large", totals.files_too_large), ("skipped_binary", totals.files_binary)]
        {
            if count > 0 {
                answer.insert(key.to_owned(), count.into());
            }
        }
        tell_beside(&mut answer, query, totals.left_out, found.unreadable, &found.notes);
        Ok(Output::json(answer.into()))
    }
}

tool!(GrepContent);

fn check(pattern: &str, globs: &[String]) -> Result<()> {
    let wrong =
        |text: &str, hint: &str| Err(Error::new(ErrorKind::InvalidArguments, text).with_hint(hint));
    if pattern.is_empty() {
        return wrong("Pattern is required", "for instance `fn \\w+`");
    }
    if globs.iter().any(|glob| is_absolute(glob)) {
        let text = "file_glob patterns must be relative, not absolute paths.";
        return wrong(text, "give the folder as `path`, and the pattern relative to it");
    }
    Ok(())
}

/// Puts an error in the words of this tool.
fn wrong(error: Error, path: &str) -> Error {
    match error.message.split_once(" is no regular expression: ") {
        Some((_, reason)) => {
            let text = format!("Invalid regex pattern: {reason}");
            Error { message: text, ..error }
        }
        None => told(error, "Path", path),
    }
}

/// What was found.
struct Found {
    entries: Vec<Value>,
    totals: SearchTotals,
    unreadable: Vec<String>,
    notes: Vec<String>,
    is_late: bool,
}

async fn collect(
    cx: &Cx<Query>,
    mut pages: SearchPages<SearchedPage>,
    place: &Place,
    context_lines: usize,
) -> Result<Found> {
    let time = cx.state().time_limit;
    let (mut limit, mut live) = (TimeLimit::new(cx, time), Live::default());
    let mut entries = Entries::new(context_lines);
    let (mut totals, mut unreadable, mut is_late) = (SearchTotals::default(), Vec::new(), false);
    let mut notes = Vec::new();
    loop {
        let page = match limit.next(&mut pages).await? {
            Came::Page(page) => page,
            Came::End => break,
            Came::Late => {
                is_late = true;
                notes.push(late(time));
                break;
            }
        };
        for file in page.files {
            let name = place.relative_of(&file.path);
            for line in file.lines.iter().filter(|line| !line.matches.is_empty()) {
                live.add(&format!("{name}:{}: {}", line.number, text(line)));
            }
            entries.add(place, file);
        }
        totals = page.totals;
        unreadable.extend(page.unreadable);
        live.show(cx, "files searched", totals.files_searched);
    }
    let last = format!(
        "Search complete: {} matches in {} files",
        totals.matches, totals.files_with_matches
    );
    live.finish(cx, &last);
    Ok(Found { entries: entries.finish(place), totals, unreadable, notes, is_late })
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::types::touches;

    use super::*;

    /// A model reads them when it looks for tools.
    #[test]
    fn a_model_reads_few_words() {
        let spec = GrepContent::spec();
        let parameters = touches::stripped(&spec.parameters);
        let bytes = spec.description.len() + parameters.to_string().len();
        assert!(bytes <= 1200, "{bytes}: {}", spec.parameters);
        assert_eq!(spec.parameters["required"], json!(["pattern"]));
        let kinds = &spec.parameters["properties"]["file_glob"];
        assert!(kinds.to_string().contains("array") && kinds.to_string().contains("string"));
    }
}

//! The tool `grep_content`.

use jaato_plugin_sdk::files::{
    FileSearch, SEARCH_MATCHES_MAX, SearchPages, SearchTotals, SearchedPage,
};
use jaato_plugin_sdk::json_object;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;

use crate::config::FilesystemQueryPlugin;
use crate::entries::{GrepEntries, answer_bytes_max, line_text};
use crate::glob::{add_search_notes, non_utf8_note};
use crate::live_results::LiveSearchOutput;
use crate::search_start::{SearchStartPath, is_absolute_pattern, rephrase_error};
use crate::time_limit::{PageWaitResult, SearchTimeLimit, timeout_note};

/// Search files with a regular expression (Rust syntax). Returns matching lines as
/// `number:line_text` per file, and full totals.
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
    /// Folder or file. Default: working folder.
    #[schemars(extend("x-jaato-touches" = "search_root"))]
    path: Option<String>,
    /// Only these files, such as `*.py` or `src/**/*.ts`.
    #[schemars(extend("x-jaato-touches" = "pattern"))]
    file_glob: Option<GrepFilePatterns>,
    /// Default `content`.
    #[serde(default)]
    output_mode: GrepOutputMode,
    /// The pattern is plain text.
    #[serde(default)]
    literal: bool,
    /// Match across lines; `.` matches line ends.
    #[serde(default)]
    multiline: bool,
    /// Lines around a match.
    #[schemars(range(min = 0, max = 50))]
    context_lines: Option<usize>,
    /// Default true.
    #[serde(default = "is_enabled_by_default")]
    case_sensitive: bool,
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

/// The content of an answer.
#[tool_type]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum GrepOutputMode {
    #[default]
    Content,
    FilesWithMatches,
    Count,
}

/// One pattern or several.
#[tool_type]
#[serde(untagged)]
enum GrepFilePatterns {
    One(String),
    Several(Vec<String>),
}

fn is_enabled_by_default() -> bool {
    true
}

impl Tool for GrepContent {
    type State = FilesystemQueryPlugin;

    async fn call(self, cx: &Cx<FilesystemQueryPlugin>) -> Result<Output> {
        let globs = match &self.file_glob {
            None => Vec::new(),
            Some(GrepFilePatterns::One(glob)) => vec![glob.clone()],
            Some(GrepFilePatterns::Several(globs)) => globs.clone(),
        };
        check_patterns(&self.pattern, &globs)?;
        let place = SearchStartPath::find_start(cx, self.path.clone(), "Path").await?;
        let pattern = SearchPattern::new(&self.pattern, self.literal, self.multiline);
        let mut found = self.search_content(cx, &place, &globs, pattern).await?;
        let is_plain = self.literal || !can_be_plain_text(&self.pattern);
        if found.totals.matches == 0 && !found.is_late && !is_plain {
            let pattern = SearchPattern::new(&self.pattern, true, self.multiline);
            let plain = self.search_content(cx, &place, &globs, pattern).await?;
            if plain.totals.matches > 0 {
                found = plain;
                let note = "the regular expression matches nothing; these are the matches of the \
                            pattern as plain text (literal: true)";
                found.notes.push(note.to_owned());
            }
        }
        Ok(Output::json(self.format_answer(cx.state(), found).into()))
    }
}

tool!(GrepContent);

fn check_patterns(pattern: &str, globs: &[String]) -> Result<()> {
    let wrong =
        |text: &str, hint: &str| Err(Error::new(ErrorKind::InvalidArguments, text).with_hint(hint));
    if pattern.is_empty() {
        return wrong("Pattern is required", "for instance `fn \\w+`");
    }
    if globs.iter().any(|glob| is_absolute_pattern(glob)) {
        let text = "file_glob patterns must be relative, not absolute paths.";
        return wrong(text, "give the folder as `path`, and the pattern relative to it");
    }
    Ok(())
}

impl GrepContent {
    async fn search_content(
        &self,
        cx: &Cx<FilesystemQueryPlugin>,
        place: &SearchStartPath,
        globs: &[String],
        pattern: SearchPattern,
    ) -> Result<GrepSearchResult> {
        let query = cx.state();
        let context_lines = self.context_lines.unwrap_or(query.context_lines);
        let search = FileSearch {
            pattern: pattern.regex,
            path: place.asked.clone(),
            ignore_case: !self.case_sensitive,
            multi_line: pattern.is_multi_line,
            counts: self.output_mode != GrepOutputMode::Content,
            files: globs.to_vec(),
            include_hidden: self.include_hidden,
            include_ignored: self.include_ignored,
            leave_out: query.leave_out.clone(),
            leave_out_unless_git: query.leave_out_unless_git.clone(),
            file_bytes_max: Some(query.file_bytes_max),
            context_lines,
            limit: Some(self.offset.saturating_add(self.max_results.unwrap_or(query.results))),
            ..FileSearch::default()
        };
        let pages = cx
            .files()
            .search(search)
            .await
            .map_err(|error| rephrase_regex_error(error, &place.asked))?;
        let bytes_max = answer_bytes_max(cx).await;
        let entries = GrepEntries::new(self.offset as u64, bytes_max, context_lines > 0);
        collect_matches(cx, pages, place, entries).await
    }

    fn format_answer(
        &self,
        query: &FilesystemQueryPlugin,
        mut found: GrepSearchResult,
    ) -> Map<String, Value> {
        let totals = found.totals;
        let (seen, all) = match self.output_mode {
            GrepOutputMode::Content => (found.entries.seen, totals.matches),
            GrepOutputMode::FilesWithMatches | GrepOutputMode::Count => {
                (found.passed, totals.files_with_matches)
            }
        };
        let names = found.files.iter().map(|(path, _)| path.as_str());
        let note = non_utf8_note(names.chain(found.entries.entry_paths()));
        found.notes.extend(note);
        let mut answer = Map::new();
        match self.output_mode {
            GrepOutputMode::Content => {
                _ = answer.insert("matches".into(), found.entries.into_entries().into())
            }
            GrepOutputMode::FilesWithMatches => {
                let files: Vec<Value> =
                    found.files.into_iter().map(|(path, _)| path.into()).collect();
                answer.insert("files".into(), files.into());
            }
            GrepOutputMode::Count => {
                let counts: Map<_, _> =
                    found.files.into_iter().map(|(path, count)| (path, count.into())).collect();
                answer.insert("counts".into(), counts.into());
            }
        }
        answer.extend(json_object!({
            "total_matches": totals.matches,
            "files_with_matches": totals.files_with_matches,
            "files_searched": totals.files_searched,
            "truncated": seen < all || found.is_late,
        }));
        if seen < all && seen < SEARCH_MATCHES_MAX as u64 && seen > self.offset as u64 {
            answer.insert("next_offset".into(), seen.into());
        }
        if all > 0 && seen <= self.offset as u64 && self.offset > 0 {
            found.notes.push(format!("there are only {all} results: use a smaller offset"));
        }
        for (key, count) in
            [("skipped_large", totals.files_too_large), ("skipped_binary", totals.files_binary)]
        {
            if count > 0 {
                answer.insert(key.to_owned(), count.into());
            }
        }
        add_search_notes(&mut answer, query, totals.left_out, found.unreadable, &found.notes);
        answer
    }
}

/// The regular expression to search for.
struct SearchPattern {
    regex: String,
    is_multi_line: bool,
}

impl SearchPattern {
    /// Creates the regular expression. A pattern with a line end searches across lines even if the
    /// call does not ask for it, because otherwise it could not match.
    fn new(pattern: &str, literal: bool, multiline: bool) -> Self {
        let is_multi_line =
            multiline || pattern.contains('\n') || (!literal && pattern.contains("\\n"));
        let regex = if literal { regex::escape(pattern) } else { pattern.to_owned() };
        let regex = if is_multi_line { match_any_line_end(&regex) } else { regex };
        Self { regex, is_multi_line }
    }
}

/// Characters with a special meaning in a regular expression.
const SIGNS: &str = "\\.+*?()|[]{}^$";

/// Returns true if a pattern contains special characters, so that it may be meant as plain text.
fn can_be_plain_text(pattern: &str) -> bool {
    pattern.contains(|sign| SIGNS.contains(sign))
}

/// Makes `\n` outside of brackets also match Windows' line ends.
fn match_any_line_end(pattern: &str) -> String {
    const ANY: &str = r"(?:\r?\n)";
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut signs = pattern.chars();
    let mut is_class = false;
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => match signs.next() {
                Some('n') if !is_class && !out.ends_with("\\r") && !out.ends_with("\\r?") => {
                    out.push_str(ANY);
                }
                next => out.extend(std::iter::once(sign).chain(next)),
            },
            '\n' if !is_class => out.push_str(ANY),
            '[' | ']' => {
                is_class = sign == '[';
                out.push(sign);
            }
            sign => out.push(sign),
        }
    }
    out
}

/// Rephrases an error for this tool.
fn rephrase_regex_error(error: Error, path: &str) -> Error {
    match error.message.split_once(" is not a valid regular expression: ") {
        Some((_, reason)) => {
            let text = format!("Invalid regex pattern: {reason}");
            let hint = error.hint.unwrap_or_default();
            Error::new(error.kind, text)
                .with_hint(format!("for plain text, set literal: true; otherwise {hint}"))
        }
        None => rephrase_error(error, "Path", path),
    }
}

/// The result of a search.
struct GrepSearchResult {
    entries: GrepEntries,
    /// Files with their numbers of matches, if the call asked for counts.
    files: Vec<(String, u64)>,
    /// Number of files that were added or skipped.
    passed: u64,
    totals: SearchTotals,
    unreadable: Vec<String>,
    notes: Vec<String>,
    is_late: bool,
}

async fn collect_matches(
    cx: &Cx<FilesystemQueryPlugin>,
    mut pages: SearchPages<SearchedPage>,
    place: &SearchStartPath,
    entries: GrepEntries,
) -> Result<GrepSearchResult> {
    let time = cx.state().time_limit;
    let (mut limit, mut live) = (SearchTimeLimit::new(cx, time), LiveSearchOutput::default());
    let mut found = GrepSearchResult {
        entries,
        files: Vec::new(),
        passed: 0,
        totals: SearchTotals::default(),
        unreadable: Vec::new(),
        notes: Vec::new(),
        is_late: false,
    };
    loop {
        let page = match limit.next_page(&mut pages).await? {
            PageWaitResult::Page(page) => page,
            PageWaitResult::End => break,
            PageWaitResult::Late => {
                found.is_late = true;
                found.notes.push(timeout_note(time));
                break;
            }
        };
        for file in page.files {
            let name = place.callable_path(&file.path);
            if let Some(count) = file.matches {
                live.add_line(&format!("{name}: {count}"));
                if found.entries.take_file(&name) {
                    found.files.push((name, count));
                }
                found.passed = found.entries.seen;
                continue;
            }
            for line in file.lines.iter().filter(|line| !line.matches.is_empty()) {
                live.add_line(&format!("{name}:{}: {}", line.number, line_text(line)));
            }
            found.entries.add_lines(place, file);
        }
        found.totals = page.totals;
        found.unreadable.extend(page.unreadable);
        live.show_progress(cx, "files searched", found.totals.files_searched);
    }
    let last = format!(
        "Search complete: {} matches in {} files",
        found.totals.matches, found.totals.files_with_matches
    );
    live.show_last_line(cx, &last);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::types::touches;

    use super::*;

    /// A model reads this text when it looks for tools.
    #[test]
    fn grep_tool_spec_stays_within_its_size_limit() {
        let spec = GrepContent::spec();
        let parameters = touches::without_use_keyword(&spec.parameters);
        let bytes = spec.description.len() + parameters.to_string().len();
        assert!(bytes <= 1500, "{bytes}: {}", spec.parameters);
        assert_eq!(spec.parameters["required"], json!(["pattern"]));
        let kinds = &spec.parameters["properties"]["file_glob"];
        assert!(kinds.to_string().contains("array") && kinds.to_string().contains("string"));
    }

    #[test]
    fn newline_in_a_pattern_matches_lf_and_crlf() {
        let regex = |pattern: &str, literal| SearchPattern::new(pattern, literal, false).regex;
        assert_eq!(regex(r"a\n[^\n]\\n", false), r"a(?:\r?\n)[^\n]\\n");
        assert_eq!(regex("a\nb", true), r"a(?:\r?\n)b");
        assert_eq!(regex(r"a\r?\nb", false), r"a\r?\nb");
        assert_eq!(regex(r"f(x)\n", true), r"f\(x\)\\n");
        assert!(!SearchPattern::new(r"f(x)\n", true, false).is_multi_line);
    }
}

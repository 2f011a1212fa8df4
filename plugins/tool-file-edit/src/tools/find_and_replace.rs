//! The tool `findAndReplace`.

use std::collections::BTreeSet;
use std::sync::Arc;

use jaato_plugin_sdk::files::{FIND_FILES_MAX, FileFind, FileOrder};
use jaato_plugin_sdk::hooks::Preview;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::file_change::FileChange;
use serde_json::Map;

use super::{change_output, format_line_counts, preview_plan, require_argument};
use crate::apply::{ChangeOrigin, apply_plan};
use crate::editor::Editor;
use crate::files::{CHANGED_BYTES_MAX, FileSnapshot, read_snapshot};
use crate::plan::{EditPlan, absolute_path, resolve_links};
use crate::recover_changes::recover_unfinished_changes;
use crate::replace::{RegexReplacer, ReplacementResult};
use crate::text::decode_bytes;

/// The maximum number of files whose matches are reported.
const FILES_TOLD_MAX: usize = 20;

/// The maximum number of unreadable files that are reported.
const UNREADABLE_TOLD_MAX: usize = 10;

/// The maximum number of protected files that are reported.
const PROTECTED_TOLD_MAX: usize = 100;

/// Folders that a pattern never changes: the data of version control and of jaato.
const LEFT_OUT: [&str; 5] = [".git", ".svn", ".hg", ".bzr", ".jaato"];

/// Names that a pattern leaves out because the files are downloaded or generated. In a repository,
/// `.gitignore` decides instead, unless the call includes ignored files.
#[rustfmt::skip]
const MADE: [&str; 11] = [
    "node_modules", "bower_components", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache",
    ".pytest_cache", ".ruff_cache", "*.min.js", "*.min.css",
];

/// Replace all matches of a regular expression, or of plain text with `literal`, in files that
/// match globs. If one file fails, none is changed. `^` and `$` match at line starts and ends,
/// `\n` matches a line end, and with `(?s)` so does `.`.
#[derive(Clone, ToolInput)]
#[tool(
    name = "findAndReplace",
    category = "filesystem",
    destructive,
    open_world = false,
    previews,
    traits("file_writer"),
    available_if(
        environment_has = "files",
        reason = "in a session whose execution environment has files"
    ),
    example(
        "Replace foo by bar in all Python files",
        pattern = "\\bfoo\\b",
        replacement = "bar",
        paths = "**/*.py"
    )
)]
struct FindAndReplace {
    /// The expression or text.
    #[schemars(extend("x-jaato-touches" = { "text": "a regular expression" }))]
    pattern: String,
    /// The replacement. `\1` or `$1` is the first group of the expression.
    #[schemars(extend("x-jaato-touches" = { "text": "what comes in place of a match" }))]
    replacement: String,
    /// A glob such as `src/**/*.rs`, or several.
    #[schemars(extend("x-jaato-touches" = "pattern"))]
    paths: FileGlobs,
    /// Treat both as plain text.
    #[serde(default)]
    literal: bool,
    /// Only report what would change.
    #[serde(default)]
    dry_run: bool,
    /// Also change hidden files and files that .gitignore names.
    #[serde(default)]
    include_ignored: bool,
}

/// One pattern or several.
#[tool_type]
#[derive(Clone)]
#[serde(untagged)]
enum FileGlobs {
    One(String),
    Several(Vec<String>),
}

/// The result of a search.
struct ReplaceSearchResult {
    plan: EditPlan,
    searched: usize,
    too_large: usize,
    binary: usize,
    unreadable: Vec<String>,
    files: Vec<(String, ReplacementResult)>,
    /// The number of files and folders that rules deny.
    denied: u64,
    /// Files for which the user must be asked individually.
    protected: Vec<String>,
    /// The number of files that contain the expression as plain text, although it does not match.
    literally: usize,
}

impl Tool for FindAndReplace {
    type State = Editor;

    async fn call(self, cx: &Cx<Editor>) -> Result<Output> {
        let mended = recover_unfinished_changes(cx).await?;
        let found = self.find_replacements(cx).await?;
        let matches: usize = found.files.iter().map(|(_, replaced)| replaced.matches).sum();
        let lines: usize = found.files.iter().map(|(_, replaced)| replaced.lines).sum();
        let mut result = json_object!({
            "success": true,
            "pattern": self.pattern,
            "replacement": self.replacement,
            "paths_pattern": self.file_globs().join(", "),
            "dry_run": self.dry_run,
            "total_matches": matches,
            "lines_matched": lines,
            "files_affected": found.files.len(),
            "files_searched": found.searched,
        });
        for (key, count) in [("files_too_large", found.too_large), ("files_binary", found.binary)] {
            if count > 0 {
                result.insert(key.to_owned(), count.into());
            }
        }
        if !found.unreadable.is_empty() {
            let told = &found.unreadable[..found.unreadable.len().min(UNREADABLE_TOLD_MAX)];
            result.insert("files_unreadable".to_owned(), json!(told));
        }
        found.add_left_out_notes(&mut result);
        if matches == 0 && found.literally > 0 {
            let hint = format!(
                "the expression matches nothing, but {} files contain it as plain text: use \
                 `literal` to replace that",
                found.literally
            );
            result.insert("hint".to_owned(), hint.into());
        }
        if !found.has_files() {
            result.insert("hint".to_owned(), "no file matches `paths`".into());
        }
        let by_file: Vec<Value> =
            found.files.iter().take(FILES_TOLD_MAX).map(file_result_json).collect();
        if !by_file.is_empty() {
            result.insert("matches_by_file".to_owned(), by_file.into());
        }
        let is_cut = found.files.iter().any(|(_, replaced)| replaced.lines > replaced.shown.len());
        if is_cut || found.files.len() > FILES_TOLD_MAX {
            result.insert("preview_truncated".to_owned(), true.into());
        }
        if !self.dry_run && !found.files.is_empty() {
            apply_plan(cx, ChangeOrigin { tool: "findAndReplace", undoes: None }, found.plan)
                .await?;
        }
        // The matches already show the changes.
        Ok(change_output(result, &[], mended))
    }

    async fn preview(self, cx: &Cx<Editor>) -> Result<Preview> {
        let found = match self.find_replacements(cx).await {
            Ok(found) => found,
            Err(error) => return super::refusal_preview(error),
        };
        let matches: usize = found.files.iter().map(|(_, replaced)| replaced.matches).sum();
        let files = found.files.len();
        let verb = if self.dry_run { "Find (nothing is changed)" } else { "Find and replace" };
        let said = |changes: &[FileChange]| {
            format!("{verb}: {matches} matches in {files} files {}", format_line_counts(changes))
        };
        preview_plan(cx, Ok(found.plan), said).await
    }
}

tool!(FindAndReplace);

impl ReplaceSearchResult {
    /// Returns true if a pattern matched a file, even if it was not searched.
    fn has_files(&self) -> bool {
        let left_out = self.too_large + self.binary + self.unreadable.len() + self.protected.len();
        self.searched + left_out > 0 || self.denied > 0
    }

    /// Reports files that the user's rules left out, and how to change them.
    fn add_left_out_notes(&self, result: &mut Map<String, Value>) {
        if self.denied > 0 {
            result.insert("left_out_denied".to_owned(), self.denied.into());
        }
        if !self.protected.is_empty() {
            let told = &self.protected[..self.protected.len().min(PROTECTED_TOLD_MAX)];
            result.insert("left_out_protected".to_owned(), json!(told));
            let hint =
                "use a separate call for each protected file, so that jaato can ask the user";
            result.insert("left_out_hint".to_owned(), hint.into());
        }
    }
}

impl FindAndReplace {
    async fn find_replacements(&self, cx: &Cx<Editor>) -> Result<ReplaceSearchResult> {
        let pattern = require_argument("pattern", &self.pattern)?;
        let replacer = match self.literal {
            true => RegexReplacer::from_literal(pattern, &self.replacement),
            false => RegexReplacer::new(pattern, &self.replacement),
        };
        let replacer = replacer.map_err(|text| {
            let error = Error::new(ErrorKind::InvalidArguments, text);
            if self.literal { error } else { error.with_hint("`literal` takes both as plain text") }
        })?;
        let replacer = Arc::new(replacer);
        let folder = cx.state().editor_context(cx).await?.folder.clone();
        let plan = EditPlan::new(&folder);
        let mut found = ReplaceSearchResult {
            plan,
            searched: 0,
            too_large: 0,
            binary: 0,
            unreadable: Vec::new(),
            files: Vec::new(),
            denied: 0,
            protected: Vec::new(),
            literally: 0,
        };
        let mut files = BTreeSet::new();
        for paths in self.file_globs() {
            let paths = require_argument("paths", paths)?;
            files.extend(self.list_files(cx, paths, &folder, &mut found).await?);
        }
        for path in files {
            match self.search_file(cx, &replacer, (&folder, &path), &mut found).await {
                Ok(()) => {}
                // The file was deleted in the meantime.
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(error) if matches!(error.kind, ErrorKind::Io | ErrorKind::PermissionDenied) => {
                    found.unreadable.push(error.message);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn file_globs(&self) -> Vec<&str> {
        match &self.paths {
            FileGlobs::One(glob) => vec![glob],
            FileGlobs::Several(globs) => globs.iter().map(String::as_str).collect(),
        }
    }

    /// Returns the expression as plain text, if that differs from its meaning as an expression.
    fn literal_pattern(&self) -> Option<String> {
        let has_signs =
            self.pattern.contains(['(', ')', '[', '{', '.', '*', '+', '?', '|', '^', '$']);
        (!self.literal && has_signs).then(|| self.pattern.clone())
    }

    /// Lists the files to search.
    async fn list_files(
        &self,
        cx: &Cx<Editor>,
        paths: &str,
        folder: &str,
        found: &mut ReplaceSearchResult,
    ) -> Result<Vec<String>> {
        let below = paths.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        let mut leave_out = LEFT_OUT.map(str::to_owned).to_vec();
        let mut made = MADE.map(str::to_owned).to_vec();
        if self.include_ignored {
            leave_out.append(&mut made);
        }
        let find = FileFind {
            pattern: below.unwrap_or(paths).to_owned(),
            include_ignored: self.include_ignored,
            include_hidden: self.include_ignored,
            leave_out,
            leave_out_unless_git: made,
            order: FileOrder::Path,
            limit: Some(FIND_FILES_MAX),
            ..FileFind::default()
        };
        let (mut pages, mut files) = (cx.files().find(find).await?, Vec::new());
        let (mut count, mut denied, mut left_out) = (0, 0, 0);
        while let Some(page) = pages.next().await? {
            count = page.count;
            denied = page.left_out.denied;
            found.unreadable.extend(page.unreadable);
            for file in page.files {
                left_out += usize::from(file.protected || file.size > CHANGED_BYTES_MAX);
                if file.protected {
                    found.protected.push(file.path);
                } else if file.size > CHANGED_BYTES_MAX {
                    found.too_large += 1;
                } else {
                    files.push(file.path);
                }
            }
        }
        found.denied += denied;
        if count <= (files.len() + left_out) as u64 {
            return Ok(files);
        }
        let text = format!(
            "`{paths}` matches {count} files, but at most {FIND_FILES_MAX} can be searched"
        );
        Err(Error::new(ErrorKind::LimitReached, text)
            .with_hint("use a narrower pattern, for example for one folder"))
    }

    async fn search_file(
        &self,
        cx: &Cx<Editor>,
        replacer: &Arc<RegexReplacer>,
        (folder, path): (&str, &str),
        found: &mut ReplaceSearchResult,
    ) -> Result<()> {
        let Some(snapshot) = read_snapshot(cx, path).await? else {
            // Any other file was deleted in the meantime.
            if path.contains(char::REPLACEMENT_CHARACTER) {
                found.unreadable.push(format!("cannot read `{path}`: its name is not UTF-8"));
            }
            return Ok(());
        };
        let (replacer, literal) = (Arc::clone(replacer), self.literal_pattern());
        let work = move |_: &Reporter| {
            let made = replace_in_file(&replacer, &snapshot, literal.as_deref());
            (snapshot, made)
        };
        let (snapshot, replaced) = cx.blocking(work).await?;
        let (replaced, bytes) = match replaced {
            FileReplaceOutcome::NoText => {
                found.binary += 1;
                return Ok(());
            }
            FileReplaceOutcome::Nothing { has_it_literally } => {
                found.searched += 1;
                found.literally += usize::from(has_it_literally);
                return Ok(());
            }
            FileReplaceOutcome::Refused(why) => return Err(unencodable_error(path, &why)),
            FileReplaceOutcome::Replaced(replaced, bytes) => (replaced, bytes),
        };
        let target = resolve_links(cx, &absolute_path(folder, path)).await;
        if found.plan.file_number(&target).is_some() {
            // The file was found under another path.
            return Ok(());
        }
        found.searched += 1;
        let number = found.plan.add_file(path, target, Some(snapshot))?;
        found.plan.plan_write(number, bytes)?;
        found.files.push((path.to_owned(), replaced));
        Ok(())
    }
}

/// The result of a replacement in one file.
enum FileReplaceOutcome {
    /// The file is not text.
    NoText,
    /// Nothing matches.
    Nothing {
        /// Whether the file contains the expression as plain text.
        has_it_literally: bool,
    },
    /// The encoding lacks a character of the replacement, as described.
    Refused(String),
    /// The replacement, and the new bytes of the file.
    Replaced(ReplacementResult, Vec<u8>),
}

fn replace_in_file(
    replacer: &RegexReplacer,
    snapshot: &FileSnapshot,
    literal: Option<&str>,
) -> FileReplaceOutcome {
    let Ok(decoded) = decode_bytes(&snapshot.bytes) else { return FileReplaceOutcome::NoText };
    let Some(mut replaced) = replacer.replace_all(&decoded.text) else {
        let has_it_literally = literal.is_some_and(|text| decoded.text.contains(text));
        return FileReplaceOutcome::Nothing { has_it_literally };
    };
    let text = std::mem::take(&mut replaced.text);
    match decoded.charset.encode_text(text.into()) {
        Ok(bytes) => FileReplaceOutcome::Replaced(replaced, bytes),
        Err(lacking) => {
            let name = decoded.charset.encoding_note().unwrap_or_default();
            FileReplaceOutcome::Refused(format!("is encoded as {name}, which has no '{lacking}'"))
        }
    }
}

fn unencodable_error(path: &str, why: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, format!("{path} {why}"))
}

fn file_result_json((path, replaced): &(String, ReplacementResult)) -> Value {
    let shown: Vec<Value> = replaced
        .shown
        .iter()
        .map(|shown| json!({ "line": shown.line, "before": shown.before, "after": shown.after }))
        .collect();
    json!({ "path": path, "match_count": replaced.matches, "preview": shown })
}

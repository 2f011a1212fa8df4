//! Finds the sessions that other programs keep in a user's home folder.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::claude_code::record_title;
use super::claude_message::shown_prompt;
use super::json_line::{JsonLines, JsonObject, SourceLine, object_field, text_field};
use super::{ImportSource, goose, short_title};

/// The most lines of a file that are read for its title and workspace.
const HEAD_LINES_MAX: usize = 60;

/// The most files of a program that are listed.
const FILES_MAX: usize = 10_000;

/// The deepest folder: Codex has one per year, month and day.
const DEPTH_MAX: usize = 4;

/// A session of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSession {
    /// The program.
    pub source: ImportSource,
    /// The session's id there.
    pub id: String,
    /// Its file. goose keeps all sessions in one.
    pub path: PathBuf,
    /// Its folder, as text. Empty if unknown.
    pub workspace: String,
    /// When it changed last, in milliseconds since 1970.
    pub changed_ms: i64,
    /// Its name or its first prompt, on one line. Empty if unknown.
    pub title: String,
}

/// Finds the sessions of a program, the newest first. `variable` returns an environment variable,
/// because each program lets the user move its folder. jaato's own exports have no known folder, so
/// there are none for [`ImportSource::Jaato`]. Files that cannot be read are missing.
pub fn find_sessions(
    source: ImportSource,
    home: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<FoundSession> {
    let places = SourceFolders { home, variable };
    let mut found = match source {
        ImportSource::Jaato => Vec::new(),
        ImportSource::ClaudeCode => sessions_in_folders(source, &[places.claude_code_folder()]),
        ImportSource::Codex => sessions_in_folders(source, &places.codex_folders()),
        ImportSource::Goose => {
            places.goose_folders().iter().flat_map(|it| sessions_in_goose_folder(it)).collect()
        }
        ImportSource::Pi => sessions_in_folders(source, &[places.pi_folder()]),
    };
    found.sort_by(|one, other| {
        (other.changed_ms, &other.path, &other.id).cmp(&(one.changed_ms, &one.path, &one.id))
    });
    found
}

/// The folders of the programs.
struct SourceFolders<'a> {
    home: &'a Path,
    variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl SourceFolders<'_> {
    /// Returns the folder that a variable names. `~` is the home folder.
    fn folder_from_variable(&self, name: &str) -> Option<PathBuf> {
        let path = PathBuf::from((self.variable)(name).filter(|it| !it.is_empty())?);
        Some(match path.strip_prefix("~") {
            Ok(rest) => self.home.join(rest),
            Err(_) => path,
        })
    }

    fn claude_code_folder(&self) -> PathBuf {
        let folder = self
            .folder_from_variable("CLAUDE_CONFIG_DIR")
            .unwrap_or_else(|| self.home.join(".claude"));
        folder.join("projects")
    }

    fn codex_folders(&self) -> [PathBuf; 2] {
        let folder =
            self.folder_from_variable("CODEX_HOME").unwrap_or_else(|| self.home.join(".codex"));
        [folder.join("sessions"), folder.join("archived_sessions")]
    }

    fn pi_folder(&self) -> PathBuf {
        let agent =
            || self.folder_from_variable("PI_CODING_AGENT_DIR").map(|it| it.join("sessions"));
        let sessions = self.folder_from_variable("PI_CODING_AGENT_SESSION_DIR").or_else(agent);
        sessions.unwrap_or_else(|| self.home.join(".pi/agent/sessions"))
    }

    fn goose_folders(&self) -> Vec<PathBuf> {
        if let Some(root) = self.folder_from_variable("GOOSE_PATH_ROOT") {
            return vec![root.join("data/sessions")];
        }
        let data = self
            .folder_from_variable("XDG_DATA_HOME")
            .unwrap_or_else(|| self.home.join(".local/share"));
        let mut folders = vec![data.join("goose/sessions")];
        // Windows, and older versions on macOS.
        let windows =
            self.folder_from_variable("APPDATA").map(|it| it.join("Block/goose/data/sessions"));
        folders.extend(windows);
        folders
    }
}

fn sessions_in_folders(source: ImportSource, folders: &[PathBuf]) -> Vec<FoundSession> {
    let mut files = Vec::new();
    for folder in folders {
        list_files(folder, DEPTH_MAX, &mut files);
    }
    files.iter().filter_map(|path| describe_session(source, path)).collect()
}

/// Lists files of JSON lines. Links to folders are not followed, because they could form a circle.
fn list_files(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        if files.len() >= FILES_MAX {
            return;
        }
        let (path, name) = (entry.path(), entry.file_name());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        // Files of a session in Claude Code, which are no sessions.
        let is_session_folder = name != "subagents" && name != "tool-results";
        if is_folder && depth > 0 && is_session_folder {
            list_files(&path, depth - 1, files);
        } else if !is_folder && path.extension().is_some_and(|it| it == "jsonl") {
            files.push(path);
        }
    }
}

/// The facts from the first lines of a session.
#[derive(Default)]
struct SessionHead {
    id: String,
    workspace: String,
    title: String,
    prompt: String,
    has_records: bool,
}

fn describe_session(source: ImportSource, path: &Path) -> Option<FoundSession> {
    let changed_ms = changed_ms(path)?;
    let mut lines = JsonLines::open(path).ok()?;
    let mut head = SessionHead::default();
    for _ in 0..HEAD_LINES_MAX {
        match lines.next_line().ok()? {
            Some((_, SourceLine::Object(record))) => head.add_record(source, &record),
            Some((_, SourceLine::Damaged)) => {}
            None => break,
        }
        if head.is_complete() {
            break;
        }
    }
    if !head.has_records {
        return None;
    }
    let SessionHead { mut id, workspace, title, prompt, .. } = head;
    if id.is_empty() {
        path.file_stem()?.to_str()?.clone_into(&mut id);
    }
    let title = short_title(if title.is_empty() { &prompt } else { &title });
    Some(FoundSession { source, id, path: path.to_owned(), workspace, changed_ms, title })
}

fn changed_ms(path: &Path) -> Option<i64> {
    let changed = fs::metadata(path).ok()?.modified().ok()?;
    let since = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).ok()
}

impl SessionHead {
    fn is_complete(&self) -> bool {
        ![&self.id, &self.workspace, &self.prompt].iter().any(|it| it.is_empty())
    }

    fn add_record(&mut self, source: ImportSource, record: &JsonObject) {
        let (id, workspace, prompt) = match source {
            ImportSource::ClaudeCode => self.claude_code_facts(record),
            ImportSource::Codex => self.codex_facts(record),
            ImportSource::Pi => self.pi_facts(record),
            ImportSource::Jaato | ImportSource::Goose => return,
        };
        for (field, value) in
            [(&mut self.id, id), (&mut self.workspace, workspace), (&mut self.prompt, prompt)]
        {
            if field.is_empty() {
                *field = value;
            }
        }
    }

    fn claude_code_facts(&mut self, record: &JsonObject) -> (String, String, String) {
        if let Some((_, title)) = record_title(record) {
            title.clone_into(&mut self.title);
        }
        self.has_records |= record.contains_key("sessionId");
        let is_prompt = text_field(record, "type") == "user" && !record.contains_key("isMeta");
        let message = object_field(record, "message").filter(|_| is_prompt);
        let prompt = message.map(first_text).unwrap_or_default();
        let prompt = shown_prompt(&prompt).unwrap_or_default();
        (text_field(record, "sessionId").to_owned(), text_field(record, "cwd").to_owned(), prompt)
    }

    fn codex_facts(&mut self, record: &JsonObject) -> (String, String, String) {
        let payload = object_field(record, "payload").unwrap_or(record);
        let kind = text_field(record, "type");
        if kind == "session_meta" || kind.is_empty() {
            self.has_records |= payload.contains_key("id");
            let (id, workspace) = (text_field(payload, "id"), text_field(payload, "cwd"));
            return (id.to_owned(), workspace.to_owned(), String::new());
        }
        let is_prompt = text_field(payload, "role") == "user";
        let prompt = if is_prompt { first_text(payload) } else { String::new() };
        // Texts that Codex adds in the user's name begin with a tag or a title.
        let is_added = prompt.starts_with('<') || prompt.starts_with("# AGENTS.md");
        let prompt = if is_added { String::new() } else { prompt };
        (String::new(), String::new(), prompt)
    }

    fn pi_facts(&mut self, record: &JsonObject) -> (String, String, String) {
        match text_field(record, "type") {
            "session" => {
                self.has_records = true;
                let (id, workspace) = (text_field(record, "id"), text_field(record, "cwd"));
                return (id.to_owned(), workspace.to_owned(), String::new());
            }
            "session_info" => text_field(record, "name").clone_into(&mut self.title),
            _ => {}
        }
        let message = object_field(record, "message").filter(|it| text_field(it, "role") == "user");
        (String::new(), String::new(), message.map(first_text).unwrap_or_default())
    }
}

/// Returns the first text of a message's content.
fn first_text(message: &JsonObject) -> String {
    let content = message.get("content");
    if let Some(text) = content.and_then(|it| it.as_str()) {
        return text.to_owned();
    }
    let blocks = content.and_then(|it| it.as_array()).into_iter().flatten();
    let mut texts = blocks.filter_map(|block| block.get("text")?.as_str());
    texts.next().unwrap_or_default().to_owned()
}

fn sessions_in_goose_folder(folder: &Path) -> Vec<FoundSession> {
    let source = ImportSource::Goose;
    let path = folder.join("sessions.db");
    let sessions = goose::list_sessions(&path).unwrap_or_default();
    let mut found: Vec<FoundSession> = sessions
        .into_iter()
        .map(|session| FoundSession {
            source,
            id: session.id,
            path: path.clone(),
            workspace: session.workspace,
            changed_ms: session.changed_ms,
            title: short_title(&session.name),
        })
        .collect();
    let mut files = Vec::new();
    list_files(folder, 0, &mut files);
    found.extend(files.iter().filter_map(|path| describe_goose_file(path)));
    found
}

/// Describes a file of a version before 1.10.
fn describe_goose_file(path: &Path) -> Option<FoundSession> {
    let changed_ms = changed_ms(path)?;
    let Some((_, SourceLine::Object(first))) = JsonLines::open(path).ok()?.next_line().ok()? else {
        return None;
    };
    let workspace = first.get("working_dir")?.as_str()?.to_owned();
    let id = path.file_stem()?.to_str()?.to_owned();
    let (source, path) = (ImportSource::Goose, path.to_owned());
    let title = short_title(text_field(&first, "description"));
    Some(FoundSession { source, id, path, workspace, changed_ms, title })
}

//! Imports of files that the real programs wrote, and of bad ones.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jaato_sessions::{
    IMPORT_BYTES_MAX, ImportError, ImportSource, ImportedSession, detect_source, find_sessions,
    import_file, to_json_lines,
};
use jaato_types::Role;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::history_rules::assert_history;
use crate::sample::sample_transcript;

/// A line per message: its role, its model, its state, and its parts.
pub fn session_outline(session: &ImportedSession) -> Vec<String> {
    use jaato_types::Part;
    let part = |part: &Part| match part {
        Part::Text { text, .. } => text.clone(),
        Part::Thought { text, .. } => format!("({text})"),
        Part::ToolCall(call) => format!("{} {} {}", call.id, call.name, call.arguments),
        Part::ToolResult(result) => {
            let state = if result.is_error { "error" } else { "ok" };
            format!(
                "{} {state} {}",
                result.call_id,
                serde_json::to_string(&result.content).unwrap()
            )
        }
        other => format!("{other:?}"),
    };
    let messages = session.transcript.messages.iter();
    messages
        .map(|it| {
            let parts: Vec<String> = it.message.parts.iter().map(part).collect();
            let role = match it.message.role {
                Role::User => "user",
                Role::Model => "model",
                Role::Tool => "tool",
                Role::Unknown => "unknown",
            };
            let note = it.note.as_deref().map(|note| format!(" [{note}]")).unwrap_or_default();
            format!("{role}{note}: {}", parts.join(" | "))
        })
        .collect()
}

/// Imports a file, and checks that the source's folder stays as it is.
#[track_caller]
pub fn import_or_panic(source: ImportSource, path: &Path) -> ImportedSession {
    let before = folder_snapshot(path.parent().unwrap());
    let session = import_file(source, path, None).unwrap();
    assert_eq!(folder_snapshot(path.parent().unwrap()), before);
    assert_history(&session.transcript.messages);
    for note in &session.notes {
        assert!(note.ends_with('.') && note.starts_with(|it: char| !it.is_lowercase()), "{note}");
    }
    // An imported session is a transcript like any other.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.jsonl");
    fs::write(&copy, to_json_lines(&session.transcript)).unwrap();
    let again = import_file(ImportSource::Jaato, &copy, None).unwrap();
    assert_eq!(again.transcript, session.transcript);
    session
}

/// The files of a folder, with their contents and times.
fn folder_snapshot(folder: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files
        .map(|path| {
            let changed = fs::metadata(&path).unwrap().modified().unwrap();
            // The file of shared memory belongs to the writer, which may be open.
            let content = fs::read(&path).unwrap();
            (path, (changed, content))
        })
        .collect()
}

pub fn fixture_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Writes a file into a new folder.
pub fn write_file(name: &str, content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    (folder, path)
}

/// Creates goose's database from the fixture.
pub fn goose_database(path: &Path, mode: &str) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", mode).unwrap();
    // The dump has the tables in the order of their names.
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    connection
        .execute_batch(&fs::read_to_string(fixture_path("goose-1.50.0.sql")).unwrap())
        .unwrap();
    connection
}

const READ: &str = "Read notes.txt and tell me what it says.";

#[test]
fn session_of_claude_code_is_imported() {
    let session =
        import_or_panic(ImportSource::ClaudeCode, &fixture_path("claude-code-2.1.332.jsonl"));
    assert_eq!(
        session_outline(&session),
        [
            &format!("user: {READ}"),
            "model: (I should read the file first.) | I read the notes. | toolu_011795876665380 Bash \
             {\"command\":\"cat notes.txt\",\"description\":\"Read the notes\"}",
            "tool: toolu_011795876665380 ok {\"output\":\"hello\"}",
            "model: The notes say **hello**.",
        ]
    );
    let transcript = &session.transcript;
    assert_eq!(transcript.id.as_str(), "4a295345-49fd-4671-94a3-d3697b8e5201");
    assert_eq!(transcript.name, READ);
    assert_eq!(transcript.workspace, "/home/user/project");
    assert_eq!(transcript.begun_ms, 1_795_876_665_332);
    assert_eq!(transcript.messages[1].model.as_deref(), Some("anthropic/claude-sonnet-4-5"));
    assert_eq!(transcript.messages[2].at_ms, 1_795_876_665_432);
    assert_eq!(
        session.notes,
        [
            "1 signature was left out, because only the provider of the model can use such data.",
            "12 texts that the program added for the model were left out.",
        ]
    );
}

#[test]
fn compacted_session_of_claude_code_keeps_both_results_of_parallel_calls() {
    let path = fixture_path("claude-code-2.1.332-compacted.jsonl");
    let session = import_or_panic(ImportSource::ClaudeCode, &path);
    let outline = session_outline(&session);
    assert_eq!(outline.len(), 8, "{outline:#?}");
    assert!(outline[..4].iter().all(|it| it.contains("[collected]")), "{outline:#?}");
    assert_eq!(
        outline[2],
        "tool [collected]: toolu_011795876841509 ok {\"output\":\"hello\"} | toolu_021795876841509 ok \
         {\"output\":\"notes.txt\"}"
    );
    assert!(outline[4].starts_with("user: This session is being continued from a previous"));
    assert!(outline[4].ends_with("| And now?"));
    assert_eq!(session.notes.len(), 3, "{:?}", session.notes);
    assert_eq!(session.notes[2], "1 command that the program ran without the model was left out.");
}

#[test]
fn session_of_codex_is_imported_from_one_of_its_two_logs() {
    let session = import_or_panic(ImportSource::Codex, &fixture_path("codex-0.171.0.jsonl"));
    let outline = session_outline(&session);
    assert_eq!(outline.len(), 8, "{outline:#?}");
    assert_eq!(outline[0], format!("user: {READ}"));
    assert_eq!(
        outline[1],
        "model: (I should read the file first.) | I read the notes. | call_1665725 exec_command \
         {\"cmd\":\"cat notes.txt\"}"
    );
    assert!(outline[2].starts_with("tool: call_1665725 ok {\"output\":\"Chunk ID: 07a121"));
    assert!(outline[2].ends_with("Output:\\nhello\\n\"}"));
    assert_eq!(outline[3], "model: The notes say **hello**.");
    assert_eq!(outline[4], "user: Again, please.");
    let transcript = &session.transcript;
    assert_eq!(transcript.messages[1].model.as_deref(), Some("local/gpt-5"));
    assert_eq!(transcript.workspace, "/home/user/project");
    assert_eq!(
        session.notes,
        [
            "2 pieces of encrypted reasoning were left out, because only the provider of the model \
             can read such data.",
            "1 text that the program added for the model was left out.",
            "1 system prompt was left out.",
        ]
    );
}

#[test]
fn session_of_pi_is_imported() {
    let session = import_or_panic(ImportSource::Pi, &fixture_path("pi-1.6.0.jsonl"));
    assert_eq!(
        session_outline(&session),
        [
            &format!("user: {READ}"),
            "model: (I should read the file first.) | I read the notes. | toolu_011795876666505 bash \
             {\"command\":\"cat notes.txt\",\"description\":\"Read the notes\"}",
            "tool: toolu_011795876666505 ok {\"output\":\"hello\\n\"}",
            "model: The notes say **hello**.",
        ]
    );
    assert_eq!(session.transcript.messages[1].model.as_deref(), Some("local/scripted"));
    assert_eq!(session.notes.len(), 2, "{:?}", session.notes);
}

#[test]
fn session_of_goose_is_imported_from_its_database_and_its_export() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a#b%20?.db");
    drop(goose_database(&path, "delete"));
    let session = import_or_panic(ImportSource::Goose, &path);
    assert_eq!(
        session_outline(&session),
        [
            &format!("user: {READ}"),
            "model: (I should read the file first.) | call_1795876666098 shell \
             {\"command\":\"cat notes.txt\"}",
            "tool: call_1795876666098 ok {\"output\":\"hello\"}",
            "model: The notes say **hello**.",
        ]
    );
    assert_eq!(session.transcript.name, "Read the notes");
    assert_eq!(session.transcript.messages[1].model.as_deref(), Some("openai/gpt-4o"));
    assert_eq!(session.notes, ["1 text that the program added for the model was left out."]);
    assert_eq!(
        import_or_panic(ImportSource::Goose, &fixture_path("goose-1.50.0-export.json")),
        session
    );
}

#[test]
fn database_with_an_open_writer_is_read_with_its_log_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let writer = goose_database(&path, "wal");
    assert!(fs::metadata(folder.path().join("sessions.db-wal")).unwrap().len() > 0);
    assert_eq!(import_or_panic(ImportSource::Goose, &path).transcript.messages.len(), 4);
    assert_eq!(detect_source(&path), Some(ImportSource::Goose));
    // The log of a writer that was killed.
    let killed = tempfile::tempdir().unwrap();
    for name in ["sessions.db", "sessions.db-wal"] {
        fs::copy(folder.path().join(name), killed.path().join(name)).unwrap();
    }
    drop(writer);
    assert_eq!(
        import_or_panic(ImportSource::Goose, &killed.path().join("sessions.db"))
            .transcript
            .messages
            .len(),
        4
    );
    assert_eq!(fs::read_dir(killed.path()).unwrap().count(), 2);
}

#[test]
fn one_of_several_sessions_is_chosen_by_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let database = goose_database(&path, "delete");
    let copy = "INSERT INTO sessions (id, name, session_type, working_dir, updated_at)
        VALUES ('20261129_1', 'Other', 'user', '/w', '2026-11-29 00:00:00'),
               ('20261129_2', 'Inner', 'sub_agent', '/w', '2026-11-30 00:00:00')";
    database.execute_batch(copy).unwrap();
    drop(database);
    let refused = import_file(ImportSource::Goose, &path, None).unwrap_err().to_string();
    assert!(
        refused.ends_with("has 2 sessions, name one by its id, for example `20261129_1`"),
        "{refused}"
    );
    let chosen = import_file(ImportSource::Goose, &path, Some("20261128_1")).unwrap();
    assert_eq!(chosen.transcript.messages.len(), 4);
    let missing = import_file(ImportSource::Goose, &path, Some("x")).unwrap_err();
    assert!(matches!(missing, ImportError::UnknownSession { .. }));
    let empty = import_file(ImportSource::Goose, &path, Some("20261129_1")).unwrap_err();
    assert!(matches!(empty, ImportError::NoMessages(_)));
}

#[test]
fn program_is_detected_from_the_content() {
    for (name, source) in [
        ("claude-code-2.1.332.jsonl", Some(ImportSource::ClaudeCode)),
        ("claude-code-2.1.332-compacted.jsonl", Some(ImportSource::ClaudeCode)),
        ("codex-0.171.0.jsonl", Some(ImportSource::Codex)),
        ("pi-1.6.0.jsonl", Some(ImportSource::Pi)),
        ("goose-1.50.0-export.json", Some(ImportSource::Goose)),
        ("goose-1.50.0.sql", None),
        ("README.md", None),
        ("missing", None),
        (".", None),
    ] {
        assert_eq!(detect_source(&fixture_path(name)), source, "{name}");
    }
    let (_folder, path) = write_file("a", to_json_lines(&sample_transcript()));
    assert_eq!(detect_source(&path), Some(ImportSource::Jaato));
    for other in ["", "{}", "[1]", "{\"a\":1}\n{\"type\":\"user\"}", "SQLite format 3\0"] {
        let (_folder, path) = write_file("a", other);
        assert_eq!(detect_source(&path), None, "{other}");
    }
}

#[test]
fn bad_files_are_errors_that_name_the_problem() {
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("{}\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for source in ImportSource::ALL {
        let is_goose = source == ImportSource::Goose;
        let problem = |content: &[u8]| {
            let (_folder, path) = write_file("a.jsonl", content);
            let text = import_file(source, &path, None).unwrap_err().to_string();
            text.replace(&format!("`{}`", path.display()), "FILE")
        };
        let other = format!("FILE is not a session of `{source}`");
        assert_eq!(problem(b""), "FILE is empty");
        assert_eq!(problem(b"\n\n"), other);
        assert_eq!(problem(b"not json\n{\"a\":"), other);
        assert_eq!(problem(b"{\"type\":\"other\"}\n[]\n7\n"), other);
        assert_eq!(
            problem(b"\xff\xfe\x00"),
            "FILE is UTF-16, and a session is UTF-8; convert the file first"
        );
        assert_eq!(
            problem(&utf16),
            "FILE is UTF-16, and a session is UTF-8; convert the file first"
        );
        let database = problem(b"SQLite format 3\0 and then nothing");
        assert!(if is_goose {
            database.starts_with("cannot read the database")
        } else {
            database == other
        });
        let folder = tempfile::tempdir().unwrap();
        let refused = import_file(source, folder.path(), None).unwrap_err();
        assert!(matches!(refused, ImportError::NotAFile(_)), "{refused}");
        let missing = import_file(source, &folder.path().join("missing"), None).unwrap_err();
        assert!(missing.to_string().starts_with("cannot read `"), "{missing}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let huge = folder.path().join("huge");
        File::create(&huge).unwrap().set_len(IMPORT_BYTES_MAX + 1).unwrap();
        let refused = import_file(source, &huge, None).unwrap_err();
        assert!(matches!(refused, ImportError::TooLarge { .. }), "{refused}");
        assert_eq!(detect_source(&huge), None);
    }
}

#[test]
fn no_cut_or_change_of_a_file_is_a_panic() {
    for (name, source) in [
        ("claude-code-2.1.332.jsonl", ImportSource::ClaudeCode),
        ("codex-0.171.0.jsonl", ImportSource::Codex),
        ("pi-1.6.0.jsonl", ImportSource::Pi),
        ("goose-1.50.0-export.json", ImportSource::Goose),
    ] {
        let whole = fs::read(fixture_path(name)).unwrap();
        let (_folder, path) = write_file("a", b"");
        for at in (0..whole.len()).step_by(whole.len() / 60) {
            let mut changed = whole.clone();
            changed[at] ^= 0xa0;
            for content in [&whole[..at], &changed] {
                fs::write(&path, content).unwrap();
                if let Ok(session) = import_file(source, &path, None) {
                    assert_history(&session.transcript.messages);
                }
            }
        }
        let lines: Vec<&[u8]> = whole.split_inclusive(|it| *it == b'\n').collect();
        for missing in 0..lines.len() {
            let rest = [&lines[..missing], &lines[missing + 1..]].concat().concat();
            for rest in [rest.clone(), [&rest[..], &whole[..]].concat()] {
                fs::write(&path, rest).unwrap();
                if let Ok(session) = import_file(source, &path, None) {
                    assert_history(&session.transcript.messages);
                }
            }
        }
    }
}

#[test]
fn sessions_are_found_in_the_folders_of_the_programs() {
    let home = tempfile::tempdir().unwrap();
    let place = |path: &str, name: &str| {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(fixture_path(name), path).unwrap();
    };
    place(".claude/projects/-home-user-project/a.jsonl", "claude-code-2.1.332.jsonl");
    place(
        ".claude/projects/-home-user-project/a/subagents/agent-1.jsonl",
        "claude-code-2.1.332.jsonl",
    );
    place(".codex/sessions/2026/11/28/rollout-a.jsonl", "codex-0.171.0.jsonl");
    place(".codex/sessions/2026/11/28/broken.jsonl", "README.md");
    place(".pi/agent/sessions/--home-user-project--/a.jsonl", "pi-1.6.0.jsonl");
    fs::create_dir_all(home.path().join(".local/share/goose/sessions")).unwrap();
    drop(goose_database(&home.path().join(".local/share/goose/sessions/sessions.db"), "delete"));
    for (source, id, title) in [
        (ImportSource::ClaudeCode, "4a295345-49fd-4671-94a3-d3697b8e5201", READ),
        (ImportSource::Codex, "01a22297-392d-7650-b387-0be0dcabeebd", READ),
        (ImportSource::Goose, "20261128_1", "Read the notes"),
        (ImportSource::Pi, "01a22297-3c32-7146-b083-3a3f48b5fd7e", READ),
    ] {
        let found = find_sessions(source, home.path(), &|_| None);
        assert_eq!(found.len(), 1, "{found:?}");
        let session = &found[0];
        assert_eq!((session.id.as_str(), session.title.as_str()), (id, title));
        assert_eq!(session.workspace, "/home/user/project");
        assert!(session.changed_ms > 1_700_000_000_000);
        let imported = import_file(source, &session.path, Some(&session.id)).unwrap();
        assert_eq!(imported.transcript.id.as_str(), id);
        assert_eq!(imported.transcript.name, title);
    }
    assert_eq!(find_sessions(ImportSource::Jaato, home.path(), &|_| None), []);
    let nowhere = home.path().join("nowhere");
    for source in ImportSource::ALL {
        assert_eq!(find_sessions(source, &nowhere, &|_| None), []);
    }
}

#[test]
fn found_session_is_named_as_the_user_typed_its_first_prompt() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".claude/projects/p");
    fs::create_dir_all(&folder).unwrap();
    let prompt = |text: &str| {
        let message = serde_json::json!({ "role": "user", "content": text });
        serde_json::json!({ "type": "user", "sessionId": "s", "cwd": "/w", "message": message })
    };
    let command = "<command-name>/review</command-name>\n<command-args>HEAD</command-args>";
    let records = [prompt("<local-command-stdout>x</local-command-stdout>"), prompt(command)];
    fs::write(folder.join("s.jsonl"), records.map(|it| format!("{it}\n")).concat()).unwrap();
    let found = find_sessions(ImportSource::ClaudeCode, home.path(), &|_| None);
    assert_eq!(found[0].title, "/review HEAD");
}

#[test]
fn environment_variables_change_where_sessions_are_found() {
    let home = tempfile::tempdir().unwrap();
    for (source, variable, folder, inner) in [
        (ImportSource::ClaudeCode, "CLAUDE_CONFIG_DIR", "claude", "projects/a/a.jsonl"),
        (ImportSource::Codex, "CODEX_HOME", "codex", "archived_sessions/a.jsonl"),
        (ImportSource::Pi, "PI_CODING_AGENT_DIR", "pi", "sessions/a/a.jsonl"),
        (ImportSource::Pi, "PI_CODING_AGENT_SESSION_DIR", "pi2", "a/a.jsonl"),
        (ImportSource::Goose, "XDG_DATA_HOME", "xdg", "goose/sessions/sessions.db"),
        (ImportSource::Goose, "GOOSE_PATH_ROOT", "root", "data/sessions/sessions.db"),
    ] {
        let path = home.path().join(folder).join(inner);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match source {
            ImportSource::Goose => drop(goose_database(&path, "delete")),
            ImportSource::ClaudeCode => {
                drop(fs::copy(fixture_path("claude-code-2.1.332.jsonl"), &path))
            }
            ImportSource::Codex => drop(fs::copy(fixture_path("codex-0.171.0.jsonl"), &path)),
            _ => drop(fs::copy(fixture_path("pi-1.6.0.jsonl"), &path)),
        }
        for value in [home.path().join(folder), Path::new("~").join(folder)] {
            let value = |name: &str| (name == variable).then(|| value.clone().into_os_string());
            let found = find_sessions(source, home.path(), &value);
            assert_eq!(found.len(), 1, "{variable}");
            assert_eq!(found[0].path, path);
        }
    }
}

#[test]
fn unknown_import_source_error_lists_the_known_sources() {
    for source in ImportSource::ALL {
        assert_eq!(source.to_string().parse::<ImportSource>().unwrap(), source);
    }
    assert_eq!(
        "cursor".parse::<ImportSource>().unwrap_err().to_string(),
        "unknown source `cursor`, expected `jaato`, `claude-code`, `codex`, `goose`, `pi`"
    );
}

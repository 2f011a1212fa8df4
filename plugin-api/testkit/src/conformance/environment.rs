//! Checks of execution environments. Parts that an environment lacks (files, commands) are not
//! checked.
//!
//! Each check sets the environment up over the host's folder, and takes it down. Under
//! `jaato plugin check`, an environment that lacks configuration or a dependency is only required
//! to say so.

mod commands;
mod files;
mod limits;
mod searches;
mod terminals;

use std::path::Path;

use jaato_types::execution::{DESCRIBE, EnvironmentFacts, EnvironmentSetup, SETUP, TEARDOWN};
use jaato_types::files::{
    DELETE, FileFacts, FileKind, FileText, FolderEntries, LIST, READ_TEXT, STAT, WRITE,
};
use jaato_types::process::{
    END, FORGET, OUTPUT, ProcessOutput, ProcessStartAnswer, ProcessWaitAnswer, SPAWN, START, Spawn,
    WAIT,
};
use jaato_types::{Error, ErrorKind, Frame, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    ConformanceSuite, ConformanceVerdict, ExampleSelection, check_error_text, check_nothing_left,
    ensure, fuzz, prefix_error,
};
use crate::{FakeHost, FakeInstance};

pub use commands::{
    a_deadline_ends_a_command, commands_run, environment_deadline_is_kept,
    host_commands_are_prepared, running_command_can_be_ended,
};
pub use files::{
    edits_are_atomic, files_are_copied_and_moved, files_are_streamed_in_pieces,
    folder_trees_are_walked, texts_are_read_in_ranges,
};
pub use limits::{
    denied_files_are_unreachable, file_changed_after_its_check_is_refused,
    protected_files_are_not_changed, searches_skip_denied_files,
};
pub use searches::{files_are_found_with_their_facts, texts_are_searched};
pub use terminals::{
    a_terminal_is_ended, bad_requests_of_terminals_are_refused,
    processes_left_by_a_terminal_are_ended, terminals_have_size_and_input,
    terminals_signal_their_foreground,
};

/// An environment that is set up.
struct PreparedEnvironment<'a> {
    host: &'a FakeHost,
    instance: &'a FakeInstance,
    facts: EnvironmentFacts,
}

impl<'a> PreparedEnvironment<'a> {
    /// Sets the environment up. Returns `None` if the suite cannot provide what the environment
    /// needs, such as an image or a container engine, and the environment says so.
    fn set_up(
        suite: &ConformanceSuite,
        host: &'a FakeHost,
    ) -> std::result::Result<Option<Self>, String> {
        let instance = host.instance().map_err(prefix_error("an instance"))?;
        let folder =
            host.shared_state().services.temporary_folder().map_err(prefix_error("a folder"))?;
        let workspace = folder.to_string_lossy().into_owned();
        let id = format!("conformance-{}", std::process::id());
        let mut setup = EnvironmentSetup::default();
        (setup.id, setup.workspace) = (id, workspace);
        let lacks = [ErrorKind::Configuration, ErrorKind::Unavailable];
        match ask_environment(instance, SETUP, &setup) {
            Ok(facts) => Ok(Some(Self { host, instance, facts })),
            Err(error)
                if suite.examples == ExampleSelection::Harmless && lacks.contains(&error.kind) =>
            {
                check_error_text("its setup", &error).map(|()| None)
            }
            Err(error) => Err(prefix_error("its setup")(error)),
        }
    }

    fn ask_environment<T: DeserializeOwned>(&self, operation: &str, request: Value) -> Result<T> {
        ask_environment(self.instance, operation, &request)
    }

    /// Returns true if the environment has the operation.
    fn has_operation(&self, operation: &str, request: Value) -> bool {
        let asked: Result<Value> = self.ask_environment(operation, request);
        asked.err().is_none_or(|error| error.kind != ErrorKind::UnknownOperation)
    }

    fn shut_down(self, host: &FakeHost) -> ConformanceVerdict {
        let down: Result<Value> = self.ask_environment(TEARDOWN, Value::Null);
        down.map_err(prefix_error("its teardown"))?;
        let gone: Result<Value> = self.ask_environment(DESCRIBE, Value::Null);
        let is_gone = gone.is_err_and(|error| error.kind == ErrorKind::Unavailable);
        ensure(is_gone, || "it answers after its teardown".into())?;
        if let Some(folder) = self.facts.temporary_directory.filter(|_| self.facts.is_host) {
            ensure(!Path::new(&folder).exists(), || {
                format!("`{folder}` still exists after the teardown")
            })?;
        }
        host.settle().map_err(prefix_error("after its teardown"))
    }
}

fn ask_environment<T: DeserializeOwned>(
    instance: &FakeInstance,
    operation: &str,
    request: &impl Serialize,
) -> Result<T> {
    ask_with_bytes(instance, operation, request, &[])
}

fn ask_with_bytes<T: DeserializeOwned>(
    instance: &FakeInstance,
    operation: &str,
    request: &impl Serialize,
    bytes: &[u8],
) -> Result<T> {
    let answer = call_environment(instance, operation, request, bytes)?;
    Frame::read(&answer).map_err(frame_error)
}

fn call_environment(
    instance: &FakeInstance,
    operation: &str,
    request: &impl Serialize,
    bytes: &[u8],
) -> Result<Vec<u8>> {
    let frame = Frame::write_with_bytes(request, bytes).map_err(frame_error)?;
    instance.environment(operation, frame).wait().result
}

fn frame_error(error: jaato_types::FrameError) -> Error {
    Error::new(ErrorKind::PluginMisbehaved, error.to_string())
}

/// The description names the environment, and its facts are consistent.
pub fn environment_name_is_valid(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let description = host.description().map_err(prefix_error("description"))?;
    let spec = description.environment.as_ref().ok_or("no environment is described")?;
    let is_word = !spec.name.is_empty()
        && spec.name.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-');
    ensure(is_word, || format!("invalid name `{}`: use only a-z, 0-9 and `-`", spec.name))?;
    ensure(!spec.title.trim().is_empty(), || "it has no title".into())?;
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let facts: EnvironmentFacts =
        ready.ask_environment(DESCRIBE, Value::Null).map_err(prefix_error("its facts"))?;
    ensure(facts.name == spec.name, || format!("it calls itself `{}`", facts.name))?;
    ensure(facts.working_directory.starts_with('/'), || {
        format!("its working directory `{}` is not absolute", facts.working_directory)
    })?;
    ready.shut_down(host)
}

/// Nothing is answered before the setup, a second setup is refused, and after a teardown the
/// environment can be set up again.
pub fn environment_is_set_up_once(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    let early: Result<Value> = ask_environment(instance, DESCRIBE, &Value::Null);
    let is_refused = early.is_err_and(|error| error.kind == ErrorKind::Unavailable);
    ensure(is_refused, || "before its setup it does not answer `unavailable`".into())?;
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let again: Result<Value> = ask_environment(instance, SETUP, &EnvironmentSetup::default());
    let is_refused = again.is_err_and(|error| error.kind == ErrorKind::Conflict);
    ensure(is_refused, || "a second setup does not fail with `conflict`".into())?;
    ready.shut_down(host)?;
    match PreparedEnvironment::set_up(suite, host)? {
        Some(ready) => ready.shut_down(host),
        None => Err("it cannot be set up again".into()),
    }
}

/// Files can be written, listed, read and deleted.
pub fn written_files_are_read_back(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    if ready.has_operation(STAT, json!({ "path": "nothing" })) {
        let write = json!({ "path": "moon.txt" });
        let text = "halb\r\nvoll – 🌓\n";
        ask_with_bytes::<Value>(ready.instance, WRITE, &write, text.as_bytes())
            .map_err(prefix_error("writing a file"))?;
        let facts: FileFacts =
            ready.ask_environment(STAT, write.clone()).map_err(prefix_error("a look"))?;
        ensure(facts.kind == FileKind::File, || format!("it is {:?}", facts.kind))?;
        if ready.has_operation(READ_TEXT, write.clone()) {
            let read: FileText =
                ready.ask_environment(READ_TEXT, write.clone()).map_err(prefix_error("reading"))?;
            ensure(read.text == text, || format!("{text:?} is read as {:?}", read.text))?;
        }
        let listed: FolderEntries =
            ready.ask_environment(LIST, json!({ "path": "" })).map_err(prefix_error("listing"))?;
        let is_listed = listed.entries.iter().any(|entry| entry.name == "moon.txt");
        ensure(is_listed, || format!("it is not listed: {listed:?}"))?;
        ready.ask_environment::<Value>(DELETE, write.clone()).map_err(prefix_error("deleting"))?;
        ready.check_refused(STAT, write, ErrorKind::NotFound)?;
    }
    ready.shut_down(host)
}

/// Paths outside the allowed folders are refused, with a clear error that names these folders.
pub fn files_outside_are_refused(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    if ready.has_operation(STAT, json!({ "path": "nothing" })) {
        let up = "../".repeat(30);
        for path in ["../moon.txt", "/etc/passwd", &format!("{up}etc/passwd")] {
            let asked: Result<Value> = ready.ask_environment(STAT, json!({ "path": path }));
            let Err(error) = asked else {
                return Err(format!("`{path}` is outside the allowed folders but is not refused"));
            };
            check_error_text(path, &error)?;
            let is_refused = error.kind == ErrorKind::PermissionDenied;
            ensure(is_refused, || format!("`{path}`: {} ({})", error.message, error.kind.name()))?;
            let told = format!("{} {}", error.message, error.hint.unwrap_or_default());
            for allowed in &ready.facts.allowed_paths {
                let is_named = told.contains(&allowed.path);
                ensure(is_named, || format!("`{told}` does not name `{}`", allowed.path))?;
            }
        }
    }
    ready.shut_down(host)
}

/// A background program keeps its output and can be waited for.
pub fn programs_outlive_their_call(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    if has_shell(&ready) {
        let started: ProcessStartAnswer =
            ask_environment(ready.instance, START, &Spawn::shell("echo moon; exit 5"))
                .map_err(prefix_error("a program"))?;
        let named = json!({ "process": started.process });
        let waited: ProcessWaitAnswer =
            ready.ask_environment(WAIT, named.clone()).map_err(prefix_error("its exit"))?;
        ensure(waited.exit.and_then(|exit| exit.code) == Some(5), || {
            "its exit code is wrong or missing".into()
        })?;
        let frame = call_environment(ready.instance, OUTPUT, &named, &[])
            .map_err(prefix_error("its output"))?;
        let parsed = Frame::parse(&frame).map_err(|error| error.to_string())?;
        let facts: ProcessOutput = parsed.json().map_err(|error| error.to_string())?;
        ensure((facts.printed, parsed.bytes) == (5, b"moon\n"), || format!("{facts:?}"))?;
        ready
            .ask_environment::<Value>(FORGET, named.clone())
            .map_err(prefix_error("forgetting it"))?;
        let gone: Result<Value> = ready.ask_environment(WAIT, named);
        let is_gone = gone.is_err_and(|error| error.kind == ErrorKind::NotFound);
        ensure(is_gone, || "a program still exists after it was removed".into())?;
    }
    ready.shut_down(host)
}

/// A teardown ends everything that is open.
pub fn teardown_ends_running_programs(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    if has_shell(&ready) {
        for operation in [SPAWN, START] {
            let started: Result<Value> =
                ask_environment(ready.instance, operation, &Spawn::shell("sleep 300"));
            started.map_err(prefix_error("a program"))?;
        }
    }
    terminals::leave_terminal_open(&ready)?;
    ready.shut_down(host)?;
    drop(host.create(None));
    Ok(())
}

/// An unknown operation fails with an error that reports it.
pub fn unknown_environment_operations_are_refused(
    suite: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    for operation in ["environment.moon", "files.moon", "process.moon", "moon"] {
        let asked: Result<Value> = ready.ask_environment(operation, json!({}));
        let is_named = asked.is_err_and(|error| error.kind == ErrorKind::UnknownOperation);
        ensure(is_named, || format!("`{operation}` does not fail with `unknown_operation`"))?;
    }
    ready.shut_down(host)
}

/// A malformed frame is answered with an error.
pub fn bad_frames_are_refused(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let Some(ready) = PreparedEnvironment::set_up(suite, host)? else { return Ok(()) };
    let ask = |frame| ready.instance.environment(SPAWN, frame).wait().result;
    fuzz::check_bad_frames_refused("a command", ask)?;
    ready.shut_down(host)
}

/// Nothing of the host is held after the end.
pub fn no_objects_are_left(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.create(None).map_err(prefix_error("an instance"))?;
    instance.close().map_err(prefix_error("its end"))?;
    check_nothing_left(host)
}

fn has_shell(ready: &PreparedEnvironment<'_>) -> bool {
    ready.has_operation(END, json!({ "process": 0 }))
}

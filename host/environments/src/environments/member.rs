//! A session in its environment: passes on its tools' requests and tracks what the session has
//! there.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_config::trust::SESSION_MARKER;
use jaato_instances::DeltaCallback;
use jaato_loader::EngineServiceAnswer;
use jaato_session::{CallFiles, Cancel, NamedPaths};
use jaato_types::execution::{DESCRIBE, STREAM_KEY};
use jaato_types::files::{
    FileLimits, LIMITS_KEY, READ_STREAM, RESOLVE, WRITE_FINISH, WRITE_PIECE, WRITE_STREAM,
};
use jaato_types::process::{FORGET, LIST, PREPARE, ProcessFacts, ProcessRef, SPAWN, START, Spawn};
use jaato_types::{Error, ErrorKind, Frame, FrameError, PluginName, SessionId, terminal};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::Environments;
use super::scope::{EnvironmentScope, host_bug_error, parse_answer, serialize_request};
use super::stream::{EnvironmentStream, StreamEndHook};

/// Keys that identify programs, terminals and files in requests and answers.
const NUMBER_KEYS: [&str; 3] = ["process", "terminal", "file"];

/// Number of ended terminals whose owner is still known, because their last screens arrive a moment
/// later. As many as a session's limit can end at the same time.
const ENDED_TERMINALS_MAX: usize = 1024;

/// Returns the current limits for file operations of a session that belong to no call.
pub type SessionFileLimits = Arc<dyn Fn() -> FileLimits + Send + Sync>;

/// A session in its environment.
pub struct EnvironmentMember {
    scope: Arc<EnvironmentScope>,
    session: SessionId,
    /// The programs, terminals and files that the session opened.
    numbers: Mutex<HashSet<u64>>,
    /// Programs among these numbers that outlive the plugin that started them.
    lasting: Mutex<HashSet<u64>>,
    terminals: Mutex<HeldTerminals>,
    /// Limits for file operations that belong to no call.
    limits_of_all: Mutex<Option<SessionFileLimits>>,
}

/// A session's terminals, including those that ended recently, because their last screens may
/// arrive late.
#[derive(Default)]
struct HeldTerminals {
    by_number: HashMap<u64, HeldTerminal>,
    /// Ended terminals, the oldest first.
    ended: VecDeque<u64>,
}

/// A terminal and its owner.
struct HeldTerminal {
    plugin: PluginName,
    /// Cancelled when the terminal has ended.
    over: Cancel,
}

/// Returns true if tools may request an operation from their session's environment.
pub fn is_operation(operation: &str) -> bool {
    let is_passed_on =
        ["files.", "process.", "terminal."].iter().any(|prefix| operation.starts_with(prefix));
    operation == DESCRIBE || (is_passed_on && ![PREPARE, RESOLVE].contains(&operation))
}

impl EnvironmentMember {
    pub(super) fn new(scope: Arc<EnvironmentScope>, session: SessionId) -> Self {
        scope.add_session();
        Self {
            scope,
            session,
            numbers: Mutex::default(),
            lasting: Mutex::default(),
            terminals: Mutex::default(),
            limits_of_all: Mutex::default(),
        }
    }

    /// Returns the environment.
    pub fn scope(&self) -> &Arc<EnvironmentScope> {
        &self.scope
    }

    /// Sends the host's own request to the environment.
    pub(super) async fn ask_environment(
        &self,
        host: &Arc<Environments>,
        operation: &str,
        frame: Vec<u8>,
        tell: &DeltaCallback,
    ) -> Result<Vec<u8>, Error> {
        let (answer, _) = self.scope.call(host, operation, frame, tell).await?;
        Ok(answer)
    }

    /// Passes on a request of this plugin's tool.
    pub fn call(
        self: &Arc<Self>,
        host: Arc<Environments>,
        plugin: &PluginName,
        operation: &str,
        (request, files): (Vec<u8>, Option<Arc<CallFiles>>),
        tell: DeltaCallback,
    ) -> BoxFuture<'static, Result<EngineServiceAnswer, Error>> {
        let (own, operation) = (Arc::clone(self), operation.to_owned());
        let plugin = plugin.clone();
        Box::pin(async move {
            check_request(&request)?;
            let mut request = own.check_ownership(&operation, request)?;
            let paths = named_paths(&operation, &request)?;
            if let Some(named) = &paths {
                request = with_limits(request, &own.file_limits(files.as_deref(), named))?;
            }
            if let Some(served) = own.run_in_process(&host, &operation, &request, &tell).await? {
                return Ok(served);
            }
            let (answer, ready) = own.scope.call(&host, &operation, request, &tell).await?;
            if let (Some(files), Some(named)) = (&files, &paths) {
                files.record_change(&operation, named);
            }
            own.to_service_answer(&operation, answer, |stream, number| {
                let stream = EnvironmentStream::new(ready, stream);
                match (operation.as_str(), number) {
                    (terminal::SPAWN, Some(number)) => {
                        stream.with_end_hook(own.track_terminal(&host, number, plugin))
                    }
                    _ => stream,
                }
            })
        })
    }

    /// Returns the limits of a file operation: those of its call or, outside of calls, the general
    /// deny rules.
    fn file_limits(&self, files: Option<&CallFiles>, named: &NamedPaths) -> FileLimits {
        match files {
            Some(files) => files.limits_for(named),
            None => {
                let of_all = self.limits_of_all.lock().clone();
                of_all.map_or_else(FileLimits::default, |limits| limits())
            }
        }
    }

    /// Sets the limits for file operations that belong to no call.
    pub(super) fn set_file_limits(&self, limits: SessionFileLimits) {
        *self.limits_of_all.lock() = Some(limits);
    }

    /// Runs a program on this machine as the environment prepared it, and handles requests about
    /// such programs. Returns `None` for requests that the environment must answer.
    async fn run_in_process(
        &self,
        host: &Arc<Environments>,
        operation: &str,
        request: &[u8],
        tell: &DeltaCallback,
    ) -> Result<Option<EngineServiceAnswer>, Error> {
        let programs = self.scope.programs(host);
        if operation != SPAWN {
            let served = programs.answer_operation(operation, request);
            return match served {
                Some(served) => served.await.map(Some),
                None => Ok(None),
            };
        }
        let prepared = self.scope.prepare_spawn(host, request.to_vec(), tell).await?;
        let Some(mut spawn) = prepared else { return Ok(None) };
        self.mark_session(&mut spawn);
        let served = programs.start(spawn).await?;
        if let EngineServiceAnswer::StreamWith(head, _) = &served
            && let Some(number) = head.get("process").and_then(Value::as_u64)
        {
            self.numbers.lock().insert(number);
        }
        Ok(Some(served))
    }

    /// Marks a program as the session's, even if the environment set another marker.
    fn mark_session(&self, spawn: &mut Spawn) {
        let marker = self.session.as_str().to_owned();
        spawn.variables.insert(SESSION_MARKER.to_owned(), marker);
    }

    /// Sends the host's own request about something that the session has in the environment.
    pub async fn answer_operation(
        self: Arc<Self>,
        host: Arc<Environments>,
        operation: &'static str,
        request: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        check_request(&request)?;
        let request = self.check_ownership(operation, request)?;
        let quiet: DeltaCallback = Arc::new(|_| {});
        let (answer, _) = self.scope.call(&host, operation, request, &quiet).await?;
        Ok(answer)
    }

    /// Returns the token that is cancelled when this plugin's terminal ends, or `None` if the
    /// plugin has no such terminal.
    pub fn terminal_end(&self, plugin: &PluginName, number: u64) -> Option<Cancel> {
        let terminals = self.terminals.lock();
        let held = terminals.by_number.get(&number).filter(|held| held.plugin == *plugin)?;
        Some(held.over.clone())
    }

    /// Records a new terminal's owner. Returns the work to do when its stream ends.
    fn track_terminal(
        self: &Arc<Self>,
        host: &Arc<Environments>,
        number: u64,
        plugin: PluginName,
    ) -> StreamEndHook {
        let over = Cancel::new();
        let held = HeldTerminal { plugin, over: over.clone() };
        self.terminals.lock().by_number.insert(number, held);
        let (board, session) = (Arc::clone(&host.terminals), self.session.clone());
        let own = Arc::downgrade(self);
        StreamEndHook::new(move || {
            over.cancel();
            board.remove_terminal(&session, number);
            if let Some(own) = own.upgrade() {
                own.terminals.lock().record_terminal_end(number);
            }
        })
    }

    /// Checks that a request names only the session's own programs, terminals and files. Marks new
    /// programs as the session's.
    fn check_ownership(&self, operation: &str, request: Vec<u8>) -> Result<Vec<u8>, Error> {
        let is_start = [SPAWN, START, terminal::SPAWN].contains(&operation);
        let names_something =
            !is_start && (operation.starts_with("process.") || operation.starts_with("terminal."));
        if !is_start && !names_something && !operation.starts_with("files.write_") {
            return Ok(request);
        }
        let parsed = Frame::parse(&request).map_err(bad_request_error)?;
        let mut json: Value = parsed.json().map_err(bad_request_error)?;
        for key in NUMBER_KEYS {
            let Some(number) = json.get(key).and_then(Value::as_u64) else { continue };
            if !is_start && !self.numbers.lock().contains(&number) {
                let text = format!("this session has no {key} {number}");
                return Err(Error::new(ErrorKind::NotFound, text)
                    .with_hint("it has ended or belongs to another session"));
            }
        }
        if !is_start {
            return Ok(request);
        }
        let Some(spawn) = json.as_object_mut() else { return Err(not_an_object_error()) };
        let variables = spawn.entry("variables").or_insert_with(|| Value::Object(Map::new()));
        if let Some(variables) = variables.as_object_mut() {
            let marker = self.session.as_str().into();
            variables.insert(SESSION_MARKER.to_owned(), marker);
        }
        serialize_request(&json)
    }

    /// Converts an environment's answer to a service's answer.
    fn to_service_answer(
        &self,
        operation: &str,
        answer: Vec<u8>,
        stream_of: impl FnOnce(u64, Option<u64>) -> EnvironmentStream,
    ) -> Result<EngineServiceAnswer, Error> {
        if operation == LIST {
            let all: Vec<ProcessFacts> = parse_answer(self.scope().plugin(), &answer)?;
            let numbers = self.numbers.lock();
            let own: Vec<_> = all.iter().filter(|it| numbers.contains(&it.process)).collect();
            return Ok(EngineServiceAnswer::Frame(serialize_request(&own)?));
        }
        if !is_opening_operation(operation) {
            return Ok(EngineServiceAnswer::Frame(answer));
        }
        let mut head: Map<String, Value> = parse_answer(self.scope().plugin(), &answer)?;
        let number = NUMBER_KEYS.iter().find_map(|key| head.get(*key).and_then(Value::as_u64));
        if let Some(number) = number {
            self.numbers.lock().insert(number);
            if operation == START {
                self.lasting.lock().insert(number);
            }
        }
        match head.remove(STREAM_KEY).and_then(|stream| stream.as_u64()) {
            Some(stream) => {
                let stream = stream_of(stream, number);
                Ok(EngineServiceAnswer::StreamWith(head, Box::new(stream)))
            }
            None => Ok(EngineServiceAnswer::Frame(answer)),
        }
    }

    /// Closes the resources of the session's plugins. Returns the errors.
    pub(super) async fn close_resources(&self) -> Vec<String> {
        self.scope.resources.close_session_resources(&self.session).await
    }

    /// Ends everything that the session has in the environment. The last session also ends the
    /// environment.
    pub(super) async fn end_membership(&self, host: &Arc<Environments>) {
        let lasting = std::mem::take(&mut *self.lasting.lock());
        for process in lasting {
            // A program with a stream ended with the plugin that read it, and a forgotten program
            // does not exist.
            let Ok(request) = serialize_request(&ProcessRef { process }) else { continue };
            self.scope.end_program_if_ready(FORGET, request).await;
        }
        self.scope.resources.mark_session_ended(&self.session);
        self.scope.remove_session(host).await;
    }
}

impl HeldTerminals {
    /// Records an ended terminal. Forgets the oldest one if there are too many.
    fn record_terminal_end(&mut self, number: u64) {
        self.ended.push_back(number);
        if self.ended.len() > ENDED_TERMINALS_MAX
            && let Some(oldest) = self.ended.pop_front()
        {
            self.by_number.remove(&oldest);
        }
    }
}

/// Returns true if an operation's answer names something new.
fn is_opening_operation(operation: &str) -> bool {
    use jaato_types::files::{FIND, SEARCH, WALK};
    let files = [READ_STREAM, WALK, FIND, SEARCH, WRITE_STREAM];
    files.contains(&operation) || [SPAWN, START, terminal::SPAWN].contains(&operation)
}

/// Rejects a request that is neither empty nor a JSON object. A plugin could also read a struct
/// from an array, whose values have no keys for the host to check.
fn check_request(request: &[u8]) -> Result<(), Error> {
    match Frame::parse(request).map_err(bad_request_error)?.json.trim_ascii() {
        b"" | b"null" | [b'{', ..] => Ok(()),
        _ => Err(not_an_object_error()),
    }
}

/// Reads the paths of a file operation. Returns `None` for an operation without paths.
fn named_paths(operation: &str, request: &[u8]) -> Result<Option<NamedPaths>, Error> {
    let is_of_paths = operation.starts_with("files.") && operation != WRITE_PIECE;
    if !is_of_paths || operation == WRITE_FINISH {
        return Ok(None);
    }
    let named: Option<NamedPaths> = Frame::read(request).map_err(bad_request_error)?;
    Ok(Some(named.unwrap_or_default()))
}

/// Adds limits to a request. The environment rejects a request that already has the key.
fn with_limits(request: Vec<u8>, limits: &FileLimits) -> Result<Vec<u8>, Error> {
    if limits.is_empty() {
        return Ok(request);
    }
    let Frame { json, bytes } = Frame::parse(&request).map_err(bad_request_error)?;
    let Some(rest) = json.trim_ascii_start().strip_prefix(b"{") else {
        return Err(not_an_object_error());
    };
    let limits = serde_json::to_string(limits)
        .map_err(|error| host_bug_error(FrameError::Json(error.to_string())))?;
    let comma = if rest.trim_ascii_start().starts_with(b"}") { "" } else { "," };
    let head = format!("{{\"{LIMITS_KEY}\":{limits}{comma}");
    let json = [head.as_bytes(), rest].concat();
    Frame::from_json_text(&json, bytes).map_err(bad_request_error)
}

fn bad_request_error(error: FrameError) -> Error {
    Error::new(ErrorKind::InvalidArguments, error.to_string())
}

fn not_an_object_error() -> Error {
    Error::new(ErrorKind::InvalidArguments, "the request is not a JSON object")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_not_an_object_is_refused() {
        let request = |json: &str| Frame::from_json_text(json.as_bytes(), b"bytes").unwrap();
        for json in [r#"["/w/secret/key"]"#, "[7]", " \n[7]", "7", r#""/w/secret/key""#, "true"] {
            let error = check_request(&request(json)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidArguments, "{json}");
        }
        for json in ["", "null", "{}", r#" {"path": "a"}"#] {
            check_request(&request(json)).unwrap();
        }
        let limits = FileLimits { denied: vec!["/w/secret".into()], ..FileLimits::default() };
        assert!(with_limits(request(r#"["/w/secret/key"]"#), &limits).is_err());
        assert!(with_limits(request(""), &limits).is_err());
        let limited = with_limits(request("{}"), &limits).unwrap();
        let limited: Value = Frame::read(&limited).unwrap();
        assert_eq!(limited[LIMITS_KEY]["denied"][0], "/w/secret");
    }

    #[test]
    fn requests_with_unreadable_paths_are_refused() {
        let request = |json: &str| Frame::from_json_text(json.as_bytes(), b"").unwrap();
        for json in [r#"{"path": "/w/a", "from": 1}"#, r#"{"path": "/w/a", "path": "/w/b"}"#] {
            assert!(named_paths("files.read", &request(json)).is_err(), "{json}");
        }
        assert!(named_paths("files.list", &request("")).unwrap().is_some());
        assert!(named_paths(WRITE_PIECE, &request(r#"{"file": 1}"#)).unwrap().is_none());
    }

    #[test]
    fn oldest_ended_terminals_are_forgotten() {
        let mut terminals = HeldTerminals::default();
        let held = || HeldTerminal { plugin: PluginName::from("tool-x"), over: Cancel::new() };
        let last = 3 * ENDED_TERMINALS_MAX as u64;
        // A live terminal is older than all ended ones.
        terminals.by_number.insert(0, held());
        for number in 1..=last {
            terminals.by_number.insert(number, held());
            terminals.record_terminal_end(number);
        }
        let mut left: Vec<_> = terminals.by_number.into_keys().collect();
        left.sort_unstable();
        let oldest = last - ENDED_TERMINALS_MAX as u64 + 1;
        assert_eq!(left, std::iter::once(0).chain(oldest..=last).collect::<Vec<_>>());
        assert_eq!(terminals.ended.len(), ENDED_TERMINALS_MAX);
    }
}

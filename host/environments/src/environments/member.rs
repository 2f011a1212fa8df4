//! A session in its environment: what its tools ask for is passed on, and what it runs is its own.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_config::trust::SESSION_MARKER;
use jaato_instances::Tell;
use jaato_loader::Served;
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
use super::scope::{Scope, host_bug, read, write};
use super::stream::{EnvironmentStream, OnEnd};

/// Keys by which requests and answers name what runs or is open.
const NUMBER_KEYS: [&str; 3] = ["process", "terminal", "file"];

/// Terminals that have ended of which is still known whose they were: their last screens come in
/// the moment after. As many as a session may have in an environment at once can end together.
const ENDED_TERMINALS_MAX: usize = 1024;

/// Tells what file operations of a session keep off that belong to no call, at this moment.
pub type LimitsOfAll = Arc<dyn Fn() -> FileLimits + Send + Sync>;

/// A session in its environment.
pub struct Member {
    scope: Arc<Scope>,
    session: SessionId,
    /// What it started.
    numbers: Mutex<HashSet<u64>>,
    /// Of that, programs that outlive the plugin that started them.
    lasting: Mutex<HashSet<u64>>,
    terminals: Mutex<HeldTerminals>,
    /// What file operations keep off that belong to no call.
    limits_of_all: Mutex<Option<LimitsOfAll>>,
}

/// The terminals of a session, those that ended last too: their last screens may come late.
#[derive(Default)]
struct HeldTerminals {
    by_number: HashMap<u64, HeldTerminal>,
    /// Those that have ended, the oldest first.
    ended: VecDeque<u64>,
}

/// A terminal, and whose it is.
struct HeldTerminal {
    plugin: PluginName,
    /// Set when it has ended.
    over: Cancel,
}

/// Tells whether an operation is one that tools may ask of their session's environment.
pub fn is_operation(operation: &str) -> bool {
    let is_passed_on =
        ["files.", "process.", "terminal."].iter().any(|prefix| operation.starts_with(prefix));
    operation == DESCRIBE || (is_passed_on && ![PREPARE, RESOLVE].contains(&operation))
}

impl Member {
    pub(super) fn new(scope: Arc<Scope>, session: SessionId) -> Self {
        scope.enter();
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
    pub fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    /// Asks the environment for something of the host's own.
    pub(super) async fn ask(
        &self,
        host: &Arc<Environments>,
        operation: &str,
        frame: Vec<u8>,
        tell: &Tell,
    ) -> Result<Vec<u8>, Error> {
        let (answer, _) = self.scope.call(host, operation, frame, tell).await?;
        Ok(answer)
    }

    /// Passes on what a tool of this plugin asks for.
    pub fn call(
        self: &Arc<Self>,
        host: Arc<Environments>,
        plugin: &PluginName,
        operation: &str,
        (request, files): (Vec<u8>, Option<Arc<CallFiles>>),
        tell: Tell,
    ) -> BoxFuture<'static, Result<Served, Error>> {
        let (own, operation) = (Arc::clone(self), operation.to_owned());
        let plugin = plugin.clone();
        Box::pin(async move {
            check_request(&request)?;
            let mut request = own.prepared(&operation, request)?;
            let paths = named_paths(&operation, &request)?;
            if let Some(named) = &paths {
                request = with_limits(request, &own.limits(files.as_deref(), named))?;
            }
            if let Some(served) = own.run_here(&host, &operation, &request, &tell).await? {
                return Ok(served);
            }
            let (answer, ready) = own.scope.call(&host, &operation, request, &tell).await?;
            if let (Some(files), Some(named)) = (&files, &paths) {
                files.changed(&operation, named);
            }
            own.served(&operation, answer, |stream, number| {
                let stream = EnvironmentStream::new(ready, stream);
                match (operation.as_str(), number) {
                    (terminal::SPAWN, Some(number)) => {
                        stream.with_end(own.hold_terminal(&host, number, plugin))
                    }
                    _ => stream,
                }
            })
        })
    }

    /// Returns what a file operation keeps off: that of its call, or what rules deny to all.
    fn limits(&self, files: Option<&CallFiles>, named: &NamedPaths) -> FileLimits {
        match files {
            Some(files) => files.limits_of(named),
            None => {
                let of_all = self.limits_of_all.lock().clone();
                of_all.map_or_else(FileLimits::default, |limits| limits())
            }
        }
    }

    /// Says what file operations keep off that belong to no call.
    pub(super) fn hold_to(&self, limits: LimitsOfAll) {
        *self.limits_of_all.lock() = Some(limits);
    }

    /// Runs a program on this machine as the environment says, and does what is asked of one that
    /// runs so; `None` for all that is the environment's to answer.
    async fn run_here(
        &self,
        host: &Arc<Environments>,
        operation: &str,
        request: &[u8],
        tell: &Tell,
    ) -> Result<Option<Served>, Error> {
        let programs = self.scope.programs(host);
        if operation != SPAWN {
            let served = programs.answer(operation, request);
            return match served {
                Some(served) => served.await.map(Some),
                None => Ok(None),
            };
        }
        let prepared = self.scope.prepare(host, request.to_vec(), tell).await?;
        let Some(mut spawn) = prepared else { return Ok(None) };
        self.mark(&mut spawn);
        let served = programs.start(spawn).await?;
        if let Served::StreamWith(head, _) = &served
            && let Some(number) = head.get("process").and_then(Value::as_u64)
        {
            self.numbers.lock().insert(number);
        }
        Ok(Some(served))
    }

    /// Marks a program as the session's, whatever the environment made of it.
    fn mark(&self, spawn: &mut Spawn) {
        let marker = self.session.as_str().to_owned();
        spawn.variables.insert(SESSION_MARKER.to_owned(), marker);
    }

    /// Passes on what the host itself asks for of something that the session has there.
    pub async fn answer(
        self: Arc<Self>,
        host: Arc<Environments>,
        operation: &'static str,
        request: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        check_request(&request)?;
        let request = self.prepared(operation, request)?;
        let quiet: Tell = Arc::new(|_| {});
        let (answer, _) = self.scope.call(&host, operation, request, &quiet).await?;
        Ok(answer)
    }

    /// Returns what is set when a terminal of this plugin has ended; none where the plugin has no
    /// such terminal.
    pub fn terminal_of(&self, plugin: &PluginName, number: u64) -> Option<Cancel> {
        let terminals = self.terminals.lock();
        let held = terminals.by_number.get(&number).filter(|held| held.plugin == *plugin)?;
        Some(held.over.clone())
    }

    /// Notes whose a new terminal is; returns what is to be done when its stream ends.
    fn hold_terminal(
        self: &Arc<Self>,
        host: &Arc<Environments>,
        number: u64,
        plugin: PluginName,
    ) -> OnEnd {
        let over = Cancel::new();
        let held = HeldTerminal { plugin, over: over.clone() };
        self.terminals.lock().by_number.insert(number, held);
        let (board, session) = (Arc::clone(&host.terminals), self.session.clone());
        let own = Arc::downgrade(self);
        OnEnd::new(move || {
            over.cancel();
            board.forget(&session, number);
            if let Some(own) = own.upgrade() {
                own.terminals.lock().end(number);
            }
        })
    }

    /// Checks that what a request names is the session's, and marks programs as of it.
    fn prepared(&self, operation: &str, request: Vec<u8>) -> Result<Vec<u8>, Error> {
        let is_start = [SPAWN, START, terminal::SPAWN].contains(&operation);
        let names_something =
            !is_start && (operation.starts_with("process.") || operation.starts_with("terminal."));
        if !is_start && !names_something && !operation.starts_with("files.write_") {
            return Ok(request);
        }
        let parsed = Frame::parse(&request).map_err(bad_request)?;
        let mut json: Value = parsed.json().map_err(bad_request)?;
        for key in NUMBER_KEYS {
            let Some(number) = json.get(key).and_then(Value::as_u64) else { continue };
            if !is_start && !self.numbers.lock().contains(&number) {
                let text = format!("this session has no {key} {number}");
                return Err(Error::new(ErrorKind::NotFound, text)
                    .with_hint("it has ended, or is another session's"));
            }
        }
        if !is_start {
            return Ok(request);
        }
        let Some(spawn) = json.as_object_mut() else { return Err(no_object()) };
        let variables = spawn.entry("variables").or_insert_with(|| Value::Object(Map::new()));
        if let Some(variables) = variables.as_object_mut() {
            let marker = self.session.as_str().into();
            variables.insert(SESSION_MARKER.to_owned(), marker);
        }
        write(&json)
    }

    /// Makes a service's answer of an environment's.
    fn served(
        &self,
        operation: &str,
        answer: Vec<u8>,
        stream_of: impl FnOnce(u64, Option<u64>) -> EnvironmentStream,
    ) -> Result<Served, Error> {
        if operation == LIST {
            let all: Vec<ProcessFacts> = read(&answer)?;
            let numbers = self.numbers.lock();
            let own: Vec<_> = all.iter().filter(|it| numbers.contains(&it.process)).collect();
            return Ok(Served::Frame(write(&own)?));
        }
        if !opens(operation) {
            return Ok(Served::Frame(answer));
        }
        let mut head: Map<String, Value> = read(&answer)?;
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
                Ok(Served::StreamWith(head, Box::new(stream)))
            }
            None => Ok(Served::Frame(answer)),
        }
    }

    /// Closes the resources that the session's plugins keep there; returns what went wrong.
    pub(super) async fn close_resources(&self) -> Vec<String> {
        self.scope.resources.close_of(&self.session).await
    }

    /// Ends what the session has there, and with the last session the environment.
    pub(super) async fn leave(&self, host: &Arc<Environments>) {
        let lasting = std::mem::take(&mut *self.lasting.lock());
        for process in lasting {
            // What has a stream has ended with the plugin that read it; a forgotten program is not
            // there.
            let Ok(request) = write(&ProcessRef { process }) else { continue };
            self.scope.end_if_ready(FORGET, request).await;
        }
        self.scope.resources.left(&self.session);
        self.scope.leave(host).await;
    }
}

impl HeldTerminals {
    /// Notes that one has ended, and forgets the oldest where that is one too many.
    fn end(&mut self, number: u64) {
        self.ended.push_back(number);
        if self.ended.len() > ENDED_TERMINALS_MAX
            && let Some(oldest) = self.ended.pop_front()
        {
            self.by_number.remove(&oldest);
        }
    }
}

/// Tells whether an operation's answer names something new.
fn opens(operation: &str) -> bool {
    use jaato_types::files::{FIND, SEARCH, WALK};
    let files = [READ_STREAM, WALK, FIND, SEARCH, WRITE_STREAM];
    files.contains(&operation) || [SPAWN, START, terminal::SPAWN].contains(&operation)
}

/// Refuses a request that is neither empty nor a JSON object. A plugin may read a struct from an
/// array too, whose values have no keys for the host to check.
fn check_request(request: &[u8]) -> Result<(), Error> {
    match Frame::parse(request).map_err(bad_request)?.json.trim_ascii() {
        b"" | b"null" | [b'{', ..] => Ok(()),
        _ => Err(no_object()),
    }
}

/// Reads the paths that a file operation names. Returns `None` for an operation without paths.
fn named_paths(operation: &str, request: &[u8]) -> Result<Option<NamedPaths>, Error> {
    let is_of_paths = operation.starts_with("files.") && operation != WRITE_PIECE;
    if !is_of_paths || operation == WRITE_FINISH {
        return Ok(None);
    }
    let named: Option<NamedPaths> = Frame::read(request).map_err(bad_request)?;
    Ok(Some(named.unwrap_or_default()))
}

/// Puts limits into a request. A request that has the key already is not read by the environment.
fn with_limits(request: Vec<u8>, limits: &FileLimits) -> Result<Vec<u8>, Error> {
    if limits.is_empty() {
        return Ok(request);
    }
    let Frame { json, bytes } = Frame::parse(&request).map_err(bad_request)?;
    let Some(rest) = json.trim_ascii_start().strip_prefix(b"{") else {
        return Err(no_object());
    };
    let limits = serde_json::to_string(limits)
        .map_err(|error| host_bug(FrameError::Json(error.to_string())))?;
    let comma = if rest.trim_ascii_start().starts_with(b"}") { "" } else { "," };
    let head = format!("{{\"{LIMITS_KEY}\":{limits}{comma}");
    let json = [head.as_bytes(), rest].concat();
    Frame::from_json_text(&json, bytes).map_err(bad_request)
}

fn bad_request(error: FrameError) -> Error {
    Error::new(ErrorKind::InvalidArguments, error.to_string())
}

fn no_object() -> Error {
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
    fn paths_that_cannot_be_read_are_refused() {
        let request = |json: &str| Frame::from_json_text(json.as_bytes(), b"").unwrap();
        for json in [r#"{"path": "/w/a", "from": 1}"#, r#"{"path": "/w/a", "path": "/w/b"}"#] {
            assert!(named_paths("files.read", &request(json)).is_err(), "{json}");
        }
        assert!(named_paths("files.list", &request("")).unwrap().is_some());
        assert!(named_paths(WRITE_PIECE, &request(r#"{"file": 1}"#)).unwrap().is_none());
    }

    #[test]
    fn of_terminals_that_have_ended_the_oldest_are_forgotten() {
        let mut terminals = HeldTerminals::default();
        let held = || HeldTerminal { plugin: PluginName::from("tool-x"), over: Cancel::new() };
        let last = 3 * ENDED_TERMINALS_MAX as u64;
        // One that lives is older than all of them.
        terminals.by_number.insert(0, held());
        for number in 1..=last {
            terminals.by_number.insert(number, held());
            terminals.end(number);
        }
        let mut left: Vec<_> = terminals.by_number.into_keys().collect();
        left.sort_unstable();
        let oldest = last - ENDED_TERMINALS_MAX as u64 + 1;
        assert_eq!(left, std::iter::once(0).chain(oldest..=last).collect::<Vec<_>>());
        assert_eq!(terminals.ended.len(), ENDED_TERMINALS_MAX);
    }
}

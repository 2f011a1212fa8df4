//! The fake host's answers to service requests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use jaato_objects::ObjectEnvironment;
use jaato_objects::service::{ObjectsAccess, ObjectsCaller, answer_operation};
use jaato_types::count::{COUNT, TokenCountAnswer, TokenCountInput};
use jaato_types::hooks::reading_only_error;
use jaato_types::host_process::process_operation;
use jaato_types::http::{
    HTTP_BODIES_MAX, HTTP_BODY, HTTP_BODY_BYTES_MAX, HTTP_REQUEST, HttpBody, HttpBodyAnswer,
};
use jaato_types::large::REQUEST;
use jaato_types::media_type::{MEDIA_TYPE_HEAD_BYTES, check_media_type, is_media_type};
use jaato_types::operations::operation_named;
use jaato_types::service::{
    self, ATTACHMENTS_MAX, AssetAnswer, AssetRequest, AttachAnswer, AttachRequest, BLOB_BYTES_MAX,
    BLOBS_BEGUN_MAX, BLOBS_BYTES_MAX, BlobGet, BlobPut, BlobPutAnswer, FolderAnswer, OutputAnswer,
    OutputWrite, SessionFacts,
};
use jaato_types::{DataPart, Error, ErrorKind, Frame, Result, process};
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::clock::FakeTime;
use super::grants::FakeGrants;
use super::programs::FakePrograms;
use super::secrets::FakeSecrets;
use super::session_environment::{self, FakeSessionEnvironment};
use super::session_services::FakeSessionParts;
use super::stores::FakeStores;
use super::stream::FakeStream;

/// A plugin's request to a service.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceRequest {
    /// The service's name.
    pub operation: String,
    /// The request as JSON, or null.
    pub json: Value,
    /// The raw bytes after the JSON.
    pub bytes: Vec<u8>,
    /// The context that asks: a call's number or an instance's.
    pub context: u64,
}

impl ServiceRequest {
    /// Reads the request.
    ///
    /// # Errors
    /// `invalid_arguments`, as the host answers it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_value(self.json.clone())
            .map_err(|error| self.unreadable_request_error(&error))
    }

    fn unreadable_request_error(&self, error: &serde_json::Error) -> Error {
        let text = format!("the request of `{}` cannot be read: {error}", self.operation);
        Error::new(ErrorKind::InvalidArguments, text)
    }
}

/// The answer of a fake service.
#[derive(Clone)]
pub enum FakeServiceReply {
    /// JSON.
    Json(Value),
    /// JSON and raw bytes.
    Bytes(Value, Vec<u8>),
    /// A stream.
    Stream(FakeStream),
    /// A stream, and what is known before its first byte: an object, to which its handle is added.
    StreamWith(Value, FakeStream),
    /// An answer that comes after some milliseconds of the host's time.
    Later(u64, Box<FakeServiceReply>),
    /// No answer, ever.
    Never,
}

impl FakeServiceReply {
    /// Creates a reply from a value.
    ///
    /// # Errors
    /// `host_bug` when it cannot be written as JSON.
    pub fn from_value(value: &impl Serialize) -> Result<Self> {
        let bug = |error: serde_json::Error| Error::new(ErrorKind::HostBug, error.to_string());
        serde_json::to_value(value).map(Self::Json).map_err(bug)
    }
}

/// Bytes of a large request that are read at once.
const REQUEST_PIECE_BYTES: usize = 1024 * 1024;

/// A blob of the fake host.
#[derive(Default)]
struct FakeServiceBlob {
    mime_type: String,
    bytes: Vec<u8>,
}

type FakeServiceScript = Arc<dyn Fn(&ServiceRequest) -> Result<FakeServiceReply> + Send + Sync>;

/// The services of one fake host.
#[derive(Default)]
pub(crate) struct FakeServices(Mutex<FakeServicesState>);

struct FakeServicesState {
    scripts: HashMap<String, FakeServiceScript>,
    grants: FakeGrants,
    stores: FakeStores,
    secrets: FakeSecrets,
    /// The facts that the session provides.
    lent: FakeSessionParts,
    session: Option<SessionFacts>,
    config: Value,
    assets: BTreeMap<String, AssetAnswer>,
    blobs: BTreeMap<String, FakeServiceBlob>,
    /// Those that are being written, by context and number.
    puts: BTreeMap<(u64, u64), FakeServiceBlob>,
    /// Bodies of requests that are put together, by context and number.
    bodies: BTreeMap<(u64, u64), Vec<u8>>,
    /// The input of calls, if it is larger than a frame.
    requests: BTreeMap<u64, Vec<u8>>,
    /// Keys and pieces of the texts that contexts have streamed.
    outputs: BTreeMap<u64, Vec<(String, Vec<u8>)>>,
    /// What tool calls have attached.
    attachments: BTreeMap<u64, Vec<DataPart>>,
    asked: Vec<ServiceRequest>,
    folder: Option<TempDir>,
    programs: FakePrograms,
    environment: FakeSessionEnvironment,
    objects: ObjectEnvironment,
    /// Which tool or command runs in a context.
    tools: BTreeMap<u64, String>,
    /// Contexts in which a plugin is asked something, and only reads.
    reading: BTreeSet<u64>,
    /// Contexts of hooks, which only read unless a grant allows more.
    hooks: BTreeSet<u64>,
    /// Contexts of calls. Any other is that of an instance.
    calls: BTreeSet<u64>,
}

impl Default for FakeServicesState {
    fn default() -> Self {
        Self {
            scripts: HashMap::new(),
            grants: FakeGrants::default(),
            stores: FakeStores::default(),
            secrets: FakeSecrets::default(),
            lent: FakeSessionParts::default(),
            session: None,
            config: json!({}),
            assets: BTreeMap::new(),
            blobs: BTreeMap::new(),
            puts: BTreeMap::new(),
            bodies: BTreeMap::new(),
            requests: BTreeMap::new(),
            outputs: BTreeMap::new(),
            attachments: BTreeMap::new(),
            asked: Vec::new(),
            folder: None,
            programs: FakePrograms::default(),
            environment: FakeSessionEnvironment::default(),
            objects: ObjectEnvironment::default(),
            tools: BTreeMap::new(),
            reading: BTreeSet::new(),
            hooks: BTreeSet::new(),
            calls: BTreeSet::new(),
        }
    }
}

impl FakeServicesState {
    fn put_blob(&mut self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let BlobPut { mime_type, put, more, .. } = request.read()?;
        let lost = |number: u64| {
            let text = format!("this call has not begun blob number {number}");
            Error::new(ErrorKind::NotFound, text)
        };
        let mut blob = match put {
            Some(number) => {
                self.puts.remove(&(request.context, number)).ok_or_else(|| lost(number))?
            }
            None if more && self.count_open_uploads(request.context) >= BLOBS_BEGUN_MAX => {
                let text = format!("the call has already begun {BLOBS_BEGUN_MAX} blobs");
                return Err(Error::new(ErrorKind::LimitReached, text));
            }
            None if is_media_type(&mime_type) => FakeServiceBlob { mime_type, bytes: Vec::new() },
            None => {
                let text = format!("`{mime_type}` is not a media type");
                return Err(Error::new(ErrorKind::InvalidArguments, text));
            }
        };
        blob.bytes.extend_from_slice(&request.bytes);
        let bytes = blob.bytes.len() as u64;
        let all = self.blobs.values().chain(self.puts.values());
        let all = all.map(|blob| blob.bytes.len() as u64).sum::<u64>() + bytes;
        if bytes > BLOB_BYTES_MAX || all > BLOBS_BYTES_MAX {
            let text = format!(
                "a blob has at most {BLOB_BYTES_MAX} bytes, those of a session {BLOBS_BYTES_MAX}"
            );
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        if more {
            let last = self.puts.keys().map(|(_, number)| *number).max().unwrap_or_default();
            let number = put.unwrap_or(last + 1);
            self.puts.insert((request.context, number), blob);
            return FakeServiceReply::from_value(&BlobPutAnswer::unfinished(number, bytes));
        }
        let id: String =
            Sha256::digest(&blob.bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        self.blobs.entry(id.clone()).or_insert(blob);
        FakeServiceReply::from_value(&BlobPutAnswer::complete(id, bytes))
    }

    fn append_to_body(&mut self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let HttpBody { body, blob, base64, .. } = request.read()?;
        let last = self.bodies.keys().map(|(_, number)| *number).max().unwrap_or_default();
        let number = body.unwrap_or(last + 1);
        let mut bytes = match body {
            Some(number) => self
                .bodies
                .remove(&(request.context, number))
                .ok_or_else(|| no_body_error(number))?,
            None if self.bodies.keys().filter(|(of, _)| *of == request.context).count()
                >= HTTP_BODIES_MAX =>
            {
                let text = format!("the call has already begun {HTTP_BODIES_MAX} bodies");
                return Err(Error::new(ErrorKind::LimitReached, text));
            }
            None => Vec::new(),
        };
        bytes.extend_from_slice(&request.bytes);
        if let Some(id) = blob {
            let text = format!("the session has no blob `{id}`");
            let missing = || Error::new(ErrorKind::NotFound, text);
            let blob = &self.blobs.get(&id).ok_or_else(missing)?.bytes;
            if base64 {
                bytes.extend_from_slice(encode_base64(blob).as_bytes());
            } else {
                bytes.extend_from_slice(blob);
            }
        }
        let length = bytes.len() as u64;
        if length > HTTP_BODY_BYTES_MAX {
            let text = format!("the body of a request has at most {HTTP_BODY_BYTES_MAX} bytes");
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        self.bodies.insert((request.context, number), bytes);
        FakeServiceReply::from_value(&HttpBodyAnswer::new(number, length))
    }

    /// Gives a request the body that it names.
    fn take_body(&mut self, request: &mut ServiceRequest) -> Result<()> {
        let number = request.json.get("body").and_then(Value::as_u64);
        let Some(number) = number.filter(|_| request.operation == HTTP_REQUEST) else {
            return Ok(());
        };
        let body = self.bodies.remove(&(request.context, number));
        request.bytes = body.ok_or_else(|| no_body_error(number))?;
        Ok(())
    }

    fn count_open_uploads(&self, context: u64) -> usize {
        self.puts.keys().filter(|(of, _)| *of == context).count()
    }

    fn attach_blob(&mut self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let AttachRequest { mime_type, blob, name, .. } = request.read()?;
        let wrong = |text: String| Error::new(ErrorKind::InvalidArguments, text);
        let Some(attachments) = self.attachments.get_mut(&request.context) else {
            let text = "only a tool call can attach: there is no result to attach to";
            return Err(Error::new(ErrorKind::Unavailable, text));
        };
        let missing =
            || Error::new(ErrorKind::NotFound, format!("the session has no blob `{blob}`"));
        let bytes = &self.blobs.get(&blob).ok_or_else(missing)?.bytes;
        check_media_type(&mime_type, &bytes[..bytes.len().min(MEDIA_TYPE_HEAD_BYTES)]).map_err(
            |shown| {
                wrong(format!(
                    "the attachment is declared as `{mime_type}`, but its bytes are `{shown}`"
                ))
            },
        )?;
        if attachments.len() >= ATTACHMENTS_MAX {
            let text = format!("a tool call has at most {ATTACHMENTS_MAX} attachments");
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        attachments.push(DataPart { name, ..DataPart::blob(mime_type, blob) });
        FakeServiceReply::from_value(&AttachAnswer::new(attachments.len() as u64))
    }

    fn read_request(&self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let text = "the call already contains its complete request";
        let json = self.requests.get(&request.context);
        let json = json.ok_or_else(|| Error::new(ErrorKind::Unavailable, text))?;
        Ok(FakeServiceReply::Stream(FakeStream::from_pieces(json.chunks(REQUEST_PIECE_BYTES))))
    }

    fn get_blob(&self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let BlobGet { blob: id, .. } = request.read()?;
        let text = format!("the session has no blob `{id}`");
        let blob = self.blobs.get(&id).ok_or_else(|| Error::new(ErrorKind::NotFound, text))?;
        let head = json!({ "mime_type": blob.mime_type, "bytes": blob.bytes.len() });
        Ok(FakeServiceReply::StreamWith(head, FakeStream::from_pieces([blob.bytes.as_slice()])))
    }
}

impl FakeServices {
    fn lock(&self) -> MutexGuard<'_, FakeServicesState> {
        self.0.lock()
    }

    pub(crate) fn set_time(&self, time: FakeTime) {
        self.lock().programs.set_time(time);
    }

    /// Notes which tool or command runs in a context.
    pub(crate) fn record_running_tool(&self, context: u64, tool: &str) {
        self.lock().tools.insert(context, tool.to_owned());
    }

    /// Records that a plugin is asked something in a context, where it only reads.
    pub(crate) fn record_read_only_context(&self, context: u64) {
        self.lock().reading.insert(context);
    }

    /// Notes that a context belongs to a call.
    pub(crate) fn begin_call(&self, context: u64) {
        self.lock().calls.insert(context);
    }

    /// Notes that a plugin's hook is called in a context.
    pub(crate) fn record_hook_context(&self, context: u64) {
        let mut state = self.lock();
        state.reading.insert(context);
        state.hooks.insert(context);
    }

    /// Forgets what a context that has ended did not finish.
    pub(crate) fn drop_unfinished(&self, context: u64) {
        let mut state = self.lock();
        state.calls.remove(&context);
        state.puts.retain(|(of, _), _| *of != context);
        state.bodies.retain(|(of, _), _| *of != context);
        state.requests.remove(&context);
    }

    /// Stores the request of a call, for the service `request`.
    pub(crate) fn store_request(&self, context: u64, json: Vec<u8>) {
        self.lock().requests.insert(context, json);
    }

    /// Records that a tool call runs in a context, whose result may have attachments.
    pub(crate) fn record_tool_call(&self, context: u64) {
        self.lock().attachments.insert(context, Vec::new());
    }

    /// The attachments of a tool call.
    pub(crate) fn attachments(&self, context: u64) -> Vec<DataPart> {
        self.lock().attachments.get(&context).cloned().unwrap_or_default()
    }

    /// The objects that tools have shown to the model.
    pub(crate) fn objects(&self) -> ObjectEnvironment {
        self.lock().objects.clone()
    }

    /// Ends the programs that calls have started.
    pub(crate) fn end_programs(&self) {
        self.lock().programs.end_all();
    }

    pub(crate) fn set_session(&self, facts: Option<SessionFacts>) {
        self.lock().session = facts;
    }

    pub(crate) fn set_config(&self, config: Value) {
        self.lock().config = config;
    }

    pub(crate) fn add_asset(&self, id: String, answer: AssetAnswer) {
        self.lock().assets.insert(id, answer);
    }

    pub(crate) fn add_script(&self, operation: String, script: FakeServiceScript) {
        self.lock().scripts.insert(operation, script);
    }

    /// Changes the grants of the plugin.
    pub(crate) fn change_grants(&self, change: impl FnOnce(&mut FakeGrants)) {
        change(&mut self.lock().grants);
    }

    /// Changes or reads the parts of the session that calls can use.
    pub(crate) fn with_session_parts<T>(&self, work: impl FnOnce(&mut FakeSessionParts) -> T) -> T {
        work(&mut self.lock().lent)
    }

    pub(crate) fn service_requests(&self) -> Vec<ServiceRequest> {
        self.lock().asked.clone()
    }

    /// The values that a context has written with the service `output`.
    pub(crate) fn written_bytes(&self, context: u64) -> Vec<u8> {
        let state = self.lock();
        let pieces = state.outputs.get(&context).into_iter().flatten();
        pieces.flat_map(|(_, piece)| piece.iter().copied()).collect()
    }

    /// The same as texts, by their keys. The fake host truncates none.
    pub(crate) fn written_texts(&self, context: u64) -> Map<String, Value> {
        let state = self.lock();
        let mut texts: Vec<(&str, Vec<u8>)> = Vec::new();
        for (key, piece) in state.outputs.get(&context).into_iter().flatten() {
            match texts.iter_mut().find(|(of, _)| of == key) {
                Some((_, text)) => text.extend_from_slice(piece),
                None => texts.push((key, piece.clone())),
            }
        }
        let lossy = |text: &[u8]| String::from_utf8_lossy(text).into_owned().into();
        texts.into_iter().map(|(key, text)| (key.to_owned(), lossy(&text))).collect()
    }

    /// The host's temporary folder; made when it is first asked for, deleted with the host.
    pub(crate) fn temporary_folder(&self) -> Result<PathBuf> {
        let mut state = self.lock();
        if state.folder.is_none() {
            state.folder = Some(tempfile::tempdir().map_err(io_error)?);
        }
        Ok(state.folder.as_ref().map(|folder| folder.path().to_owned()).unwrap_or_default())
    }

    /// Answers as the host does. A panic of the test's script is the host's fault.
    pub(crate) fn answer(
        &self,
        context: u64,
        operation: &str,
        frame: &[u8],
    ) -> Result<FakeServiceReply> {
        let bad = |error: jaato_types::FrameError| {
            Error::new(ErrorKind::InvalidArguments, error.to_string())
        };
        let parsed = Frame::parse(frame).map_err(bad)?;
        let mut request = ServiceRequest {
            operation: operation.to_owned(),
            json: parsed.json().map_err(bad)?,
            bytes: parsed.bytes.to_vec(),
            context,
        };
        let script = {
            let mut state = self.lock();
            state.take_body(&mut request)?;
            state.asked.push(request.clone());
            let is_hook = state.hooks.contains(&context);
            let may_use = operation_named(operation)
                .is_some_and(|it| it.only_reads || (is_hook && it.in_hooks));
            if state.reading.contains(&context) && !may_use {
                return Err(reading_only_error(operation));
            }
            let is_call = state.calls.contains(&context) && !is_hook;
            state.grants.check_grant(operation, is_call)?;
            state.scripts.get(operation).cloned()
        };
        let Some(script) = script else { return self.answer_built_in(&request) };
        catch_unwind(AssertUnwindSafe(|| script(&request))).unwrap_or_else(|_| {
            let text = format!("the host failed in its service `{operation}`");
            Err(Error::new(ErrorKind::HostBug, text))
        })
    }

    fn answer_built_in(&self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        if let Some(meant) = process_operation(&request.operation) {
            let request = ServiceRequest { operation: meant.to_owned(), ..request.clone() };
            return self.answer_built_in(&request);
        }
        match request.operation.as_str() {
            service::SESSION => {
                let none = || Error::new(ErrorKind::Unavailable, "there is no session");
                FakeServiceReply::from_value(&self.lock().session.clone().ok_or_else(none)?)
            }
            REQUEST => self.lock().read_request(request),
            service::CONFIG => Ok(FakeServiceReply::Json(self.lock().config.clone())),
            service::ASSET => {
                let id = request.read::<AssetRequest>()?.id;
                let text = format!("the asset `{id}` is not available");
                let none = || Error::new(ErrorKind::Unavailable, text);
                FakeServiceReply::from_value(self.lock().assets.get(&id).ok_or_else(none)?)
            }
            service::CACHE_FOLDER => {
                let folder = self.temporary_folder()?.join("cache");
                std::fs::create_dir_all(&folder).map_err(io_error)?;
                FakeServiceReply::from_value(&FolderAnswer::new(folder.to_string_lossy()))
            }
            service::OUTPUT => self.write_output(request),
            service::BLOB_PUT => self.lock().put_blob(request),
            service::BLOB_GET => self.lock().get_blob(request),
            HTTP_BODY => self.lock().append_to_body(request),
            service::ATTACH => self.lock().attach_blob(request),
            process::SPAWN
            | process::SPAWN_ON_TERMINAL
            | process::WRITE
            | process::SIGNAL
            | process::END => {
                let folder = self.temporary_folder()?;
                let state = &mut *self.lock();
                state.programs.answer(request, state.session.as_ref(), &folder)
            }
            COUNT => {
                let asked: TokenCountInput = request.read::<Option<_>>()?.unwrap_or_default();
                if asked.to_completion_request("").is_none() {
                    let text = "give either `text` or `request`, not both or neither";
                    return Err(Error::new(ErrorKind::InvalidArguments, text));
                }
                let session = self.lock().session.as_ref().and_then(|it| it.context.clone());
                let model = asked.model.clone().or(session.map(|context| context.model));
                FakeServiceReply::from_value(&TokenCountAnswer::estimate(
                    asked.estimate(),
                    model,
                    None,
                ))
            }
            other if FakeSessionParts::is_operation(other) => self.lock().lent.answer(request),
            other if FakeSecrets::is_operation(other) => self.lock().secrets.answer(request),
            other if FakeStores::is_operation(other) => {
                let folder = self.temporary_folder()?;
                self.lock().stores.answer(request, &folder)
            }
            other if jaato_objects::service::is_operation(other) => self.answer_objects(request),
            other if session_environment::is_operation(other) => self.answer_environment(request),
            _ => default_answer(request),
        }
    }

    /// Answers for the files of the session's working directory, or of the host's own folder. A
    /// session whose directory a test has made up has no environment.
    fn answer_environment(&self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let folder = self.temporary_folder()?;
        let state = &mut *self.lock();
        let working = state.session.as_ref().map(|facts| PathBuf::from(&facts.working_directory));
        let working = working.filter(|path| path.is_absolute()).unwrap_or(folder);
        if !working.is_dir() {
            return Err(no_service_error(&request.operation));
        }
        state.environment.answer(request, &working)
    }

    fn answer_objects(&self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let state = &mut *self.lock();
        let Some(tool) = state.tools.get(&request.context) else {
            let text = "only tools and commands can access the session's objects";
            return Err(Error::new(ErrorKind::Unavailable, text));
        };
        let bug =
            |error: jaato_types::FrameError| Error::new(ErrorKind::HostBug, error.to_string());
        let asked = Frame::write_with_bytes(&request.json, &request.bytes).map_err(bug)?;
        let objects = &mut state.objects;
        let asker = ObjectsCaller { tool, reach: ObjectsAccess::All };
        let answer = answer_operation(objects, &asker, &request.operation, &asked)?;
        let answer = Frame::parse(&answer).map_err(bug)?;
        Ok(FakeServiceReply::Bytes(answer.json().map_err(bug)?, answer.bytes.to_vec()))
    }

    fn write_output(&self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let OutputWrite { mut key, .. } =
            request.read::<Option<OutputWrite>>()?.unwrap_or_default();
        if key.is_empty() {
            "output".clone_into(&mut key);
        }
        let mut state = self.lock();
        let written = state.outputs.entry(request.context).or_default();
        written.push((key, request.bytes.clone()));
        let bytes = written.iter().map(|(_, piece)| piece.len() as u64).sum();
        FakeServiceReply::from_value(&OutputAnswer::new(bytes))
    }
}

/// Answers an operation with the default of its answer type if the fake host has no code for it.
pub(super) fn default_answer(request: &ServiceRequest) -> Result<FakeServiceReply> {
    let operation = operation_named(&request.operation);
    let default = operation.and_then(|operation| operation.default_answer);
    let default = default.ok_or_else(|| no_service_error(&request.operation))?;
    default(&request.json)
        .map(FakeServiceReply::Json)
        .map_err(|error| request.unreadable_request_error(&error))
}

fn no_service_error(operation: &str) -> Error {
    let text = format!("this host has no service `{operation}`");
    Error::new(ErrorKind::UnknownOperation, text)
}

fn no_body_error(number: u64) -> Error {
    let text = format!("this call has no body number {number} that can be used");
    Error::new(ErrorKind::NotFound, text)
}

/// Standard base64 with padding, as the host writes it.
fn encode_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = |group: &[u8]| {
        let at = |index: usize| u32::from(group.get(index).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        let digit = |index: usize| match index <= group.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * index)) as usize & 63]),
            false => '=',
        };
        [digit(0), digit(1), digit(2), digit(3)]
    };
    bytes.chunks(3).flat_map(digits).collect()
}

fn io_error(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("the host cannot write: {error}"))
}

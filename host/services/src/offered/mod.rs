//! The bodies of the services, and the list of their groups.
//!
//! A group is a module with a function `find_body`, which finds the body of an operation. For most
//! groups, the macro `bodies` generates it from the rows in `jaato-types`, and the module has one
//! function for each row. The function takes the call and the request (with `+ bytes`, also the raw
//! bytes) and returns the answer or a future of it. In other modules `find_body` is handwritten,
//! and a comment explains why.

/// Generates a group's function `find_body` from its rows. It decodes the request, calls the
/// function with the row's name, and encodes the answer.
macro_rules! bodies {
    ($(
        $(#[doc = $doc:literal])+
        $body:ident $name:literal:
        $request:tt $(+ $request_extra:ident)? => $answer:tt $(+ $answer_extra:ident)?
        $(, sdk $sdk:tt)?;
    )+) => {
        pub(super) fn find_body(operation: &str) -> Option<super::Body> {
            let body: super::Body = match operation {
                $($name => |call: &ServiceCall, _: &str, frame: Vec<u8>| super::encode_reply(
                    call_body!(call frame $body $request $($request_extra)?),
                    encoding!($answer $($answer_extra)?),
                ),)+
                _ => return None,
            };
            Some(body)
        }
    };
}

/// Calls a body with its decoded request.
macro_rules! call_body {
    ($call:ident $frame:ident $body:ident ()) => {{
        drop($frame);
        $body($call)
    }};
    ($call:ident $frame:ident $body:ident $request:tt) => {
        super::parse_request::<$request>(&$frame).and_then(|request| $body($call, request))
    };
    ($call:ident $frame:ident $body:ident $request:tt bytes) => {
        super::parse_request_with_bytes::<$request>(&$frame)
            .and_then(|(request, bytes)| $body($call, request, bytes))
    };
}

/// Selects the function that encodes an answer. The body encodes an answer with a stream itself.
macro_rules! encoding {
    ($answer:tt) => {
        super::encode_answer::<$answer>
    };
    ($answer:tt bytes) => {
        super::encode_answer_with_bytes::<$answer>
    };
    ($answer:tt stream) => {
        Ok
    };
}

mod ask;
mod assets;
mod attach;
pub mod blobs;
mod children;
mod count;
mod environment;
mod history;
mod host_processes;
mod http;
mod model;
mod notify;
mod objects;
mod output;
mod request;
mod resources;
mod secrets;
mod session;
mod store;
mod tasks;
mod tool_calls;
mod tools_list;
mod tools_set;
mod workspace_file;

use futures_util::future::BoxFuture;
use jaato_instances::CallAccess;
use jaato_loader::{CallerKind, EngineServiceAnswer, ServiceCaller};
use jaato_types::hooks::reading_only_error;
use jaato_types::operations::operation_named;
use jaato_types::service::OUTPUT;
use jaato_types::{Error, ErrorKind, Frame, FrameError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::ServiceCall;

/// A future answer. It must not block the thread that polls it.
pub type ServiceFuture<T> = BoxFuture<'static, Result<T, Error>>;

/// An encoded answer.
pub type ServiceAnswer = ServiceFuture<EngineServiceAnswer>;

/// Answers an operation. Runs on the thread that serves plugins, so it must not block.
type Body = fn(&ServiceCall, &str, Vec<u8>) -> ServiceAnswer;

macro_rules! groups {
    ($($group:ident)*) => { &[$($group::find_body),*] };
}

/// All groups.
const GROUPS: &[fn(&str) -> Option<Body>] = groups! {
    session request store secrets assets http output blobs attach objects resources history
    tool_calls tools_list tools_set tasks notify ask model children count host_processes
    workspace_file environment
};

/// Answers an operation of a call. It looks up the grant each time, so that a revoked grant applies
/// from the next request.
pub fn answer_operation(
    call: &ServiceCall,
    caller: &ServiceCaller,
    operation: &str,
    request: Vec<u8>,
) -> ServiceAnswer {
    // Instances have no output.
    let is_offered = operation != OUTPUT || caller.kind == CallerKind::Call;
    let body = GROUPS.iter().find_map(|body| body(operation)).filter(|_| is_offered);
    let allowed = || check_access(call, operation).and_then(|()| call.check_grant(operation));
    match body
        .ok_or_else(|| unknown_service_error(operation))
        .and_then(|body| allowed().map(|()| body))
    {
        Ok(body) => body(call, operation, request),
        Err(error) => ready_answer(Err(error)),
    }
}

/// Checks that the kind of the call allows the operation.
fn check_access(call: &ServiceCall, operation: &str) -> Result<(), Error> {
    let declared = operation_named(operation);
    let is_allowed = match call.site.access {
        CallAccess::Full => true,
        CallAccess::Reads => declared.is_some_and(|it| it.only_reads),
        CallAccess::Hook => declared.is_some_and(|it| it.only_reads || it.in_hooks),
    };
    if is_allowed { Ok(()) } else { Err(reading_only_error(operation)) }
}

/// The result of a body, which is either the answer or, with `ServiceFuture`, a future of it.
trait OperationReply<T> {
    fn into_future_reply(self) -> Result<ServiceFuture<T>, Error>;
}

impl<T: Send + 'static> OperationReply<T> for Result<T, Error> {
    fn into_future_reply(self) -> Result<ServiceFuture<T>, Error> {
        self.map(|answer| Box::pin(std::future::ready(Ok(answer))) as ServiceFuture<T>)
    }
}

impl<T> OperationReply<T> for Result<ServiceFuture<T>, Error> {
    fn into_future_reply(self) -> Result<ServiceFuture<T>, Error> {
        self
    }
}

/// Encodes the result of a body.
fn encode_reply<T: 'static>(
    reply: impl OperationReply<T>,
    encode: fn(T) -> Result<EngineServiceAnswer, Error>,
) -> ServiceAnswer {
    match reply.into_future_reply() {
        Ok(later) => Box::pin(async move { encode(later.await?) }),
        Err(error) => ready_answer(Err(error)),
    }
}

fn unknown_service_error(operation: &str) -> Error {
    let text = format!("this host has no service `{operation}`");
    Error::new(ErrorKind::UnknownOperation, text)
}

fn ready_answer(served: Result<EngineServiceAnswer, Error>) -> ServiceAnswer {
    Box::pin(std::future::ready(served))
}

fn parse_request<T: DeserializeOwned>(request: &[u8]) -> Result<T, Error> {
    Frame::read(request).map_err(bad_request_error)
}

fn parse_request_with_bytes<T: DeserializeOwned>(request: &[u8]) -> Result<(T, Vec<u8>), Error> {
    let parsed = Frame::parse(request).map_err(bad_request_error)?;
    Ok((parsed.json().map_err(bad_request_error)?, parsed.bytes.to_vec()))
}

fn encode_answer<T: Serialize>(answer: T) -> Result<EngineServiceAnswer, Error> {
    Frame::write(&answer).map(EngineServiceAnswer::Frame).map_err(host_bug_error)
}

fn encode_answer_with_bytes<T: Serialize>(
    (answer, bytes): (T, Vec<u8>),
) -> Result<EngineServiceAnswer, Error> {
    Frame::write_with_bytes(&answer, &bytes).map(EngineServiceAnswer::Frame).map_err(host_bug_error)
}

fn host_bug_error(error: FrameError) -> Error {
    Error::new(ErrorKind::HostBug, error.to_string())
}

fn bad_request_error(error: FrameError) -> Error {
    Error::new(ErrorKind::InvalidArguments, error.to_string())
}

#[cfg(test)]
mod tests {
    use jaato_types::operations::operations;

    use super::*;

    /// Counts the groups that have an operation.
    fn groups_with(operation: &str) -> usize {
        GROUPS.iter().filter(|body| body(operation).is_some()).count()
    }

    #[test]
    fn each_declared_operation_is_in_one_group() {
        for operation in operations() {
            assert_eq!(groups_with(operation.name), 1, "{}", operation.name);
        }
    }

    #[test]
    fn an_unknown_operation_is_refused_by_its_name() {
        assert_eq!(groups_with("moon.phase"), 0);
        let error = unknown_service_error("moon.phase");
        assert_eq!(error.kind, ErrorKind::UnknownOperation);
        assert_eq!(error.message, "this host has no service `moon.phase`");
    }
}

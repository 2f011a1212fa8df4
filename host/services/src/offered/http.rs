//! The services `http.answer_request` and `http.body`: network access with API keys that the plugin
//! can use but never sees, and bodies that are larger than a frame.

use std::path::PathBuf;
use std::sync::Arc;

use jaato_types::http::{
    HTTP_BODY, HTTP_CREDENTIAL, HTTP_REQUEST, HttpBody, HttpBodyAnswer, HttpCredential,
    HttpCredentialAnswer,
};
use jaato_types::{Error, Frame};

use super::{Body, ServiceAnswer, bad_request_error, encode_answer, ready_answer};
use crate::call::ServiceCall;
use crate::http;
use crate::request_bodies::AppendedBlob;

/// A piece of a request body.
struct BodyPiece {
    number: Option<u64>,
    folder: PathBuf,
    bytes: Vec<u8>,
    blob: Option<AppendedBlob>,
}

// Handwritten, because the request's body stays in its frame.
pub(super) fn find_body(operation: &str) -> Option<Body> {
    match operation {
        HTTP_REQUEST => Some(answer_http_request),
        HTTP_BODY => Some(append_to_body),
        HTTP_CREDENTIAL => Some(answer_credential_query),
        _ => None,
    }
}

fn answer_http_request(call: &ServiceCall, _operation: &str, request: Vec<u8>) -> ServiceAnswer {
    let shared = &call.shared;
    let clients = (&shared.http, &shared.web);
    let lent = (clients, &shared.requests, &call.bodies, &shared.key_commands);
    let alive = call.site.alive.clone();
    http::answer_request(lent, &call.plugin, &call.credentials, &request, alive)
}

fn answer_credential_query(
    call: &ServiceCall,
    _operation: &str,
    request: Vec<u8>,
) -> ServiceAnswer {
    let parsed = Frame::parse(&request).map_err(bad_request_error).and_then(|frame| {
        let HttpCredential { variable } = frame.json().map_err(bad_request_error)?;
        Ok(variable)
    });
    let is_set = parsed.and_then(|variable| call.credentials.is_set(&variable));
    ready_answer(is_set.and_then(|is_set| encode_answer(HttpCredentialAnswer::new(is_set))))
}

fn append_to_body(call: &ServiceCall, _operation: &str, request: Vec<u8>) -> ServiceAnswer {
    let BodyPiece { number, folder, bytes, blob } = match parse_body_piece(call, &request) {
        Ok(piece) => piece,
        Err(error) => return ready_answer(Err(error)),
    };
    let bodies = Arc::clone(&call.bodies);
    Box::pin(async move {
        let (number, bytes) = bodies.append_piece(number, &folder, bytes, blob).await?;
        encode_answer(HttpBodyAnswer::new(number, bytes))
    })
}

fn parse_body_piece(call: &ServiceCall, request: &[u8]) -> Result<BodyPiece, Error> {
    let parsed = Frame::parse(request).map_err(bad_request_error)?;
    let HttpBody { body: number, blob, base64 } = parsed.json().map_err(bad_request_error)?;
    let part = |id| {
        let blobs = call.shared.blobs.session_blobs(&call.site.session)?;
        Ok::<_, Error>(AppendedBlob { blobs, id, base64 })
    };
    let blob = blob.map(part).transpose()?;
    // Next to the outputs, because the system's temporary folder may be in memory.
    let folder = call.shared.outputs.path("body")?.parent().map(PathBuf::from);
    let folder = folder.unwrap_or_else(std::env::temp_dir);
    Ok(BodyPiece { number, folder, bytes: parsed.bytes.to_vec(), blob })
}

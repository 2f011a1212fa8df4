//! Sends a provider's or gc's request to its plugin: in one frame or, if the history is too large
//! for one, as a call that reads it piece by piece.

use std::sync::Arc;

use jaato_instances::{CallSite, DeltaCallback, FacetRequest};
use jaato_session::Cancel;
use jaato_types::large::{LargeRequest, LargeRequestKind, REQUEST_BYTES_MAX};
use jaato_types::{Error, ErrorKind, Frame, FrameError, PluginName};
use serde::Serialize;

use crate::host::RuntimeHost;

/// Asks a plugin and waits for the answer's frame.
///
/// # Errors
/// The plugin's error. If the request is larger than the boundary or this plugin allows:
/// `context_overflow` for a completion, so that the session sends less, and `limit_reached` for a
/// plan.
pub async fn send_large_request(
    host: &RuntimeHost,
    plugin: &PluginName,
    of: LargeRequestKind,
    site: CallSite,
    request: &impl Serialize,
    tell: &DeltaCallback,
    cancel: &Cancel,
) -> Result<Vec<u8>, Error> {
    let facet = match of {
        LargeRequestKind::Plan => FacetRequest::Plan,
        LargeRequestKind::Complete | LargeRequestKind::Unknown => FacetRequest::Completion,
    };
    match Frame::write(request) {
        Ok(frame) => {
            host.plugins.call_plugin(plugin.as_str(), facet, site, frame, tell, cancel).await
        }
        Err(FrameError::TooLarge { .. }) => {
            let json: Arc<[u8]> = serde_json::to_vec(request).map_err(serialization_error)?.into();
            if json.len() > REQUEST_BYTES_MAX {
                let text = format!(
                    "the history has {} bytes, but the limit is {REQUEST_BYTES_MAX}",
                    json.len()
                );
                return Err(Error::new(too_large_error_kind(of), text));
            }
            let large = LargeRequest::new(of, json.len() as u64);
            let frame = Frame::write(&large).map_err(serialization_error)?;
            let site = CallSite { request: Some(json), ..site };
            let facet = FacetRequest::Large(of);
            let answer =
                host.plugins.call_plugin(plugin.as_str(), facet, site, frame, tell, cancel).await;
            answer.map_err(|error| explain_unknown(error, of, plugin))
        }
        Err(error) => Err(serialization_error(error)),
    }
}

/// Explains the refusal of a plugin that does not know the operation for large requests.
fn explain_unknown(error: Error, of: LargeRequestKind, plugin: &PluginName) -> Error {
    if error.kind != ErrorKind::UnknownOperation {
        return error;
    }
    let text = format!("the history is larger than 8 MiB, the limit of `{plugin}`");
    Error::new(too_large_error_kind(of), text)
        .with_hint("update the plugin to a version that supports the operation `large`")
}

fn too_large_error_kind(of: LargeRequestKind) -> ErrorKind {
    match of {
        LargeRequestKind::Complete => ErrorKind::ContextOverflow,
        LargeRequestKind::Plan | LargeRequestKind::Unknown => ErrorKind::LimitReached,
    }
}

fn serialization_error(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::HostBug, format!("the request cannot be written: {error}"))
}

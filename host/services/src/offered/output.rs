//! The service `output`: texts of a tool call's result that may be long, piece by piece.

use jaato_loader::{Caller, CallerKind};
use jaato_types::service::{OUTPUT, OutputAnswer, OutputWrite};
use jaato_types::{Error, ErrorKind, Frame};

use super::{Answer, Service, bad_request, frame, ready};
use crate::call::Call;

/// The output that a tool call streams.
pub struct Output;

impl Service for Output {
    fn has(&self, operation: &str) -> bool {
        operation == OUTPUT
    }

    fn is_for(&self, _call: &Call, caller: &Caller) -> bool {
        caller.kind == CallerKind::Call
    }

    fn call(&self, call: &Call, _operation: &str, request: Vec<u8>) -> Answer {
        let Some(streamed) = call.site.streamed.clone() else {
            let text = "only a tool call has an output";
            return ready(Err(Error::new(ErrorKind::Unavailable, text)));
        };
        Box::pin(async move {
            let parsed = Frame::parse(&request).map_err(bad_request)?;
            let write: Option<OutputWrite> = parsed.json().map_err(bad_request)?;
            let bytes = streamed.push(&write.unwrap_or_default(), parsed.bytes).await?;
            frame(&OutputAnswer::new(bytes))
        })
    }
}

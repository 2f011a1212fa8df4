//! The service `request`: what a call is about, where that is larger than a frame.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use jaato_loader::{Frames, Served};
use jaato_types::large::REQUEST;
use jaato_types::{Error, ErrorKind, Frame};

use super::{Answer, Service, ready};
use crate::call::Call;

/// Bytes that one `next` gives at most.
const PIECE_BYTES_MAX: usize = 1024 * 1024;

/// The request of a call.
pub struct OfCall;

impl Service for OfCall {
    fn has(&self, operation: &str) -> bool {
        operation == REQUEST
    }

    fn call(&self, call: &Call, _operation: &str, _request: Vec<u8>) -> Answer {
        ready(match &call.site.request {
            Some(json) => Ok(pieces(Arc::clone(json))),
            None => {
                let text = "what this call is about came with it: there is no more to read";
                Err(Error::new(ErrorKind::Unavailable, text))
            }
        })
    }
}

fn pieces(json: Arc<[u8]>) -> Served {
    let starts = (0..json.len()).step_by(PIECE_BYTES_MAX);
    let pieces = stream::iter(starts).map(move |start| {
        let piece = &json[start..json.len().min(start + PIECE_BYTES_MAX)];
        Frame::from_json_text(b"", piece)
            .map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))
    });
    Served::Stream(Box::new(Frames(pieces)))
}

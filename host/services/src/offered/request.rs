//! The service `request`, which returns the request of a call if it is larger than a frame.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use jaato_loader::{EngineServiceAnswer, FrameStream};
use jaato_types::{Error, ErrorKind, Frame};

use super::host_bug_error;
use crate::call::ServiceCall;

/// The maximum number of bytes that one `next` returns.
const PIECE_BYTES_MAX: usize = 1024 * 1024;

jaato_types::request_operations!(bodies);

fn request(call: &ServiceCall) -> Result<EngineServiceAnswer, Error> {
    let text = "the call already contains its complete request";
    let json = call.site.request.as_ref().map(|json| stream_json(Arc::clone(json)));
    json.ok_or_else(|| Error::new(ErrorKind::Unavailable, text))
}

fn stream_json(json: Arc<[u8]>) -> EngineServiceAnswer {
    let starts = (0..json.len()).step_by(PIECE_BYTES_MAX);
    let pieces = stream::iter(starts).map(move |start| {
        let piece = &json[start..json.len().min(start + PIECE_BYTES_MAX)];
        Frame::from_json_text(b"", piece).map_err(host_bug_error)
    });
    EngineServiceAnswer::Stream(Box::new(FrameStream(pieces)))
}

//! Reads requests that are larger than a frame, piece by piece.

use jaato_types::large::{REQUEST, REQUEST_BYTES_MAX};
use jaato_types::{Error, ErrorKind, Result};
use serde::de::DeserializeOwned;

use crate::context::Cx;

/// Reads the request behind a large call. `bytes` is the size that the call declares.
pub(crate) async fn read_large_request<S, T>(cx: &Cx<S>, bytes: u64) -> Result<T>
where
    T: DeserializeOwned + Send + 'static,
{
    let room = usize::try_from(bytes).ok().filter(|bytes| *bytes <= REQUEST_BYTES_MAX);
    let Some(room) = room else {
        let text = format!(
            "a request of {bytes} bytes is too large: at most {REQUEST_BYTES_MAX} can be read"
        );
        return Err(Error::new(ErrorKind::LimitReached, text));
    };
    let mut stream = cx.open(REQUEST, &()).await?;
    let mut json = Vec::with_capacity(room);
    while let Some(piece) = stream.next_piece().await? {
        json.extend_from_slice(&piece);
        if json.len() > room {
            break;
        }
    }
    if json.len() != room {
        let text = format!("the request does not have the declared size of {bytes} bytes");
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    // Parsing many megabytes would block the executor for too long.
    let read = cx.blocking(move |_| serde_json::from_slice(&json)).await?;
    read.map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))
}

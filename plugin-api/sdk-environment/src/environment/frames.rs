//! Frames of requests and answers.

use jaato_plugin_sdk::__private::{invalid_answer_error, invalid_frame_error};
use jaato_types::{Error, ErrorKind, Frame, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Returns an empty answer.
pub(super) fn empty_answer() -> Result<Vec<u8>> {
    Ok(Frame::empty())
}

/// Reads a request.
pub(super) fn parse_frame<T: DeserializeOwned>(frame: &[u8]) -> Result<T> {
    Frame::read(frame).map_err(invalid_frame_error)
}

/// Reads a request and its bytes.
pub(super) fn parse_frame_with_bytes<T: DeserializeOwned>(frame: &[u8]) -> Result<(T, Vec<u8>)> {
    let parsed = Frame::parse(frame).map_err(invalid_frame_error)?;
    Ok((parsed.json().map_err(invalid_frame_error)?, parsed.bytes.to_vec()))
}

/// Builds an answer with bytes.
pub(super) fn encode_frame(value: &impl Serialize, bytes: &[u8]) -> Result<Vec<u8>> {
    Frame::write_with_bytes(value, bytes).map_err(invalid_answer_error)
}

/// Returns the error of an operation that the environment does not have.
pub(super) fn unknown_operation_error(operation: &str) -> Error {
    let text = format!("the environment does not know the operation `{operation}`");
    Error::new(ErrorKind::UnknownOperation, text)
}

/// Returns the error of an unknown number.
pub(super) fn unknown_handle_error(what: &str, number: u64) -> Error {
    let text = format!("the environment has no {what} {number}");
    Error::new(ErrorKind::NotFound, text).with_hint("it has ended or never existed")
}

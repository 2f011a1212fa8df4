//! The frame: the format of each payload at the boundary.
//!
//! Layout: the length of the JSON (u32, little-endian), the JSON in UTF-8, then raw bytes (usually
//! none). A length of 0 means no JSON. Bytes are never encoded as base64. Each side validates a
//! frame before it reads it. This module never panics on input from the other side.

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

/// The maximum size of a frame, in bytes. Larger data crosses in pieces through a service, and an
/// id or a path refers to it.
pub const FRAME_BYTES_MAX: usize = 8 * 1024 * 1024;

const HEAD_BYTES: usize = 4;

/// A validated view of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The JSON text. Empty if the frame has no JSON.
    pub json: &'a [u8],
    /// The raw bytes after the JSON.
    pub bytes: &'a [u8],
}

/// Why bytes are not a frame, or why a frame's JSON does not have the expected format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameError {
    /// The frame is shorter than its header, or than the header specifies.
    Short {
        /// The required number of bytes.
        needs: usize,
        /// The actual number of bytes.
        has: usize,
    },
    /// The frame is longer than [`FRAME_BYTES_MAX`].
    TooLarge {
        /// The actual number of bytes.
        has: usize,
    },
    /// The JSON is missing, malformed or of another type. The text says where.
    Json(String),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { needs, has } => {
                write!(f, "a frame of {has} bytes is too short: it needs {needs}")
            }
            Self::TooLarge { has } => {
                write!(
                    f,
                    "a frame of {has} bytes is too large: at most {FRAME_BYTES_MAX} may cross"
                )
            }
            Self::Json(text) => write!(f, "a frame's JSON cannot be read: {text}"),
        }
    }
}

impl std::error::Error for FrameError {}

impl<'a> Frame<'a> {
    /// Validates the lengths of a frame and splits it, without parsing the JSON.
    pub fn parse(frame: &'a [u8]) -> Result<Self, FrameError> {
        if frame.len() > FRAME_BYTES_MAX {
            return Err(FrameError::TooLarge { has: frame.len() });
        }
        let Some((head, rest)) = frame.split_first_chunk::<HEAD_BYTES>() else {
            return Err(FrameError::Short { needs: HEAD_BYTES, has: frame.len() });
        };
        let length = u32::from_le_bytes(*head) as usize;
        let Some((json, bytes)) = rest.split_at_checked(length) else {
            return Err(FrameError::Short { needs: HEAD_BYTES + length, has: frame.len() });
        };
        Ok(Self { json, bytes })
    }

    /// Parses a frame and its JSON.
    pub fn read<T: DeserializeOwned>(frame: &'a [u8]) -> Result<T, FrameError> {
        Self::parse(frame)?.json()
    }

    /// Parses the JSON. A frame without JSON reads as `null`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        let text = if self.json.is_empty() { b"null" } else { self.json };
        serde_json::from_slice(text).map_err(|error| FrameError::Json(error.to_string()))
    }

    /// Builds a frame from a value.
    ///
    /// # Errors
    /// [`FrameError::Json`] if the value cannot be written as JSON, [`FrameError::TooLarge`].
    pub fn write<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, FrameError> {
        Self::write_with_bytes(value, &[])
    }

    /// Builds a frame from a value and raw bytes.
    ///
    /// # Errors
    /// As [`Frame::write`].
    pub fn write_with_bytes<T: Serialize + ?Sized>(
        value: &T,
        bytes: &[u8],
    ) -> Result<Vec<u8>, FrameError> {
        let mut frame = vec![0; HEAD_BYTES];
        serde_json::to_writer(&mut frame, value)
            .map_err(|error| FrameError::Json(error.to_string()))?;
        Self::append_bytes(frame, bytes)
    }

    /// Builds a frame from JSON text.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`].
    pub fn from_json_text(json: &[u8], bytes: &[u8]) -> Result<Vec<u8>, FrameError> {
        let mut frame = Vec::with_capacity(HEAD_BYTES + json.len() + bytes.len());
        frame.extend_from_slice(&[0; HEAD_BYTES]);
        frame.extend_from_slice(json);
        Self::append_bytes(frame, bytes)
    }

    /// Returns a frame without JSON and bytes.
    pub fn empty() -> Vec<u8> {
        vec![0; HEAD_BYTES]
    }

    fn append_bytes(mut frame: Vec<u8>, bytes: &[u8]) -> Result<Vec<u8>, FrameError> {
        let json_length = frame.len() - HEAD_BYTES;
        frame.extend_from_slice(bytes);
        if frame.len() > FRAME_BYTES_MAX {
            return Err(FrameError::TooLarge { has: frame.len() });
        }
        // Below FRAME_BYTES_MAX, so it fits into 32 bits.
        frame[..HEAD_BYTES].copy_from_slice(&(json_length as u32).to_le_bytes());
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_is_read_back_as_written() {
        let frame = Frame::write_with_bytes(&serde_json::json!({"a": 1}), &[7, 0, 255]).unwrap();
        let read = Frame::parse(&frame).unwrap();
        assert_eq!(read.json::<serde_json::Value>().unwrap(), serde_json::json!({"a": 1}));
        assert_eq!(read.bytes, [7, 0, 255]);
        assert_eq!(Frame::read::<Option<u8>>(&Frame::empty()).unwrap(), None);
    }

    #[test]
    fn bad_lengths_are_errors() {
        for (bytes, needs) in [(&[][..], 4), (&[1, 0, 0], 4), (&[9, 0, 0, 0, b'{'], 13)] {
            assert_eq!(Frame::parse(bytes), Err(FrameError::Short { needs, has: bytes.len() }));
        }
        let lies = [255, 255, 255, 255, b'1'];
        assert!(matches!(Frame::parse(&lies), Err(FrameError::Short { .. })));
    }

    #[test]
    fn a_frame_may_be_as_large_as_the_limit_and_not_one_byte_larger() {
        let json = br#""""#;
        let most = FRAME_BYTES_MAX - HEAD_BYTES - json.len();
        let frame = Frame::from_json_text(json, &vec![0; most]).unwrap();
        assert_eq!(frame.len(), FRAME_BYTES_MAX);
        assert!(Frame::parse(&frame).is_ok());
        let has = FRAME_BYTES_MAX + 1;
        let too_large = Err(FrameError::TooLarge { has });
        assert_eq!(Frame::from_json_text(json, &vec![0; most + 1]), too_large);
        assert_eq!(Frame::parse(&vec![0; has]), Err(FrameError::TooLarge { has }));
    }
}

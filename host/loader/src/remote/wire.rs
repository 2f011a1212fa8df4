//! The protocol between host and worker: a fixed header and a verbatim frame.
//!
//! ```text
//! length of the payload  u32, little-endian
//! kind                   u8
//! flag                   u8: 0 a frame, 1 an error's frame, 2 nothing, 3 a frame and a stream
//! (zero)                 u16
//! id                     u64, little-endian: the call, or the question
//! payload                the frame; some kinds put a number or a name before it
//! ```
//!
//! Host and worker are the same executable, unless it was replaced while the host runs. Therefore
//! the worker's first message holds the protocol's version, and nothing else is negotiated.

use jaato_plugin_engine::Facet;
use jaato_types::FRAME_BYTES_MAX;

/// The version of the protocol, incremented with each change. The worker's
/// [`LinkMessageKind::Ready`] holds it.
pub const VERSION: u8 = 5;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 16;
/// Largest payload: a frame, preceded by a name and a number.
pub const PAYLOAD_BYTES_MAX: usize = FRAME_BYTES_MAX + NAME_BYTES_MAX + 16;
/// Longest name before a frame: the name of a tool, an operation or a service.
pub const NAME_BYTES_MAX: usize = 4096;

/// Defines an enum that crosses as one byte, and its reader, which returns `None` for an unknown
/// byte.
macro_rules! byte_enum {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $byte:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $variant = $byte,)+
        }

        impl $name {
            fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $($byte => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

byte_enum! {
    /// The kind of message.
    LinkMessageKind {
        /// Host: create the instance, optionally from saved state.
        Create = 1,
        /// Host: begin a call. A facet and a name precede the frame.
        Call = 2,
        /// Host: cancel a call.
        Cancel = 3,
        /// Host: a service's answer to a request.
        Served = 4,
        /// Host: the next piece of a stream.
        Piece = 5,
        /// Host: ask the instance for its state to save.
        Save = 6,
        /// Host: close the instance.
        Close = 7,
        /// Worker: the plugin is open, or could not be opened. The payload is the version.
        Ready = 65,
        /// Worker: the instance was created. The payload is the bits of its facets.
        Created = 66,
        /// Worker: a call emits.
        Emit = 67,
        /// Worker: a call is over.
        Answer = 68,
        /// Worker: a request to a service. The context's number and a name precede the frame.
        Ask = 69,
        /// Worker: wants the next piece of a stream. The context's number and the handle are the
        /// payload.
        Next = 70,
        /// Worker: no longer needs a stream. The payload is the same as above.
        CloseStream = 71,
        /// Worker: no longer needs the answer to a request.
        Forget = 72,
        /// Worker: a line for the log. The level precedes the text.
        Log = 73,
        /// Worker: the instance's state to save.
        Saved = 74,
        /// Worker: the instance is closed. The payload is its state to save.
        Closed = 75,
        /// Worker: the plugin still blocks a thread. The payload is the time in milliseconds.
        StillBlocked = 76,
    }
}

byte_enum! {
    /// The kind of payload.
    LinkMessageFlag {
        /// A frame, or the payload of the message's kind.
        Frame = 0,
        /// The frame of an error.
        Error = 1,
        /// Nothing: the end of a stream, or no state to save.
        Nothing = 2,
        /// A frame whose object holds the handle of a stream.
        Stream = 3,
    }
}

/// The fixed part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkMessageHeader {
    /// The kind of message.
    pub kind: LinkMessageKind,
    /// The kind of payload.
    pub flag: LinkMessageFlag,
    /// The number of the call or the request.
    pub id: u64,
    /// Bytes of the payload.
    pub length: usize,
}

/// Why received bytes are not a valid message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedLinkMessage(pub String);

impl LinkMessageHeader {
    /// Returns the header as bytes.
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        // Every sender bounds its payload far below this.
        let length = u32::try_from(self.length).unwrap_or(u32::MAX);
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes[4] = self.kind as u8;
        bytes[5] = self.flag as u8;
        bytes[8..].copy_from_slice(&self.id.to_le_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// If the kind or the flag is unknown, or the payload is too long.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, MalformedLinkMessage> {
        let [a, b, c, d, kind, flag, _, _, id @ ..] = *bytes;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let id = u64::from_le_bytes(id);
        if length > PAYLOAD_BYTES_MAX {
            let text =
                format!("a message of {length} bytes; at most {PAYLOAD_BYTES_MAX} are allowed");
            return Err(MalformedLinkMessage(text));
        }
        let unknown = |what: &str, byte: u8| {
            MalformedLinkMessage(format!("a message of unknown {what} {byte}"))
        };
        let kind = LinkMessageKind::from_byte(kind).ok_or_else(|| unknown("kind", kind))?;
        let flag = LinkMessageFlag::from_byte(flag).ok_or_else(|| unknown("flag", flag))?;
        Ok(Self { kind, flag, id, length })
    }
}

/// Returns the bytes before the frame of a call.
pub fn call_head(facet: Facet, name: &str) -> Vec<u8> {
    let mut head = vec![facet as u8];
    push_name(&mut head, name);
    head
}

/// Splits a call's payload into facet, name and frame.
pub fn split_call(payload: &[u8]) -> Option<(Facet, &str, &[u8])> {
    let (&facet, rest) = payload.split_first()?;
    let (name, frame) = take_name(rest)?;
    Some((Facet::from_number(facet)?, name, frame))
}

/// Returns the bytes before the frame of a request.
pub fn service_request_head(context: u64, operation: &str) -> Vec<u8> {
    let mut head = context.to_le_bytes().to_vec();
    push_name(&mut head, operation);
    head
}

/// Splits a request's payload into context, operation and frame.
pub fn split_service_request(payload: &[u8]) -> Option<(u64, &str, &[u8])> {
    let (context, rest) = take_number(payload)?;
    let (name, frame) = take_name(rest)?;
    Some((context, name, frame))
}

/// Returns the payload that names a context's stream.
pub fn stream_payload(context: u64, handle: u64) -> [u8; 16] {
    let mut payload = [0; 16];
    payload[..8].copy_from_slice(&context.to_le_bytes());
    payload[8..].copy_from_slice(&handle.to_le_bytes());
    payload
}

/// Splits the payload of [`stream_payload`] into context and handle.
pub fn split_stream_payload(payload: &[u8]) -> Option<(u64, u64)> {
    let (context, rest) = take_number(payload)?;
    let (handle, rest) = take_number(rest)?;
    rest.is_empty().then_some((context, handle))
}

/// Reads the payload of [`LinkMessageKind::StillBlocked`].
pub fn parse_number(payload: &[u8]) -> Option<u64> {
    take_number(payload).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
}

fn push_name(head: &mut Vec<u8>, name: &str) {
    // Longer than any registered name, so the other side will not know the truncated name.
    let name = &name.as_bytes()[..name.len().min(NAME_BYTES_MAX)];
    head.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
    head.extend_from_slice(name);
}

fn take_name(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (name, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    Some((std::str::from_utf8(name).ok()?, rest))
}

fn take_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for kind in [LinkMessageKind::Create, LinkMessageKind::Closed] {
            for flag in [LinkMessageFlag::Frame, LinkMessageFlag::Stream] {
                let header =
                    LinkMessageHeader { kind, flag, id: u64::MAX - 7, length: PAYLOAD_BYTES_MAX };
                assert_eq!(LinkMessageHeader::decode(&header.encode()), Ok(header));
            }
        }
    }

    #[test]
    fn invalid_message_header_is_reported() {
        let good = LinkMessageHeader {
            kind: LinkMessageKind::Emit,
            flag: LinkMessageFlag::Frame,
            id: 1,
            length: 4,
        }
        .encode();
        let with = |index: usize, byte: u8| {
            let mut bytes = good;
            bytes[index] = byte;
            LinkMessageHeader::decode(&bytes).unwrap_err().0
        };
        assert_eq!(with(4, 8), "a message of unknown kind 8");
        assert_eq!(with(5, 9), "a message of unknown flag 9");
        assert!(with(3, 0xff).contains("at most"), "{}", with(3, 0xff));
    }

    #[test]
    fn payloads_are_split_and_truncated_payloads_are_rejected() {
        let mut call = call_head(Facet::Operation, "naïve");
        call.extend_from_slice(b"frame");
        assert_eq!(split_call(&call), Some((Facet::Operation, "naïve", b"frame".as_slice())));
        let mut ask = service_request_head(7, "http.request");
        ask.extend_from_slice(b"");
        assert_eq!(split_service_request(&ask), Some((7, "http.request", b"".as_slice())));
        assert_eq!(split_stream_payload(&stream_payload(1, 2)), Some((1, 2)));
        for length in 0..call.len() - 5 {
            assert_eq!(split_call(&call[..length]), None, "{length}");
        }
        for length in 0..ask.len() {
            assert_eq!(split_service_request(&ask[..length]), None, "{length}");
        }
        assert_eq!(split_stream_payload(&[0; 17]), None);
        assert_eq!(parse_number(&7_u64.to_le_bytes()), Some(7));
        assert_eq!(parse_number(&[0; 9]), None);
    }
}

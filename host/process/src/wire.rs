//! The bytes between host, guardian and keeper. Pure: touches no descriptor.
//!
//! - host to guardian: a [`StartRequest`] of [`START_REQUEST_BYTES`] bytes, with descriptors
//!   attached
//! - host to keeper: one [`KeeperRequest`] (a length and that many bytes), then [`KeeperOrder`]s
//! - keeper to host: [`KeeperEvent`]s (a length and that many bytes)
//!
//! Both sides check what they read. Sizes are limited, texts cannot contain a zero byte, and
//! messages that another build could read begin with a version.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::child::{Exit, GroupSignal, Leftover};
use crate::command::{ChildCommand, ProcessLimits};

/// Version of everything in this module.
pub(crate) const VERSION: u8 = 2;

/// Size of a [`StartRequest`].
pub(crate) const START_REQUEST_BYTES: usize = 2;

/// Size of an [`KeeperOrder`].
pub(crate) const ORDER_BYTES: usize = 2;

/// Size of the length in front of requests and events.
pub(crate) const LENGTH_BYTES: usize = 4;

/// Largest request. Exceeds what Linux allows a program (6 MiB), so that the system decides.
pub(crate) const REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Largest event. [`LEFTOVERS_MAX`] entries fit.
pub(crate) const EVENT_BYTES_MAX: usize = 4096;

/// Maximum number of reported leftovers. Further ones are still ended.
pub const LEFTOVERS_MAX: usize = 100;

/// Longest process name that the kernel keeps.
const NAME_BYTES_MAX: usize = 15;

/// Marks an absent limit.
const NO_LIMIT: u64 = u64::MAX;

/// Asks the guardian for one keeper. Attached are the keeper's socket and the existing descriptors
/// among standard input, output, error and descriptor 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartRequest {
    /// Which of the four descriptors are present.
    pub present: [bool; 4],
}

impl StartRequest {
    pub(crate) fn encode(self) -> [u8; START_REQUEST_BYTES] {
        let bits =
            self.present.iter().rev().fold(0, |bits, present| bits << 1 | u8::from(*present));
        [VERSION, bits]
    }

    /// Parses a request. Returns `None` if it is invalid or has another version.
    pub(crate) fn decode(bytes: [u8; START_REQUEST_BYTES]) -> Option<Self> {
        let [version, bits] = bytes;
        let known = version == VERSION && bits < 1 << 4;
        known.then(|| Self { present: std::array::from_fn(|bit| bits & 1 << bit != 0) })
    }
}

/// The role of standard input in the command's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionInput {
    /// An ordinary input.
    Plain,
    /// The terminal that controls the session.
    Terminal,
}

/// The command that the keeper starts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeeperRequest {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub directory: PathBuf,
    pub variables: Vec<(OsString, OsString)>,
    pub limits: ProcessLimits,
    pub input: SessionInput,
}

impl KeeperRequest {
    /// Encodes a checked command, preceded by its length.
    pub(crate) fn encode(command: &ChildCommand) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH_BYTES];
        bytes.push(VERSION);
        bytes.push(u8::from(command.terminal.is_some()));
        let limits = command.limits;
        for limit in [limits.memory_bytes, limits.open_files, limits.cpu_seconds] {
            bytes.extend_from_slice(&limit.unwrap_or(NO_LIMIT).to_le_bytes());
        }
        // More than u32 arguments exceed the byte limit, so the caller rejects them.
        bytes.extend_from_slice(&(command.args.len() as u32).to_le_bytes());
        let mut text = |parts: &[&OsStr]| {
            parts.iter().for_each(|part| bytes.extend_from_slice(part.as_bytes()));
            bytes.push(0);
        };
        text(&[&command.program]);
        text(&[command.directory.as_os_str()]);
        command.args.iter().for_each(|arg| text(&[arg]));
        for (name, value) in &command.variables {
            text(&[name, OsStr::new("="), value]);
        }
        let length = (bytes.len() - LENGTH_BYTES) as u32;
        bytes[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    /// Parses the bytes after the length.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StartRefusal> {
        let mut rest = bytes;
        match take_bytes::<1>(&mut rest) {
            Some([VERSION]) => Self::decode_body(rest).ok_or(StartRefusal::Malformed),
            _ => Err(StartRefusal::Version),
        }
    }

    fn decode_body(mut rest: &[u8]) -> Option<Self> {
        let input = match take_bytes::<1>(&mut rest)? {
            [0] => SessionInput::Plain,
            [1] => SessionInput::Terminal,
            _ => return None,
        };
        let mut limit = || {
            let value = u64::from_le_bytes(take_bytes::<8>(&mut rest)?);
            Some((value != NO_LIMIT).then_some(value))
        };
        let limits =
            ProcessLimits { memory_bytes: limit()?, open_files: limit()?, cpu_seconds: limit()? };
        let arg_count = u32::from_le_bytes(take_bytes::<4>(&mut rest)?) as usize;
        let mut texts = rest.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let mut text = || Some(OsString::from_vec(texts.next()?.to_vec()));
        let (program, directory) = (text()?, PathBuf::from(text()?));
        let args = (0..arg_count).map(|_| text()).collect::<Option<_>>()?;
        let variables = texts.map(|text| {
            let middle = text.iter().position(|byte| *byte == b'=')?;
            let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Some((owned(&text[..middle]), owned(&text[middle + 1..])))
        });
        let variables = variables.collect::<Option<_>>()?;
        Some(Self { program, args, directory, variables, limits, input })
    }
}

/// The host's messages to a keeper while the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeeperOrder {
    /// Send a signal to the command's process group.
    Signal(GroupSignal),
    /// End the command and all of its descendants.
    End,
    /// Report the living descendants.
    Leftovers,
    /// Keep the descendants when the host drops the child, and end them only when the host ends.
    Release,
}

impl KeeperOrder {
    pub(crate) fn encode(self) -> [u8; ORDER_BYTES] {
        match self {
            Self::Signal(signal) => [1, signal as u8],
            Self::End => [2, 0],
            Self::Leftovers => [3, 0],
            Self::Release => [4, 0],
        }
    }

    pub(crate) fn decode(bytes: [u8; ORDER_BYTES]) -> Option<Self> {
        match bytes {
            [1, number] => {
                GroupSignal::ALL.into_iter().find(|s| *s as u8 == number).map(Self::Signal)
            }
            [2, 0] => Some(Self::End),
            [3, 0] => Some(Self::Leftovers),
            [4, 0] => Some(Self::Release),
            _ => None,
        }
    }
}

/// Messages to the host from a keeper, or from the guardian if no keeper could be forked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeeperEvent {
    /// The command runs.
    Started { pid: u32 },
    /// The command could not be started. Its bytes never change, so that every version can read
    /// them.
    Refused(StartRefusal),
    /// The command ended.
    Exited(Exit),
    /// Answer to [`KeeperOrder::Leftovers`].
    Leftovers(Vec<Leftover>),
    /// No descendant is left except these. The keeper's last message.
    Ended { survivors: Vec<u32> },
}

/// Why a command could not be started. Numbers are the system's error codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartRefusal {
    Version,
    Malformed,
    Fork(i32),
    Directory(i32),
    Program(i32),
}

impl KeeperEvent {
    /// Encodes the event, preceded by its length.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH_BYTES];
        match self {
            Self::Started { pid } => push_tagged(&mut bytes, 1, pid.to_le_bytes()),
            Self::Refused(refusal) => {
                let (stage, errno) = match *refusal {
                    StartRefusal::Version => (1, 0),
                    StartRefusal::Malformed => (2, 0),
                    StartRefusal::Fork(errno) => (3, errno),
                    StartRefusal::Directory(errno) => (4, errno),
                    StartRefusal::Program(errno) => (5, errno),
                };
                bytes.extend_from_slice(&[2, stage]);
                bytes.extend_from_slice(&errno.to_le_bytes());
            }
            Self::Exited(Exit::Code(code)) => push_tagged(&mut bytes, 3, code.to_le_bytes()),
            Self::Exited(Exit::Signal(signal)) => push_tagged(&mut bytes, 4, signal.to_le_bytes()),
            Self::Leftovers(leftovers) => {
                bytes.push(5);
                for Leftover { pid, name } in leftovers.iter().take(LEFTOVERS_MAX) {
                    let name = &name.as_bytes()[..name.len().min(NAME_BYTES_MAX)];
                    bytes.extend_from_slice(&pid.to_le_bytes());
                    bytes.push(name.len() as u8);
                    bytes.extend_from_slice(name);
                }
            }
            Self::Ended { survivors } => {
                bytes.push(6);
                for pid in survivors.iter().take(LEFTOVERS_MAX) {
                    bytes.extend_from_slice(&pid.to_le_bytes());
                }
            }
        }
        let length = (bytes.len() - LENGTH_BYTES) as u32;
        bytes[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    /// Parses the bytes after the length.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (tag, mut rest) = bytes.split_first()?;
        let event = match tag {
            1 => Self::Started { pid: u32::from_le_bytes(take_bytes(&mut rest)?) },
            2 => {
                let [stage] = take_bytes(&mut rest)?;
                let errno = i32::from_le_bytes(take_bytes(&mut rest)?);
                Self::Refused(match stage {
                    1 => StartRefusal::Version,
                    2 => StartRefusal::Malformed,
                    3 => StartRefusal::Fork(errno),
                    4 => StartRefusal::Directory(errno),
                    5 => StartRefusal::Program(errno),
                    _ => return None,
                })
            }
            3 => Self::Exited(Exit::Code(i32::from_le_bytes(take_bytes(&mut rest)?))),
            4 => Self::Exited(Exit::Signal(i32::from_le_bytes(take_bytes(&mut rest)?))),
            5 => {
                let mut leftovers = Vec::new();
                while !rest.is_empty() {
                    let pid = u32::from_le_bytes(take_bytes(&mut rest)?);
                    let [length] = take_bytes(&mut rest)?;
                    let (name, after) = rest.split_at_checked(usize::from(length))?;
                    leftovers.push(Leftover { pid, name: String::from_utf8_lossy(name).into() });
                    rest = after;
                }
                Self::Leftovers(leftovers)
            }
            6 => {
                let mut survivors = Vec::new();
                while !rest.is_empty() {
                    survivors.push(u32::from_le_bytes(take_bytes(&mut rest)?));
                }
                Self::Ended { survivors }
            }
            _ => return None,
        };
        rest.is_empty().then_some(event)
    }
}

fn push_tagged(bytes: &mut Vec<u8>, tag: u8, number: [u8; 4]) {
    bytes.push(tag);
    bytes.extend_from_slice(&number);
}

/// Takes `N` bytes from the front.
fn take_bytes<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(event: KeeperEvent) {
        let bytes = event.encode();
        assert!(bytes.len() <= EVENT_BYTES_MAX, "{} bytes", bytes.len());
        assert_eq!(KeeperEvent::decode(&bytes[LENGTH_BYTES..]), Some(event.clone()));
        // No prefix or extension is a valid event of this kind, unless it is a shorter list.
        let cut = KeeperEvent::decode(&bytes[LENGTH_BYTES..bytes.len() - 1]);
        assert_eq!(cut, None, "a cut {event:?} was read");
    }

    #[test]
    fn keeper_events_round_trip_and_truncated_ones_are_refused() {
        round_trip(KeeperEvent::Started { pid: 4_000_000 });
        round_trip(KeeperEvent::Refused(StartRefusal::Program(2)));
        round_trip(KeeperEvent::Exited(Exit::Code(255)));
        round_trip(KeeperEvent::Exited(Exit::Signal(9)));
        round_trip(KeeperEvent::Ended { survivors: vec![1, 2, u32::MAX] });
        let leftover = Leftover { pid: 7, name: "fifteen-letters".into() };
        round_trip(KeeperEvent::Leftovers(vec![leftover; LEFTOVERS_MAX]));
    }

    #[test]
    fn more_leftovers_than_the_bound_are_cut() {
        let many = vec![Leftover { pid: 7, name: "sleep".into() }; LEFTOVERS_MAX + 1];
        let bytes = KeeperEvent::Leftovers(many.clone()).encode();
        let expected = KeeperEvent::Leftovers(many[1..].to_vec());
        assert_eq!(KeeperEvent::decode(&bytes[LENGTH_BYTES..]), Some(expected));
    }

    #[test]
    fn keeper_request_round_trips_with_bytes_that_are_not_utf8() {
        let mut command = ChildCommand::new("/bin/x", "/tmp");
        command.args = vec!["".into(), OsString::from_vec(vec![0xff, b'=', 0xfe]), "a b".into()];
        command.variables.insert("A".into(), "b=c".into());
        command.variables.insert("EMPTY".into(), "".into());
        command.limits =
            ProcessLimits { memory_bytes: Some(0), open_files: None, cpu_seconds: Some(5) };
        let bytes = KeeperRequest::encode(&command);
        let request = KeeperRequest::decode(&bytes[LENGTH_BYTES..]).unwrap();
        assert_eq!(request.input, SessionInput::Plain);
        let mut unknown = bytes[LENGTH_BYTES..].to_vec();
        unknown[1] = 2;
        assert_eq!(KeeperRequest::decode(&unknown), Err(StartRefusal::Malformed));
        assert_eq!(request.program, command.program);
        assert_eq!(request.args, command.args);
        assert_eq!(request.directory, command.directory);
        assert_eq!(request.limits, command.limits);
        assert_eq!(request.variables, command.variables.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_request_of_another_version_or_without_its_end_is_refused() {
        let bytes = KeeperRequest::encode(&ChildCommand::new("/bin/x", "/tmp"));
        let mut body = bytes[LENGTH_BYTES..].to_vec();
        assert_eq!(KeeperRequest::decode(&body[..body.len() - 1]), Err(StartRefusal::Malformed));
        assert_eq!(KeeperRequest::decode(&body[..7]), Err(StartRefusal::Malformed));
        body[0] = VERSION + 1;
        assert_eq!(KeeperRequest::decode(&body), Err(StartRefusal::Version));
        assert_eq!(KeeperRequest::decode(&[]), Err(StartRefusal::Version));
    }

    #[test]
    fn keeper_orders_and_start_requests_round_trip_and_unknown_ones_are_refused() {
        let signals = GroupSignal::ALL.map(KeeperOrder::Signal);
        for order in signals.into_iter().chain([
            KeeperOrder::End,
            KeeperOrder::Leftovers,
            KeeperOrder::Release,
        ]) {
            assert_eq!(KeeperOrder::decode(order.encode()), Some(order));
        }
        assert_eq!(KeeperOrder::decode([1, 0]), None);
        assert_eq!(KeeperOrder::decode([9, 0]), None);
        for bits in 0..16u8 {
            let request = StartRequest { present: std::array::from_fn(|bit| bits & 1 << bit != 0) };
            assert_eq!(StartRequest::decode(request.encode()), Some(request));
        }
        assert_eq!(StartRequest::decode([VERSION + 1, 0]), None);
        assert_eq!(StartRequest::decode([VERSION, 16]), None);
    }
}

//! Open files that came over the socket, until the messages that lend them are taken.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::wire::Malformed;
use crate::platform::{FILES_MAX, read_with_files};

/// Files that came, each with the place in the stream of the read that brought it.
///
/// The system ends a read with what a file came beside, so that one read holds the beginning of one
/// message at most that lends. A file for which this process has no room left is lost: its message
/// has none, and takes no other's.
#[derive(Debug, Default)]
pub(super) struct Files {
    came: VecDeque<(Range<u64>, OwnedFd)>,
    /// Bytes that were read so far.
    read: u64,
}

impl Files {
    /// Reads what is there into a buffer, and takes in the files beside it.
    pub(super) fn read(&mut self, socket: &UnixStream, buffer: &mut [u8]) -> io::Result<usize> {
        let mut files = Vec::new();
        let count = read_with_files(socket, buffer, |file| files.push(file))?;
        let place = self.read..self.read + count as u64;
        self.read = place.end;
        if self.came.len() + files.len() > FILES_MAX {
            return Err(io::Error::other("more files than messages"));
        }
        self.came.extend(files.into_iter().map(|file| (place.clone(), file)));
        Ok(count)
    }

    /// Takes the file of a message whose first byte lies so far before the end of what was read.
    pub(super) fn take(&mut self, bytes_before_end: usize) -> Option<OwnedFd> {
        let first = self.read.saturating_sub(bytes_before_end as u64);
        self.came.pop_front_if(|(place, _)| place.contains(&first)).map(|(_, file)| file)
    }

    /// Checks that no file is left when all messages are taken.
    pub(super) fn check_is_empty(&self) -> Result<(), Malformed> {
        if self.came.is_empty() {
            return Ok(());
        }
        Err(Malformed("a file that no message lends".to_owned()))
    }
}

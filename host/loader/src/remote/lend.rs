//! Open files that came over the socket, until the messages that lend them are taken.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use tokio::net::UnixStream;

use super::wire::Malformed;
use crate::platform::{FILES_MAX, read_with_files};

/// Files that came, in the order of their messages.
#[derive(Debug, Default)]
pub(super) struct Files(VecDeque<OwnedFd>);

impl Files {
    /// Reads what is there into a buffer, and takes in the files beside it.
    pub(super) fn read(&mut self, socket: &UnixStream, buffer: &mut [u8]) -> io::Result<usize> {
        read_with_files(socket, buffer, |file| {
            if self.0.len() >= FILES_MAX {
                return Err(io::Error::other("more files than messages"));
            }
            self.0.push_back(file);
            Ok(())
        })
    }

    /// Takes the file of the next message that lends one.
    pub(super) fn take(&mut self) -> Result<OwnedFd, Malformed> {
        let none = || Malformed("a message that lends a file, without one".to_owned());
        self.0.pop_front().ok_or_else(none)
    }

    /// Checks that no file is left when all messages are taken.
    pub(super) fn check_is_empty(&self) -> Result<(), Malformed> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(Malformed("a file that no message lends".to_owned()))
    }
}

//! What differs between systems: open files cross a socket where they arrive closed to children.
//! And how a descriptor is waited for in one direction.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[cfg(target_os = "linux")]
pub(crate) use linux::{read_with_files, write_with_file};

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{read_with_files, write_with_file};

/// Files that one read may bring: the one whose message it completes, and the one that begins the
/// next.
pub(crate) const FILES_MAX: usize = 4;

/// Waits for a descriptor in the directions of `interest` alone.
///
/// # Panics
/// Outside of a runtime that waits for descriptors.
pub(crate) fn waited_for(socket: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open until it is dropped, is always the same descriptor, and gives
    // nobody its number to close or exchange.
    Ok(unsafe { AsyncFd::register_with_interest(socket, interest) }?)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, IoSlice};
    use std::mem::MaybeUninit;
    use std::os::fd::{BorrowedFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    use rustix::io::IoSliceMut;
    use rustix::net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    };

    use super::FILES_MAX;

    /// Writes as much as the socket takes at once, the file beside the first byte.
    pub(crate) fn write_with_file(
        socket: &UnixStream,
        parts: &[IoSlice<'_>],
        file: BorrowedFd<'_>,
    ) -> io::Result<usize> {
        let files = [file];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !beside.push(SendAncillaryMessage::ScmRights(&files)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let flags = SendFlags::NOSIGNAL;
        Ok(sendmsg(socket, parts, &mut beside, flags)?)
    }

    /// Reads what is there, and gives the files beside it to `take`. What there is no room for the
    /// system closes.
    pub(crate) fn read_with_files(
        socket: &UnixStream,
        buffer: &mut [u8],
        mut take: impl FnMut(OwnedFd),
    ) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(buffer)];
        let came = recvmsg(socket, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC)?;
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                files.for_each(&mut take);
            }
        }
        Ok(came.bytes)
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io::{self, IoSlice, Read as _};
    use std::os::fd::{BorrowedFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    /// Nothing is lent.
    pub(crate) fn write_with_file(
        _socket: &UnixStream,
        _parts: &[IoSlice<'_>],
        _file: BorrowedFd<'_>,
    ) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Reads what is there.
    pub(crate) fn read_with_files(
        mut socket: &UnixStream,
        buffer: &mut [u8],
        _take: impl FnMut(OwnedFd),
    ) -> io::Result<usize> {
        socket.read(buffer)
    }
}

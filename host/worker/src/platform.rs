//! Takes over the descriptor that the host gave.

use std::fs::File;
use std::os::fd::{BorrowedFd, FromRawFd as _, RawFd};
use std::os::unix::net::UnixStream;

/// Returns descriptor 3, where it is open and can be written to.
pub fn descriptor3() -> Option<File> {
    // Looked at by its path first: taking a number that nobody opened would close somebody else's
    // later.
    std::fs::metadata("/dev/fd/3").ok()?;
    // SAFETY: descriptor 3 is open, as was just seen; the process is this worker's own, started
    // with descriptor 3 for this purpose, and nothing else in it takes that number.
    Some(unsafe { File::from_raw_fd(3) })
}

/// Returns descriptor 3, where it is a socket.
pub fn socket3() -> Option<UnixStream> {
    use std::os::unix::fs::FileTypeExt as _;
    if !std::fs::metadata("/dev/fd/3").ok()?.file_type().is_socket() {
        return None;
    }
    // SAFETY: as above; that it is a socket was just seen.
    Some(unsafe { UnixStream::from_raw_fd(3) })
}

/// Lends what the plugin has open under a number; nothing for a number that is never a file of a
/// plugin's.
pub fn lend<T>(number: RawFd, work: impl FnOnce(BorrowedFd<'_>) -> T) -> Option<T> {
    if number <= 3 {
        return None;
    }
    // SAFETY: the number is not negative, and the plugin, whose process this is, says that it is
    // open and stays so. Where that is a lie, the system says so to who uses it; nothing is closed
    // by it.
    Some(work(unsafe { BorrowedFd::borrow_raw(number) }))
}

//! Takes over the descriptor that the host passed.

use std::fs::File;
use std::os::fd::FromRawFd as _;
use std::os::unix::net::UnixStream;

/// Returns descriptor 3, if it is open and writable.
pub fn take_descriptor3() -> Option<File> {
    // Check the path first, because owning an unopened number would later close an unrelated file.
    std::fs::metadata("/dev/fd/3").ok()?;
    // SAFETY: descriptor 3 is open, as was just seen; the process is this worker's own, started
    // with descriptor 3 for this purpose, and nothing else in it takes that number.
    Some(unsafe { File::from_raw_fd(3) })
}

/// Returns descriptor 3, if it is a socket.
pub fn take_socket3() -> Option<UnixStream> {
    use std::os::unix::fs::FileTypeExt as _;
    if !std::fs::metadata("/dev/fd/3").ok()?.file_type().is_socket() {
        return None;
    }
    // SAFETY: as above; that it is a socket was just seen.
    Some(unsafe { UnixStream::from_raw_fd(3) })
}

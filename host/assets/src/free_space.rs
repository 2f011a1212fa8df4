//! The free space of a folder.

use std::path::Path;

use crate::AssetError;

/// Returns an error before the first byte if the missing bytes cannot fit.
pub(crate) fn require_space(path: &Path, folder: &Path, needs: u64) -> Result<(), AssetError> {
    match available_bytes(folder) {
        Some(free) if free < needs => {
            Err(AssetError::NoSpace { path: path.to_owned(), needs, free: Some(free) })
        }
        _ => Ok(()),
    }
}

/// Returns the bytes available to this user, if the system reports them.
fn available_bytes(folder: &Path) -> Option<u64> {
    let facts = nix::sys::statvfs::statvfs(folder).ok()?;
    #[allow(clippy::useless_conversion, reason = "these are narrower on some systems")]
    u64::from(facts.blocks_available()).checked_mul(u64::from(facts.fragment_size()))
}

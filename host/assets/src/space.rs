//! How much room a folder has.

use std::path::Path;

use crate::AssetError;

/// Refuses before the first byte if what is to come cannot fit.
pub(crate) fn require(path: &Path, folder: &Path, needs: u64) -> Result<(), AssetError> {
    match free(folder) {
        Some(free) if free < needs => {
            Err(AssetError::NoSpace { path: path.to_owned(), needs, free: Some(free) })
        }
        _ => Ok(()),
    }
}

/// Free bytes for this user, where the system tells.
fn free(folder: &Path) -> Option<u64> {
    let facts = nix::sys::statvfs::statvfs(folder).ok()?;
    #[allow(clippy::useless_conversion, reason = "these are narrower on some systems")]
    u64::from(facts.blocks_available()).checked_mul(u64::from(facts.fragment_size()))
}

//! Checks cheaply that a big file is still the one that was digested. Otherwise every start would
//! have to digest megabytes of plugins.
//!
//! This shortcut only detects changes and never guards what is used:
//! [`TrustedWorkspace::read_file`] digests the content that it returns, and a plugin's file is
//! digested again before it is opened.
//!
//! [`TrustedWorkspace::read_file`]: super::TrustedWorkspace::read_file

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Smaller files are digested each time, because a stamp would save nothing.
pub(super) const STAMP_BYTES_MIN: u64 = 64 * 1024;

/// A file that changed this shortly before its digest may change again within the same tick of the
/// file system's clock.
const SETTLED_S: i64 = 2;

/// The metadata that the system changes whenever the file changes. A program can set the time of
/// the content's last change, but not that of the inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CoveredFileStamp {
    bytes: u64,
    inode: u64,
    changed_s: i64,
    changed_ns: i64,
}

/// Stamps by file name.
pub(super) type CoveredFileStamps = BTreeMap<String, CoveredFileStamp>;

/// Returns the stamps of the big plain files among these.
pub(super) fn stamps_of_big_files(root: &Path, names: &BTreeSet<String>) -> CoveredFileStamps {
    names.iter().filter_map(|name| Some((name.clone(), file_stamp(&root.join(name))?))).collect()
}

/// Returns the stamps that were the same before and after the digest, and are old enough to be
/// proof later.
pub(super) fn unchanged_stamps(
    before: CoveredFileStamps,
    after: &CoveredFileStamps,
    now: SystemTime,
) -> CoveredFileStamps {
    // A clock before 1970 settles nothing.
    let now_s = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let latest = i64::try_from(now_s).unwrap_or(i64::MAX).saturating_sub(SETTLED_S);
    before
        .into_iter()
        .filter(|(name, stamp)| after.get(name) == Some(stamp) && stamp.changed_s <= latest)
        .collect()
}

fn file_stamp(path: &Path) -> Option<CoveredFileStamp> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if metadata.is_file() && metadata.len() >= STAMP_BYTES_MIN {
        stamp_from_metadata(&metadata)
    } else {
        None
    }
}

fn stamp_from_metadata(metadata: &Metadata) -> Option<CoveredFileStamp> {
    use std::os::unix::fs::MetadataExt;
    Some(CoveredFileStamp {
        bytes: metadata.len(),
        inode: metadata.ino(),
        changed_s: metadata.ctime(),
        changed_ns: metadata.ctime_nsec(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[track_caller]
    fn check_stamp(after: Option<CoveredFileStamp>, now_s: u64, expected: bool) {
        let before = BTreeMap::from([("f".to_owned(), STAMP)]);
        let after = after.map(|stamp| ("f".to_owned(), stamp)).into_iter().collect();
        let kept = unchanged_stamps(before, &after, UNIX_EPOCH + Duration::from_secs(now_s));
        assert_eq!(!kept.is_empty(), expected);
    }

    const STAMP: CoveredFileStamp =
        CoveredFileStamp { bytes: 70_000, inode: 7, changed_s: 100, changed_ns: 5 };

    #[test]
    fn stamp_counts_only_after_its_file_was_unchanged_for_a_while() {
        check_stamp(Some(STAMP), 102, true);
        check_stamp(Some(STAMP), 101, false);
        check_stamp(Some(STAMP), 0, false);
    }

    #[test]
    fn file_changed_during_hashing_gets_no_stamp() {
        check_stamp(Some(CoveredFileStamp { changed_ns: 6, ..STAMP }), 200, false);
        check_stamp(Some(CoveredFileStamp { inode: 8, ..STAMP }), 200, false);
        check_stamp(None, 200, false);
    }
}

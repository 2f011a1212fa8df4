//! System-specific code: opening a path beneath a folder in one call, reading only cached content,
//! and the layout of file metadata.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other_unix;

#[cfg(target_os = "linux")]
pub(crate) use linux::{
    PASS_THROUGH, copy_attributes, open_beneath, read_folder, read_without_waiting,
};
#[cfg(not(target_os = "linux"))]
pub(crate) use other_unix::{
    PASS_THROUGH, copy_attributes, open_beneath, read_folder, read_without_waiting,
};

use jaato_types::files::FileKind;
use rustix::fs::{FileType, Stat};

/// Whether an operation may wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskWait {
    May,
    /// Use only what the kernel has in memory.
    MustNot,
}

/// The metadata of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileMetadata {
    pub(crate) kind: FileKind,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    /// The number of hard links.
    pub(crate) links: u64,
    pub(crate) user: u32,
    pub(crate) group: u32,
    /// Device and inode number, which identify the file.
    pub(crate) identity: (u64, u64),
    pub(crate) modified: FileTimestamp,
    /// When the content or the metadata last changed.
    pub(crate) changed: FileTimestamp,
}

/// Seconds and nanoseconds since 1970.
pub(crate) type FileTimestamp = (i64, i64);

// The field types differ between systems.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
impl From<&Stat> for FileMetadata {
    fn from(stat: &Stat) -> Self {
        Self {
            kind: to_file_kind(FileType::from_raw_mode(stat.st_mode)),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: u32::from(stat.st_mode) & 0o7777,
            links: stat.st_nlink as u64,
            user: stat.st_uid,
            group: stat.st_gid,
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }
}

/// Converts the system's file type.
pub(crate) fn to_file_kind(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Folder,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Other,
    }
}

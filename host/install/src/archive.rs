//! Unpacks only the libraries of a .tar or .tar.gz: no links, and no paths that lead out of it.

use std::collections::BTreeSet;
use std::env::consts::DLL_SUFFIX;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType, PaxExtensions};
use tempfile::TempDir;

use crate::error::InstallError;
use crate::limits::{ARCHIVE_FILES_MAX, UNPACKED_BYTES_MAX};

/// The longest name of an entry, in bytes: longer than any system opens.
const NAME_BYTES_MAX: u64 = 4096;

/// The maximum number of bytes of an entry's extended metadata (times, owners, labels, a long
/// name).
const EXTENSION_BYTES_MAX: u64 = 64 * 1024;

/// The maximum number of folders that are made.
const FOLDERS_MAX: usize = 1000;

/// The deepest path that is read. `name/lib/<system>/<library>` has four parts.
const DEPTH_MAX: usize = 8;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZIP: &[u8] = b"PK\x03\x04";
/// The position of the magic number in a tar.
const TAR_MARK: std::ops::Range<usize> = 257..262;

/// The kinds of archives, detected by their first bytes.
enum ArchiveFormat {
    Gzip,
    Tar,
    /// Known only so that the error can name it.
    Zip,
}

/// Returns true if a file is an archive, by its content.
pub fn is_archive(path: &Path) -> io::Result<bool> {
    Ok(detect_format(path)?.is_some())
}

fn detect_format(path: &Path) -> io::Result<Option<ArchiveFormat>> {
    let mut head = Vec::new();
    File::open(path)?.take(TAR_MARK.end as u64).read_to_end(&mut head)?;
    Ok(if head.starts_with(GZIP) {
        Some(ArchiveFormat::Gzip)
    } else if head.starts_with(ZIP) {
        Some(ArchiveFormat::Zip)
    } else if head.get(TAR_MARK) == Some(b"ustar") {
        Some(ArchiveFormat::Tar)
    } else {
        None
    })
}

/// Unpacks the libraries of an archive into a new folder below `scratch`.
pub fn unpack_archive(path: &Path, scratch: &Path) -> Result<TempDir, InstallError> {
    let failed = |error: io::Error| InstallError::Archive(path.to_owned(), error.to_string());
    let folder =
        tempfile::Builder::new().prefix(".unpacked-").tempdir_in(scratch).map_err(failed)?;
    let file = File::open(path).map_err(failed)?;
    match detect_format(path).map_err(failed)? {
        Some(ArchiveFormat::Gzip) => unpack_tar(GzDecoder::new(file), folder.path()),
        Some(ArchiveFormat::Tar) => unpack_tar(file, folder.path()),
        Some(ArchiveFormat::Zip) => Err(io::Error::other("it is a zip")),
        None => Err(io::Error::other("it is not an archive")),
    }
    .map_err(failed)?;
    Ok(folder)
}

fn unpack_tar(stream: impl Read, folder: &Path) -> io::Result<()> {
    let mut archive = Archive::new(BoundedReader { stream, left: UNPACKED_BYTES_MAX });
    let mut folders = BTreeSet::new();
    // The name from a preceding entry.
    let mut long_name: Option<PathBuf> = None;
    // Raw, because otherwise the crate would read an entry's metadata into memory, however long it
    // is.
    for (index, entry) in archive.entries()?.raw(true).enumerate() {
        let mut entry = entry?;
        if index == ARCHIVE_FILES_MAX {
            return Err(io::Error::other("it has too many entries"));
        }
        match entry.header().entry_type() {
            EntryType::GNULongName => long_name = Some(read_gnu_name(&mut entry)?),
            EntryType::XHeader => long_name = read_pax_name(&mut entry)?.or(long_name),
            EntryType::GNULongLink | EntryType::XGlobalHeader => {
                read_bounded_entry(&mut entry, EXTENSION_BYTES_MAX).map(drop)?;
            }
            EntryType::Regular => {
                let named = match long_name.take() {
                    Some(name) => name,
                    None => entry.header().path()?.into_owned(),
                };
                if let Some(path) = to_plain_path(&named) {
                    unpack_file(&mut entry, &path, folder, &mut folders)?;
                }
            }
            _ => long_name = None,
        }
    }
    Ok(())
}

fn unpack_file(
    entry: &mut impl Read,
    path: &Path,
    folder: &Path,
    folders: &mut BTreeSet<PathBuf>,
) -> io::Result<()> {
    let to = folder.join(path);
    let parent = to.parent().unwrap_or(folder);
    for above in parent.ancestors().take_while(|above| *above != folder) {
        if folders.insert(above.to_owned()) && folders.len() > FOLDERS_MAX {
            return Err(io::Error::other("it has too many folders"));
        }
    }
    // The folders of other systems show which systems there are, even if they stay empty here.
    jaato_places::make_missing_folders(parent)?;
    if path.to_string_lossy().ends_with(DLL_SUFFIX) {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to)?;
        io::copy(entry, &mut file)?;
    }
    Ok(())
}

/// Reads the name that a GNU tar keeps in its own entry, up to the zero byte after it.
fn read_gnu_name(entry: &mut impl Read) -> io::Result<PathBuf> {
    let mut name = read_bounded_entry(entry, NAME_BYTES_MAX)?;
    name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
    Ok(OsString::from_vec(name).into())
}

/// Returns the name in the extended metadata of an entry, if it is there.
fn read_pax_name(entry: &mut impl Read) -> io::Result<Option<PathBuf>> {
    let facts = read_bounded_entry(entry, EXTENSION_BYTES_MAX)?;
    let mut name = None;
    for fact in PaxExtensions::new(&facts) {
        let fact = fact?;
        if fact.key_bytes() == b"path" {
            if fact.value_bytes().len() as u64 > NAME_BYTES_MAX {
                return Err(too_long_error());
            }
            name = Some(OsString::from_vec(fact.value_bytes().to_vec()).into());
        }
    }
    Ok(name)
}

/// Reads a whole entry, if it has at most this many bytes.
fn read_bounded_entry(entry: &mut impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    entry.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(too_long_error()) } else { Ok(bytes) }
}

fn too_long_error() -> io::Error {
    io::Error::other("a name in it is too long")
}

/// Returns the path if it has only plain names, and not too many.
fn to_plain_path(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    let mut depth = 0;
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => continue,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
        depth += 1;
        if depth > DEPTH_MAX {
            return None;
        }
    }
    (depth > 0).then_some(plain)
}

/// A stream that fails at its limit, instead of ending there.
pub struct BoundedReader<R> {
    pub stream: R,
    pub left: u64,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other("it is too large when unpacked"))?;
        Ok(read)
    }
}

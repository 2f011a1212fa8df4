//! Unpacks the libraries of a .tar or .tar.gz, and nothing else: no link, no path that leads out.

use std::env::consts::DLL_SUFFIX;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};
use tempfile::TempDir;

use super::error::InstallError;

/// Most entries of an archive: one library a system, papers, maybe sources.
pub const ARCHIVE_FILES_MAX: usize = 10_000;

/// Most bytes that an archive may hold: a small file can promise terabytes.
pub const UNPACKED_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// Deepest path that is looked at; `name/lib/<system>/<library>` has four parts.
const DEPTH_MAX: usize = 8;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZIP: &[u8] = b"PK\x03\x04";
/// Where a tar says that it is one.
const TAR_MARK: std::ops::Range<usize> = 257..262;

/// The kinds of archives by their first bytes.
enum Form {
    Gzip,
    Tar,
    /// Known, so that it is refused as what it is.
    Zip,
}

/// Tells whether a file is an archive, by its content.
pub(super) fn is_archive(path: &Path) -> io::Result<bool> {
    Ok(form(path)?.is_some())
}

fn form(path: &Path) -> io::Result<Option<Form>> {
    let mut head = Vec::new();
    File::open(path)?.take(TAR_MARK.end as u64).read_to_end(&mut head)?;
    Ok(if head.starts_with(GZIP) {
        Some(Form::Gzip)
    } else if head.starts_with(ZIP) {
        Some(Form::Zip)
    } else if head.get(TAR_MARK) == Some(b"ustar") {
        Some(Form::Tar)
    } else {
        None
    })
}

/// Unpacks the libraries of an archive into a folder of their own below `scratch`.
pub(super) fn unpack(path: &Path, scratch: &Path) -> Result<TempDir, InstallError> {
    let failed = |error: io::Error| InstallError::Archive(path.to_owned(), error.to_string());
    let folder =
        tempfile::Builder::new().prefix(".unpacked-").tempdir_in(scratch).map_err(failed)?;
    let file = File::open(path).map_err(failed)?;
    match form(path).map_err(failed)? {
        Some(Form::Gzip) => unpack_tar(GzDecoder::new(file), folder.path()),
        Some(Form::Tar) => unpack_tar(file, folder.path()),
        Some(Form::Zip) => Err(io::Error::other("it is a zip")),
        None => Err(io::Error::other("it is no archive")),
    }
    .map_err(failed)?;
    Ok(folder)
}

fn unpack_tar(stream: impl Read, folder: &Path) -> io::Result<()> {
    let mut archive = Archive::new(Bounded { stream, left: UNPACKED_BYTES_MAX });
    for (index, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        if index == ARCHIVE_FILES_MAX {
            return Err(io::Error::other("it has too many entries"));
        }
        let Some(path) = plain(&entry.path()?) else { continue };
        if entry.header().entry_type() != EntryType::Regular {
            continue;
        }
        let to = folder.join(&path);
        // The folders of other systems stand for what there is, even if empty here.
        fs::create_dir_all(to.parent().unwrap_or(folder))?;
        if path.to_string_lossy().ends_with(DLL_SUFFIX) {
            io::copy(&mut entry, &mut File::create_new(&to)?)?;
        }
    }
    Ok(())
}

/// A path made of names alone, and not too many.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let depth = plain.components().count();
    (1..=DEPTH_MAX).contains(&depth).then_some(plain)
}

/// A stream that fails where it gets too long, instead of ending there.
pub(super) struct Bounded<R> {
    pub(super) stream: R,
    pub(super) left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other("it is too large when unpacked"))?;
        Ok(read)
    }
}

//! Lists and digests the files of a workspace that trust covers.
//!
//! Has limits, and never follows a symbolic link out of the workspace. A link is recorded by its
//! target, and its content counts only if the target is a plain file inside the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{ENV_FILE, HOOK_FILES, MCP_FILE, SHARED_FOLDERS, TrustError, WORKSPACE_FOLDER};

/// The maximum number of files in a workspace that trust covers.
pub const FILES_MAX: usize = 4096;

/// The deepest nesting of folders below `.jaato`.
pub const DEPTH_MAX: usize = 16;

/// The maximum number of bytes of covered files. All of them are read whenever the workspace is
/// checked.
pub const WORKSPACE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Precedes the digest of a plain file. A link's begins differently.
pub(super) const PLAIN_CONTENT: &str = "sha256:";

const CHUNK_BYTES: usize = 64 * 1024;

/// Lists the existing covered files, with `/` between folders. Reads no file. `more` are the names
/// of further files that count.
pub(super) fn covered_names<'a>(
    root: &Path,
    more: impl Iterator<Item = &'a str>,
) -> Result<BTreeSet<String>, TrustError> {
    let mut names = BTreeSet::new();
    for name in standard_covered_names(root).into_iter().chain(more) {
        collect_covered_names(root, name.to_owned(), 0, &mut names)?;
    }
    Ok(names)
}

/// Lists names to show to the user: up to the limits, with unusual names in a printable form. Never
/// an error, because untrusted files in a folder must not keep users from working in it.
pub(super) fn shown_names<'a>(root: &Path, more: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut waiting: Vec<_> = standard_covered_names(root)
        .into_iter()
        .chain(more)
        .map(|name| (PathBuf::from(name), 0))
        .collect();
    while let Some((name, depth)) = waiting.pop() {
        if names.len() >= FILES_MAX {
            break;
        }
        let path = root.join(&name);
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let entries = match metadata.is_dir() && depth < DEPTH_MAX {
            true => fs::read_dir(&path).ok(),
            false => None,
        };
        match entries {
            Some(entries) => {
                let room = FILES_MAX - names.len();
                let inner = entries.flatten().take(room).map(|entry| name.join(entry.file_name()));
                waiting.extend(inner.map(|inner| (inner, depth + 1)));
            }
            None => {
                names.insert(name.to_string_lossy().into_owned());
            }
        }
    }
    names.into_iter().collect()
}

/// Lists the names that count in each workspace. A link in place of such a folder does not
/// count. Nothing reads it, so files elsewhere need no digest.
fn standard_covered_names<'a>(root: &Path) -> Vec<&'a str> {
    let is_folder = |path: PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let mut names = vec![WORKSPACE_FOLDER, ENV_FILE, MCP_FILE];
    let has_parent =
        |name: &&str| Path::new(name).parent().is_some_and(|it| is_folder(root.join(it)));
    names.extend(SHARED_FOLDERS.into_iter().chain(HOOK_FILES).filter(has_parent));
    names
}

/// Returns the digest of each named file. Digests in `known` are reused. A file that disappeared in
/// the meantime is left out.
pub(super) fn digest_files(
    root: &Path,
    names: &BTreeSet<String>,
    known: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, TrustError> {
    let mut bytes_left = WORKSPACE_BYTES_MAX;
    let mut digests = known;
    for name in names {
        if digests.contains_key(name) {
            continue;
        }
        if let Some(digest) = digest_file(root, name, &mut bytes_left)? {
            digests.insert(name.clone(), digest);
        }
    }
    Ok(digests)
}

/// Returns one digest over all files, for the user to compare and for the record.
pub(super) fn combined_digest(digests: &BTreeMap<String, String>) -> String {
    let mut hash = Sha256::new();
    for (name, digest) in digests {
        // Lengths first, so that different lists never give the same bytes.
        for part in [name, digest] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    hex_digest(hash)
}

/// Opens a named file for reading: a plain file, or a link to one inside the root.
pub(super) fn open_covered_file(
    root: &Path,
    name: &str,
) -> Result<Option<(PathBuf, File)>, TrustError> {
    let path = root.join(name);
    let Some(target) = resolve_plain_file(root, &path)? else { return Ok(None) };
    match File::open(&target) {
        Ok(file) => Ok(Some((target, file))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable_error(&target, &error)),
    }
}

/// Returns the digest of plain content, as it is recorded.
pub(super) fn content_digest(bytes: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(bytes);
    hex_digest(hash)
}

/// Reads a file to its end and returns the digest of its content. `take` gets each chunk.
pub(super) fn file_digest(
    path: &Path,
    mut file: impl Read,
    mut take: impl FnMut(&[u8]) -> Result<(), TrustError>,
) -> Result<String, TrustError> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = match file.read(&mut chunk) {
            Ok(0) => return Ok(hex_digest(hash)),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable_error(path, &error)),
        };
        take(&chunk[..count])?;
        hash.update(&chunk[..count]);
    }
}

/// Returns the content part of a recorded digest, if the file's content counts.
pub(super) fn recorded_content(digest: &str) -> Option<&str> {
    digest.rsplit_once("sha256:").map(|(_, content)| content)
}

fn collect_covered_names(
    root: &Path,
    name: String,
    depth: usize,
    names: &mut BTreeSet<String>,
) -> Result<(), TrustError> {
    let too_much = |what| TrustError::TooMuch { root: root.to_owned(), what };
    let path = root.join(&name);
    let Some(metadata) = metadata_if_exists(&path)? else { return Ok(()) };
    if !metadata.is_dir() {
        names.insert(name);
        return if names.len() > FILES_MAX { Err(too_much("too many files")) } else { Ok(()) };
    }
    if depth >= DEPTH_MAX {
        return Err(too_much("folders too deep"));
    }
    for entry in fs::read_dir(&path).map_err(|error| unreadable_error(&path, &error))? {
        let entry = entry.map_err(|error| unreadable_error(&path, &error))?;
        let Some(inner) = entry.file_name().to_str().map(str::to_owned) else {
            return Err(TrustError::NotUtf8 { path: entry.path() });
        };
        collect_covered_names(root, format!("{name}/{inner}"), depth + 1, names)?;
    }
    Ok(())
}

fn digest_file(
    root: &Path,
    name: &str,
    bytes_left: &mut u64,
) -> Result<Option<String>, TrustError> {
    let path = root.join(name);
    let Some(metadata) = metadata_if_exists(&path)? else { return Ok(None) };
    let link = if metadata.is_symlink() {
        let target = fs::read_link(&path).map_err(|error| unreadable_error(&path, &error))?;
        format!("link:{}:", target.to_string_lossy())
    } else {
        String::new()
    };
    let Some(target) = resolve_plain_file(root, &path)? else {
        let kind = if metadata.is_symlink() { "outside" } else { "special" };
        return Ok(Some(format!("{link}{kind}")));
    };
    let file = File::open(&target).map_err(|error| unreadable_error(&target, &error))?;
    let content = file_digest(&target, file, |chunk| {
        *bytes_left = bytes_left
            .checked_sub(chunk.len() as u64)
            .ok_or_else(|| TrustError::TooMuch { root: root.to_owned(), what: "too many bytes" })?;
        Ok(())
    })?;
    Ok(Some(format!("{link}sha256:{content}")))
}

/// Returns the plain file behind a path, if it is inside the root. A fifo would block, a device
/// would never end, and files outside do not belong to the workspace.
fn resolve_plain_file(root: &Path, path: &Path) -> Result<Option<PathBuf>, TrustError> {
    match fs::canonicalize(path) {
        Ok(target) if target.starts_with(root) => {
            Ok(metadata_if_exists(&target)?.is_some_and(|found| found.is_file()).then_some(target))
        }
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        // A link that points to itself.
        Err(_) if metadata_if_exists(path)?.is_some_and(|found| found.is_symlink()) => Ok(None),
        Err(error) => Err(unreadable_error(path, &error)),
    }
}

fn metadata_if_exists(path: &Path) -> Result<Option<Metadata>, TrustError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(unreadable_error(path, &error)),
    }
}

fn unreadable_error(path: &Path, error: &std::io::Error) -> TrustError {
    TrustError::Io { path: path.to_owned(), doing: "read", cause: error.to_string() }
}

fn hex_digest(hash: Sha256) -> String {
    format!("{:x}", hash.finalize())
}

//! Default copies, made by reading, listing and writing, and moves, made by a copy and a deletion.

use jaato_plugin_sdk::Reporter;
use jaato_types::files::{
    FileDelete, FileFacts, FileKind, FilePair, FileWrite, FolderList, FolderMake, READ_BYTES_MAX,
    WriteMode,
};
use jaato_types::{Error, ErrorKind, Result};

use super::default_methods::{WHOLE_BYTES_MAX, file_path, range_request, read_whole_file};
use super::exchange::{ENTRIES_MAX, join_path};
use super::files::Files;
use crate::engine::DEPTH_MAX;

/// Copies a file or folder. A copy that fails removes what it created.
pub(super) async fn copy<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    pair: FilePair,
) -> Result<()> {
    let from = files.stat(host, file_path(&pair.from)).await?;
    if from.kind != FileKind::Folder {
        return copy_file(files, host, &pair.from, &pair.to, pair.overwrite).await;
    }
    if look_up_target(files, host, &pair.to).await?.is_some() {
        return Err(already_exists_error(&pair.to));
    }
    files.make_folder(host, make_folder_request(&pair.to)).await?;
    let top = files.stat(host, file_path(&pair.to)).await?;
    let copied = match is_inside(&top.path, &from.path) {
        true => Err(Error::new(
            ErrorKind::InvalidArguments,
            format!("cannot copy `{}`: a folder cannot be copied into itself", pair.from),
        )),
        false => copy_folder(files, host, &pair.from, &pair.to).await,
    };
    if copied.is_err() {
        // Report the first error, not one of the cleanup.
        let _ = files.delete(host, recursive_delete(pair.to)).await;
    }
    copied
}

/// Moves a file or folder. For a moment, others may see both paths.
pub(super) async fn rename<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    pair: FilePair,
) -> Result<()> {
    let (from, to) = (pair.from.clone(), pair.to.clone());
    let source = files.stat(host, file_path(&from)).await?;
    if let Some(target) = look_up_target(files, host, &to).await? {
        if target.path == source.path {
            return Ok(());
        }
        if source.kind == FileKind::Folder || target.kind == FileKind::Folder {
            return Err(already_exists_error(&to));
        }
    }
    files.copy(host, pair).await?;
    files.delete(host, recursive_delete(from)).await
}

async fn copy_folder<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    from: &str,
    to: &str,
) -> Result<()> {
    let mut open = vec![(from.to_owned(), to.to_owned(), 1)];
    let mut count = 0;
    while let Some((from, to, depth)) = open.pop() {
        let mut skip = 0;
        loop {
            let list = FolderList { path: from.clone(), skip, ..FolderList::default() };
            let listed = files.list(host, list).await?;
            count += listed.entries.len();
            if count > ENTRIES_MAX || depth > DEPTH_MAX {
                let text = format!(
                    "cannot copy `{from}`: it contains more than {ENTRIES_MAX} files, or is more than {DEPTH_MAX} \
                     folders deep"
                );
                return Err(Error::new(ErrorKind::LimitReached, text));
            }
            skip += listed.entries.len();
            let is_end = listed.entries.is_empty() || skip >= listed.count;
            for entry in listed.entries {
                let (from, to) = (join_path(&from, &entry.name), join_path(&to, &entry.name));
                if entry.kind == FileKind::Folder {
                    files.make_folder(host, make_folder_request(&to)).await?;
                    open.push((from, to, depth + 1));
                } else {
                    // Copy the target of a link, because no operation creates links.
                    copy_file(files, host, &from, &to, false).await?;
                }
            }
            if is_end {
                break;
            }
        }
    }
    Ok(())
}

async fn copy_file<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    from: &str,
    to: &str,
    overwrite: bool,
) -> Result<()> {
    let mode = if overwrite { WriteMode::Replace } else { WriteMode::CreateNew };
    let write = |mode| FileWrite { path: to.to_owned(), mode, ..FileWrite::default() };
    let facts = files.stat(host, file_path(from)).await?;
    if facts.kind != FileKind::File {
        let text = format!("cannot copy `{from}`: it is neither a file nor a folder");
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    if facts.size <= WHOLE_BYTES_MAX / 2 {
        let bytes = read_whole_file(files, host, from).await?;
        return files.write(host, write(mode), bytes).await.map(drop);
    }
    let (mut offset, mut mode) = (0, mode);
    loop {
        let (read, bytes) = files.read(host, range_request(from, offset, READ_BYTES_MAX)).await?;
        offset += bytes.len() as u64;
        let is_end = bytes.is_empty() || !read.has_more;
        files.write(host, write(mode), bytes).await?;
        if is_end {
            return Ok(());
        }
        mode = WriteMode::Append;
    }
}

async fn look_up_target<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    path: &str,
) -> Result<Option<FileFacts>> {
    match files.stat(host, file_path(path)).await {
        Ok(facts) => Ok(Some(facts)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn make_folder_request(path: &str) -> FolderMake {
    FolderMake { path: path.to_owned(), ..FolderMake::default() }
}

fn recursive_delete(path: String) -> FileDelete {
    FileDelete { path, recursive: true, ..FileDelete::default() }
}

fn is_inside(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn already_exists_error(path: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("`{path}` already exists"))
}

//! The errors of operations on files, as users and models see them.

use std::io;
use std::path::Path;

use jaato_types::files::FileKind;
use jaato_types::{Error, ErrorKind};
use rustix::io::Errno;

/// The operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileOperationVerb {
    Read,
    Write,
    Edit,
    Delete,
    List,
    Find,
    Make,
    Move,
    Copy,
    Search,
    Open,
}

impl FileOperationVerb {
    pub(crate) fn as_verb(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Find => "look at",
            Self::Make => "make the folder",
            Self::Move => "move",
            Self::Copy => "copy",
            Self::Search => "search",
            Self::Open => "open the folder",
        }
    }

    /// Returns true if the operation expects a folder.
    fn is_about_folders(self) -> bool {
        matches!(self, Self::List | Self::Search | Self::Open)
    }
}

/// Returns the error of a file or folder: the environment's own error, or that of a system call.
pub(crate) fn file_error(verb: FileOperationVerb, shown: &Path, error: &io::Error) -> Error {
    match error.get_ref().and_then(|error| error.downcast_ref::<Error>()) {
        Some(own) => own.clone(),
        None => operation_error(verb, shown, Errno::from_io_error(error).unwrap_or(Errno::IO)),
    }
}

/// Returns the reason why a search could not read a file or folder.
pub(crate) fn search_failure_reason(error: &io::Error) -> String {
    match error.get_ref() {
        None => {
            let told = file_error(FileOperationVerb::Search, Path::new(""), error).message;
            told.rsplit(": ").next().unwrap_or_default().to_owned()
        }
        Some(own) => match own.downcast_ref::<Error>() {
            Some(own) => own.message.clone(),
            None => "it has a line that is too long".to_owned(),
        },
    }
}

/// Returns the error of a failed system call.
pub(crate) fn operation_error(verb: FileOperationVerb, shown: &Path, errno: Errno) -> Error {
    let error = |kind, reason: &str| {
        Error::new(kind, format!("cannot {} `{}`: {reason}", verb.as_verb(), shown.display()))
    };
    match errno {
        Errno::NOENT if verb.is_about_folders() => error(ErrorKind::NotFound, "folder not found"),
        Errno::NOENT => error(ErrorKind::NotFound, "file not found"),
        // A parent in the path is a file, so the entry cannot exist.
        Errno::NOTDIR if verb == FileOperationVerb::Find => {
            error(ErrorKind::NotFound, "not a directory")
        }
        Errno::NOTDIR => error(ErrorKind::Conflict, "not a directory"),
        Errno::ISDIR => is_a_folder_error(verb, shown),
        Errno::EXIST => error(ErrorKind::Conflict, "it already exists"),
        Errno::NOTEMPTY => error(ErrorKind::Conflict, "the folder is not empty")
            .with_hint("set `recursive` to delete its content too"),
        Errno::ACCESS | Errno::PERM => error(ErrorKind::Io, "permission denied"),
        Errno::ROFS => error(ErrorKind::Io, "the file system is read-only"),
        Errno::NOSPC => error(ErrorKind::Io, "the disk is full").with_hint("free some space"),
        Errno::DQUOT => error(ErrorKind::Io, "the disk quota is used up"),
        Errno::NAMETOOLONG => error(ErrorKind::InvalidArguments, "the name is too long"),
        Errno::FBIG => error(ErrorKind::LimitReached, "the file becomes too large"),
        Errno::LOOP => error(ErrorKind::Io, "it has a loop of symbolic links, or too many of them"),
        Errno::MFILE | Errno::NFILE => {
            error(ErrorKind::LimitReached, "too many files are open").temporary()
        }
        Errno::OVERFLOW => error(ErrorKind::LimitReached, "the folder has too many entries"),
        other => error(ErrorKind::Io, &io::Error::from(other).kind().to_string()),
    }
}

/// Returns the error of an entry that is not a regular file.
pub(crate) fn not_a_file_error(verb: FileOperationVerb, shown: &Path, kind: FileKind) -> Error {
    if kind == FileKind::Folder {
        return is_a_folder_error(verb, shown);
    }
    let text = format!(
        "cannot {} `{}`: it is a pipe, a socket or a device, not a file",
        verb.as_verb(),
        shown.display()
    );
    Error::new(ErrorKind::Conflict, text)
}

fn is_a_folder_error(verb: FileOperationVerb, shown: &Path) -> Error {
    let text =
        format!("cannot {} `{}`: it is a folder, not a file", verb.as_verb(), shown.display());
    Error::new(ErrorKind::Conflict, text)
}

/// Returns the error of a file that other processes keep replacing.
pub(crate) fn keeps_changing_error(verb: FileOperationVerb, shown: &Path) -> Error {
    let text = format!("cannot {} `{}`: it keeps being replaced", verb.as_verb(), shown.display());
    Error::new(ErrorKind::Conflict, text).temporary()
}

/// Returns the error of a file whose content is not the expected one.
pub(crate) fn changed_file_error(shown: &Path) -> Error {
    let text = format!("cannot write `{}`: it has changed since it was read", shown.display());
    Error::new(ErrorKind::Conflict, text).with_hint("read it again, then repeat the change")
}

/// Returns the error of a path that leads elsewhere than when the call was checked.
pub(crate) fn changed_path_error(verb: FileOperationVerb, shown: &Path) -> Error {
    let text =
        format!("cannot {} `{}`: it changed since it was checked", verb.as_verb(), shown.display());
    Error::new(ErrorKind::Conflict, text).with_hint("retry the call: jaato checks the path again")
}

/// Returns the error of an exceeded limit.
pub(crate) fn too_large_error(verb: FileOperationVerb, shown: &Path, what: &str) -> Error {
    let text = format!("cannot {} `{}`: {what}", verb.as_verb(), shown.display());
    Error::new(ErrorKind::LimitReached, text)
}

/// Returns the error of an invalid request.
pub(crate) fn refused_error(verb: FileOperationVerb, shown: &Path, reason: &str) -> Error {
    let text = format!("cannot {} `{}`: {reason}", verb.as_verb(), shown.display());
    Error::new(ErrorKind::InvalidArguments, text)
}

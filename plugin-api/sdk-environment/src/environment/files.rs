//! The files of an execution environment: what authors implement.

use std::future::{Future, ready};
use std::sync::Arc;

use jaato_plugin_sdk::Reporter;
use jaato_types::Result;
use jaato_types::files::{
    FileBytes, FileDelete, FileEdit, FileEdited, FileFacts, FileFind, FilePair, FilePath, FileRead,
    FileReadText, FileResolve, FileSearch, FileText, FileWalk, FileWrite, FilesResolved,
    FolderEntries, FolderList, FolderMake, FoundPage, SearchedPage, WalkedPage,
};

use super::streams::{FileSink, PageStream, PieceStream};
use super::{by_default, copy, exchange};
use crate::engine::CallLimits;

/// The files of an execution environment. Paths outside of the allowed folders are refused,
/// whatever links and `..` make of them.
///
/// Six methods are required. All others work over these six, and each may be written where the
/// environment does it faster or at once: a rename by the system, a pattern by a program that is
/// there. Blocking work goes through [`Reporter::blocking`]. [`HostFiles`](crate::HostFiles) are
/// those of folders of this machine.
///
/// ```
/// # use jaato_plugin_sdk::prelude::*;
/// # use jaato_plugin_sdk::types::files::*;
/// # use jaato_plugin_sdk_environment::Files;
/// /// Files behind a server.
/// struct Remote;
/// # fn no<T>() -> Result<T> { Err(Error::failed("")) }
///
/// impl Files for Remote {
///     async fn read(&self, host: &Reporter, read: FileRead) -> Result<(FileBytes, Vec<u8>)> {
///         # _ = (host, read); no()
///         // …
///     }
///     # async fn write(&self, _: &Reporter, _: FileWrite, _: Vec<u8>) -> Result<FileFacts> {
///     #     no()
///     # }
///     # async fn stat(&self, _: &Reporter, _: FilePath) -> Result<FileFacts> { no() }
///     # async fn list(&self, _: &Reporter, _: FolderList) -> Result<FolderEntries> { no() }
///     # async fn delete(&self, _: &Reporter, _: FileDelete) -> Result<()> { no() }
///     # async fn make_folder(&self, _: &Reporter, _: FolderMake) -> Result<()> { no() }
///     // … and `write`, `stat`, `list`, `delete`, `make_folder`.
/// }
/// ```
pub trait Files: Send + Sync + 'static {
    /// Reads bytes.
    ///
    /// # Errors
    /// `not_found`, `permission_denied` for a path that is not allowed, `io`, and so for all
    /// methods.
    fn read(
        &self,
        host: &Reporter,
        read: FileRead,
    ) -> impl Future<Output = Result<(FileBytes, Vec<u8>)>> + Send;

    /// Writes a file.
    ///
    /// # Errors
    /// `conflict` where something is there that must not be overwritten.
    fn write(
        &self,
        host: &Reporter,
        write: FileWrite,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<FileFacts>> + Send;

    /// Tells what something is.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn stat(
        &self,
        host: &Reporter,
        path: FilePath,
    ) -> impl Future<Output = Result<FileFacts>> + Send;

    /// Lists a folder.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn list(
        &self,
        host: &Reporter,
        list: FolderList,
    ) -> impl Future<Output = Result<FolderEntries>> + Send;

    /// Deletes.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn delete(
        &self,
        host: &Reporter,
        delete: FileDelete,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Makes a folder.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn make_folder(
        &self,
        host: &Reporter,
        make: FolderMake,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Tells where paths lead: links and `..` followed name by name, with what tells the file there
    /// from others. By default no path can be resolved.
    ///
    /// # Errors
    /// What keeps it from telling.
    fn resolve(
        &self,
        _host: &Reporter,
        resolve: FileResolve,
    ) -> impl Future<Output = Result<FilesResolved>> + Send {
        let paths = vec![None; resolve.paths.len()];
        ready(Ok(FilesResolved { paths, ..FilesResolved::default() }))
    }

    /// Returns the same files with the limits of one call, if they hold to these themselves, on
    /// handles. By default they do not: limits are then held to by path, before each operation.
    fn limited(&self, _limits: &Arc<CallLimits>) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Reads text. By default over [`Files::stat`] and [`Files::read`].
    ///
    /// # Errors
    /// `invalid_arguments` for what is no UTF-8.
    fn read_text(
        &self,
        host: &Reporter,
        read: FileReadText,
    ) -> impl Future<Output = Result<FileText>> + Send {
        by_default::read_text(self, host, read)
    }

    /// Replaces pieces of a text. By default it is read and written whole, at most 64 MiB, with the
    /// version that [`Files::stat`] told.
    ///
    /// # Errors
    /// `not_found` for a piece that is not there, `conflict` for one that stands there more than
    /// once.
    fn edit(
        &self,
        host: &Reporter,
        edit: FileEdit,
    ) -> impl Future<Output = Result<FileEdited>> + Send {
        by_default::edit(self, host, edit)
    }

    /// Moves. By default a copy and a deletion, so that others may see both for a moment.
    ///
    /// # Errors
    /// `conflict` where something is there.
    fn rename(&self, host: &Reporter, pair: FilePair) -> impl Future<Output = Result<()>> + Send {
        copy::rename(self, host, pair)
    }

    /// Copies. By default files are read and written, links as what they lead to; a copy that fails
    /// is taken away.
    ///
    /// # Errors
    /// `conflict` where something is there.
    fn copy(&self, host: &Reporter, pair: FilePair) -> impl Future<Output = Result<()>> + Send {
        copy::copy(self, host, pair)
    }

    /// Begins to find files, and no folders, by a pattern. By default over [`Files::list`], and a
    /// [`Files::stat`] for each file that matches.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no pattern.
    fn find(
        &self,
        host: &Reporter,
        find: FileFind,
    ) -> impl Future<Output = Result<PageStream<Self, FoundPage>>> + Send {
        exchange::find(self, host, find, None)
    }

    /// Begins to search texts. By default over [`Files::list`] and [`Files::read`]. One of your own
    /// tells what [`PageFiller`] makes of what you found.
    ///
    /// [`PageFiller`]: crate::PageFiller
    ///
    /// # Errors
    /// `invalid_arguments` for what is no regular expression, or one that becomes too large.
    fn search(
        &self,
        host: &Reporter,
        search: FileSearch,
    ) -> impl Future<Output = Result<PageStream<Self, SearchedPage>>> + Send {
        exchange::search(self, host, search, None)
    }

    /// Begins to go through a tree. By default over [`Files::list`]: folder by folder, without what
    /// `.gitignore` and `.ignore` name.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn walk(
        &self,
        host: &Reporter,
        walk: FileWalk,
    ) -> impl Future<Output = Result<PageStream<Self, WalkedPage>>> + Send {
        exchange::walk(self, host, walk, None)
    }

    /// Opens a file that is read piece by piece; gives the bytes that it has. By default it is read
    /// range by range.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn open(
        &self,
        host: &Reporter,
        read: FileRead,
    ) -> impl Future<Output = Result<(u64, PieceStream<Self>)>> + Send {
        by_default::open(self, host, read)
    }

    /// Begins a file that is written piece by piece. By default at most 64 MiB are collected and
    /// written at once.
    ///
    /// # Errors
    /// As [`Files::write`].
    fn create(
        &self,
        _host: &Reporter,
        write: FileWrite,
    ) -> impl Future<Output = Result<FileSink<Self>>> + Send {
        ready(Ok(by_default::create(write)))
    }
}

/// The files of an environment that has none. It cannot be made.
pub enum NoFiles {}

impl Files for NoFiles {
    async fn read(&self, _: &Reporter, _: FileRead) -> Result<(FileBytes, Vec<u8>)> {
        match *self {}
    }

    async fn write(&self, _: &Reporter, _: FileWrite, _: Vec<u8>) -> Result<FileFacts> {
        match *self {}
    }

    async fn stat(&self, _: &Reporter, _: FilePath) -> Result<FileFacts> {
        match *self {}
    }

    async fn list(&self, _: &Reporter, _: FolderList) -> Result<FolderEntries> {
        match *self {}
    }

    async fn delete(&self, _: &Reporter, _: FileDelete) -> Result<()> {
        match *self {}
    }

    async fn make_folder(&self, _: &Reporter, _: FolderMake) -> Result<()> {
        match *self {}
    }
}

//! The [`Files`] trait, which authors implement.

use std::future::{Future, ready};
use std::sync::Arc;

use jaato_plugin_sdk::Reporter;
use jaato_types::Result;
use jaato_types::files::{
    FileBytes, FileDelete, FileEdit, FileEditAnswer, FileFacts, FileFind, FilePair, FilePath,
    FileRead, FileReadText, FileResolve, FileResolveAnswer, FileSearch, FileText, FileWalk,
    FileWrite, FolderEntries, FolderList, FolderMake, FoundPage, SearchedPage, WalkedPage,
};

use super::streams::{FileSink, PageStream, PieceStream};
use super::{copy, default_methods, exchange};
use crate::engine::CallLimits;

/// The files of an execution environment. Paths that lead outside the allowed folders are refused,
/// even through links or `..`.
///
/// Six methods are required. The others have defaults that use these six. Override a default if the
/// environment can do the operation faster or atomically, for example a rename by the system. Run
/// blocking work with [`Reporter::blocking`]. [`HostFiles`](crate::HostFiles) implements the trait
/// for folders of this machine.
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
    /// `not_found`, `permission_denied` for a path that is not allowed, or `io`. The same kinds
    /// apply to all methods.
    fn read(
        &self,
        host: &Reporter,
        read: FileRead,
    ) -> impl Future<Output = Result<(FileBytes, Vec<u8>)>> + Send;

    /// Writes a file.
    ///
    /// # Errors
    /// `conflict` if the file exists and must not be overwritten.
    fn write(
        &self,
        host: &Reporter,
        write: FileWrite,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<FileFacts>> + Send;

    /// Returns the facts of a file or folder.
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

    /// Deletes a file or folder.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn delete(
        &self,
        host: &Reporter,
        delete: FileDelete,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Creates a folder.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn make_folder(
        &self,
        host: &Reporter,
        make: FolderMake,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Resolves paths, following links and `..` name by name. Each result also identifies the file.
    /// By default no path can be resolved.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn resolve(
        &self,
        _host: &Reporter,
        resolve: FileResolve,
    ) -> impl Future<Output = Result<FileResolveAnswer>> + Send {
        let paths = vec![None; resolve.paths.len()];
        ready(Ok(FileResolveAnswer { paths, ..FileResolveAnswer::default() }))
    }

    /// Returns the same files with the limits of one call, if they can enforce these on handles. By
    /// default they cannot, and the sdk checks the limits by path before each operation.
    fn limited(&self, _limits: &Arc<CallLimits>) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Reads text. By default uses [`Files::stat`] and [`Files::read`].
    ///
    /// # Errors
    /// `invalid_arguments` if the content is not UTF-8.
    fn read_text(
        &self,
        host: &Reporter,
        read: FileReadText,
    ) -> impl Future<Output = Result<FileText>> + Send {
        default_methods::read_text(self, host, read)
    }

    /// Replaces pieces of a text. By default reads and writes the whole file, at most 64 MiB, and
    /// passes the version that [`Files::stat`] returned.
    ///
    /// # Errors
    /// `not_found` if the file does not contain a piece, `conflict` if it contains a piece more
    /// than once.
    fn edit(
        &self,
        host: &Reporter,
        edit: FileEdit,
    ) -> impl Future<Output = Result<FileEditAnswer>> + Send {
        default_methods::edit(self, host, edit)
    }

    /// Moves a file or folder. By default copies and then deletes, so others may see both for a
    /// moment.
    ///
    /// # Errors
    /// `conflict` if the target exists.
    fn rename(&self, host: &Reporter, pair: FilePair) -> impl Future<Output = Result<()>> + Send {
        copy::rename(self, host, pair)
    }

    /// Copies a file or folder. By default reads and writes the files, follows links, and removes a
    /// copy that fails.
    ///
    /// # Errors
    /// `conflict` if the target exists.
    fn copy(&self, host: &Reporter, pair: FilePair) -> impl Future<Output = Result<()>> + Send {
        copy::copy(self, host, pair)
    }

    /// Starts to find files, but not folders, by a pattern. By default uses [`Files::list`], and
    /// [`Files::stat`] for each file that matches.
    ///
    /// # Errors
    /// `invalid_arguments` if the pattern is invalid.
    fn find(
        &self,
        host: &Reporter,
        find: FileFind,
    ) -> impl Future<Output = Result<PageStream<Self, FoundPage>>> + Send {
        exchange::find(self, host, find, None)
    }

    /// Starts to search the content of files. By default uses [`Files::list`] and [`Files::read`].
    /// Your own implementation builds its pages with [`PageFiller`].
    ///
    /// [`PageFiller`]: crate::PageFiller
    ///
    /// # Errors
    /// `invalid_arguments` if the regular expression is invalid or becomes too large.
    fn search(
        &self,
        host: &Reporter,
        search: FileSearch,
    ) -> impl Future<Output = Result<PageStream<Self, SearchedPage>>> + Send {
        exchange::search(self, host, search, None)
    }

    /// Starts to walk a tree. By default uses [`Files::list`] folder by folder, without the entries
    /// that `.gitignore` and `.ignore` exclude.
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

    /// Opens a file for reading in pieces. Also returns its size. By default the file is read range
    /// by range.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn open(
        &self,
        host: &Reporter,
        read: FileRead,
    ) -> impl Future<Output = Result<(u64, PieceStream<Self>)>> + Send {
        default_methods::open(self, host, read)
    }

    /// Starts to write a file in pieces. By default collects at most 64 MiB and writes them at
    /// once.
    ///
    /// # Errors
    /// As [`Files::write`].
    fn create(
        &self,
        _host: &Reporter,
        write: FileWrite,
    ) -> impl Future<Output = Result<FileSink<Self>>> + Send {
        ready(Ok(default_methods::create(write)))
    }
}

/// The files of an environment without files. It has no values.
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

//! The files of an execution environment: what authors implement.

use std::future::{Future, ready};

use jaato_types::files::{
    FileBytes, FileDelete, FileEdit, FileEdited, FileFacts, FileFind, FileGlob, FilePair, FilePath,
    FileRead, FileReadText, FileSearch, FileText, FileWalk, FileWrite, FilesFound, FolderEntries,
    FolderList, FolderMake, FoundPage, SearchedPage, WalkedPage,
};
use jaato_types::{Error, ErrorKind, Result};

use super::derived::{self, Finding, Searching};
use super::pages::PageStream;
use crate::context::Reporter;

/// The files of an execution environment. Paths outside of the allowed folders are refused,
/// whatever links and `..` make of them.
///
/// Six methods are required. All others work over these six, and each may be written where the
/// environment does it faster or at once: a rename by the system, a pattern by a program that is
/// there. Streams and trees work over them too where their types are [`ByDefault`]. Blocking work
/// goes through [`Reporter::blocking`]. `jaato-plugin-sdk-environment` has an implementation over
/// folders of this machine.
///
/// ```
/// # use jaato_plugin_sdk::environment::{ByDefault, Files};
/// # use jaato_plugin_sdk::prelude::*;
/// # use jaato_plugin_sdk::types::files::*;
/// /// Files behind a server.
/// struct Remote;
/// # fn no<T>() -> Result<T> { Err(Error::failed("")) }
///
/// impl Files for Remote {
///     type Pieces = ByDefault;
///     type Writer = ByDefault;
///     type Pages = ByDefault;
///
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
    /// A file that is read piece by piece; [`ByDefault`] reads range by range.
    type Pieces: FilePieces;
    /// A file that is written piece by piece; [`ByDefault`] collects at most 64 MiB and writes them
    /// at once.
    type Writer: FileWriter;
    /// A tree that is gone through; [`ByDefault`] lists folder by folder, and leaves out what
    /// `.gitignore` and `.ignore` name.
    type Pages: TreePages;

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

    /// Reads text. By default over [`Files::stat`] and [`Files::read`].
    ///
    /// # Errors
    /// `invalid_arguments` for what is no UTF-8.
    fn read_text(
        &self,
        host: &Reporter,
        read: FileReadText,
    ) -> impl Future<Output = Result<FileText>> + Send {
        derived::read_text(self, host, read)
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
        derived::edit(self, host, edit)
    }

    /// Moves. By default a copy and a deletion, so that others may see both for a moment.
    ///
    /// # Errors
    /// `conflict` where something is there.
    fn rename(&self, host: &Reporter, pair: FilePair) -> impl Future<Output = Result<()>> + Send {
        derived::rename(self, host, pair)
    }

    /// Copies. By default files are read and written, links as what they lead to; a copy that fails
    /// is taken away.
    ///
    /// # Errors
    /// `conflict` where something is there.
    fn copy(&self, host: &Reporter, pair: FilePair) -> impl Future<Output = Result<()>> + Send {
        derived::copy(self, host, pair)
    }

    /// Finds files by a pattern. By default over [`Files::list`], and a [`Files::stat`] for each
    /// file where the newest come first.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no pattern.
    fn glob(
        &self,
        host: &Reporter,
        glob: FileGlob,
    ) -> impl Future<Output = Result<FilesFound>> + Send {
        derived::glob(self, host, glob)
    }

    /// Begins to find files, and no folders, by a pattern. By default as [`Files::glob`].
    ///
    /// # Errors
    /// `invalid_arguments` for what is no pattern.
    fn find(
        &self,
        host: &Reporter,
        find: FileFind,
    ) -> impl Future<Output = Result<PageStream<Self, FoundPage>>> + Send {
        async { Ok(PageStream::finding(Finding::begin(self, host, find).await?)) }
    }

    /// Begins to search texts. By default over [`Files::list`] and [`Files::read`]: each file is
    /// read whole, at most 64 MiB. One of your own tells what [`PageFiller`] makes of what you
    /// found.
    ///
    /// [`PageFiller`]: crate::environment::PageFiller
    ///
    /// # Errors
    /// `invalid_arguments` for what is no regular expression, or one that becomes too large.
    fn search(
        &self,
        host: &Reporter,
        search: FileSearch,
    ) -> impl Future<Output = Result<PageStream<Self, SearchedPage>>> + Send {
        async { Ok(PageStream::searching(Searching::begin(self, host, search).await?)) }
    }

    /// Begins to go through a tree. Not asked where [`Files::Pages`] is [`ByDefault`].
    ///
    /// # Errors
    /// As [`Files::read`].
    fn walk(
        &self,
        _host: &Reporter,
        _walk: FileWalk,
    ) -> impl Future<Output = Result<Self::Pages>> + Send {
        lacks("go through trees")
    }

    /// Opens a file that is read piece by piece; gives the bytes that it has. Not asked where
    /// [`Files::Pieces`] is [`ByDefault`].
    ///
    /// # Errors
    /// As [`Files::read`].
    fn open(
        &self,
        _host: &Reporter,
        _read: FileRead,
    ) -> impl Future<Output = Result<(u64, Self::Pieces)>> + Send {
        lacks("stream files")
    }

    /// Begins a file that is written piece by piece. Not asked where [`Files::Writer`] is
    /// [`ByDefault`].
    ///
    /// # Errors
    /// As [`Files::write`].
    fn create(
        &self,
        _host: &Reporter,
        _write: FileWrite,
    ) -> impl Future<Output = Result<Self::Writer>> + Send {
        lacks("stream files")
    }
}

/// A file that is read piece by piece.
pub trait FilePieces: Send + 'static {
    /// Appends the next piece to the buffer, at most
    /// [`PIECE_BYTES_MAX`](jaato_types::execution::PIECE_BYTES_MAX) bytes, and gives that back;
    /// nothing is appended at the end.
    ///
    /// # Errors
    /// What ends the reading.
    fn next(
        &mut self,
        host: &Reporter,
        buffer: Vec<u8>,
    ) -> impl Future<Output = Result<Vec<u8>>> + Send;
}

/// A file that is written piece by piece. Dropping it leaves what was there.
pub trait FileWriter: Send + 'static {
    /// Writes behind what was written.
    ///
    /// # Errors
    /// What keeps it from being written.
    fn write(&mut self, host: &Reporter, bytes: Vec<u8>)
    -> impl Future<Output = Result<()>> + Send;

    /// Puts what was written in its place.
    ///
    /// # Errors
    /// What keeps it from its place.
    fn finish(self, host: &Reporter) -> impl Future<Output = Result<FileFacts>> + Send;
}

/// A tree that is gone through.
pub trait TreePages: Send + 'static {
    /// Gives what comes next, as much as fits into 64 KiB of JSON; none at the end.
    ///
    /// # Errors
    /// What ends the walk.
    fn next(&mut self, host: &Reporter) -> impl Future<Output = Result<Option<WalkedPage>>> + Send;
}

fn lacks<T: Send>(what: &str) -> impl Future<Output = Result<T>> + Send + use<T> {
    let text = format!("this environment does not {what}");
    ready(Err(Error::new(ErrorKind::UnknownOperation, text)))
}

/// The files of an environment that has none. It cannot be made.
pub enum NoFiles {}

impl Files for NoFiles {
    type Pieces = Self;
    type Writer = Self;
    type Pages = Self;

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

/// Stands for a stream that the sdk makes over the required methods of [`Files`]. It cannot be
/// made.
pub enum ByDefault {}

impl FilePieces for NoFiles {
    async fn next(&mut self, _: &Reporter, _: Vec<u8>) -> Result<Vec<u8>> {
        match *self {}
    }
}

impl FileWriter for NoFiles {
    async fn write(&mut self, _: &Reporter, _: Vec<u8>) -> Result<()> {
        match *self {}
    }

    async fn finish(self, _: &Reporter) -> Result<FileFacts> {
        match self {}
    }
}

impl TreePages for NoFiles {
    async fn next(&mut self, _: &Reporter) -> Result<Option<WalkedPage>> {
        match *self {}
    }
}

impl FilePieces for ByDefault {
    async fn next(&mut self, _: &Reporter, _: Vec<u8>) -> Result<Vec<u8>> {
        match *self {}
    }
}

impl FileWriter for ByDefault {
    async fn write(&mut self, _: &Reporter, _: Vec<u8>) -> Result<()> {
        match *self {}
    }

    async fn finish(self, _: &Reporter) -> Result<FileFacts> {
        match self {}
    }
}

impl TreePages for ByDefault {
    async fn next(&mut self, _: &Reporter) -> Result<Option<WalkedPage>> {
        match *self {}
    }
}

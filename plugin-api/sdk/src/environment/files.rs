//! The files of an execution environment: what authors implement.

use std::future::{Future, ready};

use jaato_types::files::{
    FileBytes, FileDelete, FileEdit, FileEdited, FileFacts, FileGlob, FilePair, FilePath, FileRead,
    FileReadText, FileText, FileWalk, FileWrite, FilesFound, FolderEntries, FolderList, FolderMake,
    ResultCut, ResultKept, WalkedPage,
};
use jaato_types::{Error, ErrorKind, Result};

use crate::context::Reporter;

/// The files of an execution environment. Paths outside of the allowed folders are refused,
/// whatever links and `..` make of them.
///
/// What is not implemented is answered `unknown_operation`. Blocking work goes through
/// [`Reporter::blocking`]. `jaato-plugin-sdk-environment` has an implementation over folders of
/// this machine.
pub trait Files: Send + Sync + 'static {
    /// A file that is read piece by piece.
    type Pieces: FilePieces;
    /// A file that is written piece by piece.
    type Writer: FileWriter;
    /// A tree that is gone through.
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

    /// Reads text.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no UTF-8.
    fn read_text(
        &self,
        _host: &Reporter,
        _read: FileReadText,
    ) -> impl Future<Output = Result<FileText>> + Send {
        lacks("read text")
    }

    /// Replaces pieces of a text.
    ///
    /// # Errors
    /// `not_found` for a piece that is not there, `conflict` for one that stands there more than
    /// once.
    fn edit(
        &self,
        _host: &Reporter,
        _edit: FileEdit,
    ) -> impl Future<Output = Result<FileEdited>> + Send {
        lacks("edit")
    }

    /// Moves.
    ///
    /// # Errors
    /// `conflict` where something is there.
    fn rename(&self, _host: &Reporter, _pair: FilePair) -> impl Future<Output = Result<()>> + Send {
        lacks("move")
    }

    /// Copies.
    ///
    /// # Errors
    /// `conflict` where something is there.
    fn copy(&self, _host: &Reporter, _pair: FilePair) -> impl Future<Output = Result<()>> + Send {
        lacks("copy")
    }

    /// Finds files by a pattern.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no pattern.
    fn glob(
        &self,
        _host: &Reporter,
        _glob: FileGlob,
    ) -> impl Future<Output = Result<FilesFound>> + Send {
        lacks("find files by patterns")
    }

    /// Begins to go through a tree.
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

    /// Opens a file that is read piece by piece; gives the bytes that it has.
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

    /// Begins a file that is written piece by piece.
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

    /// Cuts a large result and keeps the whole in a temporary file.
    ///
    /// # Errors
    /// As [`Files::write`].
    fn cut_result(
        &self,
        _host: &Reporter,
        _cut: ResultCut,
        _text: String,
    ) -> impl Future<Output = Result<ResultKept>> + Send {
        lacks("keep results")
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

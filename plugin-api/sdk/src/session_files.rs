//! Access to the files of the session's execution environment for tools: [`SessionFiles`].

use std::marker::PhantomData;

use jaato_types::execution::EnvironmentFacts;
use jaato_types::files::{
    FileBytes, FileDelete, FileEdit, FileEditAnswer, FileFacts, FileFind, FileKind, FilePair,
    FilePath, FileRead, FileReadText, FileSearch, FileText, FileUploadAnswer, FileUploadRef,
    FileWalk, FileWrite, FolderEntries, FolderList, FolderMake, FoundPage, READ, STAT,
    SearchedPage, WRITE, WRITE_FINISH, WRITE_PIECE, WRITE_STREAM, WalkedPage,
};
use jaato_types::service::StreamAnswer;
use jaato_types::{ErrorKind, Result};
use serde::de::DeserializeOwned;

use crate::context::stream::ServiceStream;
use crate::context::{Reporter, host_frame_error};

/// The files of the session, on this machine or in a container. Paths are the same as for commands.
/// Relative paths start at the environment's working directory. Paths outside of the allowed
/// folders are refused with `permission_denied`.
pub struct SessionFiles<'a> {
    host: &'a Reporter,
}

/// A file that is written piece by piece. Dropping it leaves the previous file unchanged.
pub struct FileUpload {
    host: Reporter,
    file: u64,
    _stream: ServiceStream,
}

/// The entries of a directory tree, page by page.
pub type FileTree = SearchPages<WalkedPage>;

/// The results of a search, page by page. Dropping it ends the search.
pub struct SearchPages<P>(ServiceStream, PhantomData<fn() -> P>);

impl Reporter {
    jaato_types::environment_operations!(methods []);

    /// Returns access to the files of the session's execution environment.
    pub fn files(&self) -> SessionFiles<'_> {
        SessionFiles { host: self }
    }
}

impl SessionFiles<'_> {
    jaato_types::file_operations!(methods [.host]);

    /// Reads bytes, at most 4 MiB in one answer.
    ///
    /// # Errors
    /// `not_found`; `permission_denied` for a path that is not allowed; `io`. All methods can
    /// return these.
    pub async fn read(&self, read: FileRead) -> Result<(FileBytes, Vec<u8>)> {
        self.host.service_for_bytes(READ, &read, &[]).await
    }

    /// Writes a file.
    ///
    /// # Errors
    /// `conflict` if there is something that must not be overwritten.
    pub async fn write(&self, write: FileWrite, bytes: &[u8]) -> Result<FileFacts> {
        self.host.service_with_bytes(WRITE, &write, bytes).await
    }

    /// Returns the kind of file at the path, or `None` if nothing is there.
    ///
    /// # Errors
    /// `permission_denied` for a path that is not allowed.
    pub async fn exists(&self, path: impl Into<String>) -> Result<Option<FileKind>> {
        match self.stat(path).await {
            Ok(facts) => Ok(Some(facts.kind)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the facts about a path without following a symbolic link, if the environment
    /// supports links.
    ///
    /// # Errors
    /// As [`SessionFiles::read`].
    pub async fn stat_itself(&self, path: impl Into<String>) -> Result<FileFacts> {
        self.host
            .service(STAT, &FilePath { path: path.into(), itself: true, ..FilePath::default() })
            .await
    }

    /// Writes a file piece by piece. It becomes visible with [`FileUpload::finish`].
    ///
    /// # Errors
    /// As [`SessionFiles::write`].
    pub async fn upload(&self, write: FileWrite) -> Result<FileUpload> {
        let begun: serde_json::Value = self.host.service(WRITE_STREAM, &write).await?;
        let wrong = |error: serde_json::Error| {
            host_frame_error(jaato_types::FrameError::Json(error.to_string()))
        };
        let FileUploadAnswer { file, .. } =
            serde::Deserialize::deserialize(&begun).map_err(wrong)?;
        let StreamAnswer { handle, .. } = serde::Deserialize::deserialize(&begun).map_err(wrong)?;
        let host = self.host.clone();
        Ok(FileUpload { _stream: ServiceStream::new(host.clone(), handle), host, file })
    }
}

impl FileUpload {
    /// Appends bytes, at most 4 MiB at a time.
    ///
    /// # Errors
    /// If the bytes cannot be written.
    pub async fn write(&self, bytes: &[u8]) -> Result<()> {
        self.host
            .service_with_bytes(
                WRITE_PIECE,
                &FileUploadRef { file: self.file, ..FileUploadRef::default() },
                bytes,
            )
            .await
    }

    /// Moves the written file to its path.
    ///
    /// # Errors
    /// If the file cannot be moved.
    pub async fn finish(self) -> Result<FileFacts> {
        self.host
            .service(WRITE_FINISH, &FileUploadRef { file: self.file, ..FileUploadRef::default() })
            .await
    }
}

impl<P> From<ServiceStream> for SearchPages<P> {
    fn from(stream: ServiceStream) -> Self {
        Self(stream, PhantomData)
    }
}

impl<P: DeserializeOwned> SearchPages<P> {
    /// Returns the next page, or `None` at the end.
    ///
    /// # Errors
    /// The error that ended the search.
    pub async fn next(&mut self) -> Result<Option<P>> {
        Ok(self.0.next_event().await?.map(|(page, _)| page))
    }
}

impl SearchPages<FoundPage> {
    /// Collects all pages into one.
    ///
    /// # Errors
    /// The error that ended the search.
    pub async fn collect(mut self) -> Result<FoundPage> {
        let mut all = FoundPage::default();
        while let Some(mut page) = self.next().await? {
            all.files.append(&mut page.files);
            all.unreadable.append(&mut page.unreadable);
            all = FoundPage { files: all.files, unreadable: all.unreadable, ..page };
        }
        Ok(all)
    }
}

//! Implements [`Files`] for this machine. Blocking work runs on the host's pool, and cached file
//! content is read in place.

use std::sync::Arc;

use jaato_plugin_sdk::Reporter;
use jaato_types::execution::PIECE_BYTES_MAX;
use jaato_types::files::{
    FileBytes, FileDelete, FileEdit, FileEditAnswer, FileFacts, FileFind, FilePair, FilePath,
    FileRead, FileReadText, FileResolve, FileResolveAnswer, FileSearch, FileText, FileWalk,
    FileWrite, FolderEntries, FolderList, FolderMake, FoundPage, SearchedPage, WalkedPage,
};
use jaato_types::{Error, ErrorKind, Result};
use parking_lot::{Mutex, MutexGuard};

use crate::environment::{
    FilePieces, FileSink, FileWriter, Files, PageSource as StreamedPages, PageStream, PieceStream,
};
use crate::files::{
    CallLimits, ConfinedFileReader, ConfinedFileWriter, ConfinedFiles, ConfinedSearchPages,
    SearchCancel,
};

/// Files of this machine, confined to allowed folders.
#[derive(Debug, Clone)]
pub struct HostFiles(ConfinedFiles);

/// A file of this machine that is read in pieces.
#[derive(Debug)]
struct HostFileReader(Arc<Mutex<ConfinedFileReader>>);

/// A file of this machine that is written in pieces.
#[derive(Debug)]
struct HostFileWriter(Arc<Mutex<Option<ConfinedFileWriter>>>);

impl HostFiles {
    /// Creates the files from opened folders.
    pub fn new(confined: ConfinedFiles) -> Self {
        Self(confined)
    }

    /// Returns the confined files, for access to their folders and to close them.
    pub fn confined(&self) -> &ConfinedFiles {
        &self.0
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        host: &Reporter,
        work: impl FnOnce(&ConfinedFiles) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let confined = self.0.clone();
        host.blocking(move |_| work(&confined)).await?
    }
}

impl Files for HostFiles {
    async fn read(&self, host: &Reporter, read: FileRead) -> Result<(FileBytes, Vec<u8>)> {
        match self.0.read_cached(&read) {
            Some(found) => Ok(found),
            None => self.run_blocking(host, move |it| it.read(&read)).await,
        }
    }

    async fn write(&self, host: &Reporter, write: FileWrite, bytes: Vec<u8>) -> Result<FileFacts> {
        self.run_blocking(host, move |it| it.write(&write, &bytes)).await
    }

    async fn stat(&self, host: &Reporter, path: FilePath) -> Result<FileFacts> {
        match self.0.stat_cached(&path) {
            Some(found) => Ok(found),
            None => self.run_blocking(host, move |it| it.stat(&path)).await,
        }
    }

    async fn list(&self, host: &Reporter, list: FolderList) -> Result<FolderEntries> {
        self.run_blocking(host, move |it| it.list(&list)).await
    }

    async fn delete(&self, host: &Reporter, delete: FileDelete) -> Result<()> {
        self.run_blocking(host, move |it| it.delete(&delete)).await
    }

    async fn make_folder(&self, host: &Reporter, make: FolderMake) -> Result<()> {
        self.run_blocking(host, move |it| it.make_folder(&make)).await
    }

    async fn resolve(&self, host: &Reporter, resolve: FileResolve) -> Result<FileResolveAnswer> {
        self.run_blocking(host, move |it| Ok(it.resolve(&resolve))).await
    }

    fn limited(&self, limits: &Arc<CallLimits>) -> Option<Self> {
        Some(Self(self.0.with_limits(limits)))
    }

    async fn read_text(&self, host: &Reporter, read: FileReadText) -> Result<FileText> {
        self.run_blocking(host, move |it| it.read_text(&read)).await
    }

    async fn edit(&self, host: &Reporter, edit: FileEdit) -> Result<FileEditAnswer> {
        self.run_blocking(host, move |it| it.edit(&edit)).await
    }

    async fn rename(&self, host: &Reporter, pair: FilePair) -> Result<()> {
        self.run_blocking(host, move |it| it.move_to(&pair)).await
    }

    async fn copy(&self, host: &Reporter, pair: FilePair) -> Result<()> {
        self.run_blocking(host, move |it| it.copy(&pair)).await
    }

    async fn find(&self, host: &Reporter, find: FileFind) -> Result<PageStream<Self, FoundPage>> {
        HostSearchPages::into_page_stream(self.run_blocking(host, move |it| it.find(&find)).await)
    }

    async fn search(
        &self,
        host: &Reporter,
        search: FileSearch,
    ) -> Result<PageStream<Self, SearchedPage>> {
        HostSearchPages::into_page_stream(
            self.run_blocking(host, move |it| it.search(&search)).await,
        )
    }

    async fn walk(&self, host: &Reporter, walk: FileWalk) -> Result<PageStream<Self, WalkedPage>> {
        HostSearchPages::into_page_stream(self.run_blocking(host, move |it| it.walk(&walk)).await)
    }

    async fn open(&self, host: &Reporter, read: FileRead) -> Result<(u64, PieceStream<Self>)> {
        let (facts, pieces) = self.run_blocking(host, move |it| it.read_stream(&read)).await?;
        Ok((facts.size, PieceStream::new(HostFileReader(Arc::new(Mutex::new(pieces))))))
    }

    async fn create(&self, host: &Reporter, write: FileWrite) -> Result<FileSink<Self>> {
        let writer = self.run_blocking(host, move |it| it.write_stream(&write)).await?;
        Ok(FileSink::new(HostFileWriter(Arc::new(Mutex::new(Some(writer))))))
    }
}

impl FilePieces for HostFileReader {
    async fn next(&mut self, host: &Reporter, buffer: Vec<u8>) -> Result<Vec<u8>> {
        let (pieces, start) = (Arc::clone(&self.0), buffer.len());
        let read = move |_: &Reporter| lock_value(&pieces).append_piece(buffer, PIECE_BYTES_MAX);
        let buffer = host.blocking(read).await??;
        lock_value(&self.0).skip_bytes(buffer.len() - start);
        Ok(buffer)
    }
}

impl FileWriter for HostFileWriter {
    async fn write(&mut self, host: &Reporter, bytes: Vec<u8>) -> Result<()> {
        let writer = Arc::clone(&self.0);
        host.blocking(move |_| {
            let mut held = lock_value(&writer);
            // A failed write may have lost bytes, so the writer is not put back.
            let mut writer = held.take().ok_or_else(writer_failed_error)?;
            writer.write(&bytes)?;
            *held = Some(writer);
            Ok(())
        })
        .await?
    }

    async fn finish(self, host: &Reporter) -> Result<FileFacts> {
        host.blocking(move |_| {
            let writer = lock_value(&self.0).take();
            writer.ok_or_else(writer_failed_error)?.finish()
        })
        .await?
    }
}

fn writer_failed_error() -> Error {
    Error::new(ErrorKind::Io, "an earlier write to the file failed").with_hint("write it again")
}

/// A search on this machine, with a page that was read for a call that stopped waiting.
struct HostSearchPages<P> {
    search: Arc<Mutex<(ConfinedSearchPages<P>, Option<P>)>>,
    _cancel: CancelSearchOnDrop,
}

/// Cancels a search when it is dropped, so that its thread becomes free.
struct CancelSearchOnDrop(SearchCancel);

impl Drop for CancelSearchOnDrop {
    fn drop(&mut self) {
        self.0.cancel_search();
    }
}

impl<P: Send + 'static> HostSearchPages<P> {
    fn into_page_stream(pages: Result<ConfinedSearchPages<P>>) -> Result<PageStream<HostFiles, P>> {
        let pages = pages?;
        let _cancel = CancelSearchOnDrop(pages.cancel_handle());
        Ok(PageStream::new(Self { search: Arc::new(Mutex::new((pages, None))), _cancel }))
    }
}

impl<P: Send + 'static> StreamedPages<P> for HostSearchPages<P> {
    async fn next(&mut self, host: &Reporter) -> Result<Option<P>> {
        let search = Arc::clone(&self.search);
        let read = move |_: &Reporter| {
            let (pages, page) = &mut *lock_value(&search);
            if page.is_none() {
                *page = pages.next().transpose()?;
            }
            Ok(())
        };
        host.blocking(read).await??;
        Ok(lock_value(&self.search).1.take())
    }
}

/// A panic under these locks leaves no half-finished state, so poisoning is ignored.
fn lock_value<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock()
}

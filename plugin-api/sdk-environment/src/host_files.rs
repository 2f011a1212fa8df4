//! The files of this machine as the sdk's `Files`: blocking work goes through the host's pool, what
//! is in memory is read in place.

use std::sync::Arc;

use jaato_plugin_sdk::Reporter;
use jaato_plugin_sdk::environment::{
    FilePieces, FileWriter, Files, PageStream, Pages as SearchPages, TreePages,
};
use jaato_types::execution::PIECE_BYTES_MAX;
use jaato_types::files::{
    FileBytes, FileDelete, FileEdit, FileEdited, FileFacts, FileFind, FileGlob, FilePair, FilePath,
    FileRead, FileReadText, FileSearch, FileText, FileWalk, FileWrite, FilesFound, FolderEntries,
    FolderList, FolderMake, FoundPage, SearchedPage, WalkedPage,
};
use jaato_types::{Error, ErrorKind, Result};
use parking_lot::{Mutex, MutexGuard};

use crate::files::{Cancel, Confined, Find, Pieces, Search, Walk, Writer};

/// Files of this machine, confined to allowed folders.
#[derive(Debug, Clone)]
pub struct HostFiles(Arc<Confined>);

/// A file of this machine that is read piece by piece.
#[derive(Debug)]
pub struct HostPieces(Arc<Mutex<Pieces>>);

/// A file of this machine that is written piece by piece.
#[derive(Debug)]
pub struct HostWriter(Arc<Mutex<Option<Writer>>>);

/// A tree of this machine that is gone through.
#[derive(Debug)]
pub struct HostPages(Arc<Mutex<Pages>>);

#[derive(Debug)]
struct Pages {
    walk: Walk,
    /// A page that was read for somebody who did not wait for it.
    read: Option<WalkedPage>,
}

impl HostFiles {
    /// Makes them of what was opened.
    pub fn new(confined: Confined) -> Self {
        Self(Arc::new(confined))
    }

    /// What they are: for its folders, and to close it.
    pub fn confined(&self) -> &Arc<Confined> {
        &self.0
    }

    async fn blocking<T: Send + 'static>(
        &self,
        host: &Reporter,
        work: impl FnOnce(&Confined) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let confined = Arc::clone(&self.0);
        host.blocking(move |_| work(&confined)).await?
    }
}

impl Files for HostFiles {
    type Pieces = HostPieces;
    type Writer = HostWriter;
    type Pages = HostPages;

    async fn read(&self, host: &Reporter, read: FileRead) -> Result<(FileBytes, Vec<u8>)> {
        match self.0.read_cached(&read) {
            Some(found) => Ok(found),
            None => self.blocking(host, move |it| it.read(&read)).await,
        }
    }

    async fn write(&self, host: &Reporter, write: FileWrite, bytes: Vec<u8>) -> Result<FileFacts> {
        self.blocking(host, move |it| it.write(&write, &bytes)).await
    }

    async fn stat(&self, host: &Reporter, path: FilePath) -> Result<FileFacts> {
        match self.0.stat_cached(&path) {
            Some(found) => Ok(found),
            None => self.blocking(host, move |it| it.stat(&path)).await,
        }
    }

    async fn list(&self, host: &Reporter, list: FolderList) -> Result<FolderEntries> {
        self.blocking(host, move |it| it.list(&list)).await
    }

    async fn delete(&self, host: &Reporter, delete: FileDelete) -> Result<()> {
        self.blocking(host, move |it| it.delete(&delete)).await
    }

    async fn make_folder(&self, host: &Reporter, make: FolderMake) -> Result<()> {
        self.blocking(host, move |it| it.make_folder(&make)).await
    }

    async fn read_text(&self, host: &Reporter, read: FileReadText) -> Result<FileText> {
        self.blocking(host, move |it| it.read_text(&read)).await
    }

    async fn edit(&self, host: &Reporter, edit: FileEdit) -> Result<FileEdited> {
        self.blocking(host, move |it| it.edit(&edit)).await
    }

    async fn rename(&self, host: &Reporter, pair: FilePair) -> Result<()> {
        self.blocking(host, move |it| it.move_to(&pair)).await
    }

    async fn copy(&self, host: &Reporter, pair: FilePair) -> Result<()> {
        self.blocking(host, move |it| it.copy(&pair)).await
    }

    async fn glob(&self, host: &Reporter, glob: FileGlob) -> Result<FilesFound> {
        self.blocking(host, move |it| it.glob(&glob)).await
    }

    async fn find(&self, host: &Reporter, find: FileFind) -> Result<PageStream<Self, FoundPage>> {
        let find = self.blocking(host, move |it| it.find(&find)).await?;
        let cancel = CancelOnDrop(find.cancel());
        Ok(PageStream::new(HostSearch {
            search: Arc::new(Mutex::new((find, None))),
            _cancel: cancel,
        }))
    }

    async fn search(
        &self,
        host: &Reporter,
        search: FileSearch,
    ) -> Result<PageStream<Self, SearchedPage>> {
        let search = self.blocking(host, move |it| it.search(&search)).await?;
        let cancel = CancelOnDrop(search.cancel());
        Ok(PageStream::new(HostSearch {
            search: Arc::new(Mutex::new((search, None))),
            _cancel: cancel,
        }))
    }

    async fn walk(&self, host: &Reporter, walk: FileWalk) -> Result<HostPages> {
        let walk = self.blocking(host, move |it| it.walk(&walk)).await?;
        Ok(HostPages(Arc::new(Mutex::new(Pages { walk, read: None }))))
    }

    async fn open(&self, host: &Reporter, read: FileRead) -> Result<(u64, HostPieces)> {
        let (facts, pieces) = self.blocking(host, move |it| it.read_stream(&read)).await?;
        Ok((facts.size, HostPieces(Arc::new(Mutex::new(pieces)))))
    }

    async fn create(&self, host: &Reporter, write: FileWrite) -> Result<HostWriter> {
        let writer = self.blocking(host, move |it| it.write_stream(&write)).await?;
        Ok(HostWriter(Arc::new(Mutex::new(Some(writer)))))
    }
}

impl FilePieces for HostPieces {
    async fn next(&mut self, host: &Reporter, buffer: Vec<u8>) -> Result<Vec<u8>> {
        let (pieces, start) = (Arc::clone(&self.0), buffer.len());
        let read = move |_: &Reporter| locked(&pieces).read_behind(buffer, PIECE_BYTES_MAX);
        let buffer = host.blocking(read).await??;
        locked(&self.0).skip(buffer.len() - start);
        Ok(buffer)
    }
}

impl FileWriter for HostWriter {
    async fn write(&mut self, host: &Reporter, bytes: Vec<u8>) -> Result<()> {
        let writer = Arc::clone(&self.0);
        host.blocking(move |_| {
            let mut held = locked(&writer);
            // One that failed has lost bytes: it must not be put in its place.
            let mut writer = held.take().ok_or_else(has_failed)?;
            writer.write(&bytes)?;
            *held = Some(writer);
            Ok(())
        })
        .await?
    }

    async fn finish(self, host: &Reporter) -> Result<FileFacts> {
        host.blocking(move |_| {
            let writer = locked(&self.0).take();
            writer.ok_or_else(has_failed)?.finish()
        })
        .await?
    }
}

fn has_failed() -> Error {
    Error::new(ErrorKind::Io, "writing the file has failed before").with_hint("write it anew")
}

impl TreePages for HostPages {
    async fn next(&mut self, host: &Reporter) -> Result<Option<WalkedPage>> {
        let pages = Arc::clone(&self.0);
        let read = move |_: &Reporter| {
            let mut pages = locked(&pages);
            if pages.read.is_none() {
                pages.read = pages.walk.next();
            }
        };
        host.blocking(read).await?;
        Ok(locked(&self.0).read.take())
    }
}

/// A search on this machine, with a page that was read for somebody who did not wait for it.
struct HostSearch<T, P> {
    search: Arc<Mutex<(T, Option<P>)>>,
    _cancel: CancelOnDrop,
}

/// Ends a search that nobody waits for, so that the thread on which it waits is free.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl<T: NextPage> SearchPages<T::Page> for HostSearch<T, T::Page> {
    async fn next(&mut self, host: &Reporter) -> Result<Option<T::Page>> {
        let search = Arc::clone(&self.search);
        let read = move |_: &Reporter| {
            let (search, page) = &mut *locked(&search);
            if page.is_none() {
                *page = search.next_page()?;
            }
            Ok(())
        };
        host.blocking(read).await??;
        Ok(locked(&self.search).1.take())
    }
}

/// What gives pages and blocks.
trait NextPage: Send + 'static {
    type Page: Send + 'static;

    fn next_page(&mut self) -> Result<Option<Self::Page>>;
}

impl NextPage for Find {
    type Page = FoundPage;

    fn next_page(&mut self) -> Result<Option<FoundPage>> {
        Ok(Find::next_page(self))
    }
}

impl NextPage for Search {
    type Page = SearchedPage;

    fn next_page(&mut self) -> Result<Option<SearchedPage>> {
        Search::next_page(self)
    }
}

/// Nothing is half done under these locks where a panic ends it.
fn locked<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock()
}

//! Finding and searching the files of the session's execution environment: by the environment, or
//! where that is older and cannot, by reading its files one by one.

use jaato_types::files::{
    FIND, FileBytes, FileDelete, FileFacts, FileFind, FilePath, FileRead, FileSearch, FileWrite,
    FolderEntries, FolderList, FolderMake, FoundPage, SEARCH, SearchedPage,
};
use jaato_types::{ErrorKind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::Reporter;
use crate::context::stream::Stream;
use crate::environment::{ByDefault, Files, PageStream};
use crate::session_files::SessionFiles;

/// What is said of an environment that reads for us.
const NOTE: &str = "this execution environment cannot search by itself, so its files were listed \
                    and read one by one";

/// What a search finds, page by page. Dropping it ends the search.
pub struct SearchPages<P: 'static>(Source<P>);

enum Source<P: 'static> {
    Environment(Stream),
    Reading(Reading, PageStream<Reading, P>),
}

impl SessionFiles<'_> {
    /// Finds files, and no folders, by a pattern.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no pattern.
    pub async fn find(&self, find: FileFind) -> Result<SearchPages<FoundPage>> {
        if let Some(stream) = opened(self.host(), FIND, &find).await? {
            return Ok(SearchPages(Source::Environment(stream)));
        }
        let reading = Reading(self.host().clone());
        let pages = reading.find(self.host(), find).await?;
        Ok(SearchPages(Source::Reading(reading, pages)))
    }

    /// Searches texts.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no regular expression, or one that becomes too large.
    pub async fn search(&self, search: FileSearch) -> Result<SearchPages<SearchedPage>> {
        if let Some(stream) = opened(self.host(), SEARCH, &search).await? {
            return Ok(SearchPages(Source::Environment(stream)));
        }
        let reading = Reading(self.host().clone());
        let pages = reading.search(self.host(), search).await?;
        Ok(SearchPages(Source::Reading(reading, pages)))
    }
}

/// Opens a stream of the environment; `None` where environment or host do not know the operation.
async fn opened(
    host: &Reporter,
    operation: &str,
    request: &impl Serialize,
) -> Result<Option<Stream>> {
    match host.service::<Value>(operation, request).await {
        // An older host passes the operation on, and does not know that its answer is a stream.
        Ok(answer) => {
            let handle = answer.get("handle").and_then(Value::as_u64);
            Ok(handle.map(|handle| Stream::new(host.clone(), handle)))
        }
        Err(error) if error.kind == ErrorKind::UnknownOperation => Ok(None),
        Err(error) => Err(error),
    }
}

impl<P: DeserializeOwned + 'static> SearchPages<P> {
    /// Gives what comes next; none at the end.
    ///
    /// # Errors
    /// What ends the search.
    pub async fn next(&mut self) -> Result<Option<P>> {
        match &mut self.0 {
            Source::Environment(stream) => Ok(stream.next_event().await?.map(|(page, _)| page)),
            Source::Reading(reading, pages) => pages.next(reading, &reading.0).await,
        }
    }

    /// Says what a person and a model should know of how it was searched; nothing in the usual
    /// case.
    pub fn note(&self) -> Option<&'static str> {
        match &self.0 {
            Source::Environment(_) => None,
            Source::Reading(..) => Some(NOTE),
        }
    }
}

/// The session's files as those of an environment that can do nothing by itself, so that searching
/// by reading is written once.
struct Reading(Reporter);

impl Files for Reading {
    type Pieces = ByDefault;
    type Writer = ByDefault;
    type Pages = ByDefault;

    async fn read(&self, _: &Reporter, read: FileRead) -> Result<(FileBytes, Vec<u8>)> {
        self.0.files().read(read).await
    }

    async fn write(&self, _: &Reporter, write: FileWrite, bytes: Vec<u8>) -> Result<FileFacts> {
        self.0.files().write(write, &bytes).await
    }

    async fn stat(&self, _: &Reporter, path: FilePath) -> Result<FileFacts> {
        self.0.files().stat(path.path).await
    }

    async fn list(&self, _: &Reporter, list: FolderList) -> Result<FolderEntries> {
        self.0.files().list(list).await
    }

    async fn delete(&self, _: &Reporter, delete: FileDelete) -> Result<()> {
        self.0.files().delete(delete).await
    }

    async fn make_folder(&self, _: &Reporter, make: FolderMake) -> Result<()> {
        self.0.files().make_folder(make).await
    }
}

//! Pages that come one after the other: what a search found, in pieces.

use std::future::Future;
use std::pin::Pin;

use jaato_types::Result;
use jaato_types::files::{FoundPage, SearchedPage};

use super::Files;
use super::derived::{Finding, Searching};
use crate::context::Reporter;

/// Pages of a kind, one after the other.
pub trait Pages<P: 'static>: Send + 'static {
    /// Gives the next page, as much as fits into 64 KiB of JSON; none at the end.
    ///
    /// # Errors
    /// What ends the search.
    fn next(&mut self, host: &Reporter) -> impl Future<Output = Result<Option<P>>> + Send;
}

/// The pages of a search in the files `F`: an environment's own, or those that the sdk makes over
/// the required methods of [`Files`].
pub struct PageStream<F: ?Sized, P: 'static>(Box<dyn NextPage<F, P>>);

type Next<'a, P> = Pin<Box<dyn Future<Output = Result<Option<P>>> + Send + 'a>>;

/// [`Pages`] whose type is forgotten.
trait NextPage<F: ?Sized, P: 'static>: Send {
    fn next<'a>(&'a mut self, files: &'a F, host: &'a Reporter) -> Next<'a, P>;
}

/// Pages that do not need the files.
struct Own<T>(T);

impl<F: ?Sized, P: 'static> PageStream<F, P> {
    /// Takes an environment's own pages.
    pub fn new(pages: impl Pages<P>) -> Self {
        Self(Box::new(Own(pages)))
    }

    /// Gives the next page; none at the end.
    pub(crate) async fn next(&mut self, files: &F, host: &Reporter) -> Result<Option<P>> {
        self.0.next(files, host).await
    }
}

impl<F: Files + ?Sized> PageStream<F, FoundPage> {
    pub(super) fn finding(finding: Finding) -> Self {
        Self(Box::new(finding))
    }
}

impl<F: Files + ?Sized> PageStream<F, SearchedPage> {
    pub(super) fn searching(searching: Searching) -> Self {
        Self(Box::new(searching))
    }
}

impl<F: ?Sized, P: 'static, T: Pages<P>> NextPage<F, P> for Own<T> {
    fn next<'a>(&'a mut self, _files: &'a F, host: &'a Reporter) -> Next<'a, P> {
        Box::pin(self.0.next(host))
    }
}

impl<F: Files + ?Sized> NextPage<F, FoundPage> for Finding {
    fn next<'a>(&'a mut self, files: &'a F, host: &'a Reporter) -> Next<'a, FoundPage> {
        Box::pin(self.next(files, host))
    }
}

impl<F: Files + ?Sized> NextPage<F, SearchedPage> for Searching {
    fn next<'a>(&'a mut self, files: &'a F, host: &'a Reporter) -> Next<'a, SearchedPage> {
        Box::pin(self.next(files, host))
    }
}

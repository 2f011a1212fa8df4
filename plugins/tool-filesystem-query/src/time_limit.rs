//! Waits for the next page of results within a time limit.

use std::pin::{Pin, pin};
use std::time::Duration;

use futures_util::future::{Either, select};
use jaato_plugin_sdk::files::SearchPages;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde::de::DeserializeOwned;

/// The result of a wait.
pub enum PageWaitResult<P> {
    /// A page.
    Page(P),
    /// The last page was read.
    End,
    /// The time limit has passed.
    Late,
}

/// A time limit that starts at creation.
pub struct SearchTimeLimit<'a>(Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>);

impl<'a> SearchTimeLimit<'a> {
    /// Starts the time limit.
    pub fn new(cx: &'a Reporter, time: Duration) -> Self {
        Self(Box::pin(cx.sleep(time)))
    }

    /// Waits for the next page.
    pub async fn next_page<P: DeserializeOwned>(
        &mut self,
        pages: &mut SearchPages<P>,
    ) -> Result<PageWaitResult<P>> {
        match select(pin!(pages.next()), &mut self.0).await {
            Either::Left((page, _)) => Ok(page?.map_or(PageWaitResult::End, PageWaitResult::Page)),
            Either::Right((slept, _)) => slept.map(|()| PageWaitResult::Late),
        }
    }
}

/// Returns the note for a search that took too long.
pub fn timeout_note(time: Duration) -> String {
    format!(
        "the search stopped after {} seconds with partial results; search in a smaller folder or \
         with a narrower pattern",
        time.as_secs()
    )
}

//! Waits for the next page, until the time is over.

use std::pin::{Pin, pin};
use std::time::Duration;

use futures_util::future::{Either, select};
use jaato_plugin_sdk::files::SearchPages;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde::de::DeserializeOwned;

/// What came.
pub enum Came<P> {
    /// A page.
    Page(P),
    /// There is none any more.
    End,
    /// The time is over.
    Late,
}

/// A time that runs from when it is made.
pub struct TimeLimit<'a>(Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>);

impl<'a> TimeLimit<'a> {
    /// Begins.
    pub fn new(cx: &'a Reporter, time: Duration) -> Self {
        Self(Box::pin(cx.sleep(time)))
    }

    /// Waits for the next page.
    pub async fn next<P: DeserializeOwned>(
        &mut self,
        pages: &mut SearchPages<P>,
    ) -> Result<Came<P>> {
        match select(pin!(pages.next()), &mut self.0).await {
            Either::Left((page, _)) => Ok(page?.map_or(Came::End, Came::Page)),
            Either::Right((slept, _)) => slept.map(|()| Came::Late),
        }
    }
}

/// What is said of a search that took too long.
pub fn late(time: Duration) -> String {
    format!(
        "the search stopped after {} seconds with partial results; search a smaller folder or use \
         a narrower pattern",
        time.as_secs()
    )
}

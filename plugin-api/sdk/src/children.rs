//! Sessions that a plugin opens beside its own.

use jaato_types::child::{
    self, ChildDone, ChildOpen, ChildOpened, ChildRef, ChildSend, ChildState, ChildTurn, ChildWait,
};
use jaato_types::service::StreamAnswer;
use jaato_types::{Envelope, Error, Result};

use crate::context::Reporter;
use crate::context::stream::Stream;

/// A session that a plugin has opened. Dropping it does not end it: [`ChildSession::close`] does,
/// and the end of the call, or of the instance, that opened it.
pub struct ChildSession {
    host: Reporter,
    opened: ChildOpened,
}

/// The events of a child session; made by [`ChildSession::events`].
pub struct ChildEvents(Stream);

impl Reporter {
    /// Opens a session beside the plugin's own: the same rules, person, ledger, environment and
    /// caps, and what `open` says.
    ///
    /// ```
    /// # use jaato_plugin_sdk::prelude::*;
    /// use jaato_plugin_sdk::child::ChildOpen;
    ///
    /// # async fn ask_another(cx: &Cx) -> Result<Output> {
    /// let tools = Some(vec!["readFile".into()]);
    /// let open = ChildOpen { name: "reader".into(), tools, ..ChildOpen::default() };
    /// let child = cx.open_session(&open).await?;
    /// let turn = child.ask("What does README.md promise?").await?;
    /// Ok(Output::text(turn.text))
    /// # }
    /// ```
    ///
    /// # Errors
    /// `permission_denied` without a grant for `session.open`; `limit_reached` two sessions deep
    /// and beside 16 others; `unknown_tool` for a tool that the opener has not.
    pub async fn open_session(&self, open: &ChildOpen) -> Result<ChildSession> {
        let opened = self.service(child::SESSION_OPEN, open).await?;
        Ok(ChildSession { host: self.clone(), opened })
    }
}

impl ChildSession {
    /// Returns its number, its id and its model.
    pub fn opened(&self) -> &ChildOpened {
        &self.opened
    }

    /// Says something, and waits for the end of the turn.
    ///
    /// # Errors
    /// As [`ChildSession::send`]. How the turn itself ended stands in what is returned.
    pub async fn ask(&self, text: impl Into<String>) -> Result<ChildTurn> {
        let before = self.state(1).await?.turns;
        self.send(text).await?;
        loop {
            let state = self.state(0).await?;
            match state.last {
                Some(turn) if !state.is_running && state.turns > before => return Ok(turn),
                _ if self.host.is_cancelled() => return Err(Error::cancelled()),
                _ => {}
            }
        }
    }

    /// Says something: a turn begins, or the one that runs is told of it.
    ///
    /// # Errors
    /// `invalid_arguments` for nothing; `limit_reached` where too much waits; `not_found` once it
    /// is closed.
    pub async fn send(&self, text: impl Into<String>) -> Result<()> {
        let request =
            ChildSend { session: self.opened.session, text: text.into(), ..ChildSend::default() };
        self.host.service::<ChildDone>(child::SESSION_SEND, &request).await?;
        Ok(())
    }

    /// Waits until no turn runs, at most so many milliseconds (10 minutes where that is 0), and
    /// tells how it stands.
    ///
    /// # Errors
    /// `not_found` once it is closed.
    pub async fn state(&self, wait_ms: u64) -> Result<ChildState> {
        let request = ChildWait { session: self.opened.session, wait_ms, ..ChildWait::default() };
        self.host.service(child::SESSION_WAIT, &request).await
    }

    /// Follows its events from here on. Who reads too slowly loses some.
    ///
    /// # Errors
    /// `not_found` once it is closed.
    pub async fn events(&self) -> Result<ChildEvents> {
        let answer: StreamAnswer =
            self.host.service(child::SESSION_EVENTS, &self.reference()).await?;
        Ok(ChildEvents(Stream::new(self.host.clone(), answer.handle)))
    }

    /// Ends the turn that runs.
    ///
    /// # Errors
    /// `not_found` once it is closed.
    pub async fn cancel(&self) -> Result<()> {
        self.host.service::<ChildDone>(child::SESSION_CANCEL, &self.reference()).await?;
        Ok(())
    }

    /// Ends it.
    ///
    /// # Errors
    /// `not_found` where it has ended already.
    pub async fn close(self) -> Result<()> {
        self.host.service::<ChildDone>(child::SESSION_CLOSE, &self.reference()).await?;
        Ok(())
    }

    fn reference(&self) -> ChildRef {
        ChildRef { session: self.opened.session, ..ChildRef::default() }
    }
}

impl ChildEvents {
    /// Waits for the next event; nothing once the session has ended.
    ///
    /// # Errors
    /// `cancelled` when the call ended.
    pub async fn next(&mut self) -> Result<Option<Envelope>> {
        Ok(self.0.next_event().await?.map(|(envelope, _)| envelope))
    }
}

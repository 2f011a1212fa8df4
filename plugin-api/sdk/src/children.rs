//! Child sessions, which a plugin opens next to its own session.

use jaato_types::child::{
    self, ChildEmptyAnswer, ChildOpen, ChildRef, ChildSend, ChildState, ChildTurn, ChildWait,
    OpenedChild,
};
use jaato_types::service::StreamAnswer;
use jaato_types::{Error, EventEnvelope, Result};

use crate::context::Reporter;
use crate::context::stream::ServiceStream;

/// A session that a plugin has opened. Dropping it does not end the session. The session ends with
/// [`ChildSession::close`], or with the call or instance that opened it.
pub struct ChildSession {
    host: Reporter,
    opened: OpenedChild,
}

/// The events of a child session, made by [`ChildSession::events`].
pub struct ChildEvents(ServiceStream);

impl Reporter {
    /// Opens a child session. It shares the rules, user, ledger, environment and caps of the
    /// plugin's session. `open` sets everything else.
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
    /// `permission_denied` without a grant for `session.open`; `limit_reached` if sessions are
    /// already nested two deep or 16 others are open; `unknown_tool` for a tool that the plugin's
    /// session does not have.
    pub async fn open_session(&self, open: &ChildOpen) -> Result<ChildSession> {
        let opened = self.service(child::SESSION_OPEN, open).await?;
        Ok(ChildSession { host: self.clone(), opened })
    }
}

impl ChildSession {
    /// Returns the session's number, id and model.
    pub fn opened(&self) -> &OpenedChild {
        &self.opened
    }

    /// Sends a message and waits for the end of the turn.
    ///
    /// # Errors
    /// As [`ChildSession::send`]. The returned value contains the outcome of the turn.
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

    /// Sends a message. It starts a turn or joins the running one.
    ///
    /// # Errors
    /// `invalid_arguments` for an empty message; `limit_reached` if too many messages are waiting;
    /// `not_found` if the session is closed.
    pub async fn send(&self, text: impl Into<String>) -> Result<()> {
        let request =
            ChildSend { session: self.opened.session, text: text.into(), ..ChildSend::default() };
        self.host.service::<ChildEmptyAnswer>(child::SESSION_SEND, &request).await?;
        Ok(())
    }

    /// Waits until no turn runs, at most `wait_ms` milliseconds (10 minutes if it is 0), and
    /// returns the session's state.
    ///
    /// # Errors
    /// `not_found` if the session is closed.
    pub async fn state(&self, wait_ms: u64) -> Result<ChildState> {
        let request = ChildWait { session: self.opened.session, wait_ms, ..ChildWait::default() };
        self.host.service(child::SESSION_WAIT, &request).await
    }

    /// Streams the session's events from this call on. A slow reader loses some of them.
    ///
    /// # Errors
    /// `not_found` if the session is closed.
    pub async fn events(&self) -> Result<ChildEvents> {
        let answer: StreamAnswer =
            self.host.service(child::SESSION_EVENTS, &self.reference()).await?;
        Ok(ChildEvents(ServiceStream::new(self.host.clone(), answer.handle)))
    }

    /// Cancels the running turn.
    ///
    /// # Errors
    /// `not_found` if the session is closed.
    pub async fn cancel(&self) -> Result<()> {
        self.host.service::<ChildEmptyAnswer>(child::SESSION_CANCEL, &self.reference()).await?;
        Ok(())
    }

    /// Closes the session.
    ///
    /// # Errors
    /// `not_found` if the session has already ended.
    pub async fn close(&self) -> Result<()> {
        self.host.service::<ChildEmptyAnswer>(child::SESSION_CLOSE, &self.reference()).await?;
        Ok(())
    }

    fn reference(&self) -> ChildRef {
        ChildRef { session: self.opened.session, ..ChildRef::default() }
    }
}

impl ChildEvents {
    /// Waits for the next event. Returns `None` when the session has ended.
    ///
    /// # Errors
    /// `cancelled` if the call ended.
    pub async fn next(&mut self) -> Result<Option<EventEnvelope>> {
        Ok(self.0.next_event().await?.map(|(envelope, _)| envelope))
    }
}

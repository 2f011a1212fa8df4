//! Creates models and child sessions for services on behalf of plugins.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use jaato_catalog::rules;
use jaato_instances::{CallSite, Facet, Tell, misbehaved};
use jaato_services::{Counting, SessionMaker};
use jaato_session::{AnsweringModel, Cancel, EventSink, History, Lent, Session};
use jaato_types::child::ChildOpen;
use jaato_types::count::{Count, TokenCount};
use jaato_types::tools_set::{ToolsSet, ToolsSetAnswer};
use jaato_types::{Envelope, Error, ErrorKind, Frame, PluginName, RequestOptions, SessionId};

use crate::child::Child;
use crate::host::Host;
use crate::start_session::SessionOptions;

/// Creates them for a host without keeping it alive.
pub struct Maker(pub Weak<Host>);

impl Maker {
    fn host(&self) -> Result<Arc<Host>, Error> {
        let over = || Error::new(ErrorKind::Unavailable, "the host has ended");
        self.0.upgrade().ok_or_else(over)
    }
}

impl SessionMaker for Maker {
    fn model(&self, name: &str, session: &SessionId) -> Result<AnsweringModel, Error> {
        let host = self.host()?;
        let named = host.model_by_name(name)?;
        let ready = host.ready_model(&named, &RequestOptions::default(), session)?;
        Ok(AnsweringModel { model: ready.setup, provider: ready.provider })
    }

    fn count(&self, name: &str, asked: &Count, session: &SessionId) -> Result<Counting, Error> {
        let host = self.host()?;
        let model = host.model_by_name(name)?.model;
        let known = host.provider_of(&model)?;
        let (_, own_name) = model.split().unwrap_or_default();
        let request = asked
            .request_to(own_name)
            .ok_or_else(|| Error::new(ErrorKind::InvalidArguments, "there is nothing to count"))?;
        let provider = known.names.map(|names| names.given);
        let site = CallSite { provider, ..host.environments.site(session) };
        let tokens = Box::pin(async move {
            let written = Frame::write(&request)
                .map_err(|error| Error::new(ErrorKind::LimitReached, error.to_string()))?;
            let (plugin, facet) = (known.plugin.as_str(), Facet::CountTokens);
            let nobody: Tell = Arc::new(|_| {});
            let cancel = Cancel::new();
            let asked = host.plugins.ask(plugin, facet, site, written, &nobody, &cancel);
            Ok(Frame::read::<TokenCount>(&asked.await?).map_err(misbehaved)?.tokens)
        });
        Ok(Counting { model: model.to_string(), tokens })
    }

    fn open(
        &self,
        opener: &SessionId,
        lent: Lent,
        asked: &ChildOpen,
        follower: Arc<dyn EventSink>,
    ) -> Result<Session, Error> {
        self.host()?.open_child(opener, lent, asked, follower)
    }

    fn set_tools(
        &self,
        plugin: &PluginName,
        owner: Option<&SessionId>,
        set: ToolsSet,
    ) -> Result<ToolsSetAnswer, Error> {
        let host = self.host()?;
        let plugins = &host.plugins.plugins;
        let answer = plugins.set_tools(plugin, owner, set, &rules(&host.setup))?;
        // A user who types the next message sees it at once.
        let news = |session: &SessionId| plugins.news(session, Some(plugin.as_str()));
        host.services.shared().sessions().tell(news);
        Ok(answer)
    }

    fn close(&self, session: SessionId) -> BoxFuture<'static, ()> {
        let host = self.0.upgrade();
        Box::pin(async move {
            if let Some(host) = host {
                host.close_session(&session).await;
            }
        })
    }
}

impl Host {
    /// Starts a session that another one opens.
    fn open_child(
        self: &Arc<Self>,
        opener: &SessionId,
        lent: Lent,
        asked: &ChildOpen,
        follower: Arc<dyn EventSink>,
    ) -> Result<Session, Error> {
        if let Some(only) = &asked.tools {
            for name in only {
                lent.tools.find(name)?;
            }
        }
        let sessions = self.services.shared().sessions();
        let person = sessions.events_of(opener);
        let events = Arc::new(Both { person, follower });
        let mut options = SessionOptions::unattended(events);
        options.asker = Arc::clone(&lent.asker);
        options.system.clone_from(&asked.instructions);
        options.environment = self.environments.shared_of(opener);
        options.model = Some(asked.model.clone().unwrap_or_else(|| lent.model.to_string()));
        let child = Child { opener: opener.clone(), asked: asked.clone(), lent };
        self.start_session(History::new(), options, Some(child))
    }
}

/// Shows a child's events to its opener's user and to the plugin that follows it.
struct Both {
    person: Option<Arc<dyn EventSink>>,
    follower: Arc<dyn EventSink>,
}

impl EventSink for Both {
    fn event(&self, envelope: Envelope) {
        if let Some(person) = &self.person {
            person.event(envelope.clone());
        }
        self.follower.event(envelope);
    }
}

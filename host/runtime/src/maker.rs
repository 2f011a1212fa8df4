//! What services ask of the host to make for plugins: models, and sessions of their own.

use std::sync::{Arc, Weak};

use jaato_instances::{CallSite, Facet, Tell, misbehaved};
use jaato_services::{Counting, SessionMaker};
use jaato_session::{AnsweringModel, Cancel};
use jaato_types::count::{Count, TokenCount};
use jaato_types::{Error, ErrorKind, Frame, RequestOptions, SessionId};

use crate::host::Host;

/// Makes them for a host that it does not keep.
pub struct Maker(pub Weak<Host>);

impl Maker {
    fn host(&self) -> Result<Arc<Host>, Error> {
        let over = || Error::new(ErrorKind::Unavailable, "the host is over");
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
}

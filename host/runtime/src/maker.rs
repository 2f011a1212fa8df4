//! What services ask of the host to make for plugins: models, and sessions of their own.

use std::sync::{Arc, Weak};

use jaato_services::SessionMaker;
use jaato_session::AnsweringModel;
use jaato_types::{Error, ErrorKind, RequestOptions, SessionId};

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
}

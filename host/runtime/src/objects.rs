//! The service `objects`, for one call.

use jaato_loader::Served;
use jaato_objects::service;
use jaato_session::SharedObjects;
use jaato_types::objects::{ObjectsAdd, RESULT};
use jaato_types::{Error, ErrorKind, Frame, FrameError};

/// The objects of a session, as one call of a plugin has them.
#[derive(Clone)]
pub struct CallObjects {
    /// The session's.
    pub shared: SharedObjects,
    /// The tool that runs; the command's name where it is none.
    pub tool: String,
}

impl CallObjects {
    /// Answers an operation. `source` is the plugin's name without its kind.
    ///
    /// # Errors
    /// As [`service::answer`].
    pub fn call(&self, source: &str, operation: &str, request: &[u8]) -> Result<Served, Error> {
        let answer = match operation {
            RESULT => self.result(source, request)?,
            _ => self.shared.with(|all| service::answer(all, &self.tool, operation, request))?,
        };
        Ok(Served::Frame(answer))
    }

    /// A result is shown to whoever follows the session.
    fn result(&self, source: &str, request: &[u8]) -> Result<Vec<u8>, Error> {
        let bad = |error: FrameError| Error::new(ErrorKind::InvalidArguments, error.to_string());
        let result: ObjectsAdd = Frame::read(request).map_err(bad)?;
        let tool = result.tool.clone().unwrap_or_else(|| self.tool.clone());
        let changed = self.shared.result(source, &tool, result)?;
        Frame::write(&changed)
            .map_err(|error| Error::new(ErrorKind::LimitReached, error.to_string()))
    }
}

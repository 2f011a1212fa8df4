//! The service `objects`, for one call.

use jaato_loader::Served;
use jaato_objects::service;
use jaato_session::SharedObjects;
use jaato_types::Error;
use jaato_types::objects::{ObjectsAdd, RESULT};

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
        let result: ObjectsAdd = service::read(request)?;
        let tool = result.tool.clone().unwrap_or_else(|| self.tool.clone());
        service::frame(&self.shared.result(source, &tool, result)?)
    }
}

//! The service `objects`, for one call.

use jaato_loader::Served;
use jaato_objects::service::{self, Asker, Reach};
use jaato_session::SharedObjects;
use jaato_types::objects::{ObjectsAdd, RESULT};
use jaato_types::{Error, PluginName};

/// The objects of a session, as one call of a plugin has them.
#[derive(Clone)]
pub struct CallObjects {
    /// The session's.
    pub shared: SharedObjects,
    /// The tool that runs; the command's name where it is none.
    pub tool: String,
}

impl CallObjects {
    /// Answers an operation of a plugin; `own` are the tools to whose objects it is kept.
    ///
    /// # Errors
    /// As [`service::answer`].
    pub fn call(
        &self,
        plugin: &PluginName,
        own: Option<&[String]>,
        operation: &str,
        request: &[u8],
    ) -> Result<Served, Error> {
        let reach = match own {
            None => Reach::All,
            Some(tools) => Reach::Own { plugin: plugin.as_str(), tools },
        };
        let asker = Asker { tool: &self.tool, reach };
        let answer = match operation {
            RESULT => self.result(plugin.source(), &asker, request)?,
            _ => self.shared.with(|all| service::answer(all, &asker, operation, request))?,
        };
        Ok(Served::Frame(answer))
    }

    /// A result is shown to whoever follows the session.
    fn result(&self, source: &str, asker: &Asker<'_>, request: &[u8]) -> Result<Vec<u8>, Error> {
        let result: ObjectsAdd = service::read(request)?;
        let named = result.tool.clone();
        let tool = asker.tool(named.as_deref())?;
        service::frame(&self.shared.result(source, tool, result)?)
    }
}

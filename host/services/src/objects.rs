//! The session's objects for one call of a plugin.

use jaato_instances::CallObjects;
use jaato_loader::Served;
use jaato_objects::service::{self, Asker, Reach};
use jaato_types::objects::{ObjectsAdd, RESULT};
use jaato_types::{Error, PluginName};

/// Answers an operation of a plugin. `own` are the tools whose objects it may access.
///
/// # Errors
/// As [`service::answer`].
pub fn answer(
    objects: &CallObjects,
    plugin: &PluginName,
    own: Option<&[String]>,
    operation: &str,
    request: &[u8],
) -> Result<Served, Error> {
    let reach = match own {
        None => Reach::All,
        Some(tools) => Reach::Own { plugin: plugin.as_str(), tools },
    };
    let asker = Asker { tool: &objects.tool, reach };
    let answer = match operation {
        RESULT => add_result(objects, plugin.source(), &asker, request)?,
        _ => objects.shared.with(|all| service::answer(all, &asker, operation, request))?,
    };
    Ok(Served::Frame(answer))
}

/// Adds a result and shows it to the session's followers.
fn add_result(
    objects: &CallObjects,
    source: &str,
    asker: &Asker<'_>,
    request: &[u8],
) -> Result<Vec<u8>, Error> {
    let result: ObjectsAdd = service::read(request)?;
    let named = result.tool.clone();
    let tool = asker.tool(named.as_deref())?;
    service::frame(&objects.shared.add_result(source, tool, result)?)
}

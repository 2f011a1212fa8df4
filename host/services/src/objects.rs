//! The session's objects for one call of a plugin.

use jaato_instances::CallObjects;
use jaato_loader::EngineServiceAnswer;
use jaato_objects::service::{self, ObjectsAccess, ObjectsCaller};
use jaato_types::objects::{ObjectsAdd, RESULT};
use jaato_types::{Error, PluginName};

/// Answers an operation of a plugin. `own` are the tools whose objects it may access.
///
/// # Errors
/// As [`service::answer`].
pub fn answer_objects_operation(
    objects: &CallObjects,
    plugin: &PluginName,
    own: Option<&[String]>,
    operation: &str,
    request: &[u8],
) -> Result<EngineServiceAnswer, Error> {
    let reach = match own {
        None => ObjectsAccess::All,
        Some(tools) => ObjectsAccess::Own { plugin: plugin.as_str(), tools },
    };
    let asker = ObjectsCaller { tool: &objects.tool, reach };
    let answer = match operation {
        RESULT => add_result(objects, plugin.source(), &asker, request)?,
        _ => objects
            .shared
            .with_objects(|all| service::answer_operation(all, &asker, operation, request))?,
    };
    Ok(EngineServiceAnswer::Frame(answer))
}

/// Adds a result and shows it to the session's followers.
fn add_result(
    objects: &CallObjects,
    source: &str,
    asker: &ObjectsCaller<'_>,
    request: &[u8],
) -> Result<Vec<u8>, Error> {
    let result: ObjectsAdd = service::read_request(request)?;
    let named = result.tool.clone();
    let tool = asker.target_tool(named.as_deref())?;
    service::write_frame(&objects.shared.add_result(source, tool, result)?)
}

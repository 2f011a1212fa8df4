//! The service `tools.list`, which lists the session's tools.

use jaato_types::Error;
use jaato_types::tools_list::ToolsListAnswer;

use crate::call::ServiceCall;

jaato_types::tools_list_operations!(bodies);

fn tools(call: &ServiceCall) -> Result<ToolsListAnswer, Error> {
    let session = call.shared.sessions.find(&call.site.session)?;
    session.list_tools().map(ToolsListAnswer::new)
}

//! The service `tools.set`, with which a plugin changes its tools while it runs.

use jaato_types::Error;
use jaato_types::tools_set::{ToolsSet, ToolsSetAnswer};

use crate::call::ServiceCall;

jaato_types::tools_set_operations!(bodies);

fn set_tools(call: &ServiceCall, set: ToolsSet) -> Result<ToolsSetAnswer, Error> {
    let owner = Some(&call.site.session).filter(|_| !call.is_host_wide);
    call.shared.sessions.set_tools(&call.plugin, owner, set)
}

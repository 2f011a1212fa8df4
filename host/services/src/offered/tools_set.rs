//! The service `tools.set`: a plugin whose tools change while it runs.

use jaato_types::Frame;
use jaato_types::tools_set::{TOOLS_SET, ToolsSet};

use super::{Answer, Service, bad_request, frame, ready};
use crate::call::Call;

/// Tools that are set at run time.
pub struct SettingTools;

impl Service for SettingTools {
    fn has(&self, operation: &str) -> bool {
        operation == TOOLS_SET
    }

    fn call(&self, call: &Call, _operation: &str, request: Vec<u8>) -> Answer {
        let set = Frame::read::<ToolsSet>(&request).map_err(bad_request);
        let owner = Some(&call.site.session).filter(|_| !call.is_host_wide);
        let answer = set.and_then(|set| call.shared.sessions.set_tools(&call.plugin, owner, set));
        ready(answer.and_then(|answer| frame(&answer)))
    }
}

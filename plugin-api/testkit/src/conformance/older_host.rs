//! Checks a plugin on a host that is older than the plugin.

use jaato_types::Kind;

use super::{Suite, Verdict, clear_error, gc, told, tool};
use crate::FakeHost;

/// Where the host answers `unknown_operation` to every service that came after the first release,
/// the plugin goes on, or answers with a clear error. It does not panic, hang or forget to answer.
pub fn it_goes_on_without_later_services(suite: &Suite, host: &FakeHost) -> Verdict {
    host.lack_later_services();
    let instance = match host.instance() {
        Ok(instance) => instance,
        Err(error) => return clear_error("an instance on an older host", &error),
    };
    tool::run_examples(suite.examples, host, instance, |what, result| match result {
        Ok(_) => Ok(()),
        Err(error) => clear_error(&format!("{what} on an older host"), &error),
    })?;
    if suite.kinds.contains(&Kind::Gc) {
        if let Err(error) = instance.plan(&gc::full_request()) {
            clear_error("a plan on an older host", &error)?;
        }
    }
    instance.save().map(drop).map_err(told("save on an older host"))
}

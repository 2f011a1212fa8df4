//! What every plugin and every execution environment must do, asked of this one as a host asks it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

// Without a sandbox, all that can be asked of it is that it says so.
jaato_plugin_testkit::conformance!(environment_bubblewrap: environment; |suite| {
    if support::has_sandbox() { suite } else { suite.harmless() }
});

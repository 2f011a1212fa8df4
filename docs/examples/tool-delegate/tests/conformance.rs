//! Runs the conformance tests for plugins.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::child::ChildTurn;
use jaato_plugin_sdk::types::Outcome;

jaato_plugin_testkit::conformance!(tool_delegate: tool; |suite| {
    suite.with_all_examples().with_host(|host| host.with_child(|_, _| ChildTurn::new(Outcome::Done, "no function calls it")))
});

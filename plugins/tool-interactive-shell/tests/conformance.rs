//! The conformance suite. The examples continue an open session, so tests of the binary cover them
//! with real programs.
#![allow(clippy::unwrap_used)]

use jaato_plugin_testkit::PluginKind;
use jaato_plugin_testkit::conformance::{ConformanceSuite, list_checks};

/// The only check that these tools cannot pass on a host without terminals.
const EXAMPLES: &str = "examples_work";

#[test]
fn interactive_shell_plugin_passes_the_conformance_suite() {
    let kinds = [PluginKind::Tool];
    let suite = ConformanceSuite::for_plugin(tool_interactive_shell::__jaato::MODULE, &kinds);
    let all = list_checks(&kinds);
    assert!(all.iter().any(|(_, name, _)| *name == EXAMPLES));
    let held = all.into_iter().filter(|(_, name, _)| *name != EXAMPLES);
    let run = |(group, name, check)| {
        let error = suite.run_check(check).err()?;
        Some(format!("{group}::{name}: {error}"))
    };
    assert_eq!(held.filter_map(run).collect::<Vec<_>>(), Vec::<String>::new());
}

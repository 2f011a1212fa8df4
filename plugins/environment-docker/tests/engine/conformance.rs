//! The conformance suite for execution environments, in a container.

use jaato_plugin_sdk::serde_json::json;
use jaato_plugin_testkit::PluginKind;
use jaato_plugin_testkit::conformance::{ConformanceSuite, list_checks};

use super::support::{IMAGE, with_engine};

#[test]
fn docker_environment_passes_the_conformance_suite() {
    with_engine(|_| async {
        let kinds = [PluginKind::Environment];
        // The checks block their own threads.
        let broken = std::thread::spawn(move || {
            let suite = ConformanceSuite::for_plugin(environment_docker::__jaato::MODULE, &kinds);
            // Short enough for the suite to wait for it.
            let suite = suite.with_host(|host| {
                host.with_config(json!({ "image": IMAGE, "shell_timeout": 1.0 }))
            });
            let run = |(group, name, check)| {
                let error = suite.run_check(check).err()?;
                Some(format!("{group}::{name}: {error}"))
            };
            list_checks(&kinds).into_iter().filter_map(run).collect::<Vec<_>>()
        });
        assert_eq!(broken.join().unwrap(), Vec::<String>::new());
    });
}

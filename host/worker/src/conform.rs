//! Runs one check of the conformance suite on a plugin file, with a host that does nothing real.
//!
//! Started as `jaato plugin-worker --conform CHECK FILE`, with a process for each check, so that a
//! crash or a hang fails only that check.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use jaato_loader::PluginLibrary;
use jaato_plugin_testkit::conformance::{ConformanceSuite, checks};
use jaato_plugin_testkit::{FakeHost, PluginUnderTest};
use jaato_types::{Error, ErrorKind, PluginKind};

use crate::{ChildAnswer, answer_main, refusal};

/// The arguments before the check's name and the file.
pub const CONFORM_ARGUMENTS: [&str; 2] = ["plugin-worker", "--conform"];

/// How long a plugin may block a check.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lists the names of the checks for plugins of these kinds: `tool::examples_work`.
pub fn conformance_checks(kinds: &[PluginKind]) -> Vec<String> {
    checks(kinds).into_iter().map(|(group, name, _)| format!("{group}::{name}")).collect()
}

/// Runs a check and writes the violation to descriptor 3, or nothing if there is none.
///
/// Called only by the binary's hidden subcommand, because it takes over descriptor 3.
pub fn conform_main(check: &str, plugin: &Path) -> ExitCode {
    answer_main(|| match conform(check, plugin) {
        Ok(what) => ChildAnswer::Ok(what),
        Err(error) => ChildAnswer::Error(error),
    })
}

fn conform(wanted: &str, plugin: &Path) -> Result<Option<String>, Error> {
    let opened = PluginLibrary::open(plugin).map_err(|error| refusal(&error))?;
    let manifest = opened.manifest().clone();
    let kinds = manifest.kinds.clone();
    let is_wanted = |group: &str, name: &str| wanted.split_once("::") == Some((group, name));
    let found = checks(&kinds).into_iter().find(|(group, name, _)| is_wanted(group, name));
    let Some((_, _, check)) = found else {
        return Err(Error::new(ErrorKind::HostBug, format!("there is no check `{wanted}`")));
    };
    let described = opened.clone();
    let subject = PluginUnderTest::new(
        manifest,
        move || jaato_loader::describe(&described),
        move |log| opened.factory(log),
    );
    let patient = |host: FakeHost| host.with_patience(PATIENCE);
    Ok(ConformanceSuite::of(subject, &kinds).harmless().with_host(patient).run(check).err())
}

//! Runs one check of the conformance suite on a plugin file, with a host that does nothing real.
//!
//! Started as `jaato plugin-worker --conform CHECK --settings JSON-FILE FILE`, with a process for
//! each check, so that a crash or a hang fails only that check.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jaato_loader::PluginLibrary;
use jaato_plugin_testkit::conformance::{ConformanceSuite, list_checks};
use jaato_plugin_testkit::{FakeHost, PluginUnderTest};
use jaato_types::{Error, ErrorKind, PluginKind};
use serde_json::Value;

use crate::{ChildAnswer, answer_main, load_refusal};

/// The arguments before the check's name and the file.
pub const CONFORM_ARGUMENTS: [&str; 2] = ["plugin-worker", "--conform"];

/// The argument before the file with the plugin's settings.
pub const SETTINGS_ARGUMENT: &str = "--settings";

/// How long a plugin may block a check. Most need milliseconds, but the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lists the names of the checks for plugins of these kinds: `tool::examples_work`.
pub fn conformance_checks(kinds: &[PluginKind]) -> Vec<String> {
    list_checks(kinds).into_iter().map(|(group, name, _)| format!("{group}::{name}")).collect()
}

/// Runs a check and writes the violation to descriptor 3, or nothing if there is none.
///
/// Called only by the binary's hidden subcommand, because it takes over descriptor 3.
pub fn conform_main(check: &str, settings: Option<&Path>, plugin: &Path) -> ExitCode {
    answer_main(|| match run_conformance_check(check, settings, plugin) {
        Ok(what) => ChildAnswer::Ok(what),
        Err(error) => ChildAnswer::Error(error),
    })
}

fn run_conformance_check(
    wanted: &str,
    settings: Option<&Path>,
    plugin: &Path,
) -> Result<Option<String>, Error> {
    let settings = settings.map(read_settings).transpose()?;
    let opened = PluginLibrary::open(plugin).map_err(|error| load_refusal(&error))?;
    let manifest = opened.manifest().clone();
    let kinds = manifest.kinds.clone();
    let is_wanted = |group: &str, name: &str| wanted.split_once("::") == Some((group, name));
    let found = list_checks(&kinds).into_iter().find(|(group, name, _)| is_wanted(group, name));
    let Some((_, _, check)) = found else {
        return Err(Error::new(ErrorKind::HostBug, format!("there is no check `{wanted}`")));
    };
    let described = opened.clone();
    let subject = PluginUnderTest::new(
        manifest,
        move || jaato_loader::describe_plugin(&described),
        move |log| opened.factory(log),
    );
    let patient = |host: FakeHost| host.with_patience(PATIENCE);
    let mut suite =
        ConformanceSuite::for_plugin(subject, &kinds).with_harmless_examples().with_host(patient);
    if let Some(settings) = settings {
        suite = suite.with_settings(settings);
    }
    let start = Instant::now();
    let Err(violation) = suite.run_check(check) else { return Ok(None) };
    if start.elapsed() >= PATIENCE {
        return Err(Error::new(ErrorKind::Timeout, violation));
    }
    // Without the setting, the check says nothing about the plugin.
    suite.missing_setting().map_or(Ok(Some(violation)), Err)
}

fn read_settings(file: &Path) -> Result<Value, Error> {
    let failed = |error: String| {
        Error::new(ErrorKind::Io, format!("cannot read `{}`: {error}", file.display()))
    };
    let bytes = fs::read(file).map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string()))
}

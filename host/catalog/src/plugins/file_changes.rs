//! Checks plugin files for changes, and creates the next catalog.

use std::time::Duration;

use jaato_config::trust::TrustedWorkspace;
use jaato_process::Supervisor;
use jaato_registry::{Registry, nearest_name};
use jaato_types::{Error, ErrorKind, PluginName};

use super::Plugins;
use super::catalog::CatalogRenewal;
use super::news::{PluginNews, WARN};
use crate::discover::{
    PluginFileCandidate, PluginSearch, PluginStamps, RereadFiles, registry_rules, search_plugins,
};
use crate::setup::Setup;

/// How long to wait before checking an unusable file again, because it may still be written.
const SETTLE: Duration = Duration::from_millis(100);
/// Maximum number of such waits, in case a file never stops changing.
const SETTLES_MAX: u32 = 20;

/// The inputs of a check.
#[derive(Clone, Copy)]
pub struct ScanInputs<'a> {
    /// The places to check, and the user's configuration.
    pub setup: &'a Setup,
    /// Starts the children that describe plugins.
    pub supervisor: &'a Supervisor,
    /// Called with each new registry, before any plugin in it is called.
    pub follows: &'a (dyn Fn(&Registry) + Send + Sync),
}

impl Plugins {
    /// Checks all places, if plugins are watched.
    pub async fn check_all_places(&self, inputs: ScanInputs<'_>) {
        if !self.is_watched() {
            return;
        }
        let mut seen = self.seen.lock().await;
        let now = PluginStamps::read_all(inputs.setup);
        if now != *seen {
            *seen = self.renew_catalog(inputs, &seen, now, RereadFiles::Nothing, &[]).await;
        }
    }

    /// Checks one plugin's file, if plugins are watched.
    pub async fn check_plugin_file(&self, inputs: ScanInputs<'_>, plugin: &str) {
        if !self.is_watched() {
            return;
        }
        let current = self.current();
        let Some(entry) = current.registry.plugin(plugin) else { return };
        let seen = self.seen.lock().await;
        let is_as_seen = seen.is_unchanged(inputs.setup, &entry.candidate.path);
        drop(seen);
        if !is_as_seen {
            self.check_all_places(inputs).await;
        }
    }

    /// Describes plugins again even if their files did not change: one by name, which restarts with
    /// its next call, or all. Returns the lines to show.
    ///
    /// # Errors
    /// If no plugin has this name, or plugins are not watched.
    pub async fn redescribe_plugins(
        &self,
        inputs: ScanInputs<'_>,
        plugin: Option<&str>,
    ) -> Result<Vec<String>, Error> {
        if !self.is_watched() {
            // Without copies, a linker would return the old code for the new file.
            return Err(Error::new(
                ErrorKind::Unavailable,
                "this process does not watch plugin files",
            ));
        }
        let mut seen = self.seen.lock().await;
        let mut told = self.lock_state().journal.current_position();
        let mut names = Vec::new();
        let mut files = Vec::new();
        for entry in self.current().registry.plugins() {
            let name = &entry.candidate.manifest.name;
            if plugin.is_some_and(|plugin| plugin == name.as_str()) {
                names.push(name.clone());
                files.push(entry.candidate.path.clone());
            }
        }
        let again = if plugin.is_some() { RereadFiles::Files(&files) } else { RereadFiles::All };
        *seen = self
            .renew_catalog(inputs, &seen, PluginStamps::read_all(inputs.setup), again, &names)
            .await;
        drop(seen);
        let is_there = |name: &str| self.current().registry.plugin(name).is_some();
        if let Some(name) = plugin.filter(|name| names.is_empty() && !is_there(name)) {
            let error = Error::new(ErrorKind::NotFound, format!("there is no plugin `{name}`"));
            let current = self.current();
            let known = current.plugin_names().map(PluginName::as_str);
            return Err(match nearest_name(name, known) {
                Some(near) => error.with_hint(format!("did you mean `{near}`?")),
                None => error.with_hint("`jaato plugin list` shows their names"),
            });
        }
        Ok(self.lock_state().journal.unseen_lines(&mut told, None))
    }

    /// Creates the next catalog and returns the new state of the files. Dropping the future changes
    /// nothing.
    async fn renew_catalog(
        &self,
        inputs: ScanInputs<'_>,
        before: &PluginStamps,
        mut now: PluginStamps,
        again: RereadFiles<'_>,
        names: &[PluginName],
    ) -> PluginStamps {
        let mut settles = 0;
        let found = loop {
            let workspace = current_trusted_workspace(inputs.setup);
            let how = PluginSearch { workspace: workspace.as_ref(), again };
            let found = search_plugins(inputs.setup, inputs.supervisor, how).await;
            let is_broken = found.files.iter().any(|file| is_broken(file, before));
            if !is_broken || settles >= SETTLES_MAX {
                break found;
            }
            // The file may be half written, in which case it will change again.
            tokio::time::sleep(SETTLE).await;
            settles += 1;
            let later = PluginStamps::read_all(inputs.setup);
            if later == now {
                break found;
            }
            now = later;
        };
        let mut state = self.lock_state();
        let (mut last_edition, current) = (state.last_edition, state.current.clone());
        let rules = registry_rules(inputs.setup);
        let (next, news) = current.renew(CatalogRenewal {
            files: found.files,
            problems: found.problems,
            rules: &rules,
            again: names,
            last_edition: &mut last_edition,
        });
        (inputs.follows)(&next.registry);
        (state.last_edition, state.current) = (last_edition, next.into());
        let problem = found.cache_problem.map(|text| PluginNews::new(None, WARN, text));
        state.add_news(news.into_iter().chain(problem), &self.log);
        now
    }
}

/// Returns true if a file changed into an unusable one.
fn is_broken(file: &PluginFileCandidate, before: &PluginStamps) -> bool {
    let is_unusable = match &file.found {
        Ok(candidate) => matches!(candidate.description, Some(Err(_))),
        Err(_) => true,
    };
    is_unusable && before.files.get(&file.path) != file.stamp.as_ref()
}

/// Returns the workspace if it was trusted when jaato started and still is.
fn current_trusted_workspace(setup: &Setup) -> Option<TrustedWorkspace> {
    setup.trusted_workspace().and_then(|_| setup.trusted_workspace_now())
}

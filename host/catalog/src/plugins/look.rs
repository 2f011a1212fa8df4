//! Looks whether plugin files changed, and makes the catalog that follows.

use std::time::Duration;

use jaato_config::trust::TrustedWorkspace;
use jaato_process::Supervisor;
use jaato_registry::{Registry, nearest};
use jaato_types::{Error, ErrorKind, PluginName};

use super::Plugins;
use super::catalog::Renewal;
use super::news::{News, WARN};
use crate::discover::{Again, Search, SearchedFile, Seen, rules, search};
use crate::setup::Setup;

/// How long a file that cannot be used may still be written: it is looked at again after that.
const SETTLE: Duration = Duration::from_millis(100);
/// How often that happens: a file that changes without end is not waited for.
const SETTLES_MAX: u32 = 20;

/// What looking needs.
#[derive(Clone, Copy)]
pub struct ScanInputs<'a> {
    /// Where to look, and what the person says.
    pub setup: &'a Setup,
    /// What starts the children that describe plugins.
    pub supervisor: &'a Supervisor,
    /// Called with each registry that follows, before a plugin is called by it.
    pub follows: &'a (dyn Fn(&Registry) + Send + Sync),
}

impl Plugins {
    /// Looks at all places, where plugins are watched.
    pub async fn look(&self, inputs: ScanInputs<'_>) {
        if !self.is_watched() {
            return;
        }
        let mut seen = self.seen.lock().await;
        let now = Seen::of(inputs.setup);
        if now != *seen {
            *seen = self.renew(inputs, &seen, now, Again::Nothing, &[]).await;
        }
    }

    /// Looks at one plugin's file, where plugins are watched.
    pub async fn look_at(&self, inputs: ScanInputs<'_>, plugin: &str) {
        if !self.is_watched() {
            return;
        }
        let current = self.current();
        let Some(entry) = current.registry.plugin(plugin) else { return };
        let seen = self.seen.lock().await;
        let is_as_seen = seen.holds(inputs.setup, &entry.candidate.path);
        drop(seen);
        if !is_as_seen {
            self.look(inputs).await;
        }
    }

    /// Describes plugins again whose files did not change, too: one by name, which then begins anew
    /// with its next call, or all. Returns what is to be told.
    ///
    /// # Errors
    /// When there is no plugin of that name, or plugins are not watched.
    pub async fn again(
        &self,
        inputs: ScanInputs<'_>,
        plugin: Option<&str>,
    ) -> Result<Vec<String>, Error> {
        if !self.is_watched() {
            // Without copies a linker would give the old code for the new file.
            return Err(Error::new(ErrorKind::Unavailable, "plugins are not watched here"));
        }
        let mut seen = self.seen.lock().await;
        let mut told = self.state().journal.now();
        let mut names = Vec::new();
        let mut files = Vec::new();
        for entry in self.current().registry.plugins() {
            let name = &entry.candidate.manifest.name;
            if plugin.is_some_and(|plugin| plugin == name.as_str()) {
                names.push(name.clone());
                files.push(entry.candidate.path.clone());
            }
        }
        let again = if plugin.is_some() { Again::Files(&files) } else { Again::All };
        *seen = self.renew(inputs, &seen, Seen::of(inputs.setup), again, &names).await;
        drop(seen);
        let is_there = |name: &str| self.current().registry.plugin(name).is_some();
        if let Some(name) = plugin.filter(|name| names.is_empty() && !is_there(name)) {
            let error = Error::new(ErrorKind::NotFound, format!("there is no plugin `{name}`"));
            let current = self.current();
            let known = current.names().map(PluginName::as_str);
            return Err(match nearest(name, known) {
                Some(near) => error.with_hint(format!("did you mean `{near}`?")),
                None => error.with_hint("the list of plugins has their names"),
            });
        }
        Ok(self.state().journal.take(&mut told, None))
    }

    /// Makes the catalog that follows; returns what was seen. Nothing changes where the future is
    /// dropped.
    async fn renew(
        &self,
        inputs: ScanInputs<'_>,
        before: &Seen,
        mut now: Seen,
        again: Again<'_>,
        names: &[PluginName],
    ) -> Seen {
        let mut settles = 0;
        let found = loop {
            let workspace = still_trusted_workspace(inputs.setup);
            let how = Search { workspace: workspace.as_ref(), again };
            let found = search(inputs.setup, inputs.supervisor, how).await;
            let is_broken = found.files.iter().any(|file| is_broken(file, before));
            if !is_broken || settles >= SETTLES_MAX {
                break found;
            }
            // It may be half written: then it goes on changing.
            tokio::time::sleep(SETTLE).await;
            settles += 1;
            let later = Seen::of(inputs.setup);
            if later == now {
                break found;
            }
            now = later;
        };
        let mut state = self.state();
        let (mut last_edition, current) = (state.last_edition, state.current.clone());
        let rules = rules(inputs.setup);
        let (next, news) = current.next(Renewal {
            files: found.files,
            problems: found.problems,
            rules: &rules,
            again: names,
            last_edition: &mut last_edition,
        });
        (inputs.follows)(&next.registry);
        (state.last_edition, state.current) = (last_edition, next.into());
        let problem = found.cache_problem.map(|text| News::new(None, WARN, text));
        state.tell(news.into_iter().chain(problem), &self.log);
        now
    }
}

/// Tells whether a file changed into one that cannot be used.
fn is_broken(file: &SearchedFile, before: &Seen) -> bool {
    let is_unusable = match &file.found {
        Ok(candidate) => matches!(candidate.description, Some(Err(_))),
        Err(_) => true,
    };
    is_unusable && before.files.get(&file.path) != file.stamp.as_ref()
}

/// Returns the workspace, trusted when jaato started, where it is so still.
fn still_trusted_workspace(setup: &Setup) -> Option<TrustedWorkspace> {
    setup.trusted_workspace().and_then(|_| setup.trusted_workspace_now())
}

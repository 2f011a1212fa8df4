//! The owners of all names at one time, their editions, and the next state when files change.
//!
//! Pure: touches no file. If a file cannot replace the previous one, the previous one stays and the
//! reason is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use jaato_loader::PluginFileStamp;
use jaato_registry::{
    PluginCandidate, PluginEntry, PluginFileTrust, PluginStatus, Registry, RegistryRules,
};
use jaato_types::{PluginName, ToolSpec};

use super::news::{INFO, PluginNews, WARN};
use crate::discover::{PluginFileCandidate, PluginStamps};

/// The plugins at one time.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Assigns names to plugins.
    pub registry: Arc<Registry>,
    editions: BTreeMap<PluginName, Edition>,
    /// Why a content other than the current file's is in use.
    kept: BTreeMap<PluginName, String>,
    /// Problems with folders, and with files that never were a plugin.
    problems: BTreeSet<String>,
}

/// One state of a plugin: its content and trust.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edition {
    /// Grows with each edition.
    pub number: u64,
    /// The number of the first edition with this content.
    pub content: u64,
    /// The state of the file, or `None` if it was not examined.
    pub stamp: Option<PluginFileStamp>,
}

/// A candidate for a catalog.
struct CatalogCandidate {
    candidate: PluginCandidate,
    stamp: Option<PluginFileStamp>,
    origin: CandidateOrigin,
}

/// The origin of a candidate.
#[derive(PartialEq, Eq)]
enum CandidateOrigin {
    /// Its file, just read.
    File,
    /// The previous catalog.
    Before,
}

/// The input of a renewal.
pub struct CatalogRenewal<'a> {
    /// The files that were found.
    pub files: Vec<PluginFileCandidate>,
    /// Problems with folders.
    pub problems: Vec<String>,
    /// The user's rules about names.
    pub rules: &'a RegistryRules,
    /// Plugins that get a new edition although nothing changed.
    pub again: &'a [PluginName],
    /// The number of the last edition, to be incremented.
    pub last_edition: &'a mut u64,
}

impl Catalog {
    /// Creates the first catalog.
    pub fn from_first_registry(registry: Registry) -> Self {
        Self { registry: Arc::new(registry), ..Self::default() }
    }

    /// Records the state of the files, and the problems that the user was already told.
    pub fn with_stamps(&self, seen: &PluginStamps, problems: Vec<String>) -> Self {
        let editions = list_name_owners(&self.registry).map(|entry| {
            let stamp = seen.files.get(&entry.candidate.path).cloned();
            (entry.candidate.manifest.name.clone(), Edition { stamp, ..Edition::default() })
        });
        let editions = editions.collect();
        let problems = problems.into_iter().collect();
        Self { registry: Arc::clone(&self.registry), editions, kept: BTreeMap::new(), problems }
    }

    /// Returns a plugin's edition.
    pub fn edition(&self, plugin: &str) -> Edition {
        self.editions.get(plugin).cloned().unwrap_or_default()
    }

    /// Lists the names of plugins.
    pub fn plugin_names(&self) -> impl Iterator<Item = &PluginName> {
        self.editions.keys()
    }

    /// Returns true if a plugin can be used.
    pub fn is_in_use(&self, plugin: &str) -> bool {
        self.registry.plugin(plugin).is_some_and(|entry| entry.status == PluginStatus::Active)
    }

    /// Returns why a plugin's current file is not in use.
    pub fn kept_reason(&self, plugin: &str) -> Option<&str> {
        self.kept.get(plugin).map(String::as_str)
    }

    /// Returns the next catalog, and the changes.
    pub fn renew(&self, renewal: CatalogRenewal<'_>) -> (Self, Vec<PluginNews>) {
        let CatalogRenewal { files, problems, rules, again, last_edition } = renewal;
        let mut next = Self { problems: problems.into_iter().collect(), ..Self::default() };
        let mut slots: Vec<CatalogCandidate> =
            files.into_iter().filter_map(|file| self.make_candidate(file, &mut next)).collect();
        let registry = self.build_registry(&mut slots, rules, &mut next.kept);
        for (entry, slot) in registry.plugins().iter().zip(&slots) {
            let name = &entry.candidate.manifest.name;
            if !is_named(&registry, entry) {
                continue;
            }
            let before = self.editions.get(name).filter(|_| self.is_same_plugin(entry, slot));
            let stamp = slot.stamp.clone();
            let edition = match before {
                Some(edition) if !again.contains(name) => Edition { stamp, ..edition.clone() },
                before => {
                    *last_edition += 1;
                    let content = match before {
                        Some(edition) => edition.content,
                        None => self.content_number(entry, slot).unwrap_or(*last_edition),
                    };
                    Edition { number: *last_edition, content, stamp }
                }
            };
            next.editions.insert(name.clone(), edition);
        }
        next.registry = Arc::new(registry);
        let news = next.changes_since(self);
        (next, news)
    }

    /// Returns the entry of a file whose plugin is in use.
    fn entry_in_use(&self, path: &Path) -> Option<&PluginEntry> {
        list_name_owners(&self.registry)
            .find(|entry| entry.candidate.path == path && entry.status == PluginStatus::Active)
    }

    fn make_candidate(
        &self,
        file: PluginFileCandidate,
        next: &mut Self,
    ) -> Option<CatalogCandidate> {
        let PluginFileCandidate { path, stamp, found } = file;
        let before = self.entry_in_use(&path);
        let why = match (&found, before) {
            (Err(problem), None) => {
                next.problems.insert(problem.clone());
                return None;
            }
            (Err(problem), Some(_)) => Some(problem.clone()),
            (Ok(candidate), Some(_)) => unusable_reason(candidate),
            (Ok(_), None) => None,
        };
        if let (Some(why), Some(before)) = (why, before) {
            let name = &before.candidate.manifest.name;
            let edition = self.edition(name.as_str());
            let withdrawn = matches!(&found, Ok(it) if it.trust == PluginFileTrust::WorkspaceNot);
            // If only its workspace changed, a running plugin continues.
            if !(withdrawn && edition.stamp == stamp) {
                next.kept.insert(name.clone(), why);
            }
            return Some(CatalogCandidate::from_previous(before, &edition));
        }
        Some(CatalogCandidate { candidate: found.ok()?, stamp, origin: CandidateOrigin::File })
    }

    /// Builds the registry. A file that is refused only because it changed is replaced by its
    /// previous content.
    fn build_registry(
        &self,
        slots: &mut [CatalogCandidate],
        rules: &RegistryRules,
        kept: &mut BTreeMap<PluginName, String>,
    ) -> Registry {
        loop {
            let candidates = slots.iter().map(|slot| slot.candidate.clone());
            let registry = Registry::build(candidates, rules);
            let refused = registry.plugins().iter().zip(&*slots).position(|(entry, slot)| {
                matches!(entry.status, PluginStatus::Refused(_))
                    && slot.origin == CandidateOrigin::File
                    && self.entry_in_use(&entry.candidate.path).is_some_and(|before| {
                        self.edition(before.candidate.manifest.name.as_str()).stamp != slot.stamp
                    })
            });
            // Each round restores one more previous entry, so the loop ends.
            let Some(at) = refused else { return registry };
            let Some(before) = self.entry_in_use(&slots[at].candidate.path) else {
                return registry;
            };
            let name = &before.candidate.manifest.name;
            if let Some((why, _)) = registry.plugins()[at].unusable_reason() {
                kept.insert(name.clone(), why);
            }
            slots[at] = CatalogCandidate::from_previous(before, &self.edition(name.as_str()));
        }
    }

    /// Returns true if a plugin is unchanged.
    fn is_same_plugin(&self, entry: &PluginEntry, slot: &CatalogCandidate) -> bool {
        let Some(before) = self.registry.plugin(entry.candidate.manifest.name.as_str()) else {
            return false;
        };
        slot.origin == CandidateOrigin::Before
            || (before.candidate.trust == entry.candidate.trust
                && self.content_number(entry, slot).is_some())
    }

    /// Returns the number of a plugin's content, if it is the same as before.
    fn content_number(&self, entry: &PluginEntry, slot: &CatalogCandidate) -> Option<u64> {
        let name = &entry.candidate.manifest.name;
        let edition = self.editions.get(name)?;
        let before = &self.registry.plugin(name.as_str())?.candidate;
        let (has, had) = (candidate_digest(&entry.candidate), candidate_digest(before));
        // A file whose content is unchanged counts as the same.
        let is_same = edition.stamp == slot.stamp || (has.is_some() && has == had);
        (is_same && before.path == entry.candidate.path).then_some(edition.content)
    }

    /// Returns the differences from before.
    fn changes_since(&self, before: &Self) -> Vec<PluginNews> {
        let mut news = Vec::new();
        for entry in self.registry.plugins() {
            let name = &entry.candidate.manifest.name;
            let path = &entry.candidate.path;
            let mut all = before.registry.plugins().iter();
            let line = match &entry.status {
                PluginStatus::Active => {
                    self.describe_change(before, entry).map(|text| (INFO, text))
                }
                status if all.any(|it| it.candidate.path == *path && it.status == *status) => None,
                _ => entry.unusable_reason().map(|(why, hint)| {
                    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                    let path = path.display();
                    let text = format!("plugin `{name}` (`{path}`) cannot be used: {why}{hint}");
                    (WARN, text)
                }),
            };
            news.extend(line.map(|(level, text)| PluginNews::new(Some(name), level, text)));
        }
        for (name, why) in &self.kept {
            if before.kept.get(name) != Some(why) {
                let text = format!(
                    "plugin `{name}` stays as it was because its new file cannot be used: {why}"
                );
                news.push(PluginNews::new(Some(name), WARN, text));
            }
        }
        for entry in
            list_name_owners(&before.registry).filter(|entry| entry.status == PluginStatus::Active)
        {
            let name = &entry.candidate.manifest.name;
            if self.registry.plugin(name.as_str()).is_none() {
                let path = entry.candidate.path.display();
                let text = format!("the file of plugin `{name}` was removed: `{path}`");
                news.push(PluginNews::new(Some(name), WARN, text));
            }
        }
        let problems = self.problems.difference(&before.problems);
        news.extend(problems.map(|problem| PluginNews::new(None, WARN, problem.as_str())));
        news
    }

    /// Describes the change of a plugin that is in use, if there is one.
    fn describe_change(&self, before: &Self, entry: &PluginEntry) -> Option<String> {
        let manifest = &entry.candidate.manifest;
        let (name, new) = (&manifest.name, &manifest.version);
        let old = before.registry.plugin(name.as_str());
        let Some(old) = old.filter(|old| old.status == PluginStatus::Active) else {
            return Some(format!("plugin `{name}` {new} can now be used"));
        };
        let (ours, theirs) = (self.edition(name.as_str()), before.edition(name.as_str()));
        if ours.number == theirs.number {
            return None;
        }
        let is_trusted =
            |entry: &PluginEntry| !matches!(entry.candidate.trust, PluginFileTrust::No(_));
        let trust = match (is_trusted(old), is_trusted(entry)) {
            (true, false) => ": it is not trusted, so it runs in a worker",
            (false, true) => ": it is trusted",
            (_, _) => "",
        };
        let version = &old.candidate.manifest.version;
        Some(if ours.content == theirs.content {
            format!("plugin `{name}` {new} restarts{trust}")
        } else if version == new {
            format!("plugin `{name}` {new} was replaced{trust}")
        } else {
            format!("plugin `{name}` was replaced, {version} by {new}{trust}")
        })
    }

    /// Returns true if a plugin offers models the same in both catalogs, and has the same trust for
    /// it.
    pub fn has_same_offer(&self, other: &Self, plugin: &str) -> bool {
        let offer = |catalog: &Self| -> Option<(bool, Vec<ToolSpec>)> {
            let entry = catalog.registry.plugin(plugin)?;
            let tools = entry.description()?.tools.clone();
            Some((entry.candidate.trust == PluginFileTrust::Shipped, tools))
        };
        let (ours, theirs) = (offer(self), offer(other));
        ours.is_some() && ours == theirs
    }
}

impl CatalogCandidate {
    fn from_previous(entry: &PluginEntry, edition: &Edition) -> Self {
        let (candidate, stamp) = (entry.candidate.clone(), edition.stamp.clone());
        Self { candidate, stamp, origin: CandidateOrigin::Before }
    }
}

/// Lists the plugins that own their name.
fn list_name_owners(registry: &Registry) -> impl Iterator<Item = &PluginEntry> {
    registry.plugins().iter().filter(|entry| is_named(registry, entry))
}

fn is_named(registry: &Registry, entry: &PluginEntry) -> bool {
    let holder = registry.plugin(entry.candidate.manifest.name.as_str());
    holder.is_some_and(|holder| std::ptr::eq(holder, entry))
}

/// Returns why a file cannot replace one that is in use.
fn unusable_reason(candidate: &PluginCandidate) -> Option<String> {
    match &candidate.description {
        Some(Err(error)) => {
            let hint = error.hint.as_ref().map(|hint| format!("\nhint: {hint}"));
            Some(format!("{}{}", error.message, hint.unwrap_or_default()))
        }
        _ if candidate.trust == PluginFileTrust::WorkspaceNot => {
            Some("its workspace changed, so it is no longer trusted\nhint: jaato trust".into())
        }
        Some(Ok(_)) | None => None,
    }
}

fn candidate_digest(candidate: &PluginCandidate) -> Option<&str> {
    match &candidate.trust {
        PluginFileTrust::ByHash(digest) | PluginFileTrust::No(digest) => Some(digest),
        PluginFileTrust::Shipped | PluginFileTrust::WorkspaceNot => None,
    }
}

#[cfg(test)]
mod tests;

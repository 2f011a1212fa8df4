//! Describes plugin files again without a session, ignoring the cache, and compares the results.

use std::path::PathBuf;

use jaato_loader::{DescribeOutcome, DescriptionCache, find_plugin_files, read_manifest};
use jaato_registry::{PluginEntry, Registry};
use jaato_types::{Description, Manifest};

use crate::discover::{
    PluginSearch, RereadFiles, list_search_folders, registry_rules, search_plugins,
};
use crate::setup::{Setup, supervisor};

/// A plugin file that was described again.
#[derive(Debug)]
pub struct RedescribedFile {
    /// The file.
    pub path: PathBuf,
    /// The previous manifest, and the description if there was one.
    pub before: Option<(Manifest, Option<Description>)>,
    /// The new entry, or why the file is not a plugin.
    pub now: Result<PluginEntry, String>,
}

/// Describes the files of one plugin again, or of all, and stores the results in the cache. The
/// result is empty if no such plugin exists or was known.
pub async fn describe_again(setup: &Setup, plugin: Option<&str>) -> Vec<RedescribedFile> {
    let cache = setup.folders.description_cache_file().ok();
    let cache = cache.map(|path| DescriptionCache::read_cache(path, env!("CARGO_PKG_VERSION")));
    let mut known = Vec::new();
    for file in find_plugin_files(&list_search_folders(setup)).files {
        let last = cache.as_ref().and_then(|cache| cache.latest_entry(&file.path));
        let before = last.map(|entry| {
            let described = match &entry.described {
                Some(DescribeOutcome::Ok(description)) => Some((**description).clone()),
                Some(DescribeOutcome::Failed(_)) | None => None,
            };
            (entry.manifest.clone(), described)
        });
        let is_it = |manifest: &Manifest| plugin.is_none_or(|name| manifest.name.as_str() == name);
        // An unreadable file is identified by its cached manifest.
        let was = before.as_ref().map(|(manifest, _)| is_it(manifest));
        let is = || read_manifest(&file.path).is_ok_and(|manifest| is_it(&manifest));
        if plugin.is_none() || was == Some(true) || is() {
            known.push((file.path, before));
        }
    }
    let files: Vec<PathBuf> = known.iter().map(|(path, _)| path.clone()).collect();
    let how =
        PluginSearch { workspace: setup.trusted_workspace(), again: RereadFiles::Files(&files) };
    let found = search_plugins(setup, &supervisor(setup), how).await;
    let candidates = found.files.iter().filter_map(|file| file.found.as_ref().ok().cloned());
    let registry = Registry::build(candidates, &registry_rules(setup));
    let mut all = Vec::new();
    for (path, before) in known {
        let entry = registry.plugins().iter().find(|entry| entry.candidate.path == path);
        let problem = found.files.iter().find(|file| file.path == path);
        let now = match (entry, problem.map(|file| &file.found)) {
            (Some(entry), _) => Ok(entry.clone()),
            (None, Some(Err(problem))) => Err(problem.clone()),
            // The file has disappeared.
            (None, _) => continue,
        };
        all.push(RedescribedFile { path, before, now });
    }
    all
}

//! Finds the plugins and builds the registry, from the cache if it is valid, otherwise by
//! describing.

mod seen_files;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use jaato_config::trust::{RecordedTrust as TrustRecord, TrustStore, TrustedWorkspace};
use jaato_loader::{
    DescribeOutcome, DescriptionCache, DescriptionEntry, FoundFile, PlaceKind, PluginFileStamp,
    PluginSearchFolder, find_plugin_files, read_manifest, shipped_plugin_folders,
};
use jaato_log::visible;
use jaato_places::PlaceError;
use jaato_process::Supervisor;
use jaato_registry::{PluginCandidate, PluginFileTrust, Registry, RegistryRules};
use jaato_types::{Description, Error, ErrorKind};

pub use seen_files::PluginStamps;

use crate::describe::describe_plugin_file;
use crate::setup::{PluginFiles, Setup};
use crate::trusted::{create_private_copy, file_sha256};

/// The plugin folder of a workspace, relative to its root.
const WORKSPACE_PLUGINS: &str = ".jaato/plugins";

/// The place of plugins that are linked into the program, in lists.
const LINKED: &str = "program";

/// Number of plugins to describe at the same time. Each is a process.
const DESCRIBES_AT_ONCE: usize = 4;

/// The result of a discovery.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Assigns names to plugins.
    pub registry: Registry,
    /// The problems, one line each (with a hint line if there is one).
    pub problems: Vec<String>,
    /// Number of plugins that had to be described, 0 if the cache was valid.
    pub described: usize,
    /// The files in the state in which they were read.
    pub stamps: Vec<(PathBuf, PluginFileStamp)>,
    /// The state of the trust record.
    pub trust: Option<PluginFileStamp>,
}

/// How to search.
#[derive(Debug, Clone, Copy)]
pub struct PluginSearch<'a> {
    /// The workspace, if its plugins are to be described and run: those that existed when it was
    /// trusted, with the content of that time.
    pub workspace: Option<&'a TrustedWorkspace>,
    /// Files to read and describe although the cache knows them.
    pub again: RereadFiles<'a>,
}

/// The files to read although the cache knows them.
#[derive(Debug, Clone, Copy)]
pub enum RereadFiles<'a> {
    /// None.
    Nothing,
    /// All.
    All,
    /// These.
    Files(&'a [PathBuf]),
}

/// The result of a search.
#[derive(Debug)]
pub struct SearchedPlugins {
    /// The files, most trusted first.
    pub files: Vec<PluginFileCandidate>,
    /// Problems with folders and with the trust record.
    pub problems: Vec<String>,
    /// Why the cache could not be written.
    pub cache_problem: Option<String>,
    /// Number of plugins that had to be described.
    pub described: usize,
}

/// A file with the name of a plugin.
#[derive(Debug)]
pub struct PluginFileCandidate {
    /// Its path.
    pub path: PathBuf,
    /// The state in which it was read.
    pub stamp: Option<PluginFileStamp>,
    /// The plugin, or why the file is not a plugin.
    pub found: Result<PluginCandidate, String>,
}

/// A plugin file that is not yet in the registry.
struct PendingPlugin {
    file: FoundFile,
    entry: DescriptionEntry,
    trust: PluginFileTrust,
    is_new: bool,
}

/// A plugin file, or why it cannot be used.
type PluginReadResult = Result<PendingPlugin, (PathBuf, Option<PluginFileStamp>, String)>;

/// Searches all places, most trusted first.
pub async fn discover_plugins(setup: &Setup, supervisor: &Supervisor) -> Discovery {
    let trust = PluginStamps::read_trust_stamp(setup);
    let how = PluginSearch { workspace: setup.trusted_workspace(), again: RereadFiles::Nothing };
    let SearchedPlugins { files, mut problems, cache_problem, described } =
        search_plugins(setup, supervisor, how).await;
    let (mut stamps, mut candidates) = (Vec::new(), Vec::new());
    for PluginFileCandidate { path, stamp, found } in files {
        stamps.extend(stamp.map(|stamp| (path, stamp)));
        match found {
            Ok(candidate) => candidates.push(candidate),
            Err(problem) => problems.push(problem),
        }
    }
    problems.extend(cache_problem);
    let registry = Registry::build(candidates, &registry_rules(setup));
    Discovery { registry, problems, described, stamps, trust }
}

/// Searches all places, most trusted first, without building a registry.
pub async fn search_plugins(
    setup: &Setup,
    supervisor: &Supervisor,
    how: PluginSearch<'_>,
) -> SearchedPlugins {
    let found = find_plugin_files(&list_search_folders(setup));
    let mut problems: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
    let record = trust_record(setup, &mut problems);
    if let Some(error) = setup.grants.read_problem() {
        problems.push(problem_line(&error.to_string(), error.hint().as_deref()));
    }
    let mut cache = setup
        .folders
        .description_cache_file()
        .ok()
        .map(|path| DescriptionCache::read_cache(path, env!("CARGO_PKG_VERSION")));
    let read =
        |file: FoundFile| (file.place, read_plugin_file(file, setup, how, &record, cache.as_mut()));
    let mut files: Vec<(PlaceKind, PluginReadResult)> = found.files.into_iter().map(read).collect();
    // Within one place, trusted files claim their names first, whatever the files are called.
    for place in files.chunk_by_mut(|(one, _), (next, _)| one == next) {
        place.sort_by_key(|(_, file)| !file.as_ref().is_ok_and(|file| file.trust.is_trusted()));
    }
    let files = files.into_iter().map(|(_, file)| file).collect();
    let mut described = 0;
    let files = describe_missing(files, setup, supervisor, &mut described).await;
    problems
        .extend(cache.as_ref().and_then(|cache| cache.read_problem()).map(PlaceError::with_hint));
    // One folder that others can write to may contain several of ours.
    let mut told = BTreeSet::new();
    problems.retain(|problem| told.insert(problem.clone()));
    let cache_problem = cache.as_mut().and_then(|cache| store_descriptions(&files, cache));
    let files = linked_candidates(setup).chain(files.into_iter().map(to_file_candidate)).collect();
    SearchedPlugins { files, problems, cache_problem, described }
}

/// Returns the plugins that are linked into the program. They need neither a child to describe them
/// nor a file.
fn linked_candidates(setup: &Setup) -> impl Iterator<Item = PluginFileCandidate> {
    setup.linked.iter().map(|plugin| {
        let (path, manifest) = (plugin.path().to_owned(), plugin.manifest().clone());
        let description = Some(jaato_loader::describe_plugin(plugin));
        let (place, trust) = (LINKED, PluginFileTrust::Shipped);
        let found = PluginCandidate { path: path.clone(), place, trust, manifest, description };
        PluginFileCandidate { path, stamp: None, found: Ok(found) }
    })
}

fn to_file_candidate(file: PluginReadResult) -> PluginFileCandidate {
    match file {
        Ok(pending) => PluginFileCandidate {
            path: pending.file.path.clone(),
            stamp: Some(pending.entry.stamp().clone()),
            found: Ok(pending.into_candidate()),
        },
        Err((path, stamp, problem)) => PluginFileCandidate { path, stamp, found: Err(problem) },
    }
}

/// Lists the folders to search.
pub fn list_search_folders(setup: &Setup) -> Vec<PluginSearchFolder> {
    if setup.files == PluginFiles::Ignored {
        return Vec::new();
    }
    let mut places = shipped_plugin_folders(&setup.executable);
    let mut add = |kind, folder: &Path| places.push(PluginSearchFolder::new(kind, folder));
    setup.plugin_dirs.iter().for_each(|folder| add(PlaceKind::CommandLine, folder));
    setup.config.plugin_dirs.iter().for_each(|folder| add(PlaceKind::Variable, folder));
    if let Ok(folder) = setup.folders.plugins_folder() {
        add(PlaceKind::User, &folder);
    }
    add(PlaceKind::Workspace, &setup.workspace.root().join(WORKSPACE_PLUGINS));
    places
}

/// Explains where jaato looks for the shipped plugins, if it found none there. Programs that embed
/// jaato often have no plugins next to their executable, or use no plugin files.
pub fn missing_shipped_hint(setup: &Setup, registry: &Registry) -> Option<String> {
    let trusts = registry.plugins().iter().map(|entry| &entry.candidate.trust);
    if trusts.into_iter().any(|trust| *trust == PluginFileTrust::Shipped) {
        return None;
    }
    if setup.files == PluginFiles::Ignored {
        let hint = "plugin files are not searched: link the plugin, or let the runtime search for \
                    plugin files";
        return Some(hint.to_owned());
    }
    let folders = shipped_plugin_folders(&setup.executable);
    let folders: Vec<_> =
        folders.iter().map(|place| format!("`{}`", place.folder.display())).collect();
    Some(format!(
        "there are no shipped plugins in {}, the folders for the executable `{}`; install all of \
         jaato, or set `Setup::executable` in a program that embeds it",
        folders.join(" and "),
        setup.executable.display()
    ))
}

/// Returns the rules about names from the user's configuration and command line.
pub fn registry_rules(setup: &Setup) -> RegistryRules {
    let config = &setup.config;
    let enabled = &config.tools_enabled;
    RegistryRules {
        plugins_disabled: config.plugins_disabled.clone(),
        tools_enabled: (!enabled.is_empty()).then(|| enabled.clone()),
        tools_disabled: config.tools_disabled.clone(),
        tools_only: setup.tools_only.clone(),
    }
}

/// Makes a one-line problem of a text that may contain untrusted words (such as a file name), with
/// its hint on a separate line. A name cannot inject a hint.
pub fn problem_line(text: &str, hint: Option<&str>) -> String {
    let hint =
        hint.map(|hint| format!("\nhint: {}", visible::visible_name(hint))).unwrap_or_default();
    format!("{}{hint}", visible::visible_name(text))
}

fn trust_record(setup: &Setup, problems: &mut Vec<String>) -> TrustRecord {
    let Ok(data) = setup.folders.data_folder() else { return TrustRecord::default() };
    TrustStore::in_folder(data).read_trust().unwrap_or_else(|error| {
        let hint = error.hint();
        problems.push(problem_line(&error.to_string(), hint.as_deref()));
        TrustRecord::default()
    })
}

fn read_plugin_file(
    file: FoundFile,
    setup: &Setup,
    how: PluginSearch<'_>,
    record: &TrustRecord,
    cache: Option<&mut DescriptionCache>,
) -> PluginReadResult {
    let stamp = PluginFileStamp::read_stamp(&file.path);
    let unreadable = |error: &std::io::Error| {
        let path = file.path.display();
        problem_line(&format!("cannot use `{path}` as a plugin: it cannot be read: {error}"), None)
    };
    let stamp = match stamp {
        Ok(stamp) => stamp,
        Err(error) => return Err((file.path.clone(), None, unreadable(&error))),
    };
    let failed = |problem: String| (file.path.clone(), Some(stamp.clone()), problem);
    let is_fresh = match how.again {
        RereadFiles::Nothing => false,
        RereadFiles::All => true,
        RereadFiles::Files(files) => files.contains(&file.path),
    };
    let covered = match how.workspace.filter(|_| file.place == PlaceKind::Workspace) {
        Some(workspace) => Some(trusted_digest(&file.path, workspace).ok_or_else(|| {
            let path = file.path.display();
            let text = format!(
                "cannot use `{path}` as a plugin: it was not there when the workspace was trusted"
            );
            failed(problem_line(&text, Some("jaato trust")))
        })?),
        None => None,
    };
    let known = cache.and_then(|cache| cache.take_entry(&file.path, &stamp)).filter(|_| !is_fresh);
    // The cached entry must have exactly the trusted content.
    let known = known.filter(|known| covered.is_none() || known.sha256.as_deref() == covered);
    let is_new = known.is_none();
    let mut entry = match known {
        Some(entry) => entry,
        None => {
            let content = match covered {
                Some(digest) => workspace_copy(setup, &file.path, digest)
                    .map_err(|error| failed(problem_line(&error, None)))?,
                None => file.path.clone(),
            };
            let manifest = read_manifest(&content).map_err(|mut error| {
                error.path.clone_from(&file.path);
                failed(problem_line(&error.to_string(), error.problem.hint().as_deref()))
            })?;
            let mut entry = DescriptionEntry::new(stamp.clone(), manifest);
            entry.sha256 = covered.map(str::to_owned);
            entry
        }
    };
    let mut is_changed = is_new;
    let trust = match file.place {
        PlaceKind::Shipped => PluginFileTrust::Shipped,
        PlaceKind::Workspace if covered.is_none() => PluginFileTrust::WorkspaceNot,
        PlaceKind::CommandLine | PlaceKind::Variable | PlaceKind::User | PlaceKind::Workspace => {
            let digest = match &entry.sha256 {
                Some(digest) => digest.clone(),
                None => {
                    is_changed = true;
                    file_sha256(&file.path).map_err(|error| failed(unreadable(&error)))?
                }
            };
            entry.sha256 = Some(digest.clone());
            if record.is_plugin_trusted(&digest) {
                PluginFileTrust::ByHash(digest)
            } else {
                PluginFileTrust::No(digest)
            }
        }
    };
    Ok(PendingPlugin { file, entry, trust, is_new: is_changed })
}

/// Returns the digest that the user trusted together with the workspace, for a file in its plugin
/// folder.
fn trusted_digest<'a>(path: &Path, workspace: &'a TrustedWorkspace) -> Option<&'a str> {
    workspace.content_sha256(&format!("{WORKSPACE_PLUGINS}/{}", path.file_name()?.to_str()?))
}

/// Copies a file of a trusted workspace to a private folder, if it has the trusted content. Only
/// the copy is read, described and opened, because the file itself may be replaced at any time.
fn workspace_copy(setup: &Setup, path: &Path, digest: &str) -> Result<PathBuf, String> {
    let folder = setup.folders.workspace_plugins_folder().map_err(|error| error.to_string())?;
    create_private_copy(path, digest, &folder).map_err(|error| error.to_string())
}

async fn describe_missing(
    files: Vec<PluginReadResult>,
    setup: &Setup,
    supervisor: &Supervisor,
    described: &mut usize,
) -> Vec<PluginReadResult> {
    let wants = |file: &PendingPlugin| {
        let is_off = setup
            .config
            .plugins_disabled
            .iter()
            .any(|name| file.entry.manifest.name.as_str() == name);
        file.entry.described.is_none() && file.trust != PluginFileTrust::WorkspaceNot && !is_off
    };
    *described += files.iter().flatten().filter(|file| wants(file)).count();
    futures_util::stream::iter(files)
        .map(|file| async {
            let mut file = file?;
            if wants(&file) {
                let answer = match &file.trust {
                    PluginFileTrust::ByHash(digest) | PluginFileTrust::No(digest)
                        if file.file.place == PlaceKind::Workspace =>
                    {
                        match workspace_copy(setup, &file.file.path, digest) {
                            Ok(copy) => {
                                describe_plugin_file(supervisor, &setup.executable, &copy).await
                            }
                            Err(problem) => Err(Error::new(ErrorKind::Io, problem)),
                        }
                    }
                    PluginFileTrust::Shipped
                    | PluginFileTrust::ByHash(_)
                    | PluginFileTrust::No(_)
                    | PluginFileTrust::WorkspaceNot => {
                        describe_plugin_file(supervisor, &setup.executable, &file.file.path).await
                    }
                };
                file.entry.described = Some(match answer {
                    Ok(description) => DescribeOutcome::Ok(Box::new(description)),
                    Err(error) => DescribeOutcome::Failed(error),
                });
                file.is_new = true;
            }
            Ok(file)
        })
        .buffered(DESCRIBES_AT_ONCE)
        .collect()
        .await
}

/// Stores entries for the next start. Returns why that failed, if it did.
fn store_descriptions(files: &[PluginReadResult], cache: &mut DescriptionCache) -> Option<String> {
    // If the process could not start, nothing is known about the plugin, so the next start tries
    // again.
    let is_telling = |file: &&PendingPlugin| !matches!(&file.entry.described, Some(DescribeOutcome::Failed(error)) if error.kind == ErrorKind::Io);
    if !files.iter().flatten().any(|file| file.is_new) {
        return None;
    }
    for file in files.iter().flatten().filter(is_telling) {
        cache.store_entry(&file.file.path, file.entry.clone());
    }
    let written = cache.write().err();
    written.map(|error| {
        format!("cannot cache the plugins' descriptions, so the next start will be slower: {error}")
    })
}

impl PendingPlugin {
    fn into_candidate(self) -> PluginCandidate {
        let description: Option<Result<Description, Error>> =
            self.entry.described.map(|described| match described {
                DescribeOutcome::Ok(description) => Ok(*description),
                DescribeOutcome::Failed(error) => Err(error),
            });
        PluginCandidate {
            path: self.file.path,
            place: self.file.place.name(),
            trust: self.trust,
            manifest: self.entry.manifest,
            description,
        }
    }
}

#[cfg(test)]
mod tests;

//! Finds the plugins and builds the registry: from the cache where it holds, else by describing.

use std::path::Path;

use futures_util::StreamExt as _;
use jaato_config::trust::{Trust as TrustRecord, TrustStore};
use jaato_loader::{
    Described, DescriptionCache, Entry, FoundFile, Place, PlaceKind, Stamp, find, read_manifest,
    shipped_places,
};
use jaato_process::Supervisor;
use jaato_registry::{Candidate, Registry, Rules, Trust};
use jaato_types::{Description, Error, ErrorKind};

use crate::describe::describe;
use crate::setup::Setup;
use crate::trusted::sha256_of;

/// Plugins that are described at the same time: each is a process.
const DESCRIBES_AT_ONCE: usize = 4;

/// What was found.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Who has which name.
    pub registry: Registry,
    /// What could not be used, one line each (with a hint line where there is one).
    pub problems: Vec<String>,
    /// Plugins that had to be described: none when the cache holds.
    pub described: usize,
}

/// A plugin file on its way to the registry.
struct Pending {
    file: FoundFile,
    entry: Entry,
    trust: Trust,
    is_new: bool,
}

/// Searches all places, most trusted first.
pub async fn discover(setup: &Setup, supervisor: &Supervisor) -> Discovery {
    let mut discovery = Discovery::default();
    let found = find(&places(setup));
    discovery.problems.extend(found.problems.iter().map(ToString::to_string));
    let record = trust_record(setup, &mut discovery.problems);
    let mut cache = setup
        .folders
        .descriptions_file()
        .ok()
        .map(|path| DescriptionCache::read(path, env!("CARGO_PKG_VERSION")));

    let mut pending = Vec::new();
    for file in found.files {
        match read(file, setup, &record, cache.as_mut()) {
            Ok(file) => pending.push(file),
            Err(problem) => discovery.problems.push(problem),
        }
    }
    let pending = describe_missing(pending, setup, supervisor, &mut discovery.described).await;
    if let Some(cache) = &mut cache {
        keep(&pending, cache, &mut discovery.problems);
    }
    discovery.registry =
        Registry::build(pending.into_iter().map(Pending::candidate), &rules(setup));
    discovery
}

/// Lists the folders that are searched.
pub fn places(setup: &Setup) -> Vec<Place> {
    let mut places = shipped_places(&setup.executable);
    let mut add = |kind, folder: &Path| places.push(Place { kind, folder: folder.to_owned() });
    setup.plugin_dirs.iter().for_each(|folder| add(PlaceKind::CommandLine, folder));
    setup.config.plugin_dirs.iter().for_each(|folder| add(PlaceKind::Variable, folder));
    if let Ok(folder) = setup.folders.plugins() {
        add(PlaceKind::User, &folder);
    }
    add(PlaceKind::Workspace, &setup.workspace.root().join(".jaato/plugins"));
    places
}

fn rules(setup: &Setup) -> Rules {
    let config = &setup.config;
    let enabled = &config.tools_enabled;
    Rules {
        plugins_disabled: config.plugins_disabled.clone(),
        tools_enabled: (!enabled.is_empty()).then(|| enabled.clone()),
        tools_disabled: config.tools_disabled.clone(),
        tools_only: setup.tools_only.clone(),
    }
}

fn trust_record(setup: &Setup, problems: &mut Vec<String>) -> TrustRecord {
    let Ok(data) = setup.folders.data() else { return TrustRecord::default() };
    TrustStore::in_folder(data).read().unwrap_or_else(|error| {
        let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        problems.push(format!("{error}{hint}"));
        TrustRecord::default()
    })
}

fn read(
    file: FoundFile,
    setup: &Setup,
    record: &TrustRecord,
    cache: Option<&mut DescriptionCache>,
) -> Result<Pending, String> {
    let failed = |error: std::io::Error| {
        format!("cannot use `{}` as a plugin: it cannot be read: {error}", file.path.display())
    };
    let stamp = Stamp::of(&file.path).map_err(failed)?;
    let known = cache.and_then(|cache| cache.take(&file.path, &stamp));
    let is_new = known.is_none();
    let mut entry = match known {
        Some(entry) => entry,
        None => {
            let manifest = read_manifest(&file.path).map_err(|error| {
                let hint = error.problem.hint().map(|hint| format!("\nhint: {hint}"));
                format!("{error}{}", hint.unwrap_or_default())
            })?;
            Entry::new(stamp, manifest)
        }
    };
    let mut is_changed = is_new;
    let trust = match file.place {
        PlaceKind::Shipped => Trust::Shipped,
        PlaceKind::Workspace if setup.trusted_workspace().is_none() => Trust::WorkspaceNot,
        PlaceKind::CommandLine | PlaceKind::Variable | PlaceKind::User | PlaceKind::Workspace => {
            let digest = match &entry.sha256 {
                Some(digest) => digest.clone(),
                None => {
                    is_changed = true;
                    sha256_of(&file.path).map_err(failed)?
                }
            };
            entry.sha256 = Some(digest.clone());
            if record.is_plugin_trusted(&digest) {
                Trust::ByHash(digest)
            } else {
                Trust::No(digest)
            }
        }
    };
    Ok(Pending { file, entry, trust, is_new: is_changed })
}

async fn describe_missing(
    pending: Vec<Pending>,
    setup: &Setup,
    supervisor: &Supervisor,
    described: &mut usize,
) -> Vec<Pending> {
    let wants = |file: &Pending| {
        let is_off = setup
            .config
            .plugins_disabled
            .iter()
            .any(|name| file.entry.manifest.name.as_str() == name);
        file.entry.described.is_none() && file.trust != Trust::WorkspaceNot && !is_off
    };
    *described += pending.iter().filter(|file| wants(file)).count();
    futures_util::stream::iter(pending)
        .map(|mut file| async {
            if wants(&file) {
                let answer = describe(supervisor, &setup.executable, &file.file.path).await;
                file.entry.described = Some(match answer {
                    Ok(description) => Described::Ok(Box::new(description)),
                    Err(error) => Described::Failed(error),
                });
                file.is_new = true;
            }
            file
        })
        .buffered(DESCRIBES_AT_ONCE)
        .collect()
        .await
}

fn keep(pending: &[Pending], cache: &mut DescriptionCache, problems: &mut Vec<String>) {
    // A process that could not be started says nothing of the plugin: it is asked again next time.
    let is_telling = |file: &&Pending| !matches!(&file.entry.described, Some(Described::Failed(error)) if error.kind == ErrorKind::Io);
    if !pending.iter().any(|file| file.is_new) {
        return;
    }
    for file in pending.iter().filter(is_telling) {
        cache.put(&file.file.path, file.entry.clone());
    }
    if let Err(error) = cache.write() {
        problems.push(format!(
            "cannot keep the plugins' descriptions, the next start is slower: {error}"
        ));
    }
}

impl Pending {
    fn candidate(self) -> Candidate {
        let description: Option<Result<Description, Error>> =
            self.entry.described.map(|described| match described {
                Described::Ok(description) => Ok(*description),
                Described::Failed(error) => Err(error),
            });
        Candidate {
            path: self.file.path,
            place: self.file.place.name(),
            trust: self.trust,
            manifest: self.entry.manifest,
            description,
        }
    }
}

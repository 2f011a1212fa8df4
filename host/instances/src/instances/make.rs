//! Creates instances: opens the plugin's file, in this process or in a worker, and passes the saved
//! state to the instance.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_catalog::{CopyError, Setup, create_private_copy};
use jaato_loader::{
    Instance, LoadError, PlaceKind, PluginFileStamp, PluginLibrary, StartedPlugin, remote,
};
use jaato_registry::{PluginEntry, PluginFileTrust, PluginStatus};
use jaato_types::mask::has_secret;
use jaato_types::{Error, ErrorKind, Manifest, PluginName, PluginScope};
use tokio::sync::OnceCell;

use super::slot::{InstanceSlot, InstanceSource, NewInstance};
use super::{
    CONTENTS_INSIDE_MAX, CallServices, InProcessPluginKey, InstanceRequest, Instances, NOT_COPIED,
    isolation_reason,
};
use crate::copies::{CopyProblem, NamedPluginCopy, PluginCopies, PluginCopy};
use crate::workers::WorkerRequest;

/// Why the instance could not be made.
pub enum InstanceCreationError {
    /// The file has changed since it was found.
    Changed,
    /// Anything else.
    Error(Error),
}

impl From<Error> for InstanceCreationError {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// The file that is opened.
enum OpenFile {
    /// A file that keeps its name.
    Lasting(PathBuf),
    /// A private copy that has a name only while it is being opened.
    Copied(NamedPluginCopy),
    /// A file that should have been copied, and why it was not.
    NotCopied(PathBuf, std::io::Error),
}

impl OpenFile {
    fn path(&self) -> &Path {
        match self {
            Self::Lasting(path) | Self::NotCopied(path, _) => path,
            Self::Copied(opening) => &opening.path,
        }
    }

    fn copy(&self) -> Option<Arc<PluginCopy>> {
        match self {
            Self::Lasting(_) | Self::NotCopied(_, _) => None,
            Self::Copied(opening) => Some(Arc::clone(&opening.copy)),
        }
    }
}

impl Instances {
    /// Creates an instance of a source, from the state that the slot's last instance saved.
    pub(super) async fn create_instance(
        &self,
        slot: &InstanceSlot,
        source: &InstanceSource,
        wanted: InstanceRequest<'_>,
        services: &Arc<dyn CallServices>,
    ) -> Result<NewInstance, InstanceCreationError> {
        let entry = wanted.plugin_entry(&source.catalog)?;
        check_status(entry)?;
        let name = &entry.candidate.manifest.name;
        let saved = slot.saved.clone();
        let (made, refusal) = match self.in_process_cell(entry, source, wanted.setup) {
            Some(plugin) => {
                self.create_in_process(&plugin, entry, source, wanted, services, saved).await?
            }
            None => {
                // An instance whose worker is gone uses the same content again, even if its file
                // has changed.
                let is_same = slot
                    .source
                    .as_ref()
                    .is_some_and(|it| it.edition.content == source.edition.content);
                let copy = slot.copy.clone().filter(|_| is_same);
                self.create_in_worker(copy, entry, source, wanted, services, saved).await?
            }
        };
        if let Some(error) = refusal {
            // The saved state is kept for a version of the plugin that can read it.
            let why = error.message;
            let text = format!("`{name}` starts fresh, because it rejected its saved state: {why}");
            services.show_notice(text);
        }
        Ok(made)
    }

    /// Returns the cell for a plugin that is opened inside the host, or `None` if it runs in a
    /// worker.
    fn in_process_cell(
        &self,
        entry: &PluginEntry,
        source: &InstanceSource,
        setup: &Setup,
    ) -> Option<Arc<OnceCell<StartedPlugin>>> {
        if isolation_reason(setup, entry).is_some() {
            return None;
        }
        let name = &entry.candidate.manifest.name;
        let content = match &entry.candidate.trust {
            PluginFileTrust::ByHash(digest) => digest.clone(),
            PluginFileTrust::Shipped | PluginFileTrust::No(_) | PluginFileTrust::WorkspaceNot => {
                source.edition.content.to_string()
            }
        };
        let mut plugins = self.plugins.lock();
        let key = (name.clone(), content);
        let is_plugin_open = |(other, _): &&InProcessPluginKey,
                              opened: &OnceCell<StartedPlugin>| {
            other == name && opened.initialized()
        };
        let inside = plugins.iter().filter(|(key, opened)| is_plugin_open(key, opened)).count();
        if !plugins.contains_key(&key) && inside >= CONTENTS_INSIDE_MAX {
            return None;
        }
        Some(Arc::clone(plugins.entry(key).or_default()))
    }

    /// Creates an instance in this process. If it refuses the saved state, creates a fresh one and
    /// also returns the error.
    async fn create_in_process(
        &self,
        plugin: &OnceCell<StartedPlugin>,
        entry: &PluginEntry,
        source: &InstanceSource,
        wanted: InstanceRequest<'_>,
        services: &Arc<dyn CallServices>,
        saved: Option<Vec<u8>>,
    ) -> Result<(NewInstance, Option<Error>), InstanceCreationError> {
        let mut copy = None;
        let opening = plugin.get_or_try_init(|| async {
            let path = &entry.candidate.path;
            if let Some(linked) = wanted.setup.linked.iter().find(|it| it.path() == path) {
                return Ok(StartedPlugin::start(&self.executor, linked).await?);
            }
            let file = prepare_file(self.copies.get(), None, entry, source, wanted).await?;
            if let OpenFile::NotCopied(path, error) = &file
                && self.is_plugin_open(&entry.candidate.manifest.name)
            {
                // The linker would return the file that it already has under this name.
                return Err(copy_error(path, error).into());
            }
            self.report_unprotected_file(&file, services);
            copy = file.copy();
            let opened = PluginLibrary::open(file.path()).map_err(|error| load_error(&error))?;
            Ok::<_, InstanceCreationError>(StartedPlugin::start(&self.executor, &opened).await?)
        });
        let plugin = opening.await?;
        let has_saved = saved.is_some();
        let (instance, refusal) = match plugin.create_instance(services.for_instance(), saved).await
        {
            Err(error) if has_saved => {
                (plugin.create_instance(services.for_instance(), None).await?, Some(error))
            }
            made => (made?, None),
        };
        Ok((NewInstance { instance, copy }, refusal))
    }

    /// Returns true if any content of a plugin is open in this process.
    fn is_plugin_open(&self, plugin: &PluginName) -> bool {
        self.plugins.lock().iter().any(|((name, _), opened)| name == plugin && opened.initialized())
    }

    /// Reports once that the opened file is not protected against being overwritten.
    fn report_unprotected_file(&self, file: &OpenFile, services: &Arc<dyn CallServices>) {
        let OpenFile::NotCopied(_, error) = file else { return };
        if self.is_first_notice(NOT_COPIED) {
            services.show_notice(format!(
                "plugins are opened in place, because they cannot be copied: {error}; do not overwrite their files"
            ));
        }
    }

    async fn create_in_worker(
        &self,
        copy: Option<Arc<PluginCopy>>,
        entry: &PluginEntry,
        source: &InstanceSource,
        wanted: InstanceRequest<'_>,
        services: &Arc<dyn CallServices>,
        saved: Option<Vec<u8>>,
    ) -> Result<(NewInstance, Option<Error>), InstanceCreationError> {
        let file = prepare_file(self.copies.get(), copy, entry, source, wanted).await?;
        self.report_unprotected_file(&file, services);
        let Manifest { name, scope, .. } = &entry.candidate.manifest;
        let is_trusted = !matches!(entry.candidate.trust, PluginFileTrust::No(_));
        if let PluginFileTrust::No(digest) = &entry.candidate.trust {
            if self.is_first_notice(digest) {
                services.show_notice(format!(
                    "plugin `{name}` is not trusted: it runs in a worker without keys (a worker is not a sandbox)"
                ));
            }
        } else if isolation_reason(wanted.setup, entry).is_none() {
            services.show_notice(format!(
                "plugin `{name}` was replaced {CONTENTS_INSIDE_MAX} times inside jaato, which cannot unload code: it runs in a worker"
            ));
        }
        let variable = |name: &str| {
            // A manifest can name any variable, so an untrusted plugin gets none that programs may
            // not see.
            let cleaned = services.program_variables();
            if is_trusted {
                wanted.setup.variables.get(name).map(ToOwned::to_owned)
            } else {
                let value = cleaned.get(OsStr::new(name));
                value.filter(|value| !has_secret(&value.to_string_lossy())).cloned()
            }
        };
        let manifest = &entry.candidate.manifest;
        let started = self.workers.start(WorkerRequest {
            file: file.path(),
            manifest,
            is_trusted,
            owner: (*scope == PluginScope::Session).then(|| wanted.session.as_str()),
            variable: &variable,
        });
        let started = started.await?;
        let start = remote::WorkerStart {
            manifest: manifest.clone(),
            socket: started.socket,
            process: started.process,
            services: services.for_instance(),
            saved,
        };
        let instance = Instance::start_in_worker(&self.executor, start).await?;
        let refusal = instance.refusal().cloned();
        Ok((NewInstance { instance, copy: file.copy() }, refusal))
    }
}

fn check_status(entry: &PluginEntry) -> Result<(), Error> {
    let is_runnable = !matches!(entry.candidate.trust, PluginFileTrust::WorkspaceNot);
    if entry.status == PluginStatus::Active && is_runnable {
        return Ok(());
    }
    let name = &entry.candidate.manifest.name;
    Err(Error::new(ErrorKind::PluginDisabled, format!("plugin `{name}` cannot be used"))
        .with_hint(format!("jaato plugin show {name}")))
}

/// Returns the file to open. Trusted files, and files of a trusted workspace, are opened as private
/// copies. Any other file is opened as a copy if plugins are watched and it can be copied,
/// otherwise in place. An untrusted file may then change at any time, because only its worker opens
/// it.
async fn prepare_file(
    copies: Option<&PluginCopies>,
    copy: Option<Arc<PluginCopy>>,
    entry: &PluginEntry,
    source: &InstanceSource,
    wanted: InstanceRequest<'_>,
) -> Result<OpenFile, InstanceCreationError> {
    let candidate = &entry.candidate;
    let of_workspace = candidate.place == PlaceKind::Workspace.name();
    let folders = &wanted.setup.folders;
    let private = match &candidate.trust {
        PluginFileTrust::ByHash(digest) => Some((digest, folders.trusted_plugins_folder())),
        // Trust in a workspace covers exactly this content.
        PluginFileTrust::No(digest) if of_workspace => {
            Some((digest, folders.workspace_plugins_folder()))
        }
        PluginFileTrust::Shipped | PluginFileTrust::No(_) | PluginFileTrust::WorkspaceNot => None,
    };
    if let Some((digest, folder)) = private {
        let folder = folder.map_err(|error| {
            Error::new(ErrorKind::Io, error.to_string()).with_hint(error.hint())
        })?;
        let copied = create_private_copy(&candidate.path, digest, &folder);
        return copied.map(OpenFile::Lasting).map_err(|error| match error {
            CopyError::Changed { .. } if copies.is_some() => InstanceCreationError::Changed,
            error => Error::new(ErrorKind::PluginMisbehaved, error.to_string()).into(),
        });
    }
    let Some(copies) = copies else {
        return Ok(OpenFile::Lasting(candidate.path.clone()));
    };
    let digest = match &candidate.trust {
        PluginFileTrust::No(digest) => Some(digest.as_str()),
        PluginFileTrust::Shipped | PluginFileTrust::ByHash(_) | PluginFileTrust::WorkspaceNot => {
            None
        }
    };
    let opened = match copy {
        Some(copy) => copies.reopen(&candidate.manifest.name, copy),
        None => copies.open(&candidate.manifest.name, &source.edition, &candidate.path, digest),
    };
    opened.map(OpenFile::Copied).or_else(|problem| match problem {
        CopyProblem::Changed => Err(InstanceCreationError::Changed),
        CopyProblem::Io(error) => {
            // As if plugins were not watched: a full disk or an unwritable home must not end a
            // conversation.
            let (path, stamp) = (&candidate.path, &source.edition.stamp);
            let is_it = stamp.is_none() || PluginFileStamp::read_stamp(path).ok() == *stamp;
            is_it
                .then(|| OpenFile::NotCopied(path.clone(), error))
                .ok_or(InstanceCreationError::Changed)
        }
    })
}

fn copy_error(path: &Path, error: &std::io::Error) -> Error {
    let text = format!("cannot make a private copy of plugin `{}`: {error}", path.display());
    Error::new(ErrorKind::Io, text)
}

fn load_error(error: &LoadError) -> Error {
    let made = Error::new(ErrorKind::PluginMisbehaved, error.to_string());
    match error.problem.hint() {
        Some(hint) => made.with_hint(hint),
        None => made,
    }
}

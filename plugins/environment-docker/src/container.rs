//! The container of a session, made for it or brought by the user.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::{InspectContainerOptions, StartContainerOptions};
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use jaato_plugin_sdk_environment::HostFiles;
use jaato_plugin_sdk_environment::files::FolderAccess;
use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;

use crate::command::{ContainerCommand, ContainerCommandSpec};
use crate::container_context::{self, ContainerContext};
use crate::create_container::{self, ContainerRemovalGuard, CreatedContainer};
use crate::engine::DockerEngine;
use crate::errors::{self, EngineRequestKind};
use crate::guardian::ContainerGuardian;
use crate::mounts::{self, MountedFolder};
use crate::paths::{ContainerPaths, SharedFolder, SharedWorkspace};
use crate::probe::{self, ContainerFacts};
use crate::settings::{CONTAINER_TMP, CONTAINER_WORKDIR, DockerSettings, RequestedContainer};
use crate::shared::{FolderUser, SharedFolders};
use crate::terminal::{ContainerTerminal, TerminalSize};
use crate::volumes;
use crate::wait_observer::TerminalObserver;
use crate::watch::ContainerWatch;

/// Separates the name of a container from the number of its replacement.
const AGAIN: &str = "-again-";

/// The origin of a container, which decides what happens to it at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerOrigin {
    /// Made for the session, and removed with it.
    Made,
    /// Made for the session, and kept afterwards.
    MadeToStay,
    /// Brought by the user. It is never stopped or removed.
    Brought,
}

/// A running container, with the folders that it shares with this machine.
pub struct Container {
    /// The current place.
    place: SyncMutex<ContainerContext>,
    /// Locked while the guardian or the whole container is replaced.
    guardian: Mutex<ContainerGuardian>,
    origin: ContainerOrigin,
    settings: DockerSettings,
    removal: Mutex<Option<ContainerRemovalGuard>>,
    paths: ContainerPaths,
    files: HostFiles,
    facts: ContainerFacts,
    folders: Mutex<Option<SharedFolders>>,
    /// The number of replacement containers made.
    made: SyncMutex<u32>,
    /// Whether a command was refused because the container had ended.
    is_told: AtomicBool,
    /// Whether the container was closed and must not be started again.
    is_closed: AtomicBool,
    /// Notes for the user, shown with the next command.
    notes: SyncMutex<Vec<String>>,
}

impl Container {
    /// Makes or takes the container that the settings request, with the given workspace. If this
    /// fails or is dropped, everything that was made is removed.
    ///
    /// # Errors
    /// - `configuration` if the settings are invalid.
    /// - `not_found` if the image or container does not exist.
    /// - `unavailable` if the container does not run.
    /// - `failed` if the container lacks the workspace or a shell.
    pub async fn open_container(
        engine: DockerEngine,
        settings: &DockerSettings,
        workspace: &Path,
    ) -> Result<Self> {
        Self::open_for_subfolder(engine, settings, workspace, workspace).await
    }

    /// Like [`Container::open_container`], for a user who works in a subfolder of the workspace.
    ///
    /// # Errors
    /// The errors of [`Container::open_container`].
    pub async fn open_for_subfolder(
        engine: DockerEngine,
        settings: &DockerSettings,
        root: &Path,
        folder: &Path,
    ) -> Result<Self> {
        let wanted = settings.requested_container()?;
        let real =
            |path: &Path| path.canonicalize().map_err(|error| missing_folder_error(path, &error));
        let session = real(folder)?;
        let whole = match &settings.mount_dir {
            Some(folder) => HostWorkspace {
                root: volumes::workspace_folder(Some(folder), &session)?,
                below: PathBuf::new(),
            },
            None => HostWorkspace::from_folder(&session, &real(root)?),
        };
        match wanted {
            RequestedContainer::Image(image) => {
                Self::create_container(engine, settings, image, (whole, &session)).await
            }
            RequestedContainer::Container(name) => {
                Self::use_existing(engine, settings, name, whole).await
            }
        }
    }

    async fn create_container(
        engine: DockerEngine,
        settings: &DockerSettings,
        image: &str,
        (workspace, session): (HostWorkspace, &Path),
    ) -> Result<Self> {
        check_engine_name("image", image)?;
        let base = settings.tmp_base_dir.clone().unwrap_or_else(std::env::temp_dir);
        let workdir = settings.container_workdir.clone();
        let container = workdir.unwrap_or_else(|| CONTAINER_WORKDIR.into());
        let tmp = Path::new(CONTAINER_TMP);
        let volumes = volumes::parse_volumes(&settings.mounts, session, &[&container, tmp])?;
        let HostWorkspace { root, below } = workspace;
        let workspace = SharedWorkspace { folder: SharedFolder { host: root, container }, below };
        let folders = SharedFolders::create_for_mount(
            &base,
            workspace,
            tmp,
            volumes,
            temporary_folder_user(settings),
        )?;
        let user = command_user(&engine, settings, &folders);
        let name = folders.unique_name();
        let made = create_container::create_and_start(
            &engine,
            settings,
            image,
            &name,
            user.as_deref(),
            folders.paths(),
        )
        .await?;
        let CreatedContainer { id, guardian, removal } = made;
        let origin =
            if guardian.is_some() { ContainerOrigin::Made } else { ContainerOrigin::MadeToStay };
        let guardian = match guardian {
            Some(guardian) => guardian,
            None => container_context::start_guardian(&engine, &id, &name).await?,
        };
        let users = temporary_folder_user(settings);
        let found = UnprobedContainer { id, name, user, users, origin, removal: Some(removal) };
        Self::probe_and_finish(engine, found, settings, guardian, folders).await
    }

    async fn use_existing(
        engine: DockerEngine,
        settings: &DockerSettings,
        name: &str,
        workspace: HostWorkspace,
    ) -> Result<Self> {
        check_engine_name("container", name)?;
        if let Some(mount) = settings.mounts.first() {
            let text = format!(
                "the container `{name}` is already running, so `{mount}` cannot be mounted"
            );
            let hint = "name an image instead, or set `mounts` to `[]`";
            return Err(Error::new(ErrorKind::Configuration, text).with_hint(hint));
        }
        let seen =
            engine.docker_client().inspect_container(name, None::<InspectContainerOptions>).await;
        let seen =
            seen.map_err(|error| engine.explain_error(&error, EngineRequestKind::Container(name)))?;
        check_running(&seen, name)?;
        let mounts = seen.mounts.unwrap_or_default();
        // A container that has only the user's folder is sufficient.
        let (workspace, mounted) = match mounts::find_mounted_folder(&mounts, &workspace.root, name)
        {
            Ok(mounted) => (workspace, mounted),
            Err(_) => {
                let alone =
                    HostWorkspace { root: workspace.working_folder(), below: PathBuf::new() };
                let mounted = mounts::find_mounted_folder(&mounts, &alone.root, name)?;
                (alone, mounted)
            }
        };
        let MountedFolder { path, is_writable } = mounted;
        if let Some(wanted) = settings.container_workdir.as_ref().filter(|dir| **dir != path) {
            let text = format!(
                "the container `{name}` has the workspace at `{}`, not at `{}`",
                path.display(),
                wanted.display()
            );
            return Err(Error::new(ErrorKind::Configuration, text));
        }
        let access = if is_writable { FolderAccess::Write } else { FolderAccess::Read };
        let HostWorkspace { root, below } = workspace;
        let workspace =
            SharedWorkspace { folder: SharedFolder { host: root, container: path }, below };
        let folders =
            SharedFolders::create_in_workspace(workspace, access, temporary_folder_user(settings))?;
        let user = command_user(&engine, settings, &folders);
        let id = seen.id.unwrap_or_else(|| name.to_owned());
        let guardian = container_context::start_guardian(&engine, &id, name).await?;
        let name = name.to_owned();
        let (users, origin) = (temporary_folder_user(settings), ContainerOrigin::Brought);
        let found = UnprobedContainer { id, name, user, users, origin, removal: None };
        Self::probe_and_finish(engine, found, settings, guardian, folders).await
    }

    async fn probe_and_finish(
        engine: DockerEngine,
        found: UnprobedContainer,
        settings: &DockerSettings,
        guardian: ContainerGuardian,
        folders: SharedFolders,
    ) -> Result<Self> {
        let UnprobedContainer { id, name, user, users, origin, removal } = found;
        let mut place = ContainerContext {
            watch: ContainerWatch::start_watch(engine.clone(), id.clone()),
            engine,
            id: id.into(),
            name: name.into(),
            user: user.map(Into::into),
            variables: [].into(),
            folder: folders.paths().working_folder().container.clone(),
            guardian: guardian.clone(),
            onlooker: TerminalObserver::default(),
        };
        let facts = probe::probe_container(
            &place,
            &folders.paths().temporary_folder().container,
            &place.folder,
        )
        .await?;
        if facts.home.is_none() {
            let home = folders.create_home(users)?.to_string_lossy().into_owned();
            place.variables = [("HOME".to_owned(), home)].into();
        }
        Ok(Self {
            place: SyncMutex::new(place),
            guardian: Mutex::new(guardian),
            origin,
            settings: settings.clone(),
            removal: Mutex::new(removal),
            paths: folders.paths().clone(),
            files: folders.files().clone(),
            facts,
            folders: Mutex::new(Some(folders)),
            made: SyncMutex::new(1),
            is_told: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            notes: SyncMutex::default(),
        })
    }

    /// Starts a command.
    ///
    /// # Errors
    /// The errors of [`ContainerCommand::start`].
    pub async fn start_command(&self, spec: ContainerCommandSpec) -> Result<ContainerCommand> {
        ContainerCommand::start(self.running_context().await?, spec).await
    }

    /// Starts a program on a terminal.
    ///
    /// # Errors
    /// The errors of [`ContainerTerminal::start_on_terminal`].
    pub async fn start_on_terminal(
        &self,
        spec: ContainerCommandSpec,
        size: TerminalSize,
    ) -> Result<ContainerTerminal> {
        ContainerTerminal::start_on_terminal(self.running_context().await?, spec, size).await
    }

    /// Ensures that the container runs. One that has ended is started again, if possible.
    ///
    /// # Errors
    /// `unavailable` if the container has ended and cannot be started, or if its end was not
    /// reported yet.
    pub async fn ensure_running(&self) -> Result<()> {
        self.running_context().await.map(drop)
    }

    /// Returns the place with a running guardian, because a command may have killed the guardian.
    async fn running_context(&self) -> Result<ContainerContext> {
        let mut guardian = self.guardian.lock().await;
        let place = self.current_context();
        if let Some(how) = place.watch.end_reason() {
            let again = self.restart_or_recreate(&place, &how).await?;
            *guardian = again.guardian.clone();
            *self.place.lock() = again.clone();
            self.is_told.store(false, Ordering::Relaxed);
            return Ok(again);
        }
        if guardian.has_ended() && self.origin != ContainerOrigin::Made {
            *guardian =
                container_context::start_guardian(&place.engine, &place.id, &place.name).await?;
        }
        Ok(ContainerContext { guardian: guardian.clone(), ..place })
    }

    /// Returns a place in a running container to replace one that has ended. A container made for
    /// the session is replaced only after a command was refused, so that the caller learns that
    /// installed software is gone.
    async fn restart_or_recreate(
        &self,
        ended: &ContainerContext,
        how: &str,
    ) -> Result<ContainerContext> {
        let gone = errors::container_ended_error(&ended.name, how);
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(gone);
        }
        let (docker, id) = (ended.engine.docker_client(), &*ended.id);
        let (new_id, name, guardian) = match self.origin {
            ContainerOrigin::Brought => {
                let seen = docker.inspect_container(id, None::<InspectContainerOptions>).await;
                let running = seen.ok().and_then(|seen| seen.state?.running);
                if running != Some(true) {
                    return Err(gone);
                }
                let guardian =
                    container_context::start_guardian(&ended.engine, id, &ended.name).await?;
                (Arc::clone(&ended.id), Arc::clone(&ended.name), guardian)
            }
            ContainerOrigin::Made | ContainerOrigin::MadeToStay
                if !self.is_told.swap(true, Ordering::Relaxed) =>
            {
                return Err(gone);
            }
            ContainerOrigin::MadeToStay => {
                let started = docker.start_container(id, None::<StartContainerOptions>).await;
                started.map_err(|error| {
                    ended.engine.explain_error(&error, EngineRequestKind::Container(id))
                })?;
                let guardian =
                    container_context::start_guardian(&ended.engine, id, &ended.name).await?;
                (Arc::clone(&ended.id), Arc::clone(&ended.name), guardian)
            }
            ContainerOrigin::Made => self.recreate_container(ended).await?,
        };
        let has =
            if self.origin == ContainerOrigin::Made { "was made again" } else { "runs again" };
        self.notes.lock().push(format!("{}: it {has} as `{name}`", gone.message));
        let watch = ContainerWatch::start_watch(ended.engine.clone(), new_id.to_string());
        Ok(ContainerContext {
            id: new_id,
            name,
            guardian,
            watch,
            onlooker: TerminalObserver::default(),
            ..ended.clone()
        })
    }

    /// Makes another container like the one that ended, with the same folders.
    async fn recreate_container(
        &self,
        ended: &ContainerContext,
    ) -> Result<(Arc<str>, Arc<str>, ContainerGuardian)> {
        let RequestedContainer::Image(image) = self.settings.requested_container()? else {
            unreachable!("only containers from an image are created")
        };
        // Uses another name, because the engine may still be removing the old container.
        let name = {
            let mut made = self.made.lock();
            *made += 1;
            let first = ended.name.split_once(AGAIN).map_or(&*ended.name, |(first, _)| first);
            format!("{first}{AGAIN}{made}")
        };
        let (engine, user) = (&ended.engine, ended.user.as_deref());
        let made = create_container::create_and_start(
            engine,
            &self.settings,
            image,
            &name,
            user,
            &self.paths,
        )
        .await?;
        let CreatedContainer { id, guardian, removal } = made;
        *self.removal.lock().await = Some(removal);
        let Some(guardian) = guardian else {
            unreachable!("a temporary container has its guardian as its first process")
        };
        Ok((id.into(), name.into(), guardian))
    }

    /// Takes the notes for the user.
    pub fn take_user_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock())
    }

    fn current_context(&self) -> ContainerContext {
        self.place.lock().clone()
    }

    /// Returns the engine's ID of the container.
    pub fn id(&self) -> Arc<str> {
        Arc::clone(&self.place.lock().id)
    }

    /// Returns the container's name, as given by the user or generated.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.place.lock().name)
    }

    /// Returns the origin of the container.
    pub fn origin(&self) -> ContainerOrigin {
        self.origin
    }

    /// Returns the shared folders.
    pub fn paths(&self) -> &ContainerPaths {
        &self.paths
    }

    /// Returns the shared files, by their paths in the container.
    pub fn files(&self) -> &HostFiles {
        &self.files
    }

    /// Returns facts about the container.
    pub fn facts(&self) -> &ContainerFacts {
        &self.facts
    }

    /// Ends everything that was started in the container, removes the container if it was made for
    /// the session, and removes the temporary folder. A failure does not skip the other steps.
    ///
    /// # Errors
    /// The first failure.
    pub async fn close(&self) -> Result<()> {
        self.is_closed.store(true, Ordering::Relaxed);
        let removed = match self.removal.lock().await.take() {
            Some(mut removal) => removal.remove_now().await,
            None => Ok(()),
        };
        let ended = match self.origin {
            // The processes ended with their container.
            ContainerOrigin::Made => Ok(()),
            _ if self.current_context().watch.end_reason().is_some() => Ok(()),
            ContainerOrigin::MadeToStay | ContainerOrigin::Brought => {
                self.guardian.lock().await.end_all_commands().await
            }
        };
        let cleaned = match self.folders.lock().await.take() {
            Some(folders) => folders.close(),
            None => Ok(()),
        };
        removed.and(ended).and(cleaned)
    }
}

/// The workspace on this machine.
struct HostWorkspace {
    root: PathBuf,
    /// The relative path of the folder in which the user works.
    below: PathBuf,
}

impl HostWorkspace {
    /// Returns the workspace around a folder. If the workspace contains the user's home, is the
    /// root folder or belongs to another user, the container gets only the folder.
    fn from_folder(folder: &Path, root: &Path) -> Self {
        let owner = |path: &Path| std::fs::metadata(path).map(|facts| facts.uid()).ok();
        let is_home = std::env::var_os("HOME").is_some_and(|home| {
            Path::new(&home).canonicalize().is_ok_and(|home| home.starts_with(root))
        });
        let is_theirs = owner(root).is_some() && owner(root) == owner(folder);
        match folder.strip_prefix(root) {
            Ok(below) if !is_home && is_theirs && root.parent().is_some() => {
                Self { root: root.to_owned(), below: below.to_owned() }
            }
            _ => Self { root: folder.to_owned(), below: PathBuf::new() },
        }
    }

    fn working_folder(&self) -> PathBuf {
        if self.below.as_os_str().is_empty() {
            self.root.clone()
        } else {
            self.root.join(&self.below)
        }
    }
}

/// A container before it was probed.
struct UnprobedContainer {
    id: String,
    name: String,
    user: Option<String>,
    users: FolderUser,
    origin: ContainerOrigin,
    removal: Option<ContainerRemovalGuard>,
}

/// Returns whether jaato's user or another one uses the temporary folder.
fn temporary_folder_user(settings: &DockerSettings) -> FolderUser {
    if settings.user.is_some() { FolderUser::Any } else { FolderUser::Same }
}

/// Returns the user that commands run as. The default is the user who runs jaato, because both
/// sides create files.
fn command_user(
    engine: &DockerEngine,
    settings: &DockerSettings,
    folders: &SharedFolders,
) -> Option<String> {
    match settings.user.as_deref() {
        Some("container") => None,
        Some(user) => Some(user.to_owned()),
        // In a rootless engine, root in the container is the user outside.
        None if engine.is_rootless() => Some("0:0".to_owned()),
        None => Some(folders.owner()),
    }
}

fn check_running(seen: &ContainerInspectResponse, name: &str) -> Result<()> {
    let state = seen.state.clone().unwrap_or_default();
    if state.paused == Some(true) {
        let text = format!("the container `{name}` is paused");
        let hint = format!("`docker unpause {name}`");
        return Err(Error::new(ErrorKind::Unavailable, text).with_hint(hint));
    }
    if state.running == Some(true) { Ok(()) } else { Err(errors::not_running_error(name)) }
}

/// Checks a name, because names become part of the engine's URLs.
fn check_engine_name(what: &str, name: &str) -> Result<()> {
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "_.-/:@".contains(letter);
    if name.chars().all(is_fine) && !name.contains("..") && !name.starts_with('/') {
        return Ok(());
    }
    let text = format!("invalid {what} name `{name}`");
    Err(Error::new(ErrorKind::Configuration, text)
        .with_hint("use letters, digits and `_.-/:@`, without `..` or a leading `/`"))
}

fn missing_folder_error(folder: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot use the folder `{}`: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_shares_the_enclosing_workspace_but_never_a_whole_home() {
        let made = tempfile::tempdir().unwrap();
        let root = made.path().canonicalize().unwrap();
        let folder = root.join("a/b");
        std::fs::create_dir_all(&folder).unwrap();
        let taken = |root: &Path| {
            let HostWorkspace { root, below } = HostWorkspace::from_folder(&folder, root);
            (root, below)
        };
        assert_eq!(taken(&root), (root.clone(), PathBuf::from("a/b")));
        assert_eq!(taken(&folder), (folder.clone(), PathBuf::new()));
        let alone = (folder.clone(), PathBuf::new());
        assert_eq!(taken(Path::new("/")), alone, "the root is the whole machine");
        assert_eq!(taken(&root.join("c")), alone, "the root does not contain it");
        if let Ok(home) = Path::new(&std::env::var_os("HOME").unwrap()).canonicalize() {
            let HostWorkspace { root, .. } = HostWorkspace::from_folder(&home.join("p"), &home);
            assert_eq!(root, home.join("p"));
        }
    }
}

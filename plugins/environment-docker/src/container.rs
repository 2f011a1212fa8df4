//! The container of a session, made for it or brought by the user.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::{InspectContainerOptions, StartContainerOptions};
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use jaato_plugin_sdk_environment::HostFiles;
use jaato_plugin_sdk_environment::files::Access;
use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;

use crate::command::{Command, Spec};
use crate::engine::Engine;
use crate::errors::{self, Doing};
use crate::guardian::Guardian;
use crate::made::{self, Made, Removal};
use crate::mounts::{self, Mounted};
use crate::onlooker::Onlooker;
use crate::paths::{Paths, Shared, Workspace};
use crate::place::{self, Place};
use crate::probe::{self, Facts};
use crate::settings::{CONTAINER_TMP, CONTAINER_WORKDIR, Settings, Wanted};
use crate::shared::{SharedFolders, Users};
use crate::terminal::{Size, Terminal};
use crate::volumes;
use crate::watch::Watch;

/// Separates the name of a container from the number of its replacement.
const AGAIN: &str = "-again-";

/// The origin of a container, which decides what happens to it at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
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
    place: SyncMutex<Place>,
    /// Locked while the guardian or the whole container is replaced.
    guardian: Mutex<Guardian>,
    origin: Origin,
    settings: Settings,
    removal: Mutex<Option<Removal>>,
    paths: Paths,
    files: HostFiles,
    facts: Facts,
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
    pub async fn open(engine: Engine, settings: &Settings, workspace: &Path) -> Result<Self> {
        Self::open_within(engine, settings, workspace, workspace).await
    }

    /// Like [`Container::open`], for a user who works in a subfolder of the workspace.
    ///
    /// # Errors
    /// The errors of [`Container::open`].
    pub async fn open_within(
        engine: Engine,
        settings: &Settings,
        root: &Path,
        folder: &Path,
    ) -> Result<Self> {
        let wanted = settings.wanted()?;
        let real = |path: &Path| path.canonicalize().map_err(|error| no_folder(path, &error));
        let session = real(folder)?;
        let whole = match &settings.mount_dir {
            Some(folder) => {
                OnHost { root: volumes::workspace(Some(folder), &session)?, below: PathBuf::new() }
            }
            None => OnHost::around(&session, &real(root)?),
        };
        match wanted {
            Wanted::Image(image) => Self::make(engine, settings, image, (whole, &session)).await,
            Wanted::Container(name) => Self::take(engine, settings, name, whole).await,
        }
    }

    async fn make(
        engine: Engine,
        settings: &Settings,
        image: &str,
        (workspace, session): (OnHost, &Path),
    ) -> Result<Self> {
        check_name("image", image)?;
        let base = settings.tmp_base_dir.clone().unwrap_or_else(std::env::temp_dir);
        let workdir = settings.container_workdir.clone();
        let container = workdir.unwrap_or_else(|| CONTAINER_WORKDIR.into());
        let tmp = Path::new(CONTAINER_TMP);
        let volumes = volumes::read(&settings.mounts, session, &[&container, tmp])?;
        let OnHost { root, below } = workspace;
        let workspace = Workspace { folder: Shared { host: root, container }, below };
        let folders = SharedFolders::to_mount(&base, workspace, tmp, volumes, users(settings))?;
        let user = user(&engine, settings, &folders);
        let name = folders.name();
        let made =
            made::make(&engine, settings, image, &name, user.as_deref(), folders.paths()).await?;
        let Made { id, guardian, removal } = made;
        let origin = if guardian.is_some() { Origin::Made } else { Origin::MadeToStay };
        let guardian = match guardian {
            Some(guardian) => guardian,
            None => place::guard(&engine, &id, &name).await?,
        };
        let users = users(settings);
        let found = Found { id, name, user, users, origin, removal: Some(removal) };
        Self::finish(engine, found, settings, guardian, folders).await
    }

    async fn take(
        engine: Engine,
        settings: &Settings,
        name: &str,
        workspace: OnHost,
    ) -> Result<Self> {
        check_name("container", name)?;
        if let Some(mount) = settings.mounts.first() {
            let text = format!(
                "the container `{name}` is already running, so `{mount}` cannot be mounted"
            );
            let hint = "name an image instead, or set `mounts` to `[]`";
            return Err(Error::new(ErrorKind::Configuration, text).with_hint(hint));
        }
        let seen = engine.docker().inspect_container(name, None::<InspectContainerOptions>).await;
        let seen = seen.map_err(|error| engine.explain(&error, Doing::Container(name)))?;
        must_run(&seen, name)?;
        let mounts = seen.mounts.unwrap_or_default();
        // A container that has only the user's folder is sufficient.
        let (workspace, mounted) = match mounts::find(&mounts, &workspace.root, name) {
            Ok(mounted) => (workspace, mounted),
            Err(_) => {
                let alone = OnHost { root: workspace.folder(), below: PathBuf::new() };
                let mounted = mounts::find(&mounts, &alone.root, name)?;
                (alone, mounted)
            }
        };
        let Mounted { path, is_writable } = mounted;
        if let Some(wanted) = settings.container_workdir.as_ref().filter(|dir| **dir != path) {
            let text = format!(
                "the container `{name}` has the workspace at `{}`, not at `{}`",
                path.display(),
                wanted.display()
            );
            return Err(Error::new(ErrorKind::Configuration, text));
        }
        let access = if is_writable { Access::Write } else { Access::Read };
        let OnHost { root, below } = workspace;
        let workspace = Workspace { folder: Shared { host: root, container: path }, below };
        let folders = SharedFolders::mounted(workspace, access, users(settings))?;
        let user = user(&engine, settings, &folders);
        let id = seen.id.unwrap_or_else(|| name.to_owned());
        let guardian = place::guard(&engine, &id, name).await?;
        let name = name.to_owned();
        let (users, origin) = (users(settings), Origin::Brought);
        let found = Found { id, name, user, users, origin, removal: None };
        Self::finish(engine, found, settings, guardian, folders).await
    }

    async fn finish(
        engine: Engine,
        found: Found,
        settings: &Settings,
        guardian: Guardian,
        folders: SharedFolders,
    ) -> Result<Self> {
        let Found { id, name, user, users, origin, removal } = found;
        let mut place = Place {
            watch: Watch::begin(engine.clone(), id.clone()),
            engine,
            id: id.into(),
            name: name.into(),
            user: user.map(Into::into),
            variables: [].into(),
            folder: folders.paths().working().container.clone(),
            guardian: guardian.clone(),
            onlooker: Onlooker::default(),
        };
        let facts = probe::ask(&place, &folders.paths().tmp().container, &place.folder).await?;
        if facts.home.is_none() {
            let home = folders.make_home(users)?.to_string_lossy().into_owned();
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
    /// The errors of [`Command::start`].
    pub async fn start(&self, spec: Spec) -> Result<Command> {
        Command::start(self.place().await?, spec).await
    }

    /// Starts a program on a terminal.
    ///
    /// # Errors
    /// The errors of [`Terminal::start`].
    pub async fn start_on_terminal(&self, spec: Spec, size: Size) -> Result<Terminal> {
        Terminal::start(self.place().await?, spec, size).await
    }

    /// Ensures that the container runs. One that has ended is started again, if possible.
    ///
    /// # Errors
    /// `unavailable` if the container has ended and cannot be started, or if its end was not
    /// reported yet.
    pub async fn ready(&self) -> Result<()> {
        self.place().await.map(drop)
    }

    /// Returns the place with a running guardian, because a command may have killed the guardian.
    async fn place(&self) -> Result<Place> {
        let mut guardian = self.guardian.lock().await;
        let place = self.now();
        if let Some(how) = place.watch.how() {
            let again = self.begin_again(&place, &how).await?;
            *guardian = again.guardian.clone();
            *self.place.lock() = again.clone();
            self.is_told.store(false, Ordering::Relaxed);
            return Ok(again);
        }
        if guardian.has_ended() && self.origin != Origin::Made {
            *guardian = place::guard(&place.engine, &place.id, &place.name).await?;
        }
        Ok(Place { guardian: guardian.clone(), ..place })
    }

    /// Returns a place in a running container to replace one that has ended. A container made for
    /// the session is replaced only after a command was refused, so that the caller learns that
    /// installed software is gone.
    async fn begin_again(&self, ended: &Place, how: &str) -> Result<Place> {
        let gone = errors::gone(&ended.name, how);
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(gone);
        }
        let (docker, id) = (ended.engine.docker(), &*ended.id);
        let (new_id, name, guardian) = match self.origin {
            Origin::Brought => {
                let seen = docker.inspect_container(id, None::<InspectContainerOptions>).await;
                let running = seen.ok().and_then(|seen| seen.state?.running);
                if running != Some(true) {
                    return Err(gone);
                }
                let guardian = place::guard(&ended.engine, id, &ended.name).await?;
                (Arc::clone(&ended.id), Arc::clone(&ended.name), guardian)
            }
            Origin::Made | Origin::MadeToStay if !self.is_told.swap(true, Ordering::Relaxed) => {
                return Err(gone);
            }
            Origin::MadeToStay => {
                let started = docker.start_container(id, None::<StartContainerOptions>).await;
                started.map_err(|error| ended.engine.explain(&error, Doing::Container(id)))?;
                let guardian = place::guard(&ended.engine, id, &ended.name).await?;
                (Arc::clone(&ended.id), Arc::clone(&ended.name), guardian)
            }
            Origin::Made => self.make_again(ended).await?,
        };
        let has = if self.origin == Origin::Made { "was made again" } else { "runs again" };
        self.notes.lock().push(format!("{}: it {has} as `{name}`", gone.message));
        let watch = Watch::begin(ended.engine.clone(), new_id.to_string());
        Ok(Place {
            id: new_id,
            name,
            guardian,
            watch,
            onlooker: Onlooker::default(),
            ..ended.clone()
        })
    }

    /// Makes another container like the one that ended, with the same folders.
    async fn make_again(&self, ended: &Place) -> Result<(Arc<str>, Arc<str>, Guardian)> {
        let Wanted::Image(image) = self.settings.wanted()? else {
            unreachable!("only those from an image are made")
        };
        // Uses another name, because the engine may still be removing the old container.
        let name = {
            let mut made = self.made.lock();
            *made += 1;
            let first = ended.name.split_once(AGAIN).map_or(&*ended.name, |(first, _)| first);
            format!("{first}{AGAIN}{made}")
        };
        let (engine, user) = (&ended.engine, ended.user.as_deref());
        let made = made::make(engine, &self.settings, image, &name, user, &self.paths).await?;
        let Made { id, guardian, removal } = made;
        *self.removal.lock().await = Some(removal);
        let Some(guardian) = guardian else {
            unreachable!("its guardian is the first process of one that does not stay")
        };
        Ok((id.into(), name.into(), guardian))
    }

    /// Takes the notes for the user.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock())
    }

    fn now(&self) -> Place {
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
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the shared folders.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Returns the shared files, by their paths in the container.
    pub fn files(&self) -> &HostFiles {
        &self.files
    }

    /// Returns facts about the container.
    pub fn facts(&self) -> &Facts {
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
            Some(mut removal) => removal.now().await,
            None => Ok(()),
        };
        let ended = match self.origin {
            // The processes ended with their container.
            Origin::Made => Ok(()),
            _ if self.now().watch.how().is_some() => Ok(()),
            Origin::MadeToStay | Origin::Brought => self.guardian.lock().await.end_all().await,
        };
        let cleaned = match self.folders.lock().await.take() {
            Some(folders) => folders.close(),
            None => Ok(()),
        };
        removed.and(ended).and(cleaned)
    }
}

/// The workspace on this machine.
struct OnHost {
    root: PathBuf,
    /// The relative path of the folder in which the user works.
    below: PathBuf,
}

impl OnHost {
    /// Returns the workspace around a folder. If the workspace contains the user's home, is the
    /// root folder or belongs to another user, the container gets only the folder.
    fn around(folder: &Path, root: &Path) -> Self {
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

    fn folder(&self) -> PathBuf {
        if self.below.as_os_str().is_empty() {
            self.root.clone()
        } else {
            self.root.join(&self.below)
        }
    }
}

/// A container before it was probed.
struct Found {
    id: String,
    name: String,
    user: Option<String>,
    users: Users,
    origin: Origin,
    removal: Option<Removal>,
}

/// Returns whether jaato's user or another one uses the temporary folder.
fn users(settings: &Settings) -> Users {
    if settings.user.is_some() { Users::Any } else { Users::Same }
}

/// Returns the user that commands run as. The default is the user who runs jaato, because both
/// sides create files.
fn user(engine: &Engine, settings: &Settings, folders: &SharedFolders) -> Option<String> {
    match settings.user.as_deref() {
        Some("container") => None,
        Some(user) => Some(user.to_owned()),
        // In a rootless engine, root in the container is the user outside.
        None if engine.is_rootless() => Some("0:0".to_owned()),
        None => Some(folders.owner()),
    }
}

fn must_run(seen: &ContainerInspectResponse, name: &str) -> Result<()> {
    let state = seen.state.clone().unwrap_or_default();
    if state.paused == Some(true) {
        let text = format!("the container `{name}` is paused");
        let hint = format!("`docker unpause {name}`");
        return Err(Error::new(ErrorKind::Unavailable, text).with_hint(hint));
    }
    if state.running == Some(true) { Ok(()) } else { Err(errors::not_running(name)) }
}

/// Checks a name, because names become part of the engine's URLs.
fn check_name(what: &str, name: &str) -> Result<()> {
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "_.-/:@".contains(letter);
    if name.chars().all(is_fine) && !name.contains("..") && !name.starts_with('/') {
        return Ok(());
    }
    let text = format!("`{name}` cannot be the name of a {what}");
    Err(Error::new(ErrorKind::Configuration, text))
}

fn no_folder(folder: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot use the folder `{}`: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_has_the_workspace_around_the_folder_but_never_a_whole_home() {
        let made = tempfile::tempdir().unwrap();
        let root = made.path().canonicalize().unwrap();
        let folder = root.join("a/b");
        std::fs::create_dir_all(&folder).unwrap();
        let taken = |root: &Path| {
            let OnHost { root, below } = OnHost::around(&folder, root);
            (root, below)
        };
        assert_eq!(taken(&root), (root.clone(), PathBuf::from("a/b")));
        assert_eq!(taken(&folder), (folder.clone(), PathBuf::new()));
        let alone = (folder.clone(), PathBuf::new());
        assert_eq!(taken(Path::new("/")), alone, "all of the machine");
        assert_eq!(taken(&root.join("c")), alone, "not around it");
        if let Ok(home) = Path::new(&std::env::var_os("HOME").unwrap()).canonicalize() {
            let OnHost { root, .. } = OnHost::around(&home.join("p"), &home);
            assert_eq!(root, home.join("p"));
        }
    }
}

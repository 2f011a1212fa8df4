//! The shared folders (the workspace and the temporary folder) and their files.

use std::fs::{Permissions, create_dir, set_permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use jaato_plugin_sdk::types::{Error, Result};
use jaato_plugin_sdk_environment::HostFiles;
use jaato_plugin_sdk_environment::files::{
    AllowedFolder, ConfinedFiles, ConfinedFilesSettings as FileSettings, FolderAccess,
    TemporarySettings,
};

use crate::errors;
use crate::paths::{ContainerPaths, MountedVolume, SharedFolder, SharedWorkspace};
use crate::temporary_folder::{self, TemporaryFolder};

/// The home of a user without a home in the container, inside the temporary folder.
const HOME: &str = "home";

/// A link to a temporary folder in the workspace, because the folder's real name is known too late.
const LINK: &str = "t";

/// The user of the temporary folder in the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderUser {
    /// The user who runs jaato.
    Same,
    /// Another user, according to the settings.
    Any,
}

/// The files of an environment, and its temporary folder.
pub struct SharedFolders {
    files: HostFiles,
    paths: ContainerPaths,
    tmp: TemporaryFolder,
}

impl SharedFolders {
    /// Creates the folders for a container that jaato makes. The temporary folder is mounted at
    /// `tmp`.
    ///
    /// # Errors
    /// `io` or `configuration` if a folder cannot be used.
    pub fn create_for_mount(
        base: &Path,
        workspace: impl Into<SharedWorkspace>,
        tmp: &Path,
        volumes: Vec<MountedVolume>,
        users: FolderUser,
    ) -> Result<Self> {
        let folder = TemporaryFolder::create_folder(base, temporary_folder::PREFIX)?;
        let workspace = (workspace.into(), FolderAccess::Write);
        let shared = Self::open_files(folder, workspace, volumes, tmp.to_owned())?;
        // Other users of this machine cannot reach it, because they cannot enter the folder around
        // it.
        shared.grant_access(&shared.paths.temporary_folder().host, users)?;
        Ok(shared)
    }

    /// Creates the folders for a running container. The temporary folder is in the workspace,
    /// because nothing more can be mounted.
    ///
    /// # Errors
    /// `io` or `configuration` if a folder cannot be used.
    pub fn create_in_workspace(
        workspace: impl Into<SharedWorkspace>,
        access: FolderAccess,
        users: FolderUser,
    ) -> Result<Self> {
        let workspace = workspace.into();
        let folder = TemporaryFolder::create_folder(
            &workspace.folder.host,
            temporary_folder::HIDDEN_PREFIX,
        )?;
        let name = folder.path().file_name().unwrap_or_default();
        let shown = workspace.folder.container.join(name).join(LINK);
        let shared = Self::open_files(folder, (workspace, access), Vec::new(), shown)?;
        let true_name = shared.paths.temporary_folder().host.file_name().unwrap_or_default();
        let link = shared.tmp.path().join(LINK);
        symlink(true_name, &link).map_err(|error| creation_error(&link, &error))?;
        for path in [shared.tmp.path(), &shared.paths.temporary_folder().host] {
            shared.grant_access(path, users)?;
        }
        Ok(shared)
    }

    fn open_files(
        folder: TemporaryFolder,
        (workspace, access): (SharedWorkspace, FolderAccess),
        volumes: Vec<MountedVolume>,
        shown: PathBuf,
    ) -> Result<Self> {
        let root = |SharedFolder { host, container }: &SharedFolder, access| AllowedFolder {
            host: host.clone(),
            shown: container.clone(),
            access,
        };
        let more = volumes.iter().map(|volume| root(&volume.folder, volume.access));
        let settings = FileSettings {
            roots: std::iter::once(root(&workspace.folder, access)).chain(more).collect(),
            default_folder: workspace.folder.container.join(&workspace.below),
            temporary: Some(TemporarySettings {
                base: Some(folder.path().to_owned()),
                shown: Some(shown),
            }),
        };
        let confined = ConfinedFiles::open(&settings)?;
        let Some((host, container)) = confined.temporary_folder() else {
            unreachable!("requested in the settings")
        };
        let tmp = SharedFolder { host: host.to_owned(), container: container.to_owned() };
        let paths = ContainerPaths::new(workspace, tmp).with_volumes(volumes);
        Ok(Self { files: HostFiles::new(confined), paths, tmp: folder })
    }

    /// Returns the files, by their paths in the container.
    pub fn files(&self) -> &HostFiles {
        &self.files
    }

    /// Returns the paths on both sides.
    pub fn paths(&self) -> &ContainerPaths {
        &self.paths
    }

    /// Returns the owner of the folders in the engine's format.
    pub fn owner(&self) -> String {
        self.tmp.owner()
    }

    /// Returns a unique name on this machine.
    pub fn unique_name(&self) -> String {
        self.tmp.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn grant_access(&self, path: &Path, users: FolderUser) -> Result<()> {
        match users {
            FolderUser::Same => Ok(()),
            FolderUser::Any => set_permissions(path, Permissions::from_mode(0o777))
                .map_err(|error| creation_error(path, &error)),
        }
    }

    /// Creates a home in the temporary folder. Returns its path in the container.
    ///
    /// # Errors
    /// `io` if the home cannot be created.
    pub fn create_home(&self, users: FolderUser) -> Result<PathBuf> {
        let path = self.paths.temporary_folder().host.join(HOME);
        create_dir(&path).map_err(|error| creation_error(&path, &error))?;
        self.grant_access(&path, users)?;
        Ok(self.paths.temporary_folder().container.join(HOME))
    }

    /// Removes the temporary folder.
    ///
    /// # Errors
    /// `io` if the folder cannot be removed.
    pub fn close(self) -> Result<()> {
        let closed = self.files.confined().close();
        closed.and(self.tmp.close())
    }
}

fn creation_error(path: &Path, error: &std::io::Error) -> Error {
    errors::folder_creation_error(&format!("`{}`", path.display()), error)
}

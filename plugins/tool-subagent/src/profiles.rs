//! The profiles of a session: where they are, which of two with the same name counts, and how they
//! are found.
//!
//! They are read at each use. The host checks at each use that the workspace is as the user trusted
//! it, so a file that a model writes withdraws the trust instead of becoming a profile.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::text::{one_line, visible_line};

use crate::config::Config;
use crate::find_files::{FileSearch, FolderOwner};
use crate::profile::{CheckedProfile, Profile, ProfileFormat};
use crate::profile_file::{FILE_BYTES_MAX, ProfileSyntax};
use crate::variables;

/// The maximum number of profiles.
const PROFILES_MAX: usize = 200;
/// The maximum number of lines about files that are skipped, and of warnings.
const NOTICES_MAX: usize = 100;
/// Folders with profiles, below the user's home and below the workspace, in order of precedence.
const FOLDERS: [(&str, &[ProfileSyntax]); 3] = [
    (".jaato/profiles", &[ProfileSyntax::Json, ProfileSyntax::Yaml]),
    (".jaato/agents", &[ProfileSyntax::Markdown]),
    (".claude/agents", &[ProfileSyntax::Markdown]),
];
/// A folder with one of these is the root of a workspace.
const MARKERS: [&str; 2] = [".jaato", ".git"];
/// The source of profiles in the configuration.
const CONFIG_SOURCE: &str = "config.toml";

/// All profiles, by name.
#[derive(Debug, Default)]
pub struct Profiles {
    by_name: BTreeMap<String, Profile>,
    /// Files and entries of the configuration that are not used.
    pub skipped: Vec<SkippedProfile>,
    /// Parts of profiles that are not used, one line each.
    pub warnings: Vec<String>,
    /// A folder with profiles of a workspace that the user does not trust.
    pub untrusted: Option<PathBuf>,
}

/// A profile that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedProfile {
    /// The path, or the name of the configuration's entry.
    pub source: String,
    /// The reason, in one line.
    pub reason: String,
}

/// Where profiles are.
#[derive(Debug, Clone, Default)]
pub struct ProfilePlaces {
    /// The user's configuration.
    pub config: Config,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The root of the workspace, if the user trusts it.
    pub workspace: Option<PathBuf>,
    /// The session's working directory.
    pub working_directory: PathBuf,
}

impl ProfilePlaces {
    /// Asks the host for the configuration and the session's folders.
    ///
    /// # Errors
    /// If the host cannot answer.
    pub async fn for_session(host: &Reporter) -> Result<Self> {
        let config: Config = host.config().await?;
        let facts = host.session().await?;
        let home = match config.home.is_empty() {
            true => std::env::var_os("HOME").map(PathBuf::from),
            false => Some(PathBuf::from(&config.home)),
        };
        Ok(Self {
            config,
            home: home.filter(|home| home.is_absolute()),
            workspace: facts.trusted_workspace.map(PathBuf::from),
            working_directory: PathBuf::from(facts.working_directory),
        })
    }

    /// Replaces `${NAME}` in the instructions, as the original does. Only names that hold no secret
    /// have a value, because the instructions go to a model.
    fn expand_variables(&self, checked: &mut CheckedProfile) {
        let Some(text) = checked.profile.as_mut().and_then(|it| it.instructions.as_mut()) else {
            return;
        };
        let folder = |path: &Path| path.to_str().map(str::to_owned);
        *text = variables::expand_variables(text, |name| match name {
            "cwd" => folder(&self.working_directory),
            "projectPath" | "workspaceRoot" => {
                folder(self.workspace.as_ref().unwrap_or(&self.working_directory))
            }
            "HOME" => folder(self.home.as_ref()?),
            "USER" => std::env::var("USER").ok(),
            _ => None,
        });
    }

    /// Finds a folder with profiles of an untrusted workspace. Folders in the user's home belong to
    /// the user.
    fn find_untrusted_folder(&self) -> Option<PathBuf> {
        let here = self.working_directory.as_path();
        let is_home = |folder: &Path| Some(folder) == self.home.as_deref();
        let has_marker = |folder: &&Path| MARKERS.iter().any(|it| folder.join(it).exists());
        let root = here.ancestors().take_while(|it| !is_home(it)).find(has_marker).unwrap_or(here);
        let mut folders = FOLDERS.iter().map(|(folder, _)| root.join(folder));
        let is_untrusted = self.workspace.is_none() && !is_home(root);
        folders.find(|folder| is_untrusted && folder.is_dir())
    }
}

impl Profiles {
    /// Reads all profiles of the session.
    ///
    /// # Errors
    /// If the host cannot answer. Broken profiles are skipped.
    pub async fn load_profiles(host: &Reporter) -> Result<Self> {
        let places = ProfilePlaces::for_session(host).await?;
        host.blocking(move |_| Self::read_all_profiles(&places)).await
    }

    /// Reads all profiles. The first with a name counts.
    pub fn read_all_profiles(places: &ProfilePlaces) -> Self {
        let mut profiles = Self { untrusted: places.find_untrusted_folder(), ..Self::default() };
        for (name, fields) in &places.config.profiles {
            let source = format!("{CONFIG_SOURCE}: profiles.{}", one_line(name));
            let mut checked = Profile::from_checked_fields(fields, ProfileFormat::Keys, Some(name));
            places.expand_variables(&mut checked);
            profiles.add_checked_profile(checked, source, places);
        }
        let mut search = FileSearch::default();
        let owners =
            [(&places.home, FolderOwner::User), (&places.workspace, FolderOwner::Workspace)];
        for (root, owner) in owners {
            let Some(root) = root else { continue };
            for (folder, syntaxes) in FOLDERS {
                let is_wanted = |path: &Path| {
                    ProfileSyntax::from_path(path).is_some_and(|it| syntaxes.contains(&it))
                };
                for file in search.find_files(&root.join(folder), owner, is_wanted) {
                    profiles.add_profile_file(&file, owner, places);
                }
            }
        }
        for (path, reason) in search.problems {
            profiles.skip_profile(path.display().to_string(), reason);
        }
        profiles
    }

    /// Finds a profile by name.
    ///
    /// # Errors
    /// `not_found`, with the names of the available profiles.
    pub fn find_profile(&self, name: &str) -> Result<&Profile> {
        self.by_name.get(name.trim()).ok_or_else(|| {
            let names: Vec<String> = self.by_name.keys().map(|name| format!("'{name}'")).collect();
            let text = format!(
                "Profile '{}' not found. Available: [{}]",
                visible_line(name, 80),
                names.join(", ")
            );
            let error = Error::new(ErrorKind::NotFound, text);
            match self.untrusted_folder_notice() {
                None => error,
                Some(note) => error.with_hint(note),
            }
        })
    }

    /// Lists all profiles by name.
    pub fn all_profiles(&self) -> impl Iterator<Item = &Profile> {
        self.by_name.values()
    }

    /// Says that profiles of an untrusted workspace are ignored.
    pub fn untrusted_folder_notice(&self) -> Option<String> {
        let folder = self.untrusted.as_ref()?;
        Some(format!(
            "`{}` is ignored, because the workspace is not trusted; run `jaato trust`",
            folder.display()
        ))
    }

    fn add_profile_file(&mut self, path: &Path, owner: FolderOwner, places: &ProfilePlaces) {
        let source = path.display().to_string();
        let Some(syntax) = ProfileSyntax::from_path(path) else { return };
        let text = match front_matter::read_text(path, FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(why) => return self.skip_profile(source, why),
        };
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let mut checked = syntax.check_text(&text, stem.as_deref());
        if syntax != ProfileSyntax::Markdown {
            places.expand_variables(&mut checked);
        }
        if let (FolderOwner::Workspace, Some(profile)) = (owner, &mut checked.profile)
            && std::mem::take(&mut profile.is_auto_approved)
        {
            checked.warnings.push("'auto_approved' is ignored in a workspace's profile".to_owned());
        }
        self.add_checked_profile(checked, source, places);
    }

    fn add_checked_profile(
        &mut self,
        checked: CheckedProfile,
        source: String,
        places: &ProfilePlaces,
    ) {
        let CheckedProfile { profile, errors, warnings } = checked;
        let Some(mut profile) = profile else {
            return self.skip_profile(source, errors.join("; "));
        };
        let count = self.by_name.len();
        match self.by_name.entry(profile.name.clone()) {
            Entry::Occupied(first) => {
                let reason =
                    format!("`{}` already has the name `{}`", first.get().source, profile.name);
                self.skip_profile(source, reason);
            }
            Entry::Vacant(_) if count >= PROFILES_MAX => {
                self.skip_profile(source, format!("there are more than {PROFILES_MAX} profiles"));
            }
            Entry::Vacant(vacant) => {
                let warnings = warnings.into_iter().chain(places.config.choose_model(&mut profile));
                let lines: Vec<String> = warnings.map(|line| format!("{source}: {line}")).collect();
                profile.source = source;
                vacant.insert(profile);
                self.warnings.extend(lines);
                self.warnings.truncate(NOTICES_MAX);
            }
        }
    }

    fn skip_profile(&mut self, source: String, reason: String) {
        if self.skipped.len() < NOTICES_MAX {
            let reason = visible_line(&reason, 500);
            self.skipped.push(SkippedProfile { source: one_line(&source), reason });
        }
    }
}

#[cfg(test)]
mod tests;

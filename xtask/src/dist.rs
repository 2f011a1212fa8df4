//! `dist`: builds the packages for machines without a toolchain: an archive, a Python wheel and an
//! npm package.
//!
//! Each contains the binary and the plugins. The archive also contains the header for plugins in C,
//! the sources against which authors build, and their documentation. The same inputs produce the
//! same bytes.

mod archive;
mod doc;
mod needed_libraries;
mod npm;
mod release;
pub mod sdk;
mod wheel;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use self::needed_libraries::GlibcVersion;
use self::release::ReleaseTree;
use crate::artifacts::{self, BuildSelection, PassthroughBuildObserver};
use crate::build_plugins::{HOST, check_plugin_files};
use crate::child;
use crate::gather::place_file;
use crate::workspace::CargoWorkspace;

/// The documents next to the programs, besides the licences.
const PAGES: [&str; 2] = ["README.md", "CHANGELOG.md"];

/// The header for plugins in C.
const HEADER: &str = "plugin-api/include/jaato_plugin.h";

/// The folder in which `jaato plugin new` looks for the sdk, relative to the parent of `bin`.
const SDK: &str = "share/jaato/sdk";

/// The API documentation for authors.
const DOC: &str = "doc";

/// The folder in which the binary looks for its plugins, relative to the same folder.
const PLUGINS: &str = "lib/jaato/plugins";

struct DistOptions {
    profile: String,
    /// An existing layout with `bin/` and `plugins/` to use instead of building.
    from: Option<PathBuf>,
    folder: Option<PathBuf>,
}

/// The programs for the archive.
struct ArchivePrograms {
    jaato: PathBuf,
    plugins: Vec<PathBuf>,
}

/// Runs the chore.
pub fn run_dist(words: Vec<OsString>) -> Result<ExitCode> {
    let options = parse_options(words)?;
    let workspace = CargoWorkspace::load()?;
    let version = workspace_version(&workspace)?;
    let name = format!("{HOST}-{version}-{}", own_target_triple(&workspace.root)?);
    let programs = match &options.from {
        Some(house) => find_built_programs(house)?,
        None => build_programs(&workspace, &options.profile)?,
    };
    let folder = options.folder.unwrap_or_else(|| workspace.target.join("dist"));
    fs::create_dir_all(&folder).with_context(|| format!("making `{}`", folder.display()))?;
    let workshop = ArchiveFolder::new(&folder, &name)?;
    let tree = workshop.0.join(&name);
    let glibc = lay_out_archive(&workspace, &programs, &tree)?;
    let stamp = build_time(&workspace.root)?;
    let mut files = vec![workshop.0.join(format!("{name}.tar.gz"))];
    archive::pack_archive(&workshop.0, &name, stamp, &files[0])?;
    if let Some(glibc) = glibc {
        let release = ReleaseTree { tree: &tree, version, glibc };
        files.push(wheel::pack_wheel(&release, &workshop.0)?);
        files.push(npm::pack_npm(release, &workshop.0, stamp)?);
    } else {
        eprintln!("no packages for pip and npm: those are for Linux with glibc");
    }
    for file in &files {
        move_finished_file(file, &folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Moves a finished file to its place, and prints its size and path.
fn move_finished_file(file: &Path, folder: &Path) -> Result<()> {
    let place = folder.join(file.file_name().context("a package has no name")?);
    let describe = || format!("writing `{}`", place.display());
    fs::rename(file, &place).with_context(describe)?;
    let bytes = fs::metadata(&place).with_context(describe)?.len();
    println!("{:>6}.{} MB  {}", bytes / 1_000_000, bytes / 100_000 % 10, place.display());
    Ok(())
}

fn parse_options(words: Vec<OsString>) -> Result<DistOptions, lexopt::Error> {
    use lexopt::prelude::*;

    let mut options = DistOptions { profile: "dist".to_owned(), from: None, folder: None };
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("profile") => options.profile = parser.value()?.string()?,
            Long("from") => options.from = Some(PathBuf::from(parser.value()?)),
            Long("dest") => options.folder = Some(PathBuf::from(parser.value()?)),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(options)
}

fn build_programs(workspace: &CargoWorkspace, profile: &str) -> Result<ArchivePrograms> {
    let mut names = vec![HOST];
    names.extend(workspace.plugin_packages().iter().map(|plugin| plugin.name.as_str()));
    let selection = BuildSelection::Packages(&names);
    let built =
        artifacts::build_artifacts(workspace, profile, selection, &mut PassthroughBuildObserver)?;
    let jaato = built.find_binary(HOST)?.to_owned();
    Ok(ArchivePrograms { jaato, plugins: built.plugin_libraries(workspace)? })
}

fn find_built_programs(house: &Path) -> Result<ArchivePrograms> {
    let jaato = house.join("bin").join(format!("{HOST}{}", std::env::consts::EXE_SUFFIX));
    if !jaato.is_file() {
        bail!("`{}` is missing; without `--from` it is built", jaato.display());
    }
    let folder = house.join("plugins");
    let entries =
        fs::read_dir(&folder).with_context(|| format!("reading `{}`", folder.display()))?;
    let mut plugins = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("reading `{}`", folder.display()))?.path();
        if artifacts::is_dynamic_library(&path) {
            plugins.push(path);
        }
    }
    plugins.sort();
    Ok(ArchivePrograms { jaato, plugins })
}

/// Creates the content of the archive, and checks that it works. Returns the oldest glibc that it
/// needs.
fn lay_out_archive(
    workspace: &CargoWorkspace,
    programs: &ArchivePrograms,
    tree: &Path,
) -> Result<Option<GlibcVersion>> {
    if programs.plugins.is_empty() {
        bail!("found no plugin to ship, and jaato needs at least one");
    }
    let mut placed = vec![copy_into_folder(&programs.jaato, &tree.join("bin"))?];
    for plugin in &programs.plugins {
        placed.push(copy_into_folder(plugin, &tree.join(PLUGINS))?);
    }
    let glibc = needed_libraries::check_needed_libraries(&placed)?;
    for page in PAGES.iter().chain(&release::LICENSES) {
        copy_into_folder(&workspace.root.join(page), tree)?;
    }
    copy_into_folder(&workspace.root.join(HEADER), &tree.join("include"))?;
    sdk::lay_out_sdk(workspace, &tree.join(SDK))?;
    doc::lay_out_docs(workspace, &tree.join(DOC))?;
    check_plugin_files(&placed[0], &placed[1..])?;
    Ok(glibc)
}

/// Copies a file into a folder, which it creates if necessary.
fn copy_into_folder(file: &Path, folder: &Path) -> Result<PathBuf> {
    if !file.is_file() {
        bail!("`{}` is missing, and the archive must have it", file.display());
    }
    let name = file.file_name().with_context(|| format!("`{}` is not a file", file.display()))?;
    fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
    let to = folder.join(name);
    place_file(file, &to)?;
    Ok(to)
}

fn workspace_version(workspace: &CargoWorkspace) -> Result<&str> {
    let host = workspace.packages.iter().find(|package| package.name == HOST);
    Ok(&host.with_context(|| format!("the workspace has no package `{HOST}`"))?.version)
}

/// Returns the target triple of this machine. Other targets are not built.
fn own_target_triple(root: &Path) -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    let said = child::command_stdout(command.arg("-vV").current_dir(root))?;
    let target = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(target.context("`rustc -vV` does not name its host")?.to_owned())
}

/// Returns the time of all files in the archive, in seconds since 1970: the builder's value, or the
/// commit's time, so that a later archive has later files.
fn build_time(root: &Path) -> Result<u64> {
    if let Ok(said) = std::env::var("SOURCE_DATE_EPOCH") {
        return said.parse().with_context(|| format!("`SOURCE_DATE_EPOCH` is `{said}`"));
    }
    if !root.join(".git").exists() {
        return Ok(0);
    }
    let mut git = Command::new("git");
    git.current_dir(root).args(["log", "-1", "--format=%ct"]);
    let said = child::command_stdout(&mut git)?;
    said.trim()
        .parse()
        .with_context(|| format!("git reported `{said}` as the time of the last commit"))
}

/// The folder in which the archive is made. Dropping it removes the folder.
struct ArchiveFolder(PathBuf);

impl ArchiveFolder {
    fn new(folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(format!(".{name}.tmp-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("making `{}`", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for ArchiveFolder {
    fn drop(&mut self) {
        // The remaining files are hidden, and their names show their origin.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_layout_gives_only_its_binary_and_plugins() {
        let house = tempfile::tempdir().unwrap();
        let error = find_built_programs(house.path()).err().unwrap().to_string();
        assert!(error.ends_with("is missing; without `--from` it is built"), "{error}");
        let write = |path: &str| {
            let path = house.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path
        };
        let jaato = write(&format!("bin/jaato{}", std::env::consts::EXE_SUFFIX));
        let library = |name: &str| {
            let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
            write(&format!("plugins/{prefix}{name}{suffix}"))
        };
        let plugins = [library("gc_a"), library("tool_b")];
        write("plugins/.gathered");
        let programs = find_built_programs(house.path()).unwrap();
        assert_eq!((programs.jaato, programs.plugins), (jaato, plugins.to_vec()));
    }

    #[test]
    fn missing_archive_file_is_named_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("LICENSE-MIT");
        let error = copy_into_folder(&missing, folder.path()).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("`{}` is missing, and the archive must have it", missing.display())
        );
    }
}

//! Opens a plugin file: loads it, checks its version of the boundary, and keeps it loaded forever.

use std::path::{Path, PathBuf};

use abi_stable::StableAbi;
use abi_stable::library::{AbiHeaderRef, LibHeader, LibraryError, RootModule, RootModuleError};
use abi_stable::sabi_types::VersionNumber;
use abi_stable::std_types::{RResult, RVec};
use jaato_plugin_api::abi::{FactoryBox, LogBox, PluginModuleRef};
use jaato_plugin_api::{EXPORT_NAME, EXPORT_NAME_C1, c1};
use jaato_plugin_engine::{CrashSuspect, run_plugin_code, running_plugin};
use jaato_types::{Description, Error, ErrorKind, Frame, Manifest, ManifestError};
use parking_lot::Mutex;

use crate::c_entry::{self, CFunctionTable};
use crate::error::{LoadError, LoadProblem};
use crate::layout::{self, BoundarySide};
use crate::manifest::read_manifest;

/// Opens plugin files.
pub struct PluginLibrary;

/// A loaded plugin file whose boundary matches this host's, or a plugin that is linked into this
/// program. Never unloaded.
#[derive(Clone)]
pub struct OpenedPlugin {
    path: PathBuf,
    manifest: Manifest,
    root: PluginExport,
}

/// A plugin's export.
#[derive(Clone, Copy)]
enum PluginExport {
    Rust(PluginModuleRef),
    C(CFunctionTable),
    Linked { describe: DescribeFunction, factory: FactoryFunction },
}

type DescribeFunction = extern "C" fn() -> RResult<RVec<u8>, RVec<u8>>;
type FactoryFunction = extern "C" fn(LogBox) -> RResult<FactoryBox, RVec<u8>>;

impl PluginLibrary {
    /// Opens a plugin file. Runs its constructors, so only trusted files may be opened in the
    /// host's process.
    ///
    /// Do not overwrite a file while it is loaded. To install a file, write a temporary file and
    /// rename it.
    ///
    /// # Errors
    /// A [`LoadError`] with the path, both sides of a mismatch and a hint. The process survives
    /// unless one of the file's own constructors ends it.
    pub fn open(path: &Path) -> Result<OpenedPlugin, LoadError> {
        let manifest = read_manifest(path)?;
        let fail = |problem| LoadError { path: path.to_owned(), problem };
        let root = match load_library(path).map_err(fail)? {
            LoadedExport::Rust(header) => PluginExport::Rust(plugin_root(header).map_err(fail)?),
            LoadedExport::C(entry) => PluginExport::C(entry),
        };
        Ok(OpenedPlugin { path: path.to_owned(), manifest, root })
    }
}

impl std::fmt::Debug for OpenedPlugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenedPlugin({})", self.manifest.name)
    }
}

impl OpenedPlugin {
    /// Returns a plugin that is linked into this program, from the three parts that its export
    /// macro makes. It has no file; its path is only a name for messages.
    ///
    /// # Errors
    /// If the manifest is not valid.
    pub fn from_linked(
        manifest: &[u8],
        describe: DescribeFunction,
        factory: FactoryFunction,
    ) -> Result<Self, ManifestError> {
        let manifest = Manifest::parse(manifest)?;
        let path = PathBuf::from(format!("linked/{}", manifest.name));
        Ok(Self { path, manifest, root: PluginExport::Linked { describe, factory } })
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the manifest that the file contained when it was opened.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the factory. Call it once per process. Runs the plugin's code on the calling thread.
    pub fn factory(&self, log: LogBox) -> RResult<FactoryBox, RVec<u8>> {
        match self.root {
            PluginExport::Rust(root) => root.factory()(log),
            PluginExport::Linked { factory, .. } => keep_panic_hook(|| factory(log)),
            PluginExport::C(entry) => c_entry::create_factory(entry, &self.manifest),
        }
    }
}

/// Asks an opened plugin for its description. Runs its code on this thread. Used by the describing
/// child, and for plugins that are linked into the program.
///
/// # Errors
/// The plugin's error, or `plugin_misbehaved` if the answer is not a description.
pub fn describe_plugin(opened: &OpenedPlugin) -> Result<Description, Error> {
    let answer = run_plugin_code(|| match opened.root {
        PluginExport::Rust(root) => root.describe()(),
        PluginExport::Linked { describe, .. } => describe(),
        PluginExport::C(entry) => entry.describe_plugin(&opened.manifest.name),
    });
    let answer = answer.map_err(|text| misbehaved_error(opened, text))?;
    let frame = match answer {
        RResult::ROk(frame) => frame,
        RResult::RErr(error) => return Err(read_error(opened, &error)),
    };
    Frame::read(&frame).map_err(|error| misbehaved_error(opened, error))
}

fn read_error(opened: &OpenedPlugin, frame: &RVec<u8>) -> Error {
    Frame::read(frame).unwrap_or_else(|error| misbehaved_error(opened, error))
}

fn misbehaved_error(opened: &OpenedPlugin, what: impl std::fmt::Display) -> Error {
    let text = format!("the plugin `{}` cannot be described: {what}", opened.manifest.name);
    Error::new(ErrorKind::PluginMisbehaved, text)
}

/// Gets the factory of a linked plugin. Its sdk replaces the panic hook, which the plugin shares
/// with the program. Panics outside of plugin code continue to reach the program's own hook.
fn keep_panic_hook<T>(get_factory: impl FnOnce() -> T) -> T {
    static IS_SET: Mutex<bool> = Mutex::new(false);
    // Held until the hook is complete, because two plugins may start at once.
    let mut is_set = IS_SET.lock();
    if *is_set {
        // All linked plugins share one sdk, which sets its hook only once.
        drop(is_set);
        return get_factory();
    }
    let of_program = std::panic::take_hook();
    let made = get_factory();
    let of_plugins = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| match running_plugin() {
        CrashSuspect::Running(_) => of_plugins(info),
        CrashSuspect::Perhaps(_) | CrashSuspect::Nobody => of_program(info),
    }));
    *is_set = true;
    made
}

/// The export of a loaded file.
enum LoadedExport {
    Rust(&'static LibHeader),
    C(CFunctionTable),
}

/// Loads the file and finds its export. The library stays loaded even if it is rejected: its code
/// may already run, and destructors of thread locals make unloading unsafe.
fn load_library(path: &Path) -> Result<LoadedExport, LoadProblem> {
    // SAFETY: runs the file's constructors. The caller of `PluginLibrary::open` trusts the file, or
    // is a child that may die from it.
    let library = unsafe { open_library(path) }
        .map_err(|error| LoadProblem::Linker(linker_message(&error)))?;
    let library = std::mem::ManuallyDrop::new(library);
    // SAFETY: a plugin's static with this name is a `LibHeader`, which begins with an `AbiHeader`.
    // The upgrade compares its magic before anything else is read.
    let header = unsafe { library.get::<AbiHeaderRef>(EXPORT_NAME) };
    let Ok(header) = header else { return load_c_table(&library).map(LoadedExport::C) };
    let upgraded = header.upgrade();
    upgraded
        .map(LoadedExport::Rust)
        .map_err(|error| LoadProblem::ForeignHeader(first_line(&error.to_string())))
}

/// Finds the function table of a plugin that is not written in Rust.
fn load_c_table(library: &libloading::Library) -> Result<CFunctionTable, LoadProblem> {
    // SAFETY: the symbol is taken for an address alone.
    let table = unsafe { library.get::<*const c1::Plugin>(EXPORT_NAME_C1) };
    let table = *table.map_err(|_| LoadProblem::NoSymbol)?;
    // SAFETY: a plugin's static with this name is a table that begins with its size. The library
    // stays loaded.
    unsafe { CFunctionTable::read_table(table) }.map_err(LoadProblem::CTable)
}

fn plugin_root(header: &'static LibHeader) -> Result<PluginModuleRef, LoadProblem> {
    check_header(header)?;
    // SAFETY: `check` compared the layouts in the direction that applies to these versions.
    let root = unsafe { header.init_root_module_with_unchecked_layout::<PluginModuleRef>() };
    root.map_err(|error| LoadProblem::Root(root_module_message(&error)))
}

unsafe fn open_library(path: &Path) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: the caller guarantees it.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

/// Returns the linker's own message. libloading keeps it in the source and itself only says "dlopen
/// failed".
fn linker_message(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

fn check_header(header: &'static LibHeader) -> Result<(), LoadProblem> {
    let api = header.version_strings();
    let has = api.version.to_string();
    let foreign = |text: String| LoadProblem::ForeignHeader(text);
    let theirs =
        VersionNumber::new(api).map_err(|error| foreign(first_line(&error.to_string())))?;
    let ours = VersionNumber::new(PluginModuleRef::VERSION_STRINGS)
        .map_err(|error| foreign(first_line(&error.to_string())))?;
    if theirs.major != ours.major {
        return Err(LoadProblem::Api { has });
    }
    let Some(layout) = header.layout() else {
        return Err(foreign("it carries no layout".to_owned()));
    };
    let version = |number: VersionNumber| (number.major, number.minor, number.patch);
    let plugin = BoundarySide { version: version(theirs), layout };
    let host =
        BoundarySide { version: version(ours), layout: <PluginModuleRef as StableAbi>::LAYOUT };
    layout::check_layout(plugin, host)
        .map_err(|mismatch| LoadProblem::Layout { api: has, mismatch })
}

fn root_module_message(error: &LibraryError) -> String {
    match error {
        LibraryError::RootModule { err: RootModuleError::Unwound, .. } => {
            "its constructor panicked".to_owned()
        }
        LibraryError::RootModule { err: RootModuleError::Returned(error), .. } => {
            first_line(&error.to_string())
        }
        other => first_line(&other.to_string()),
    }
}

fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

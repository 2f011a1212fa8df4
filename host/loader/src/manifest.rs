//! Reads the manifest embedded in a plugin file, without running any of its code.
//!
//! Only headers and the one section are read, which takes microseconds and exposes little to a
//! hostile file. Every problem with a file becomes one [`FileError`].

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use jaato_plugin_api::{API_VERSION, MANIFEST_SECTION, MANIFEST_SECTION_MACHO};
use jaato_types::{MANIFEST_BYTES_MAX, Manifest, PluginKind};
use object::read::{Object, ObjectSection, ReadCache, ReadRef};
use object::{Architecture, BinaryFormat, ObjectKind};

/// Largest plugin file, in bytes. A plugin that embeds a whole runtime has tens of megabytes.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Maximum bytes of headers, tables and names to read from a file. This includes the symbol tables,
/// which take megabytes in a plugin with debug information. A sparse file that claims a gigabyte of
/// them is rejected before memory is allocated.
const HEADER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Longest section name to read.
const NAME_BYTES_MAX: u64 = 4096;

/// Maximum number of sections to examine. A compiled library has a few dozen.
const SECTIONS_MAX: usize = 4096;

/// Why a file cannot be a plugin of this host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot use `{path}` as a plugin: {problem}")]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The problem.
    pub problem: FileProblem,
}

/// A problem with a plugin file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// It cannot be read. The text is the system's error.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// Not a regular file.
    #[error("it is {0}")]
    NotAFile(&'static str),
    /// More than [`FILE_BYTES_MAX`].
    #[error("it has {0} bytes, but the limit is {max}", max = FILE_BYTES_MAX)]
    TooLarge(u64),
    /// No header of a library.
    #[error("it is not a dynamic library")]
    NotALibrary,
    /// In another system's format.
    #[error("it is a {has} file, but this system needs {wants}")]
    WrongFormat {
        /// The file's format.
        has: &'static str,
        /// This system's format.
        wants: &'static str,
    },
    /// For another processor.
    #[error("it is built for {has}, but this machine is {wants}")]
    WrongArchitecture {
        /// The file's architecture.
        has: String,
        /// This machine's architecture.
        wants: String,
    },
    /// Another kind of file, such as an executable or an object file.
    #[error("it is {0}, not a dynamic library")]
    WrongKind(&'static str),
    /// The headers claim more data than the file has.
    #[error("it is truncated or damaged: {0}")]
    Truncated(String),
    /// A library without a plugin manifest.
    #[error("it is a library without a jaato manifest")]
    NoManifest,
    /// The manifest cannot be used.
    #[error("{0}")]
    BadManifest(String),
    /// Built against another major version of the boundary.
    #[error("it was built against plugin-api {has}, this host speaks {}", API_VERSION)]
    Api {
        /// The file's version.
        has: String,
    },
    /// This host knows none of its kinds.
    #[error("this host supports none of its kinds")]
    UnknownKind,
}

impl FileProblem {
    /// Returns what the user can do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::WrongFormat { .. } | Self::WrongArchitecture { .. } => {
                Some("build the plugin for this machine, or get the author's build for it".into())
            }
            Self::NoManifest => Some(
                "a plugin calls `export_plugin!` of jaato-plugin-sdk at its crate's root".into(),
            ),
            Self::Truncated(_) => Some("copy or build the file again".into()),
            Self::Api { has } => Some(if is_newer_than_host(has) {
                "update jaato".to_owned()
            } else {
                format!("build the plugin with jaato-plugin-sdk {API_VERSION}")
            }),
            Self::UnknownKind => Some("update jaato".into()),
            Self::Unreadable(_)
            | Self::NotAFile(_)
            | Self::TooLarge(_)
            | Self::NotALibrary
            | Self::WrongKind(_)
            | Self::BadManifest(_) => None,
        }
    }
}

/// Reads the manifest of a plugin file.
///
/// # Errors
/// A [`FileError`] with the file and its problem.
pub fn read_manifest(path: &Path) -> Result<Manifest, FileError> {
    read_file_manifest(path).map_err(|problem| FileError { path: path.to_owned(), problem })
}

fn read_file_manifest(path: &Path) -> Result<Manifest, FileProblem> {
    let metadata = std::fs::metadata(path).map_err(unreadable_problem)?;
    if metadata.is_dir() {
        return Err(FileProblem::NotAFile("a directory"));
    }
    if !metadata.is_file() {
        return Err(FileProblem::NotAFile("not a regular file"));
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(FileProblem::TooLarge(metadata.len()));
    }
    let file = File::open(path).map_err(unreadable_problem)?;
    let (cache, left) = (ReadCache::new(file), Cell::new(HEADER_BYTES_MAX));
    let object = object::File::parse(BoundedFile { cache: &cache, left: &left })
        .map_err(|_| object_error_problem(path))?;
    check_target(&object)?;
    let manifest = Manifest::parse(&manifest_section(&object)?)
        .map_err(|error| FileProblem::BadManifest(error.to_string()))?;
    check_api(&manifest)?;
    Ok(manifest)
}

/// A file with a limit on the bytes read from it.
#[derive(Clone, Copy)]
struct BoundedFile<'a> {
    cache: &'a ReadCache<File>,
    left: &'a Cell<u64>,
}

impl BoundedFile<'_> {
    fn reserve_bytes(self, bytes: u64) -> Result<(), ()> {
        let left = self.left.get().checked_sub(bytes).ok_or(())?;
        self.left.set(left);
        Ok(())
    }
}

impl<'a> ReadRef<'a> for BoundedFile<'a> {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.reserve_bytes(size)?;
        self.cache.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let end = range.end.min(range.start.saturating_add(NAME_BYTES_MAX));
        let name = self.cache.read_bytes_at_until(range.start..end, delimiter)?;
        self.reserve_bytes(name.len() as u64)?;
        Ok(name)
    }
}

/// Distinguishes a truncated library from a file that never was a library.
fn object_error_problem(path: &Path) -> FileProblem {
    let mut start = [0; 4];
    let read = File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut start));
    if read.is_ok() && start == *b"\x7fELF" {
        return FileProblem::Truncated("its headers are incomplete".into());
    }
    FileProblem::NotALibrary
}

fn check_target<'a>(object: &object::File<'a, BoundedFile<'a>>) -> Result<(), FileProblem> {
    let (has, wants) =
        (binary_format_name(object.format()), binary_format_name(BinaryFormat::native_object()));
    if has != wants {
        return Err(FileProblem::WrongFormat { has, wants });
    }
    let has = object.architecture();
    if !is_this_machine(has) || object.is_64() != cfg!(target_pointer_width = "64") {
        let has = format!("{has:?}").to_lowercase();
        return Err(FileProblem::WrongArchitecture { has, wants: std::env::consts::ARCH.into() });
    }
    match object.kind() {
        ObjectKind::Dynamic => Ok(()),
        ObjectKind::Executable => Err(FileProblem::WrongKind("an executable")),
        ObjectKind::Relocatable => Err(FileProblem::WrongKind("an object file")),
        ObjectKind::Core => Err(FileProblem::WrongKind("a core dump")),
        _ => Err(FileProblem::WrongKind("something else")),
    }
}

fn is_this_machine(architecture: Architecture) -> bool {
    match std::env::consts::ARCH {
        "x86_64" => architecture == Architecture::X86_64,
        "x86" => architecture == Architecture::I386,
        "aarch64" => architecture == Architecture::Aarch64,
        "arm" => architecture == Architecture::Arm,
        "riscv64" => architecture == Architecture::Riscv64,
        "powerpc64" => architecture == Architecture::PowerPc64,
        "s390x" => architecture == Architecture::S390x,
        "loongarch64" => architecture == Architecture::LoongArch64,
        // This list does not know the architecture, so the dynamic linker has to check it.
        _ => true,
    }
}

fn manifest_section<'a>(
    object: &object::File<'a, BoundedFile<'a>>,
) -> Result<Vec<u8>, FileProblem> {
    let found = object.sections().take(SECTIONS_MAX).find(|section| {
        section.name().is_ok_and(|name| match object.format() {
            BinaryFormat::MachO => name == MANIFEST_SECTION_MACHO,
            // PE keeps eight bytes of a section's name.
            BinaryFormat::Coff | BinaryFormat::Pe => name == &MANIFEST_SECTION[..8],
            _ => name == MANIFEST_SECTION,
        })
    });
    let Some(section) = found else {
        // The section table is at the end of the file, so a truncated file loses it.
        let has_sections = object.sections().next().is_some();
        return Err(if has_sections {
            FileProblem::NoManifest
        } else {
            FileProblem::Truncated("its section table is missing".into())
        });
    };
    if section.size() > MANIFEST_BYTES_MAX as u64 {
        let text = format!(
            "its manifest has {} bytes, but the limit is {MANIFEST_BYTES_MAX}",
            section.size()
        );
        return Err(FileProblem::BadManifest(text));
    }
    let data = section.data().map_err(|error| FileProblem::Truncated(error.to_string()))?;
    Ok(data.to_vec())
}

fn check_api(manifest: &Manifest) -> Result<(), FileProblem> {
    let ours = major_version(API_VERSION);
    if manifest.api_version().map(|(major, ..)| major) != ours {
        return Err(FileProblem::Api { has: manifest.api.clone() });
    }
    if manifest.kinds.iter().all(|kind| *kind == PluginKind::Unknown) {
        return Err(FileProblem::UnknownKind);
    }
    Ok(())
}

fn major_version(version: &str) -> Option<u64> {
    version.split('.').next()?.parse().ok()
}

fn is_newer_than_host(version: &str) -> bool {
    major_version(version) > major_version(API_VERSION)
}

fn binary_format_name(format: BinaryFormat) -> &'static str {
    match format {
        BinaryFormat::Elf => "ELF",
        BinaryFormat::MachO => "Mach-O",
        BinaryFormat::Coff | BinaryFormat::Pe => "PE",
        _ => "foreign",
    }
}

fn unreadable_problem(error: io::Error) -> FileProblem {
    FileProblem::Unreadable(error.to_string())
}

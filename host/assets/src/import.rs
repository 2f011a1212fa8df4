//! Imports the user's file: a declared one, or another model under a name.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use jaato_types::Asset;

use crate::check::{check_asset, check_model_name};
use crate::event::ProgressMeter;
use crate::lock::AssetLock;
use crate::remembered::DigestRecord;
use crate::store::{AssetPaths, VerifiedAsset, create_folder, remove_file};
use crate::{AssetError, AssetEvent, AssetReporter, AssetStore, digest, free_space, gguf};

/// The requirement on an imported file.
enum ImportRequirement<'a> {
    Digest(&'a str),
    Architecture(&'a str),
}

impl AssetStore {
    /// Imports a declared file, which must have the pinned bytes. Copies and hashes in one pass.
    /// Blocks until done. Replaces an existing file of this name.
    pub fn import_asset(
        &self,
        file: &Path,
        asset: &Asset,
        report: &AssetReporter,
    ) -> Result<VerifiedAsset, AssetError> {
        check_asset(asset)?;
        let bytes = check_importable_size(file)?;
        if bytes != asset.bytes {
            let (path, wants) = (file.to_owned(), asset.bytes);
            return Err(AssetError::WrongSize { path, wants, has: bytes });
        }
        create_folder(self.folder())?;
        let paths = self.asset_paths(asset);
        let lock = AssetLock::acquire(&paths.lock)?;
        let found = copy_into_store(
            file,
            &paths,
            bytes,
            &ImportRequirement::Digest(&asset.sha256),
            report,
        )?;
        // The import replaces a partial download.
        remove_file(&paths.part)?;
        remove_file(&paths.parts)?;
        drop(lock);
        Ok(found)
    }

    /// Imports another model with a supported architecture. `reserved` are names that are taken,
    /// such as the ids of declared files. Blocks until done.
    pub fn import_custom(
        &self,
        file: &Path,
        name: &str,
        architecture: &str,
        reserved: &[&str],
        report: &AssetReporter,
    ) -> Result<VerifiedAsset, AssetError> {
        check_model_name(name)?;
        let taken = |reason: String| Err(AssetError::BadName { name: name.to_owned(), reason });
        if reserved.contains(&name) {
            return taken("a model that ships with jaato has this name".to_owned());
        }
        let bytes = check_importable_size(file)?;
        let has = gguf::read_architecture(file)?;
        if has != architecture {
            let (path, wants) = (file.to_owned(), architecture.to_owned());
            let has = has.escape_debug().take(80).collect();
            return Err(AssetError::WrongArchitecture { path, wants, has });
        }
        create_folder(&self.custom_folder())?;
        let paths = self.custom_paths(name);
        let _lock = AssetLock::acquire(&paths.lock)?;
        if paths.file.exists() {
            return taken(format!("`{}` has this name; remove it first", paths.file.display()));
        }
        copy_into_store(file, &paths, bytes, &ImportRequirement::Architecture(architecture), report)
    }
}

/// Returns the size of a non-empty regular file. Checks before opening, because opening a pipe
/// would hang.
fn check_importable_size(file: &Path) -> Result<u64, AssetError> {
    let path = file.to_owned();
    let metadata = match fs::metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(AssetError::Missing { path });
        }
        Err(error) => return Err(AssetError::from_io("read", file, error)),
    };
    match metadata.len() {
        _ if !metadata.is_file() => Err(AssetError::NotAFile { path }),
        0 => Err(AssetError::Empty { path }),
        bytes => Ok(bytes),
    }
}

fn copy_into_store(
    from: &Path,
    paths: &AssetPaths,
    bytes: u64,
    wanted: &ImportRequirement<'_>,
    report: &AssetReporter,
) -> Result<VerifiedAsset, AssetError> {
    let result = try_copy_into_store(from, paths, bytes, wanted, report);
    if result.is_err() {
        // A partial copy is useless, and its source still exists.
        remove_file(&paths.import)?;
    }
    result
}

fn try_copy_into_store(
    from: &Path,
    paths: &AssetPaths,
    bytes: u64,
    wanted: &ImportRequirement<'_>,
    report: &AssetReporter,
) -> Result<VerifiedAsset, AssetError> {
    let folder = paths.import.parent().unwrap_or(Path::new("."));
    free_space::require_space(&paths.import, folder, bytes)?;
    let source = File::open(from).map_err(|error| AssetError::from_io("open", from, error))?;
    let on_write =
        |error| AssetError::from_io("write", &paths.import, error).with_needed_bytes(bytes);
    let mut options = OpenOptions::new();
    let target =
        jaato_places::open_own_file(&paths.import, options.write(true).create(true).truncate(true));
    let mut target = target.map_err(|error| on_write(error.into()))?;
    let mut meter = ProgressMeter::new(report, bytes);
    let never = AtomicBool::new(false);
    let to = (&mut target, paths.import.as_path());
    let has =
        digest::copy_and_digest((&source, from), to, &never, |done| meter.report_progress(done));
    let has = has.map_err(|error| error.with_needed_bytes(bytes))?;
    if let ImportRequirement::Digest(wants) = wanted
        && has != *wants
    {
        let (path, wants) = (from.to_owned(), (*wants).to_owned());
        return Err(AssetError::WrongDigest { path, wants, has });
    }
    target.sync_all().map_err(on_write)?;
    let metadata = target.metadata().map_err(on_write)?;
    let mut note = DigestRecord::new(has.clone(), &metadata);
    if let ImportRequirement::Architecture(architecture) = wanted {
        note.architecture = Some((*architecture).to_owned());
    }
    fs::rename(&paths.import, &paths.file)
        .map_err(|error| AssetError::from_io("rename", &paths.import, error))?;
    // A declared file can be hashed again. For any other model, the record is the only knowledge.
    let noted = note.write(&paths.file);
    let not_remembered = match (noted, wanted) {
        (Ok(()), _) => None,
        (Err(error), ImportRequirement::Digest(_)) => Some(error.to_string()),
        (Err(error), ImportRequirement::Architecture(_)) => {
            remove_file(&paths.file)?;
            return Err(error);
        }
    };
    report(AssetEvent::Finished { path: paths.file.clone() });
    Ok(VerifiedAsset { path: paths.file.clone(), sha256: has, not_remembered })
}

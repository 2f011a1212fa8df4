//! Packs a tree into an archive whose bytes depend only on the tree's content.
//!
//! The order, times, owners and modes are fixed instead of read, so two machines with the same
//! content create the same file.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

/// The folder of executable files. All other files are not executable.
const PROGRAMS: &str = "bin";

/// Packs `parent/name` into the file `to`, with `name` as the single top folder.
pub fn pack_archive(parent: &Path, name: &str, stamp: u64, to: &Path) -> Result<()> {
    let describe = || format!("packing `{}`", to.display());
    let file = BufWriter::new(File::create(to).with_context(describe)?);
    let gzip = GzEncoder::new(file, Compression::default());
    write_archive(parent, name, stamp, gzip)
        .and_then(|gzip| Ok(gzip.finish()?.flush()?))
        .with_context(describe)
}

fn write_archive<W: Write>(parent: &Path, name: &str, stamp: u64, to: W) -> Result<W> {
    let mut archive = tar::Builder::new(to);
    for path in list_tree(parent, Path::new(name))? {
        let from = parent.join(&path);
        let is_folder = from.is_dir();
        let mut header = tar::Header::new_gnu();
        header.set_mtime(stamp);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mode(archive_mode(&path, name, is_folder));
        if is_folder {
            header.set_entry_type(tar::EntryType::Directory);
            header.set_size(0);
            archive.append_data(&mut header, path.join(""), std::io::empty())?;
        } else {
            let mut file = File::open(&from)?;
            header.set_entry_type(tar::EntryType::Regular);
            header.set_size(file.metadata()?.len());
            archive.append_data(&mut header, &path, &mut file)?;
        }
    }
    Ok(archive.into_inner()?)
}

fn archive_mode(path: &Path, name: &str, is_folder: bool) -> u32 {
    let is_run = path.parent() == Some(&Path::new(name).join(PROGRAMS));
    if is_folder || is_run { 0o755 } else { 0o644 }
}

/// Returns everything below a folder and the folder itself, sorted by name, with each folder before
/// its content.
fn list_tree(parent: &Path, path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![path.to_owned()];
    if parent.join(path).is_dir() {
        let mut names = Vec::new();
        for entry in fs::read_dir(parent.join(path))? {
            names.push(entry?.file_name());
        }
        names.sort();
        for name in names {
            found.extend(list_tree(parent, &path.join(name))?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;
    use crate::child;

    /// Writes a tree. The order, the modes and the times differ between calls.
    fn pack_files(files: &[&str], mode: u32) -> Vec<u8> {
        let parent = tempfile::tempdir().unwrap();
        for file in files {
            let path = parent.path().join("a-1").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, file).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let archive = parent.path().join("a.tar.gz");
        pack_archive(parent.path(), "a-1", 1_000_000_000, &archive).unwrap();
        fs::read(archive).unwrap()
    }

    #[test]
    fn archive_bytes_do_not_depend_on_file_order_and_modes() {
        let one = pack_files(&["bin/a", "lib/b", "README"], 0o700);
        assert_eq!(one, pack_files(&["README", "lib/b", "bin/a"], 0o644));
        assert_ne!(one, pack_files(&["README", "lib/c", "bin/a"], 0o644));
    }

    #[test]
    fn archived_programs_are_executable_and_all_files_are_readable() {
        let parent = tempfile::tempdir().unwrap();
        let archive = parent.path().join("a.tar.gz");
        fs::write(&archive, pack_files(&["bin/a", "lib/bin/b"], 0o600)).unwrap();
        let mut list = Command::new("tar");
        list.arg("-tvzf").arg(&archive).env("TZ", "UTC").env("LC_ALL", "C");
        let listed = child::command_stdout(&mut list).unwrap();
        let modes: Vec<(&str, &str)> =
            listed.lines().map(|line| (&line[..10], line.rsplit(' ').next().unwrap())).collect();
        assert_eq!(
            modes,
            [
                ("drwxr-xr-x", "a-1/"),
                ("drwxr-xr-x", "a-1/bin/"),
                ("-rwxr-xr-x", "a-1/bin/a"),
                ("drwxr-xr-x", "a-1/lib/"),
                ("drwxr-xr-x", "a-1/lib/bin/"),
                ("-rw-r--r--", "a-1/lib/bin/b"),
            ],
            "{listed}"
        );
        assert_eq!(listed.matches("2001-09-09 01:46").count(), 6, "{listed}");
    }
}

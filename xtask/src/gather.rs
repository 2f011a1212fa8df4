//! Collects files in a folder that running programs may be using.
//!
//! A library that is mapped into a process must never be overwritten in place, because the process
//! would crash. Each file is therefore written under a temporary name and renamed. Invariant: only
//! files that an earlier call wrote, as recorded in its list, are removed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The list of collected files. The loader ignores names that start with a dot.
const LIST: &str = ".gathered";

/// The number of bytes to compare at a time.
const COMPARE_BYTES: usize = 64 * 1024;

/// Copies `files` into `folder`, and removes files of an earlier call that `files` does not
/// contain. Returns the paths in `folder`.
pub fn gather_plugins(files: &[PathBuf], folder: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
    remove_write_of_others(folder)?;
    let mut names = BTreeSet::new();
    let mut gathered = Vec::new();
    for file in files {
        let name =
            file.file_name().with_context(|| format!("`{}` is not a file", file.display()))?;
        let place = folder.join(name);
        place_file(file, &place)?;
        names.insert(name.to_string_lossy().into_owned());
        gathered.push(place);
    }
    remove_stale(folder, &names)?;
    let list: String = names.iter().map(|name| format!("{name}\n")).collect();
    let path = folder.join(LIST);
    fs::write(&path, list).with_context(|| format!("writing `{}`", path.display()))?;
    Ok(gathered)
}

/// Copies a file with a rename, unless the target has the same content. Only the owner may write to
/// the file, because otherwise the loader would not trust it.
pub fn place_file(from: &Path, to: &Path) -> Result<()> {
    let describe = || format!("copying `{}` to `{}`", from.display(), to.display());
    if !has_same_content(from, to).with_context(describe)? {
        let name = to.file_name().with_context(describe)?.to_string_lossy();
        let beside = to.with_file_name(format!(".{name}.tmp-{}", std::process::id()));
        let placed = fs::copy(from, &beside).and_then(|_| fs::rename(&beside, to));
        if placed.is_err() {
            // The error above is the one to report.
            let _ = fs::remove_file(&beside);
        }
        placed.with_context(describe)?;
    }
    remove_write_of_others(to)
}

fn remove_stale(folder: &Path, keep: &BTreeSet<String>) -> Result<()> {
    let path = folder.join(LIST);
    let list = match fs::read_to_string(&path) {
        Ok(list) => list,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("reading `{}`", path.display())),
    };
    for name in list.lines().filter(|name| !keep.contains(*name)) {
        // The list is an ordinary file: a name with a folder in it is not ours.
        if Path::new(name).file_name() != Some(name.as_ref()) {
            continue;
        }
        let stale = folder.join(name);
        match fs::remove_file(&stale) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("removing `{}`", stale.display()));
            }
        }
    }
    Ok(())
}

fn has_same_content(a: &Path, b: &Path) -> std::io::Result<bool> {
    let mut left = File::open(a)?;
    let mut right = match File::open(b) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if left.metadata()?.len() != right.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (vec![0; COMPARE_BYTES], vec![0; COMPARE_BYTES]);
    loop {
        let count = left.read(&mut one)?;
        if count == 0 {
            return Ok(true);
        }
        match right.read_exact(&mut other[..count]) {
            Ok(()) if one[..count] == other[..count] => {}
            Ok(()) => return Ok(false),
            // Another process shortened the file.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// Removes the write permission of everyone except the owner.
pub fn remove_write_of_others(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let describe = || format!("setting the mode of `{}`", path.display());
    let mode = fs::metadata(path).with_context(describe)?.permissions().mode();
    if mode & 0o022 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(mode & !0o022))
            .with_context(describe)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct GatherFixture {
        folder: tempfile::TempDir,
    }

    impl GatherFixture {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap() }
        }

        fn write_file(&self, name: &str, content: &str) -> PathBuf {
            let path = self.folder.path().join(name);
            fs::write(&path, content).unwrap();
            path
        }

        fn destination(&self) -> PathBuf {
            self.folder.path().join("plugins")
        }

        fn gathered_names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.destination()).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    #[test]
    fn changed_file_is_replaced_by_a_rename() {
        let house = GatherFixture::new();
        let a = house.write_file("a.so", "one");
        let gathered = gather_plugins(std::slice::from_ref(&a), &house.destination()).unwrap();
        assert_eq!(gathered, [house.destination().join("a.so")]);
        // A process that has the file open keeps reading the old content.
        let mut open = File::open(&gathered[0]).unwrap();
        house.write_file("a.so", "another");
        gather_plugins(&[a], &house.destination()).unwrap();
        let mut old = String::new();
        open.read_to_string(&mut old).unwrap();
        assert_eq!(old, "one");
        assert_eq!(fs::read_to_string(&gathered[0]).unwrap(), "another");
        assert_eq!(house.gathered_names(), [LIST, "a.so"]);
    }

    #[test]
    fn the_same_bytes_are_not_written_again() {
        let house = GatherFixture::new();
        let a = house.write_file("a.so", "one");
        let place =
            gather_plugins(std::slice::from_ref(&a), &house.destination()).unwrap().remove(0);
        let stamp = std::time::SystemTime::UNIX_EPOCH;
        File::options().write(true).open(&place).unwrap().set_modified(stamp).unwrap();
        gather_plugins(&[a], &house.destination()).unwrap();
        assert_eq!(fs::metadata(&place).unwrap().modified().unwrap(), stamp);
    }

    #[test]
    fn only_previously_gathered_files_are_removed() {
        let house = GatherFixture::new();
        let (a, b) = (house.write_file("a.so", "a"), house.write_file("b.so", "b"));
        gather_plugins(&[a.clone(), b], &house.destination()).unwrap();
        fs::write(house.destination().join("mine.so"), "put there by a user").unwrap();
        gather_plugins(&[a], &house.destination()).unwrap();
        assert_eq!(house.gathered_names(), [LIST, "a.so", "mine.so"]);
    }

    #[test]
    fn list_entries_outside_the_folder_are_not_removed() {
        let house = GatherFixture::new();
        let outside = house.write_file("outside.so", "precious");
        gather_plugins(&[], &house.destination()).unwrap();
        fs::write(house.destination().join(LIST), "../outside.so\n/etc/hostname\n..\n").unwrap();
        gather_plugins(&[], &house.destination()).unwrap();
        assert!(outside.exists());
    }

    #[test]
    fn only_the_owner_may_write_gathered_files() {
        use std::os::unix::fs::PermissionsExt;

        let house = GatherFixture::new();
        let a = house.write_file("a.so", "a");
        fs::set_permissions(&a, fs::Permissions::from_mode(0o777)).unwrap();
        fs::create_dir(house.destination()).unwrap();
        fs::set_permissions(house.destination(), fs::Permissions::from_mode(0o777)).unwrap();
        let place = gather_plugins(&[a], &house.destination()).unwrap().remove(0);
        for path in [place, house.destination()] {
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        }
    }

    #[test]
    fn missing_source_file_is_an_error_and_leaves_no_files() {
        let house = GatherFixture::new();
        let error =
            gather_plugins(&[house.folder.path().join("no.so")], &house.destination()).unwrap_err();
        assert!(error.to_string().starts_with("copying `"), "{error}");
        assert_eq!(house.gathered_names(), Vec::<String>::new());
    }
}

//! Finds the sources of the sdk for a new crate.

use std::fs;
use std::path::Path;

use crate::error::TemplateError;
use crate::shell::shell_word;

/// The crates that a plugin's own manifest names. Each must exist.
const NAMED: [&str; 2] = ["sdk", "testkit"];

/// The folder of the crates, in an sdk as in a checkout.
const CRATES: &str = "plugin-api";

/// The folder of the sdk in an installation, relative to the parent of the binary's folder.
const INSTALLED: &str = "share/jaato/sdk";

/// The sources of the sdk: found, complete, and with a path that a manifest can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkSources {
    crates: String,
    /// The line of the sdk's manifest with the oldest Rust that builds it, and with it a plugin.
    rust_version: Option<String>,
}

impl SdkSources {
    /// Finds the sdk of the executable's installation, otherwise the crates of the checkout in
    /// which it was built.
    ///
    /// # Errors
    /// If there is neither, because a binary alone has no sdk.
    pub fn for_executable(executable: &Path) -> Result<Self, TemplateError> {
        let missing = || TemplateError::NoSdk(executable.to_owned());
        let real = fs::canonicalize(executable).map_err(|_| missing())?;
        let folder = real.parent().ok_or_else(missing)?;
        let installed = folder.parent().map(|top| top.join(INSTALLED));
        let places = installed.into_iter().chain(folder.ancestors().map(Path::to_owned));
        let crates = places.map(|place| place.join(CRATES)).find(|place| is_complete(place));
        Self::new(&crates.ok_or_else(missing)?)
    }

    /// Uses the sdk that the user names: its folder, a checkout, an unpacked archive of jaato, or
    /// the crates' own folder.
    ///
    /// # Errors
    /// If it is none of these, or its path is not UTF-8.
    pub fn in_folder(folder: &Path) -> Result<Self, TemplateError> {
        let missing = || TemplateError::NotAnSdk(folder.to_owned());
        let real = fs::canonicalize(folder).map_err(|_| missing())?;
        let places = [real.join(CRATES), real.join(INSTALLED).join(CRATES), real];
        Self::new(places.iter().find(|place| is_complete(place)).ok_or_else(missing)?)
    }

    fn new(crates: &Path) -> Result<Self, TemplateError> {
        let text = crates.to_str().ok_or_else(|| TemplateError::SdkPath(crates.to_owned()))?;
        let manifest = fs::read_to_string(crates.join("sdk/Cargo.toml")).unwrap_or_default();
        let mut lines = manifest.lines().filter(|line| line.starts_with("rust-version = "));
        let rust_version = lines.next().map(str::to_owned);
        Ok(Self { crates: text.to_owned(), rust_version })
    }

    /// Returns the line of a manifest with the oldest Rust that builds the sdk.
    pub(crate) fn rust_version_line(&self) -> String {
        self.rust_version.as_ref().map(|line| format!("{line}\n")).unwrap_or_default()
    }

    /// Returns the folder of the C header, as a Makefile passes it to a shell.
    pub(crate) fn include_in_make(&self) -> String {
        let word = shell_word(&format!("{}/include", self.crates));
        word.replace('$', "$$").replace('#', "\\#")
    }

    /// Returns the folder that holds the crates.
    pub fn folder(&self) -> &Path {
        Path::new(&self.crates)
    }

    /// Returns the path to one of the crates as a TOML string.
    pub(crate) fn toml_path(&self, name: &str) -> String {
        let path = format!("{}/{name}", self.crates);
        let mut text = String::from("\"");
        for c in path.chars() {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
                c if c.is_control() => text.push_str(&format!("\\u{:04X}", u32::from(c))),
                c => text.push(c),
            }
        }
        text + "\""
    }

    /// Returns the lock file with the versions that the sources are tested with.
    pub(crate) fn lock_file(&self) -> Option<String> {
        fs::read_to_string(self.folder().parent()?.join("Cargo.lock")).ok()
    }
}

fn is_complete(crates: &Path) -> bool {
    NAMED.iter().all(|name| crates.join(name).join("Cargo.toml").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn new_installation() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    fn write_file(path: PathBuf) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        path
    }

    fn write_crates(folder: &Path) {
        for part in NAMED {
            write_file(folder.join(CRATES).join(part).join("Cargo.toml"));
        }
    }

    #[test]
    fn the_sdk_of_an_installation_wins_over_the_crates_of_a_checkout() {
        let (_folder, house) = new_installation();
        let jaato = write_file(house.join("target/dist/bin/jaato"));
        assert!(matches!(SdkSources::for_executable(&jaato), Err(TemplateError::NoSdk(_))));
        write_crates(&house);
        let checkout = SdkSources::in_folder(&house).unwrap();
        assert_eq!(checkout.folder(), house.join(CRATES));
        assert_eq!(SdkSources::for_executable(&jaato).unwrap(), checkout);
        let installed = house.join("target/dist").join(INSTALLED);
        write_file(installed.join(CRATES).join("sdk/Cargo.toml"));
        assert_eq!(SdkSources::for_executable(&jaato).unwrap(), checkout, "half an sdk is none");
        write_crates(&installed);
        assert_eq!(SdkSources::for_executable(&jaato).unwrap().folder(), installed.join(CRATES));
    }

    #[test]
    fn sdk_is_found_from_the_archive_the_sdk_or_the_crates_folder() {
        let (_folder, house) = new_installation();
        let sdk = house.join(INSTALLED);
        write_crates(&sdk);
        for named in [house.clone(), sdk.clone(), sdk.join(CRATES), sdk.join("plugin-api/../.")] {
            assert_eq!(
                SdkSources::in_folder(&named).unwrap().folder(),
                sdk.join(CRATES),
                "{}",
                named.display()
            );
        }
        for wrong in [house.join("share"), house.join("nowhere"), sdk.join("plugin-api/sdk")] {
            assert!(matches!(SdkSources::in_folder(&wrong), Err(TemplateError::NotAnSdk(_))));
        }
    }

    #[test]
    fn sdk_path_is_escaped_for_a_toml_manifest() {
        let crates = "/it's \"a\" \\ folder\n".to_owned();
        let sdk = SdkSources { crates, rust_version: None };
        assert_eq!(sdk.toml_path("sdk"), r#""/it's \"a\" \\ folder\u000A/sdk""#);
    }
}

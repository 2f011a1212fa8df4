//! Where the sources of the sdk lie that a new crate names.

use std::fs;
use std::path::Path;

use crate::error::TemplateError;

/// The crates that a plugin's own manifest names; each must be there.
const NAMED: [&str; 2] = ["sdk", "testkit"];

/// The folder of the crates, in an sdk as in a checkout.
const CRATES: &str = "plugin-api";

/// Where an installation has the sdk, below the folder above the binary's.
const INSTALLED: &str = "share/jaato/sdk";

/// The sources of the sdk: found, complete, and with a path that a manifest can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sdk {
    crates: String,
}

impl Sdk {
    /// Finds the sdk of the installation that an executable belongs to, else the crates of the
    /// checkout that it was built in.
    ///
    /// # Errors
    /// When there is neither: a binary alone has no sdk.
    pub fn beside(executable: &Path) -> Result<Self, TemplateError> {
        let missing = || TemplateError::NoSdk(executable.to_owned());
        let real = fs::canonicalize(executable).map_err(|_| missing())?;
        let folder = real.parent().ok_or_else(missing)?;
        let installed = folder.parent().map(|top| top.join(INSTALLED));
        let places = installed.into_iter().chain(folder.ancestors().map(Path::to_owned));
        let crates = places.map(|place| place.join(CRATES)).find(|place| is_complete(place));
        Self::new(&crates.ok_or_else(missing)?)
    }

    /// Takes the sdk that a person names: its folder, a checkout, an unpacked archive of jaato, or
    /// the crates' own folder.
    ///
    /// # Errors
    /// When it is none of these, or its path is no text.
    pub fn at(folder: &Path) -> Result<Self, TemplateError> {
        let missing = || TemplateError::NotAnSdk(folder.to_owned());
        let real = fs::canonicalize(folder).map_err(|_| missing())?;
        let places = [real.join(CRATES), real.join(INSTALLED).join(CRATES), real];
        Self::new(places.iter().find(|place| is_complete(place)).ok_or_else(missing)?)
    }

    fn new(crates: &Path) -> Result<Self, TemplateError> {
        let text = crates.to_str().ok_or_else(|| TemplateError::SdkPath(crates.to_owned()))?;
        Ok(Self { crates: text.to_owned() })
    }

    /// The folder that holds the crates.
    pub fn folder(&self) -> &Path {
        Path::new(&self.crates)
    }

    /// A path to one of the crates, as TOML has it.
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

    /// The versions that the sources are tested with.
    pub(crate) fn lock(&self) -> Option<String> {
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

    fn house() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    fn write(path: PathBuf) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        path
    }

    fn write_crates(folder: &Path) {
        for part in NAMED {
            write(folder.join(CRATES).join(part).join("Cargo.toml"));
        }
    }

    #[test]
    fn the_sdk_of_an_installation_wins_over_the_crates_of_a_checkout() {
        let (_folder, house) = house();
        let jaato = write(house.join("target/dist/bin/jaato"));
        assert!(matches!(Sdk::beside(&jaato), Err(TemplateError::NoSdk(_))));
        write_crates(&house);
        let checkout = Sdk::at(&house).unwrap();
        assert_eq!(checkout.folder(), house.join(CRATES));
        assert_eq!(Sdk::beside(&jaato).unwrap(), checkout);
        let installed = house.join("target/dist").join(INSTALLED);
        write(installed.join(CRATES).join("sdk/Cargo.toml"));
        assert_eq!(Sdk::beside(&jaato).unwrap(), checkout, "half an sdk is none");
        write_crates(&installed);
        assert_eq!(Sdk::beside(&jaato).unwrap().folder(), installed.join(CRATES));
    }

    #[test]
    fn a_person_may_name_the_archive_the_sdk_or_the_crates() {
        let (_folder, house) = house();
        let sdk = house.join(INSTALLED);
        write_crates(&sdk);
        for named in [house.clone(), sdk.clone(), sdk.join(CRATES), sdk.join("plugin-api/../.")] {
            assert_eq!(Sdk::at(&named).unwrap().folder(), sdk.join(CRATES), "{}", named.display());
        }
        for wrong in [house.join("share"), house.join("nowhere"), sdk.join("plugin-api/sdk")] {
            assert!(matches!(Sdk::at(&wrong), Err(TemplateError::NotAnSdk(_))));
        }
    }

    #[test]
    fn any_path_can_stand_in_a_manifest() {
        let sdk = Sdk { crates: "/it's \"a\" \\ folder\n".to_owned() };
        assert_eq!(sdk.toml_path("sdk"), r#""/it's \"a\" \\ folder\u000A/sdk""#);
    }
}

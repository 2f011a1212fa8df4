//! Finds compilers other than the workspace's, and builds a plugin with them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::library_name;

/// The oldest compiler that plugin authors may use.
pub const OLDEST: &str = "1.85";

/// A compiler newer than the workspace's.
pub const AFTER_THE_HOUSES: &str = "1.96";

/// A compiler.
pub struct Compiler {
    rustc: PathBuf,
    /// Its own libraries, if it is unpacked but not installed.
    libraries: Option<PathBuf>,
}

/// Finds the compiler of a release such as `1.85`: the one that `cargo xtask setup` unpacked, or
/// one of rustup's. The error explains how to get it.
pub fn find_release(release: &str) -> Result<Compiler, String> {
    let unpacked = target().join(format!("compilers/debian-{release}/usr"));
    let rustc = unpacked.join("bin/rustc");
    if rustc.is_file() {
        let libraries = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
        return Ok(Compiler { rustc, libraries: Some(unpacked.join(libraries)) });
    }
    let mut found = rustup_compilers().into_iter().filter(|compiler| compiler.is_release(release));
    found.next().ok_or_else(|| {
        format!(
            "no compiler {release}: `rustup toolchain install {release}`, or `CI=true cargo xtask setup` where \
             Debian has it"
        )
    })
}

/// Finds the newest compiler, if it is newer than the workspace's. The error explains how to get
/// one.
pub fn newest() -> Result<Compiler, String> {
    let house = Compiler {
        rustc: std::env::var_os("RUSTC").map_or("rustc".into(), PathBuf::from),
        libraries: None,
    };
    let (house, mut found) = (house.version_numbers(), rustup_compilers());
    found.extend(find_release(AFTER_THE_HOUSES));
    found.retain(|compiler| compiler.version_numbers() > house);
    found.into_iter().max_by_key(Compiler::version_numbers).ok_or_else(|| {
        let [major, minor, patch] = house;
        format!(
            "no compiler newer than {major}.{minor}.{patch}: `rustup toolchain install nightly`"
        )
    })
}

fn rustup_compilers() -> Vec<Compiler> {
    let rustup = |arguments: &[&str]| {
        let mut rustup = Command::new("rustup");
        rustup.args(arguments).env("RUSTUP_AUTO_INSTALL", "0");
        let output = rustup.output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    let list = rustup(&["toolchain", "list"]).unwrap_or_default();
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    let paths = names.filter_map(|name| rustup(&["which", "--toolchain", name, "rustc"]));
    paths.map(|path| Compiler { rustc: path.trim().into(), libraries: None }).collect()
}

impl Compiler {
    /// Returns its version line: `rustc 1.85.0 (4d91de4e4 2025-02-17)`.
    pub fn version(&self) -> String {
        let mut rustc = Command::new(&self.rustc);
        self.set_library_path(&mut rustc);
        let output = rustc.arg("--version").output().unwrap();
        assert!(output.status.success(), "`{}` does not start", self.rustc.display());
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Returns its plain version number: `1.85.0`, `1.97.0-nightly`.
    fn release_number(&self) -> String {
        self.version().split(' ').nth(1).unwrap().to_owned()
    }

    fn version_numbers(&self) -> [u32; 3] {
        let number = self.release_number();
        let plain = number.split('-').next().unwrap();
        let mut numbers = plain.split('.').map(|number| number.parse().unwrap());
        std::array::from_fn(|_| numbers.next().unwrap())
    }

    fn is_release(&self, release: &str) -> bool {
        self.release_number().starts_with(&format!("{release}."))
    }

    /// Builds a fixture in a target folder that only this compiler uses.
    pub fn build(&self, fixture: &str) -> PathBuf {
        let number = self.release_number();
        let folder = target().join(format!("fixtures-by-{number}"));
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/Cargo.toml");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "--offline", "--manifest-path"]);
        cargo.arg(manifest).arg("--target-dir").arg(&folder);
        cargo.args(["--package", &format!("fixture-{fixture}")]).env("RUSTC", &self.rustc);
        cargo.env_remove("RUSTC_BOOTSTRAP");
        self.set_library_path(&mut cargo);
        assert!(cargo.status().unwrap().success(), "{number} does not build `{fixture}`");
        folder.join("debug").join(library_name(&format!("fixture_{fixture}")))
    }

    fn set_library_path(&self, command: &mut Command) {
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
    }
}

fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

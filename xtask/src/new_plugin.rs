//! `new-plugin`: writes a plugin crate that builds against this checkout's sdk, outside of it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// Longest name: it is part of file names, and of a tool's name, for which providers have limits.
const NAME_BYTES_MAX: usize = 48;

/// What the templates call the plugin; valid Rust, so that they can be read as such.
const TEMPLATE_TYPE: &str = "TemplateName";
const TEMPLATE_NAME: &str = "template-name";
const TEMPLATE_SHORT: &str = "template-short";

/// What the plugin is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tool,
    Gc,
    Provider,
}

impl Kind {
    fn parse(word: &str) -> Result<Self, String> {
        match word {
            "tool" => Ok(Self::Tool),
            "gc" => Ok(Self::Gc),
            "provider" => Ok(Self::Provider),
            _ => Err(format!("there is no kind `{word}`; there are `tool`, `gc` and `provider`")),
        }
    }

    fn template(self) -> &'static str {
        match self {
            Self::Tool => include_str!("../templates/tool.rs"),
            Self::Gc => include_str!("../templates/gc.rs"),
            Self::Provider => include_str!("../templates/provider.rs"),
        }
    }
}

struct Options {
    name: String,
    folder: Option<PathBuf>,
    kind: Kind,
}

/// Runs the chore.
pub fn start(words: Vec<OsString>) -> Result<ExitCode> {
    let options = parse(words)?;
    let workspace = Workspace::load()?;
    let current = std::env::current_dir().context("finding the current folder")?;
    let folder = current.join(options.folder.unwrap_or_else(|| PathBuf::from(&options.name)));
    write_crate(&workspace.root, &folder, &options.name, options.kind)?;
    print!("{}", next_steps(&workspace.target, &folder, &options.name));
    Ok(ExitCode::SUCCESS)
}

fn parse(words: Vec<OsString>) -> Result<Options> {
    use lexopt::prelude::*;

    let (mut name, mut folder, mut kind) = (None, None, Kind::Tool);
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("path") => folder = Some(PathBuf::from(parser.value()?)),
            Long("kind") => {
                kind = parser.value()?.parse_with(Kind::parse)?;
            }
            Value(word) if name.is_none() => name = Some(word.string()?),
            _ => return Err(argument.unexpected().into()),
        }
    }
    let name = name.context("a plugin needs a name: `cargo xtask new-plugin moon-phase`")?;
    check_name(&name)?;
    Ok(Options { name, folder, kind })
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(is_plain)
        && !name.ends_with('-')
        && !name.contains("--")
        && name.len() <= NAME_BYTES_MAX;
    if !good {
        bail!(
            "`{name}` cannot be a plugin's name: small letters, digits and single `-`, \
             a letter first, at most {NAME_BYTES_MAX}"
        );
    }
    Ok(())
}

fn write_crate(root: &Path, folder: &Path, name: &str, kind: Kind) -> Result<()> {
    if folder.exists() {
        bail!("`{}` exists already; take it away or name another with `--path`", folder.display());
    }
    if folder.starts_with(root.join("plugins")) {
        bail!(
            "`{}` is for the plugins that jaato ships, which are members of its workspace; \
             name another folder with `--path`",
            root.join("plugins").display()
        );
    }
    let sdk = root.join("plugin-api").join("sdk");
    let put = |file: &str, text: &str| {
        let path = folder.join(file);
        fs::write(&path, text).with_context(|| format!("writing `{}`", path.display()))
    };
    let source = folder.join("src");
    fs::create_dir_all(&source).with_context(|| format!("making `{}`", source.display()))?;
    put("Cargo.toml", &manifest(name, &sdk))?;
    put("src/lib.rs", &filled(kind.template(), name))?;
    put(".gitignore", "target/\n")?;
    // The versions that this checkout is tested with, which are on this machine already.
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("reading `Cargo.lock`")?;
    put("Cargo.lock", &lock)
}

fn manifest(name: &str, sdk: &Path) -> String {
    // As a literal string of TOML, in which `\` stands for itself.
    let sdk = sdk.display();
    format!(
        "[package]\n\
         name = \"{name}\"\n\
         version = \"0.1.0\"\n\
         edition = \"2024\"\n\
         \n\
         [lib]\n\
         crate-type = [\"cdylib\", \"rlib\"]\n\
         \n\
         [dependencies]\n\
         jaato-plugin-sdk = {{ path = '{sdk}' }}\n\
         \n\
         [profile.release]\n\
         strip = \"symbols\"\n\
         \n\
         # A workspace of its own, wherever it lies.\n\
         [workspace]\n"
    )
}

fn filled(template: &str, name: &str) -> String {
    template
        .replace(TEMPLATE_TYPE, &type_name(name))
        .replace(TEMPLATE_NAME, name)
        .replace(TEMPLATE_SHORT, short_name(name))
}

/// The name without its kind, which is what people and models call it.
fn short_name(name: &str) -> &str {
    let short = ["tool-", "gc-", "provider-"].iter().find_map(|kind| name.strip_prefix(kind));
    short.filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase())).unwrap_or(name)
}

/// `tool-moon-phase` is `MoonPhase` in Rust, from which the tool's name `moon_phase` is made.
fn type_name(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    short_name(name).split('-').filter_map(capital).collect()
}

fn next_steps(target: &Path, folder: &Path, name: &str) -> String {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX, EXE_SUFFIX};

    let library = format!("{DLL_PREFIX}{}{DLL_SUFFIX}", name.replace('-', "_"));
    let jaato = target.join("release").join(format!("jaato{EXE_SUFFIX}"));
    let jaato = jaato.display();
    let place = user_plugins(&|variable| std::env::var_os(variable));
    let built = Path::new("target").join("release").join(library);
    format!(
        "written to `{folder}`; next:\n\
         \n  cd '{folder}'\
         \n  cargo build --release\
         \n  mkdir -p '{place}'\
         \n  install -m 644 '{built}' '{place}'\
         \n  '{jaato}' plugin list\n\
         \nThe list shows it as not trusted, with the command that trusts it. Then ask for it:\n\
         \n  '{jaato}' run \"…\"\n\
         \n(`{jaato}` is there after the first `cargo xtask run`.)\n",
        folder = folder.display(),
        place = place.display(),
        built = built.display(),
    )
}

/// The folder of the person's own plugins, as the host finds it.
fn user_plugins(variable: &dyn Fn(&str) -> Option<OsString>) -> PathBuf {
    let below = |name: &str| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || below("HOME").unwrap_or_else(|| PathBuf::from("~"));
    let data = match std::env::consts::OS {
        "windows" => below("APPDATA").unwrap_or_default().join("jaato").join("data"),
        "macos" => home().join("Library").join("Application Support").join("jaato"),
        _ => below("XDG_DATA_HOME")
            .unwrap_or_else(|| home().join(".local").join("share"))
            .join("jaato"),
    };
    data.join("plugins")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child;

    #[test]
    fn names_that_files_and_models_take_are_taken() {
        for good in ["moon-phase", "a", "tool-x2"] {
            check_name(good).unwrap();
        }
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        check_name(&long[1..]).unwrap();
        for bad in ["", "Moon", "moon_phase", "-a", "a-", "a--b", "2a", "a/b", "..", "é", &long] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_type_is_named_without_the_kind() {
        assert_eq!(type_name("tool-moon-phase"), "MoonPhase");
        assert_eq!(type_name("moon-phase"), "MoonPhase");
        assert_eq!(type_name("gc-2nd"), "Gc2nd");
        assert_eq!(type_name("tool"), "Tool");
    }

    #[test]
    fn words_that_make_no_sense_are_refused_with_what_would() {
        let error = |words: &[&str]| {
            parse(words.iter().map(OsString::from).collect()).err().unwrap().to_string()
        };
        assert!(error(&[]).starts_with("a plugin needs a name"));
        assert!(error(&["a", "--kind", "modul"]).contains("there is no kind `modul`"));
        assert!(error(&["a", "b"]).contains("b"));
    }

    #[test]
    fn nothing_that_is_there_is_overwritten_and_shipped_plugins_are_made_otherwise() {
        let root = tempfile::tempdir().unwrap();
        let error = write_crate(root.path(), root.path(), "a", Kind::Tool).unwrap_err();
        assert!(error.to_string().contains("exists already"), "{error}");
        let inside = root.path().join("plugins").join("a");
        let error = write_crate(root.path(), &inside, "a", Kind::Tool).unwrap_err();
        assert!(error.to_string().contains("members of its workspace"), "{error}");
        assert!(!inside.exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_next_steps_name_the_persons_own_folder() {
        let at = |data: Option<&str>| {
            user_plugins(&|name| match name {
                "HOME" => Some("/home/ann".into()),
                "XDG_DATA_HOME" => data.map(OsString::from),
                _ => None,
            })
        };
        assert_eq!(at(None), Path::new("/home/ann/.local/share/jaato/plugins"));
        assert_eq!(at(Some("")), Path::new("/home/ann/.local/share/jaato/plugins"));
        assert_eq!(at(Some("/d")), Path::new("/d/jaato/plugins"));
    }

    /// One crate a kind, all in one target folder that is kept from run to run.
    #[test]
    fn a_new_plugin_of_each_kind_builds_and_passes_its_tests_outside_the_workspace() {
        let workspace = Workspace::load().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let target = workspace.target.join("new-plugin-test");
        for (kind, name) in [
            (Kind::Tool, "tool-moon-phase"),
            (Kind::Gc, "gc-oldest"),
            (Kind::Provider, "provider-parrot"),
        ] {
            let folder = outside.path().join(name);
            write_crate(&workspace.root, &folder, name, kind).unwrap();
            let mut tests = child::cargo(&folder);
            tests.args(["test", "--offline", "--quiet", "--target-dir"]).arg(&target);
            tests.env("RUSTFLAGS", "-D warnings").env("CARGO_PROFILE_DEV_DEBUG", "0");
            // Taken, not passed on: whoever counts tests must not count these.
            let said = child::output(&mut tests).unwrap();
            assert!(said.contains("test result: ok. 1 passed"), "{said}");
            let mut format = child::cargo(&folder);
            child::run(format.args(["fmt", "--check"])).unwrap();
        }
    }
}

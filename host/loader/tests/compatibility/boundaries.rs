//! Creates boundaries of other versions from the current sources, and builds plugins and a host for
//! them.
//!
//! Each boundary is a copy of `plugin-api` with small patches to its text. One cargo run builds all
//! of them, with the versions from the workspace's lock file, in the folder of the other fixtures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{fixtures_target, library_name};

/// A boundary: its version, and its differences from the current one.
pub struct Boundary {
    pub name: &'static str,
    version: &'static str,
    patches: &'static [Patch],
    reach: Reach,
}

/// A file, a text that occurs in it once, and the replacement.
type Patch = (&'static str, &'static str, &'static str);

/// How much is built against a boundary.
#[derive(PartialEq)]
enum Reach {
    /// The parts that are checked when a plugin is opened.
    Load,
    /// A tool that runs, and a host.
    Call,
}

const ABI: &str = "plugin-api/src/abi.rs";
const ECHO: &str = "plugin-api/testkit/fixtures/echo/src";
const ID: &str = "    fn id(&self) -> u64;\n";
const ENDS: &str = "    /// Ends a stream. Unknown handles are ignored.\n";
const LAST: &str = "    #[sabi(last_prefix_field)]\n    fn close(&self, handle: u64);\n";

const ONE_MORE: &str = "    #[sabi(last_prefix_field)]\n    fn close(&self, handle: u64);\n    \
    fn doubled(&self, _number: u64) -> u64 { let none = 0; none }\n";

const fn other(name: &'static str, version: &'static str, patches: &'static [Patch]) -> Boundary {
    Boundary { name, version, patches, reach: Reach::Load }
}

/// Contexts and instances have one more method and the root module one more function. There is one
/// more kind, and a delta that this host does not know.
const NEWER: Boundary = Boundary {
    name: "newer",
    version: "1.1.0",
    patches: &[
        (ABI, LAST, ONE_MORE),
        (
            ABI,
            "    fn close(&self) -> FfiFuture<()>;\n",
            "    fn close(&self) -> FfiFuture<()>;\n    \
             fn age(&self) -> u64 { let age = 7; age }\n",
        ),
        (
            "plugin-api/sdk/src/context.rs",
            "    pub(crate) fn context(&self) -> &ContextBox {",
            "    /// Asks the host.\n    pub fn doubled(&self, number: u64) -> u64 {\n        \
             self.context.doubled(number)\n    }\n\n    \
             /// Emits what older hosts do not know.\n    \
             pub fn emit_json(&self, json: &serde_json::Value) -> bool {\n        \
             Frame::write(json).is_ok_and(|frame| self.context.emit(frame.into()))\n    }\n\n    \
             pub(crate) fn context(&self) -> &ContextBox {",
        ),
        (
            "plugin-api/sdk/src/instance.rs",
            "    fn close(&self) -> FfiFuture<()> {",
            "    fn age(&self) -> u64 {\n        9\n    }\n\n    \
             fn close(&self) -> FfiFuture<()> {",
        ),
        (
            ABI,
            "    pub factory: extern \"C\" fn(LogBox) -> RResult<FactoryBox, RVec<u8>>,\n",
            "    pub factory: extern \"C\" fn(LogBox) -> RResult<FactoryBox, RVec<u8>>,\n    \
             pub moon: extern \"C\" fn() -> u64,\n",
        ),
        (
            "plugin-api/sdk/src/export.rs",
            "private::abi::PluginModule { describe, factory }",
            "extern \"C\" fn moon() -> u64 { 5 }\n                \
             private::abi::PluginModule { describe, factory, moon }",
        ),
        (
            "host/loader/src/open.rs",
            "PluginExport::Rust(root) => root.factory()(log),",
            "PluginExport::Rust(root) => {\n                \
             println!(\"moon {:?}\", root.moon().map(|moon| moon()));\n                \
             root.factory()(log)\n            }",
        ),
        ("plugin-api/sdk/src/export.rs", "kinds: &[$($kind),*],", "kinds: &[$($kind,)* \"oven\"],"),
        (
            "plugin-api/engine/src/context/abi.rs",
            "    fn close(&self, handle: u64) {",
            "    fn doubled(&self, number: u64) -> u64 {\n        2 * number\n    }\n\n    \
             fn close(&self, handle: u64) {",
        ),
        (
            "plugin-api/engine/src/instance.rs",
            "        let tools = instance.tools().into_option();",
            "        println!(\"age {}\", instance.age());\n        \
             let tools = instance.tools().into_option();",
        ),
        (
            "plugin-api/testkit/fixtures/echo/src/lib.rs",
            "async fn call(self, _cx: &Cx) -> Result<Output> {\n        \
             Ok(Output::json(json!({ \"bytes\": self.text.len() })))",
            "async fn call(self, cx: &Cx) -> Result<Output> {\n        \
             let moon: Result<String> = cx.service(\"moon\", &()).await;\n        \
             let moon = moon.unwrap_or_else(|error| error.kind.name().to_owned());\n        \
             let doubled = cx.doubled(21);\n        \
             cx.emit_json(&json!({ \"delta\": \"smell\", \"of\": \"roses\" }));\n        \
             let bytes = self.text.len();\n        \
             Ok(Output::json(json!({ \"bytes\": bytes, \"doubled\": doubled, \"moon\": moon })))",
        ),
    ],
    reach: Reach::Call,
};

const BOUNDARIES: &[Boundary] = &[
    NEWER,
    other("grown", "1.0.0", &[(ABI, LAST, ONE_MORE)]),
    other("retyped", "1.0.1", &[(ABI, ID, "    fn id(&self) -> i64;\n")]),
    other("renamed", "1.0.2", &[(ABI, ID, "    fn number(&self) -> u64;\n")]),
    other("without-one", "1.0.3", &[(ABI, ID, "")]),
    other(
        "without-the-last",
        "1.0.4",
        &[
            (ABI, ENDS, ""),
            (ABI, LAST, ""),
            (ABI, "    fn next(&self,", "    #[sabi(last_prefix_field)]\n    fn next(&self,"),
        ],
    ),
    other("another-major", "2.0.0", &[]),
];

/// The built files.
pub struct BuiltBoundaries {
    target: PathBuf,
}

impl BuiltBoundaries {
    /// Returns the plugin for a boundary.
    pub fn plugin(&self, boundary: &str) -> PathBuf {
        self.target.join("debug").join(library_name(&format!("for_{}", boundary.replace('-', "_"))))
    }

    /// Returns the host of the newer boundary.
    pub fn newer_host(&self) -> PathBuf {
        self.target.join("debug").join(format!("newer-host{}", std::env::consts::EXE_SUFFIX))
    }
}

/// Builds everything, once per test binary.
pub fn built_boundaries() -> &'static BuiltBoundaries {
    static BUILT: OnceLock<BuiltBoundaries> = OnceLock::new();
    BUILT.get_or_init(|| {
        let root = workspace_root();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("boundaries");
        for boundary in BOUNDARIES {
            write_boundary(&root, &folder.join(boundary.name), boundary);
        }
        let plugins = folder.join("plugins");
        write_plugins(&root, &folder, &plugins);
        let target = fixtures_target();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "--manifest-path"]);
        cargo.env_remove("RUSTC_BOOTSTRAP");
        let status =
            cargo.arg(plugins.join("Cargo.toml")).arg("--target-dir").arg(&target).status();
        assert!(status.unwrap().success(), "plugins for other boundaries do not build");
        BuiltBoundaries { target }
    })
}

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Writes a folder with the workspace's own manifest at its root, so that packages inherit the same
/// values.
fn write_boundary(root: &Path, folder: &Path, boundary: &Boundary) {
    for (file, ..) in boundary.patches {
        assert!(root.join(file).is_file(), "`{file}` is to be patched and is not there");
    }
    let copied: &[&str] = match boundary.reach {
        Reach::Load => &["plugin-api"],
        Reach::Call => &["plugin-api", "plugin-api/engine", "plugin-api/sdk", "host/loader"],
    };
    write_if_changed(&folder.join("Cargo.toml"), &workspace_manifest(root, copied));
    for package in copied {
        let mut manifest = fs::read_to_string(root.join(package).join("Cargo.toml")).unwrap();
        if *package == "plugin-api" {
            let version = format!("version = \"{}\"", boundary.version);
            manifest = replace_once(&manifest, "version = \"1.0.0\"", &version);
        }
        write_if_changed(&folder.join(package).join("Cargo.toml"), &manifest);
        let sources = Path::new(package).join("src");
        copy_to(&root.join(&sources), &sources, &folder.join(&sources), boundary);
    }
}

/// Returns the workspace's manifest with other members. Crates that are not copied are used in
/// place.
fn workspace_manifest(root: &Path, copied: &[&str]) -> String {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let (head, rest) = manifest.split_once("members = [").unwrap();
    let (_, rest) = rest.split_once("]\ndefault-members = [\"host\"]\n").unwrap();
    let lines = rest.lines().map(|line| {
        let path = line.split_once("{ path = \"").and_then(|(_, rest)| rest.split_once('"'));
        match path.filter(|(path, _)| !copied.contains(path)) {
            Some((path, _)) => line.replace(path, &root.join(path).display().to_string()),
            None => line.to_owned(),
        }
    });
    format!("{head}members = {copied:?}\n{}\n", lines.collect::<Vec<_>>().join("\n"))
}

/// Writes the workspace of the plugins, with the lock file of the main workspace.
fn write_plugins(root: &Path, folder: &Path, plugins: &Path) {
    let names: Vec<_> = BOUNDARIES.iter().map(|boundary| format!("{:?}", boundary.name)).collect();
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"newer-host\", {}]\n\n\
         [profile.dev]\ndebug = \"none\"\n",
        names.join(", ")
    );
    write_if_changed(&plugins.join("Cargo.toml"), &manifest);
    let house = fs::read_to_string(root.join("Cargo.lock")).unwrap();
    if fs::read_to_string(plugins.join("house.lock")).ok().as_ref() != Some(&house) {
        write_if_changed(&plugins.join("Cargo.lock"), &house);
        write_if_changed(&plugins.join("house.lock"), &house);
    }
    for boundary in BOUNDARIES {
        let package = plugins.join(boundary.name);
        let of = folder.join(boundary.name);
        let needs = match boundary.reach {
            Reach::Load => format!("jaato-plugin-api = {{ path = {:?} }}", of.join("plugin-api")),
            Reach::Call => {
                format!("jaato-plugin-sdk = {{ path = {:?} }}", of.join("plugin-api/sdk"))
            }
        };
        let manifest = package_manifest(&format!("for-{}", boundary.name), &needs);
        let manifest = format!("{manifest}\n[lib]\ncrate-type = [\"cdylib\"]\n");
        write_if_changed(&package.join("Cargo.toml"), &manifest);
        match boundary.reach {
            Reach::Load => {
                write_if_changed(
                    &package.join("src/lib.rs"),
                    include_str!("sources/boundary_only.rs"),
                );
            }
            Reach::Call => {
                copy_to(&root.join(ECHO), Path::new(ECHO), &package.join("src"), boundary);
            }
        }
    }
    let loader = folder.join("newer/host/loader");
    let needs = format!(
        "jaato-loader = {{ path = {loader:?} }}\njaato-types = {{ path = {:?} }}\n\
         serde_json = \"1\"\n\
         tokio = {{ version = \"1\", default-features = false, features = [\"rt\", \"macros\"] }}",
        root.join("plugin-api/types")
    );
    write_if_changed(
        &plugins.join("newer-host/Cargo.toml"),
        &package_manifest("newer-host", &needs),
    );
    write_if_changed(&plugins.join("newer-host/src/main.rs"), include_str!("sources/host.rs"));
}

fn package_manifest(name: &str, needs: &str) -> String {
    format!(
        "[package]\nname = {name:?}\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\n{needs}\n"
    )
}

/// Copies a folder of sources. `part` is its name in the patches.
fn copy_to(from: &Path, part: &Path, to: &Path, boundary: &Boundary) {
    // A copy of an earlier state may contain files that no longer exist.
    for old in fs::read_dir(to).into_iter().flatten().map(Result::unwrap) {
        if !from.join(old.file_name()).exists() {
            let remove = if old.path().is_dir() { fs::remove_dir_all } else { fs::remove_file };
            remove(&old.path()).unwrap();
        }
    }
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (part, to) = (part.join(entry.file_name()), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy_to(&entry.path(), &part, &to, boundary);
            continue;
        }
        let mut text = fs::read_to_string(entry.path()).unwrap();
        for (_, before, after) in boundary.patches.iter().filter(|patch| Path::new(patch.0) == part)
        {
            text = replace_once(&text, before, after);
        }
        write_if_changed(&to, &text);
    }
}

fn replace_once(text: &str, before: &str, after: &str) -> String {
    assert!(text.contains(before), "`{before}` is not in the present sources");
    text.replacen(before, after, 1)
}

/// Writes a file only if it differs, so that cargo does not build it again.
fn write_if_changed(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

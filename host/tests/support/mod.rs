//! Installations for tests of the real binary, each with its own home and workspace.
#![allow(dead_code, unused_imports, unused_macros)]

pub mod answers;
mod cached_descriptions;
pub mod cli;
pub mod command;
pub mod elf;
pub mod embedded;
pub mod fixtures;
pub mod moon;
pub mod openai;
pub mod screen;
pub mod server;
pub mod shells;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

pub use command::{Command, Output, no_network};
pub use fixtures::{fixture, library_name};
pub use jaato_plugin_testkit::skip;

/// Creates the installation of a test, or prints why the test is skipped. A fixture can be shipped
/// or dropped in, or a function can furnish it.
#[macro_export]
macro_rules! house {
    () => {
        match $crate::support::House::new() {
            Some(house) => house,
            None => return,
        }
    };
    (ships $fixture:literal) => {{
        let house = $crate::house!();
        house.ship(&$crate::support::fixture($fixture));
        house
    }};
    (drops in $fixture:literal) => {{
        let house = $crate::house!();
        house.ship_to_user(&$crate::support::fixture($fixture));
        house
    }};
    ($furnish:ident) => {{
        let house = $crate::house!();
        $furnish(&house);
        house
    }};
}

/// A jaato installation for one test, with its own home and workspace.
pub struct House {
    root: TempDir,
    path: PathBuf,
}

impl House {
    /// Creates an installation whose only shipped plugin is `tool-environment`.
    pub fn new() -> Option<Self> {
        let house = Self::without_plugins()?;
        let environment =
            fixtures::test_house()?.join("plugins").join(library_name("tool_environment"));
        house.ship(&environment);
        Some(house)
    }

    /// Creates an installation without a plugin.
    pub fn without_plugins() -> Option<Self> {
        let test_house = fixtures::test_house()?;
        let root = tempfile::tempdir_in(installations_folder()).unwrap();
        let path = root.path().canonicalize().unwrap();
        let house = Self { root, path };
        // The repository marker keeps files around the tests out of the workspace.
        for folder in ["bin", "plugins", "home", "workspace/.git", "run", "given"] {
            fs::create_dir_all(house.path.join(folder)).unwrap();
        }
        // The modes must not depend on the umask of the user who runs the tests.
        set_mode(&house.path.join("plugins"), 0o755);
        set_mode(&house.path.join("run"), 0o700);
        // The binary is big and there are many tests, so use a hard link.
        let binary = test_house.join("bin/jaato");
        if fs::hard_link(&binary, house.binary()).is_err() {
            copy_file(&binary, &house.binary());
        }
        Some(house)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn binary(&self) -> PathBuf {
        self.path.join("bin/jaato")
    }

    pub fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    pub fn workspace(&self) -> PathBuf {
        self.path.join("workspace")
    }

    /// Returns the folder of shipped plugins.
    pub fn shipped_folder(&self) -> PathBuf {
        self.path.join("plugins")
    }

    /// Returns the folder that [`House::given`] fills and `--plugin-dir` may name.
    pub fn given_folder(&self) -> PathBuf {
        self.path.join("given")
    }

    /// Returns the folder of the user's own plugins.
    pub fn user_plugins(&self) -> PathBuf {
        self.home().join(".local/share/jaato/plugins")
    }

    pub fn cache_folder(&self) -> PathBuf {
        self.home().join(".cache/jaato")
    }

    pub fn descriptions_file(&self) -> PathBuf {
        self.cache_folder().join("descriptions.json")
    }

    /// Ships a plugin next to the binary, so that it is trusted like the binary.
    pub fn ship(&self, plugin: &Path) -> PathBuf {
        let copy = self.copy_to_shipped(plugin);
        cached_descriptions::add_description(self, plugin, &copy);
        copy
    }

    fn copy_to_shipped(&self, plugin: &Path) -> PathBuf {
        let place = self.shipped_folder().join(plugin.file_name().unwrap());
        copy_file(plugin, &place);
        place
    }

    /// Deletes the cached descriptions, so that the next jaato describes the plugins.
    pub fn forget_descriptions(&self) {
        fs::remove_dir_all(self.cache_folder().parent().unwrap()).unwrap();
    }

    /// Copies a plugin into the user's folder.
    pub fn ship_to_user(&self, plugin: &Path) -> PathBuf {
        let place = self.user_plugins().join(plugin.file_name().unwrap());
        self.write_bytes(&place, &fs::read(plugin).unwrap())
    }

    /// Writes a file into the given folder.
    pub fn write_given_file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        self.write_bytes(&self.given_folder().join(name), bytes)
    }

    /// Writes a file in the installation, with its parent folders.
    pub fn write(&self, place: &str, text: &str) -> PathBuf {
        self.write_bytes(&self.path.join(place), text.as_bytes())
    }

    fn write_bytes(&self, path: &Path, bytes: &[u8]) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        path.to_owned()
    }

    /// Writes the user's configuration.
    pub fn configure(&self, text: &str) -> PathBuf {
        self.write("home/.config/jaato/config.toml", text)
    }

    /// Builds a command line of this installation's jaato.
    pub fn command(&self, words: &[&str]) -> Command {
        Command::new(self, words)
    }

    /// Runs jaato without input and waits for its end.
    pub fn run(&self, words: &[&str]) -> Output {
        self.command(words).run()
    }

    /// Ships the scripted provider with these answers, one list of steps per request.
    pub fn set_script(&self, script: &serde_json::Value) {
        self.ship(&fixtures::built_library("provider_scripted"));
        let path = self.write("script.json", &script.to_string());
        self.configure(&format!(
            "model = \"scripted/test\"\n[plugins.provider-scripted]\nscript = \"{}\"\n",
            path.display()
        ));
    }

    /// Appends to the user's configuration.
    pub fn configure_more(&self, text: &str) {
        let path = self.home().join(".config/jaato/config.toml");
        let before = fs::read_to_string(&path).unwrap_or_default();
        self.configure(&format!("{before}{text}"));
    }

    /// Runs a plugin in a worker, whatever it asks for. `*` means all of them.
    pub fn isolate_plugin(&self, plugin: &str) {
        self.configure_more(&format!("[plugins]\nisolated = [{plugin:?}]\n"));
    }

    /// Replaces the parts that differ between installations: the path, digests, line numbers of
    /// sources.
    pub fn normalize_output(&self, text: &str) -> String {
        normalize_text(text, &self.path.display().to_string())
    }

    /// Lists the processes that run this installation's binary or mention the installation.
    pub fn processes(&self) -> Vec<String> {
        let needle = self.path.display().to_string();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let folder = entry.path();
            let exe = fs::read_link(folder.join("exe")).unwrap_or_default();
            let words = fs::read(folder.join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            // Programs started by a plugin have the installation's home among their variables.
            let variables = fs::read(folder.join("environ")).unwrap_or_default();
            let is_below = String::from_utf8_lossy(&variables).contains(&needle);
            if exe.starts_with(&self.path) || words.contains(&needle) || is_below {
                found.push(format!("{}: {words}", entry.file_name().display()));
            }
        }
        found
    }

    /// Waits until the log contains this text.
    #[track_caller]
    pub fn wait_for_log(&self, text: &str) {
        let bound = std::time::Instant::now() + command::DEADLINE;
        let log = self.cache_folder().join("jaato.log");
        while !fs::read_to_string(&log).unwrap_or_default().contains(text) {
            assert!(std::time::Instant::now() < bound, "{text:?} is not in the log");
            std::thread::sleep(command::LOOK_AGAIN);
        }
    }

    /// Waits until a file exists.
    #[track_caller]
    pub fn wait_for_file(&self, path: &Path) {
        let bound = std::time::Instant::now() + command::DEADLINE;
        while !path.exists() {
            assert!(std::time::Instant::now() < bound, "`{}` does not exist", path.display());
            std::thread::sleep(command::LOOK_AGAIN);
        }
    }

    /// Waits until a process of this installation runs with these words.
    #[track_caller]
    pub fn wait_for_process(&self, words: &str) {
        let bound = std::time::Instant::now() + command::DEADLINE;
        while !self.processes().iter().any(|process| process.trim_end().ends_with(words)) {
            assert!(std::time::Instant::now() < bound, "`{words}` does not run");
            std::thread::sleep(command::LOOK_AGAIN);
        }
    }

    /// Waits until no process of this installation runs with these words.
    #[track_caller]
    pub fn wait_for_no_process(&self, words: &str) {
        let bound = std::time::Instant::now() + command::LEFTOVERS_BOUND;
        while self.processes().iter().any(|process| process.trim_end().ends_with(words)) {
            assert!(std::time::Instant::now() < bound, "`{words}` is still running");
            std::thread::sleep(command::LOOK_AGAIN);
        }
    }

    /// Waits until all processes of this installation have ended. Fails if one outlives the time
    /// limit.
    #[track_caller]
    pub fn assert_no_processes(&self) {
        let bound = std::time::Instant::now() + command::LEFTOVERS_BOUND;
        loop {
            let found = self.processes();
            if found.is_empty() {
                return;
            }
            assert!(std::time::Instant::now() < bound, "still running: {found:#?}");
            std::thread::sleep(command::LOOK_AGAIN);
        }
    }
}

fn normalize_text(text: &str, root: &str) -> String {
    // Fixtures are compiled from outside their workspace's root, so panics contain their full
    // paths.
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let fixtures = format!("{}/", checkout.join("plugin-api/testkit/fixtures").display());
    clean_lines(&clean_digests(&text.replace(root, "$HOUSE").replace(&fixtures, "")))
}

/// Replaces the number after `.rs:` with `LINE`, because a fixture may grow.
fn clean_lines(text: &str) -> String {
    let mut pieces = text.split(".rs:");
    let mut clean = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
        let line = if rest.len() < piece.len() { "LINE" } else { "" };
        clean.push_str(&format!(".rs:{line}{rest}"));
    }
    clean
}

/// Replaces 64 hexadecimal digits with `DIGEST`.
fn clean_digests(text: &str) -> String {
    let mut clean = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        let end = rest[at..].find(|c: char| !c.is_ascii_hexdigit()).map_or(rest.len(), |e| at + e);
        clean.push_str(&rest[..at]);
        clean.push_str(if end - at == 64 { "DIGEST" } else { &rest[at..end] });
        rest = &rest[end..];
    }
    clean.push_str(rest);
    clean
}

/// Returns the folder for installations: inside `target`, or in the system's temporary folder if
/// `target` is closed to the other users as whom root runs some tests (a checkout in `/root`).
fn installations_folder() -> &'static Path {
    static PLACE: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    PLACE.get_or_init(|| {
        let below_target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let is_open = |folder: &Path| folder.metadata().is_ok_and(|way| way.mode() & 0o001 != 0);
        if is_root() && !below_target.ancestors().all(is_open) {
            return std::env::temp_dir();
        }
        below_target.to_owned()
    })
}

/// Copies a file. A hard link would change the metadata of the original, by which its description
/// is cached.
fn copy_file(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap_or_else(|error| panic!("copying {}: {error}", from.display()));
    set_mode(to, 0o755);
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A user that owns nothing, and that the system does not know.
pub const NOBODY: u32 = 65_123;

/// Returns true if that user can run the installation's binary. Only root can find out.
pub fn can_start_as_nobody(house: &House) -> bool {
    use std::os::unix::process::CommandExt as _;
    let mut command = std::process::Command::new(house.binary());
    command.arg("--version").uid(NOBODY).gid(NOBODY).stdout(std::process::Stdio::null());
    // The folder itself is closed to all but its owner.
    std::os::unix::fs::chown(house.path(), Some(NOBODY), Some(NOBODY)).is_ok()
        && command.status().is_ok_and(|status| status.success())
}

/// Ships a provider's plugin by the name of its library, with short waits.
pub fn ship_provider(house: &House, library: &str) {
    let plugins = fixtures::test_house().expect("the test house exists").join("plugins");
    house.ship(&plugins.join(library_name(library)));
    house.configure("[session]\nretry_base_ms = 1\n");
}

/// Returns a URL of this machine on which nothing listens. Its port was bound a moment ago.
pub fn closed_port() -> String {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// The variable that makes every plugin run in a worker.
pub const ISOLATED: (&str, &str) = ("JAATO_PLUGINS_ISOLATED", "*");

/// Returns true if every plugin runs in a worker in this pass, even trusted ones that do not ask
/// for it.
pub fn is_isolated() -> bool {
    std::env::var_os("JAATO_TEST_ISOLATED").is_some()
}

/// Returns true if the tests run as root, who can read every file.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

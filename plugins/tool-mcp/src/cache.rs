//! Caches the descriptions that servers gave when they were last up, so that their tools are
//! available at once. They are checked when the server is up again.
//!
//! The key of an entry is derived from how the server is started: its command, its arguments, and
//! the digests of the programs and scripts among them. For large files, size and modification time
//! replace the digest. Data files are left out, because the server may change them. Values of
//! variables are neither part of the key nor stored.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use jaato_plugin_sdk::serde::{Deserialize, Serialize};
use jaato_plugin_sdk::serde_json;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::config::files::replace_file;
use crate::config::{McpServerAddress, ServerEntry};
use crate::server_description::ServerDescription;

/// The maximum size of the cache file.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The maximum number of cached servers. The oldest entries are removed.
const KEPT_MAX: usize = 100;
/// The maximum number of arguments that are checked for files.
const FILES_MAX: usize = 8;
/// The maximum size of a file that is digested. Scripts are smaller, and digesting large programs
/// would take as long as starting the server.
const DIGESTED_BYTES_MAX: u64 = 256 * 1024;
/// Extensions of files that are code even if they are not executable.
const SCRIPTS: [&str; 9] = ["cjs", "jar", "js", "mjs", "php", "py", "pyz", "rb", "ts"];
const FILE_NAME: &str = "descriptions.json";

/// The cache file of server descriptions.
#[derive(Debug)]
pub struct McpServerCache {
    path: Option<PathBuf>,
    kept: Mutex<McpCacheContents>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
struct McpCacheContents {
    /// Records by fingerprint.
    servers: BTreeMap<String, CachedServer>,
    /// A counter of uses, to find the oldest records.
    last_use: u64,
}

/// The cached data of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
pub struct CachedServer {
    /// The server's description. `None` if it was started but never answered.
    pub described: Option<ServerDescription>,
    used: u64,
}

impl McpServerCache {
    /// Reads the cache from `folder`. Without a folder, the cache is empty. Blocks.
    pub fn load_cache(folder: Option<&Path>) -> Self {
        let path = folder.map(|folder| folder.join(FILE_NAME));
        let read = |path: &PathBuf| {
            let is_small = path.metadata().is_ok_and(|it| it.len() <= FILE_BYTES_MAX);
            let text = is_small.then(|| std::fs::read(path).ok()).flatten()?;
            serde_json::from_slice(&text).ok()
        };
        let kept = path.as_ref().and_then(read).unwrap_or_default();
        Self { path, kept: Mutex::new(kept) }
    }

    /// Returns the record of a server, or `None` if it was never started.
    pub fn get(&self, fingerprint: &str) -> Option<CachedServer> {
        self.kept.lock().servers.get(fingerprint).cloned()
    }

    /// Stores a server's description, or that it was started without one. Blocks on the file if
    /// anything changed.
    pub fn store_description(&self, fingerprint: &str, described: Option<ServerDescription>) {
        let mut kept = self.kept.lock();
        let known = kept.servers.get(fingerprint);
        if known.is_some_and(|known| described.is_none() || known.described == described) {
            return;
        }
        kept.last_use += 1;
        let used = kept.last_use;
        kept.servers.insert(fingerprint.to_owned(), CachedServer { described, used });
        while kept.servers.len() > KEPT_MAX {
            let oldest = kept.servers.iter().min_by_key(|(_, record)| record.used);
            let Some(oldest) = oldest.map(|(fingerprint, _)| fingerprint.clone()) else { break };
            kept.servers.remove(&oldest);
        }
        let text = serde_json::to_vec(&*kept).unwrap_or_default();
        drop(kept);
        if let Some(path) = &self.path {
            // This is only a cache: if the write fails, the next process asks the server again.
            let _ = replace_file(path, &text);
        }
    }
}

/// Returns a key for how a server is started. Two servers that start the same way have the same
/// key. Reads files.
pub fn fingerprint(entry: &ServerEntry) -> String {
    let mut digest = Sha256::new();
    let mut add = |text: &str| {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text.as_bytes());
    };
    add(&entry.name);
    match &entry.reach {
        McpServerAddress::Http(http) => add(&http.url),
        McpServerAddress::Stdio(stdio) => {
            add(&stdio.command);
            stdio.args.iter().for_each(|arg| add(arg));
            stdio.env.keys().for_each(|name| add(name));
            let program = find_executable(&stdio.command);
            let folder = PathBuf::from(stdio.cwd.as_deref().unwrap_or_default());
            // `join` keeps an absolute path as it is.
            let named = stdio.args.iter().map(|arg| folder.join(arg));
            for file in program.into_iter().chain(named).take(FILES_MAX) {
                add(&executable_state(&file));
            }
        }
    }
    digest.finalize().iter().take(16).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns a text that changes when a program or script changes, or `None` for any other file.
fn executable_state(path: &Path) -> String {
    let is_script =
        path.extension().and_then(|it| it.to_str()).is_some_and(|it| SCRIPTS.contains(&it));
    let is_code = |facts: &Metadata| {
        facts.is_file() && (is_script || facts.permissions().mode() & 0o111 != 0)
    };
    let Some(facts) = path.metadata().ok().filter(is_code) else {
        return String::new();
    };
    if facts.len() <= DIGESTED_BYTES_MAX
        && let Ok(bytes) = std::fs::read(path)
    {
        return format!("{:?}", Sha256::digest(&bytes));
    }
    let changed = facts.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
    format!("{} {:?}", facts.len(), changed.unwrap_or_default())
}

/// Finds a program in the search path, as a shell does.
fn find_executable(command: &str) -> Option<PathBuf> {
    if command.contains('/') {
        return Some(PathBuf::from(command));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(command)).find(|it| it.is_file())
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;
    use crate::config::{McpConfigOrigin, entry};

    fn titled_description(title: &str) -> Option<ServerDescription> {
        Some(ServerDescription { title: title.to_owned(), ..ServerDescription::default() })
    }

    #[test]
    fn cached_descriptions_are_available_in_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let cache = McpServerCache::load_cache(Some(folder.path()));
        assert_eq!(cache.get("a"), None);
        cache.store_description("a", None);
        cache.store_description("b", titled_description("b"));
        // A later failed start does not remove the description.
        cache.store_description("b", None);
        let cache = McpServerCache::load_cache(Some(folder.path()));
        assert_eq!(cache.get("a").unwrap().described, None);
        assert_eq!(cache.get("b").unwrap().described, titled_description("b"));
        std::fs::write(folder.path().join(FILE_NAME), "{ not json").unwrap();
        assert_eq!(McpServerCache::load_cache(Some(folder.path())).get("b"), None);
    }

    #[test]
    fn oldest_cached_descriptions_are_removed() {
        let cache = McpServerCache::load_cache(None);
        for number in 0..=KEPT_MAX {
            cache.store_description(&number.to_string(), titled_description("x"));
        }
        assert!(cache.get("0").is_none() && cache.get("1").is_some());
    }

    #[test]
    fn changed_program_file_or_argument_changes_the_cache_key() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("server.py");
        std::fs::write(&script, "one").unwrap();
        let of = |args: &[&str]| {
            let value = json!({ "command": script, "args": args, "env": { "TOKEN": "x" } });
            let entry = entry::parse_server_entry(
                "a",
                &value,
                McpConfigOrigin::Home,
                &|_| None,
                &mut Vec::new(),
            );
            fingerprint(&entry.unwrap())
        };
        let (first, other) = (of(&["a"]), of(&["b"]));
        assert_ne!(first, other);
        assert_eq!(first, of(&["a"]));
        // Same size, and the modification time may be the same.
        std::fs::write(&script, "two").unwrap();
        assert_ne!(first, of(&["a"]));
        std::fs::write(&script, "one").unwrap();
        assert_eq!(first, of(&["a"]));
        let large = "x".repeat(DIGESTED_BYTES_MAX as usize + 1);
        std::fs::write(&script, &large).unwrap();
        let before = of(&["a"]);
        std::fs::write(&script, large + "y").unwrap();
        assert_ne!(before, of(&["a"]));
        // The server's own data does not change its key.
        let data = folder.path().join("moon.db");
        let data = data.to_str().unwrap();
        let before = of(&[data]);
        std::fs::write(data, "x").unwrap();
        assert_eq!(before, of(&[data]));
    }
}

//! The items of the full tier, which take long and rarely break, and when each of them is due.
//!
//! Each item names the files on which it depends. A run records in [`RECORD`] the digest of the
//! files of each item that passed. Without `--full`, an item runs only if its files differ from the
//! record, and while the run has time for it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::child;

/// The record below the root, with the name and the digest of each item on a line.
pub const RECORD: &str = "xtask/full-tier.txt";

/// One part of the full tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TierItem {
    /// One word.
    pub name: &'static str,
    /// About how many minutes it adds to a run on two cores.
    minutes: u32,
    /// A one-line description of the test.
    pub about: &'static str,
    /// The files and folders below the root on which it depends. Folders end with `/`.
    files: &'static [&'static str],
    /// Parts of the names of this item's tests. The names of other tests contain none of them.
    pub tests: &'static [&'static str],
}

/// Inputs of all items. Of [`LOCK`], only the packages of others count: each item names the folders
/// of our packages on which it depends.
const ALWAYS: &[&str] = &[LOCK, "rust-toolchain.toml"];

/// The versions of all packages.
const LOCK: &str = "Cargo.lock";

/// The items, by name.
pub const ITEMS: &[TierItem] = &[
    TierItem {
        name: "compilers",
        minutes: 4,
        about: "plugins built by the oldest and the newest compiler",
        files: &["plugin-api/", "host/loader/", "host/worker/"],
        tests: &[
            "_by_the_oldest_supported_compiler_",
            "_by_a_compiler_newer_than_the_host_compiler_",
            "_by_the_newest_available_compiler_",
        ],
    },
    TierItem {
        name: "embedded",
        minutes: 25,
        about: "whole tasks in small repositories, done by the default model where its weights are",
        files: &[
            "plugins/provider-local/",
            "plugins/tool-cli/src/",
            "plugins/tool-file-edit/src/tools/",
            "host/runtime/src/core_tools.rs",
            "host/session/src/prompt.rs",
            "host/tests/whole_tasks.rs",
            "host/tests/whole_tasks.json",
        ],
        tests: &["whole_tasks_"],
    },
    TierItem {
        name: "embedders",
        minutes: 6,
        about: "the example programs that embed the library, built and tested outside of the workspace",
        files: &[
            "docs/examples/cli-vs-mcp/",
            "docs/examples/embed-axum/",
            "docs/examples/embed-chat/",
            "docs/examples/embed-test/",
            "docs/examples/modlog/",
            "host/library/",
            "host/runtime/",
            "host/tests/binary/embedders.rs",
        ],
        tests: &["example_embedders_", "embedders::"],
    },
    TierItem {
        name: "fuzz",
        minutes: 1,
        about: "random bytes for manifests, frames, the worker's protocol and the C entry, five times as many",
        files: &[
            "plugin-api/src/",
            "plugin-api/types/",
            "plugin-api/sdk/",
            "host/loader/",
            "host/worker/",
        ],
        tests: &[],
    },
    TierItem {
        name: "guide",
        minutes: 8,
        about: "every step and block of the authors' guide and its pages, the examples, also with a key more in each type",
        files: &[
            "docs/plugin-authors.md",
            "docs/authors/",
            "docs/examples/",
            "plugin-api/sdk/",
            "plugin-api/sdk-provider/",
            "plugin-api/sdk-gc/",
            "plugin-api/sdk-environment/",
            "plugin-api/macros/",
            "plugin-api/types/",
            "plugin-api/engine/",
            "plugin-api/testkit/src/",
            "host/template/",
            "host/src/plugin.rs",
            "xtask/src/dist/",
            "xtask/src/dist.rs",
            "xtask/tests/",
            "host/tests/authors/",
        ],
        tests: &[
            "every_step_of_the_guide_",
            "every_other_block_of_rust_is_a_plugin_",
            "whole_plugins_build_unchanged_",
            "authors::",
        ],
    },
    TierItem {
        name: "isolated",
        minutes: 6,
        about: "the tests of the binary once more, with every plugin in a worker",
        files: &["host/instances/", "host/loader/", "host/worker/", "plugin-api/src/"],
        tests: &[],
    },
    TierItem {
        name: "mcp-servers",
        minutes: 9,
        about: "MCP servers that others wrote, each in a recorded session, and one in the harness",
        files: &[
            "plugins/tool-mcp/",
            "docs/examples/cli-vs-mcp/",
            "host/tests/binary/mcp_servers.rs",
            "xtask/src/setup/outside.rs",
        ],
        tests: &["real_mcp_server_"],
    },
    TierItem {
        name: "mcp-suite",
        minutes: 2,
        about: "the conformance suite of the Model Context Protocol against the binary, both eras",
        files: &[
            "plugins/tool-mcp/",
            "host/tests/binary/mcp_suite.rs",
            "xtask/src/setup/outside.rs",
        ],
        tests: &["the_conformance_suite_of_the_protocol_"],
    },
    TierItem {
        name: "miri",
        minutes: 3,
        about: "what crosses the boundary, under Miri",
        files: &["plugin-api/src/", "plugin-api/tests/", "plugin-api/Cargo.toml"],
        tests: &[],
    },
    TierItem {
        name: "outside",
        minutes: 5,
        about: "vendors' client libraries against our fakes; a mock server and llama.cpp's before every provider; the validator of skills",
        files: &[
            "plugins/front-matter/",
            "plugins/provider-anthropic/",
            "plugins/provider-google-genai/",
            "plugins/provider-ollama/",
            "plugins/provider-openai/",
            "plugins/tool-prompts/",
            "plugin-api/sdk-provider/",
            "plugin-api/vendors/",
            "host/tests/binary/every_provider/",
            "xtask/src/setup/outside.rs",
        ],
        tests: &[
            "every_provider::clients::",
            "every_provider::inference_server::",
            "every_provider::outside_server::",
            "skill_format_validator_and_jaato_",
        ],
    },
    TierItem {
        name: "packages",
        minutes: 8,
        about: "the archive, the wheel and the npm package of `dist`, each installed in a container",
        files: &[
            "host/loader/src/find.rs",
            "host/places/",
            "xtask/src/dist/",
            "xtask/src/dist.rs",
            "xtask/tests/archive/containers.rs",
            "xtask/tests/archive/image.rs",
            "xtask/tests/archive/installed.rs",
        ],
        tests: &["archive::containers::"],
    },
    TierItem {
        name: "reports",
        minutes: 3,
        about: "faults that people reported of agent hosts, a script each",
        files: &[
            "host/src/",
            "host/session/",
            "host/services/",
            "host/http/",
            "host/policy/",
            "host/terminals/",
            "host/tests/reports/",
            "host/tests/binary/reports.rs",
            "plugin-api/sdk-environment/",
            "plugin-api/sdk-gc/",
            "plugin-api/sdk-provider/",
            "plugins/",
        ],
        tests: &["reported_faults_do_not_occur"],
    },
    TierItem {
        name: "templates",
        minutes: 3,
        about: "new plugins of each kind build and pass their tests",
        files: &[
            "host/template/",
            "plugin-api/sdk/",
            "plugin-api/sdk-provider/",
            "plugin-api/sdk-gc/",
            "plugin-api/sdk-environment/",
            "plugin-api/macros/",
            "plugin-api/types/",
            "plugin-api/engine/",
            "plugin-api/testkit/src/",
        ],
        tests: &["a_new_plugin_of_each_kind_builds_"],
    },
];

impl TierItem {
    /// Returns the item with this name.
    ///
    /// # Errors
    /// If there is none. The error lists the names.
    pub fn find_item(name: &str) -> Result<&'static Self, String> {
        let names = || ITEMS.iter().map(|item| item.name).collect::<Vec<_>>().join(", ");
        let found = ITEMS.iter().find(|item| item.name == name);
        found.ok_or_else(|| format!("no item `{name}`; choose from: {}", names()))
    }

    fn item_digest(&self, files: &BTreeMap<String, String>) -> Result<String> {
        let mut list = String::new();
        for (path, digest) in files {
            let depends =
                |name: &&&str| *name == path || (name.ends_with('/') && path.starts_with(**name));
            if ALWAYS.iter().chain(self.files).any(|name| depends(&name)) {
                list.push_str(&format!("{digest} {path}\n"));
            }
        }
        text_digest(&list)
    }
}

/// The most minutes of due items in a run that does not ask for them. Items that do not fit stay
/// due, so that each run ends in a bounded time.
const MINUTES_MAX: u32 = 10;

/// The items that this run includes, and those that it skips.
#[derive(Debug, Default)]
pub struct SelectedTier {
    due: Vec<&'static TierItem>,
    /// Items that are due and do not fit.
    put_off: Vec<&'static TierItem>,
    left_out: Vec<&'static TierItem>,
    digests: BTreeMap<&'static str, String>,
}

impl SelectedTier {
    /// Returns all items, for `--full`.
    pub fn all_items(root: &Path) -> Result<Self> {
        let digests = item_digests(root)?;
        Ok(Self { due: ITEMS.iter().collect(), digests, ..Self::default() })
    }

    /// Returns one item, for `--item`.
    pub fn one_item(root: &Path, item: &'static TierItem) -> Result<Self> {
        let left_out = ITEMS.iter().filter(|other| *other != item).collect();
        Ok(Self { due: vec![item], left_out, digests: item_digests(root)?, ..Self::default() })
    }

    /// Returns the items whose files have changed since they last passed, the shortest first, as
    /// far as they fit into [`MINUTES_MAX`].
    pub fn changed_items(root: &Path) -> Result<Self> {
        let digests = item_digests(root)?;
        let passed = read_record(root);
        let is_due = |item: &&TierItem| passed.get(item.name) != digests.get(item.name);
        let (mut changed, left_out): (Vec<&TierItem>, _) = ITEMS.iter().partition(is_due);
        changed.sort_by_key(|item| item.minutes);
        let (mut minutes, mut due, mut put_off) = (0, Vec::new(), Vec::new());
        for item in changed {
            minutes += item.minutes;
            if minutes <= MINUTES_MAX { due.push(item) } else { put_off.push(item) }
        }
        Ok(Self { due, put_off, left_out, digests })
    }

    /// Returns true if the run includes the item.
    pub fn has_item(&self, name: &str) -> bool {
        self.due.iter().any(|item| item.name == name)
    }

    /// Returns parts of the names of tests that this run skips.
    pub fn skipped_tests(&self) -> impl Iterator<Item = &'static str> {
        self.left_out.iter().chain(&self.put_off).flat_map(|item| item.tests).copied()
    }

    /// Returns a line for each skipped item.
    pub fn skipped_item_lines(&self) -> Vec<String> {
        let passed = |item: &&TierItem| {
            format!("{}: {}; its files are as when it last passed", item.name, item.about)
        };
        let put_off = |item: &&TierItem| {
            let TierItem { name, about, minutes, .. } = item;
            format!(
                "{name}: {about}; its files have changed, but it takes about {minutes} minutes: \
                 `cargo xtask test --item {name}` runs it"
            )
        };
        self.left_out.iter().map(passed).chain(self.put_off.iter().map(put_off)).collect()
    }

    /// Records the items of this run that have passed, with the files as they were at its start.
    pub fn record_passed_items(
        &self,
        root: &Path,
        has_passed: impl Fn(&TierItem) -> bool,
    ) -> Result<()> {
        let mut passed = read_record(root);
        for item in self.due.iter().filter(|item| has_passed(item)) {
            passed.insert(item.name.to_owned(), self.digests[item.name].clone());
        }
        passed.retain(|name, _| ITEMS.iter().any(|item| item.name == name));
        let lines: String =
            passed.iter().map(|(name, digest)| format!("{name} {digest}\n")).collect();
        fs::write(root.join(RECORD), lines).with_context(|| format!("writing `{RECORD}`"))
    }
}

/// Reads the record. Empty if it is missing, so that all items are due.
fn read_record(root: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(root.join(RECORD)).unwrap_or_default();
    let rows = text.lines().filter_map(|line| line.split_once(' '));
    rows.map(|(name, digest)| (name.to_owned(), digest.to_owned())).collect()
}

fn item_digests(root: &Path) -> Result<BTreeMap<&'static str, String>> {
    let files = file_digests(root)?;
    ITEMS.iter().map(|item| Ok((item.name, item.item_digest(&files)?))).collect()
}

/// Returns all files that git tracks or would add, with the digests of their current content.
fn file_digests(root: &Path) -> Result<BTreeMap<String, String>> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list =
        child::command_stdout(&mut git).context("the full tier needs the files that git knows")?;
    let mut paths: Vec<&str> = list.split('\0').filter(|path| !path.is_empty()).collect();
    paths.retain(|path| root.join(path).is_file());
    paths.sort_unstable();
    paths.dedup();
    let mut git = Command::new("git");
    git.current_dir(root).args(["hash-object", "--no-filters", "--stdin-paths"]);
    let digests = run_with_input(git, &(paths.join("\n") + "\n"))?;
    let digests: Vec<&str> = digests.lines().collect();
    if digests.len() != paths.len() {
        bail!("git gave {} digests for {} files", digests.len(), paths.len());
    }
    let mut files: BTreeMap<String, String> =
        paths.into_iter().map(str::to_owned).zip(digests.into_iter().map(str::to_owned)).collect();
    if let Some(digest) = files.get_mut(LOCK) {
        let lock = fs::read_to_string(root.join(LOCK)).context("reading `Cargo.lock`")?;
        *digest = text_digest(&external_packages(&lock))?;
    }
    Ok(files)
}

/// Returns the entries of a lock file for packages that come from elsewhere.
fn external_packages(lock: &str) -> String {
    let packages = lock.split("[[package]]").filter(|package| package.contains("\nsource = "));
    packages.collect()
}

fn text_digest(text: &str) -> Result<String> {
    let mut git = Command::new("git");
    git.args(["hash-object", "--stdin"]);
    Ok(run_with_input(git, text)?.trim().to_owned())
}

/// Runs a program with the given input and returns its output.
fn run_with_input(mut command: Command, input: &str) -> Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}", child::command_text(&command)))?;
    let mut pipe = child.stdin.take().context("no pipe to git")?;
    let input = input.to_owned();
    // Written on another thread, because with many files both pipes fill up.
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output().context("waiting for git")?;
    child::check_status(&command, output.status)?;
    writer
        .join()
        .map_err(|_| anyhow::anyhow!("writing to git panicked"))?
        .context("writing to git")?;
    String::from_utf8(output.stdout).context("git's answer is not valid UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a checkout with one file of each kind.
    fn create_checkout() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in [
            "plugin-api/src/lib.rs",
            "plugin-api/tests/a.rs",
            "docs/plugin-authors.md",
            "README.md",
            "Cargo.lock",
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), path).unwrap();
        }
        fs::create_dir_all(root.join("xtask")).unwrap();
        let git = Command::new("git").current_dir(root).args(["init", "-q"]).status().unwrap();
        assert!(git.success());
        folder
    }

    /// Returns the items that are due, by name, whether they fit into a run or not.
    fn due_item_names(root: &Path) -> Vec<&'static str> {
        let SelectedTier { due, put_off, .. } = SelectedTier::changed_items(root).unwrap();
        let mut names: Vec<_> = due.iter().chain(&put_off).map(|item| item.name).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_run_has_the_shortest_due_items_and_names_the_others() {
        let checkout = create_checkout();
        let tier = SelectedTier::changed_items(checkout.path()).unwrap();
        assert!(tier.due.iter().map(|item| item.minutes).sum::<u32>() <= MINUTES_MAX);
        assert!(tier.has_item("fuzz") && !tier.has_item("embedded"));
        assert!(tier.skipped_tests().any(|part| part == "whole_tasks_"));
        let lines = tier.skipped_item_lines();
        let asked = |line: &String| line.ends_with("`cargo xtask test --item embedded` runs it");
        assert!(lines.iter().any(asked), "{lines:?}");
        let item = TierItem::find_item("embedded").unwrap();
        let one = SelectedTier::one_item(checkout.path(), item).unwrap();
        assert!(one.has_item("embedded"));
        let skipped: Vec<&str> = one.skipped_tests().collect();
        assert!(skipped.contains(&"authors::") && !skipped.contains(&"whole_tasks_"));
    }

    #[test]
    fn item_is_due_until_it_passes_and_again_after_a_file_change() {
        let checkout = create_checkout();
        let root = checkout.path();
        let all: Vec<&str> = ITEMS.iter().map(|item| item.name).collect();
        assert_eq!(due_item_names(root), all);

        SelectedTier::all_items(root)
            .unwrap()
            .record_passed_items(root, |item| item.name != "miri")
            .unwrap();
        assert_eq!(due_item_names(root), ["miri"], "what could not run has not passed");
        SelectedTier::all_items(root).unwrap().record_passed_items(root, |_| true).unwrap();
        assert_eq!(due_item_names(root), Vec::<&str>::new());

        fs::write(root.join("README.md"), "other").unwrap();
        assert_eq!(due_item_names(root), Vec::<&str>::new(), "no item reads it");
        fs::write(root.join("docs/plugin-authors.md"), "other").unwrap();
        assert_eq!(due_item_names(root), ["guide"]);
        fs::write(root.join("plugin-api/tests/b.rs"), "a new file").unwrap();
        assert_eq!(due_item_names(root), ["compilers", "guide", "miri"]);
        let passed = due_item_names(root);
        let ours = "[[package]]\nname = \"tool-new\"\nversion = \"0.1.0\"\n";
        fs::write(root.join("Cargo.lock"), ours).unwrap();
        assert_eq!(due_item_names(root), passed, "an item names its own packages");
        let with_other = format!("{ours}\n[[package]]\nname = \"a\"\nsource = \"registry\"\n");
        fs::write(root.join("Cargo.lock"), with_other).unwrap();
        assert_eq!(due_item_names(root), all);
    }

    #[test]
    fn skipped_items_are_named_and_their_tests_are_skipped() {
        let checkout = create_checkout();
        let root = checkout.path();
        SelectedTier::all_items(root)
            .unwrap()
            .record_passed_items(root, |item| item.name != "mcp-suite")
            .unwrap();
        let tier = SelectedTier::changed_items(root).unwrap();
        assert!(tier.has_item("mcp-suite") && !tier.has_item("templates"));
        let skipped: Vec<&str> = tier.skipped_tests().collect();
        assert!(skipped.contains(&"a_new_plugin_of_each_kind_builds_"), "{skipped:?}");
        assert!(!skipped.contains(&"the_conformance_suite_of_the_protocol_"), "{skipped:?}");
        assert_eq!(tier.skipped_item_lines().len(), ITEMS.len() - 1);
    }
}

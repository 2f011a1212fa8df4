//! Runs the authors' guide and its pages: every block, in a folder with only the unpacked archive.
//!
//! A `console` block runs line by line in one shell, and its output must match. `…` matches
//! anything, and on its own line any number of lines. A command without shown output must only
//! succeed. A comment `file: PATH` before a block writes the block to a file, and `same: PATH`
//! compares it with an existing file. All other `rust` blocks of the guide and its pages are built
//! together in one plugin crate: `jaato plugin check` checks a plugin, and other code is run. A
//! `json` block is parsed, and a `c` block is compiled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::installed::{
    InstalledArchive, checkout_root, installed_archive, printed_text, successful_stdout,
    target_folder,
};

mod blocks;
mod shown;

use blocks::{BlockKind, GuideBlock};

/// The folder of an author who follows the guide.
struct GuideAuthor<'a> {
    installed: &'a InstalledArchive,
    folder: PathBuf,
}

impl<'a> GuideAuthor<'a> {
    /// Uses the same path in each run, so that external crates are built once.
    fn new(installed: &'a InstalledArchive, name: &str) -> Self {
        let author = Self { installed, folder: installed.empty_folder(name) };
        fs::create_dir_all(author.work_folder()).unwrap();
        fs::create_dir_all(author.folder.join("home")).unwrap();
        // The style settings of the surrounding checkout must not apply.
        fs::write(author.folder.join("rustfmt.toml"), "").unwrap();
        author
    }

    fn work_folder(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Returns a command with only the archive's binary and a toolchain on its path.
    fn author_command(&self, program: &str) -> Command {
        let toolchain = Path::new(env!("CARGO")).parent().unwrap();
        let places =
            [&self.installed.top.join("bin"), toolchain, Path::new("/usr/bin"), Path::new("/bin")];
        let cargo_home = std::env::var_os("CARGO_HOME")
            .unwrap_or_else(|| Path::new(&std::env::var_os("HOME").unwrap()).join(".cargo").into());
        let mut command = Command::new(program);
        command.current_dir(self.work_folder()).env_clear();
        command.env("PATH", std::env::join_paths(places).unwrap());
        command.env("HOME", self.folder.join("home"));
        command.env("JAATO", &self.installed.top);
        command.env("CARGO_HOME", cargo_home).env("CARGO_NET_OFFLINE", "true");
        // The same settings as for the fixtures, so that common dependencies are built once.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        command.env("LANG", "C.UTF-8").env("TERM", "dumb");
        command
    }

    /// Returns shell code that builds all crates into the folder of the fixtures.
    fn shared_target_script(&self) -> String {
        let shared = target_folder().join("fixtures");
        format!(
            "for crate in '{work}'/*/Cargo.toml; do\n\
             crate=${{crate%/Cargo.toml}}\n\
             [ -e \"$crate/target\" ] || [ ! -e \"$crate\" ] || ln -s '{shared}' \"$crate/target\"\n\
             done\n",
            work = self.work_folder().display(),
            shared = shared.display()
        )
    }
}

/// Creates one script of the blocks, in order. The output of each block goes to a file in `came`
/// with the block's number.
fn guide_script(author: &GuideAuthor<'_>, blocks: &[GuideBlock]) -> String {
    let came = author.folder.join("came");
    fs::create_dir_all(&came).unwrap();
    let mut script = String::new();
    for (at, block) in blocks.iter().enumerate() {
        let place = came.join(at.to_string());
        let place = place.display();
        match &block.does {
            BlockKind::File(path) => {
                fs::write(came.join(at.to_string()), &block.text).unwrap();
                let path = blocks::shell_path(path);
                script +=
                    &format!("mkdir -p \"$(dirname {path})\" && cp '{place}' {path} || exit\n");
            }
            BlockKind::Same(path) => script += &format!("cp {path} '{place}' || exit\n"),
            BlockKind::Console => {
                for (number, step) in shown::parse_steps(&block.text).iter().enumerate() {
                    let (command, out) = (&step.command, format!("{place}.{number}"));
                    script += &author.shared_target_script();
                    script += &format!(
                        "{{ {command}\n}} >'{out}' 2>&1 || {{ echo >'{out}.failed'; exit 1; }}\n"
                    );
                }
            }
            BlockKind::Snippet | BlockKind::Json | BlockKind::Toml | BlockKind::C => {}
        }
    }
    script
}

/// Compares the output with the guide, up to the first command that failed.
#[track_caller]
fn compare_output(author: &GuideAuthor<'_>, blocks: &[GuideBlock]) {
    let came = author.folder.join("came");
    let read = |name: &str| fs::read_to_string(came.join(name));
    for (at, block) in blocks.iter().enumerate() {
        let line = block.line;
        match &block.does {
            BlockKind::File(_)
            | BlockKind::Snippet
            | BlockKind::Json
            | BlockKind::Toml
            | BlockKind::C => {}
            BlockKind::Same(path) => {
                let text = read(&at.to_string()).unwrap();
                assert_eq!(text, block.text, "line {line}: `{path}` is another");
            }
            BlockKind::Console => {
                for (number, step) in shown::parse_steps(&block.text).iter().enumerate() {
                    let name = format!("{at}.{number}");
                    let text =
                        read(&name).unwrap_or_else(|_| panic!("line {line} was not reached"));
                    let failed = came.join(format!("{name}.failed")).exists();
                    assert!(!failed, "line {line}: `{}` failed:\n{text}", step.command);
                    assert!(
                        step.shows.is_empty() || shown::is_shown(&step.shows, &text),
                        "line {line}: `{}` prints\n{text}",
                        step.command
                    );
                }
            }
        }
    }
}

/// A document and its blocks.
struct GuideDocument {
    /// The file's name without its extension.
    name: String,
    blocks: Vec<GuideBlock>,
}

impl GuideDocument {
    fn read_document(path: &Path) -> Self {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        Self { name, blocks: blocks::read_blocks(&fs::read_to_string(path).unwrap()) }
    }

    /// Returns the blocks with this use.
    fn blocks_of_kind(&self, does: &BlockKind) -> impl Iterator<Item = &GuideBlock> {
        self.blocks.iter().filter(move |block| block.does == *does)
    }

    /// Returns the file name for a block.
    fn block_file_name(&self, block: &GuideBlock) -> String {
        format!("{}_line_{}", self.name.replace('-', "_"), block.line)
    }
}

fn read_guide() -> GuideDocument {
    GuideDocument::read_document(&checkout_root().join("docs/plugin-authors.md"))
}

/// Returns the pages, one for each service or topic, sorted by name.
fn topic_pages() -> Vec<GuideDocument> {
    let entries = fs::read_dir(checkout_root().join("docs/authors")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "md"));
    paths.sort();
    paths.iter().map(|path| GuideDocument::read_document(path)).collect()
}

#[track_caller]
fn follow_document(author: &GuideAuthor<'_>, document: &GuideDocument) {
    let script = guide_script(author, &document.blocks);
    let output = author.author_command("sh").args(["-c", &script]).output().unwrap();
    compare_output(author, &document.blocks);
    assert!(output.status.success(), "{}: {}", document.name, printed_text(&output));
}

#[test]
fn every_step_of_the_guide_does_what_it_shows() {
    let Some(installed) = installed_archive() else { return };
    let author = GuideAuthor::new(installed, "guide");
    follow_document(&author, &read_guide());
    let installed = author.folder.join("home/.local/share/jaato/plugins");
    assert!(installed.join("libword_count.so").is_file(), "the guide ends with a working tool");
}

#[test]
fn every_step_of_the_guide_s_pages_does_what_it_shows() {
    let Some(installed) = installed_archive() else { return };
    let pages = topic_pages();
    assert!(pages.iter().any(|page| page.name == "README"), "the pages have an index");
    for page in &pages {
        follow_document(&GuideAuthor::new(installed, &format!("page-{}", page.name)), page);
    }
}

#[test]
fn every_step_of_the_guide_that_is_json_toml_or_c_can_be_read() {
    let Some(installed) = installed_archive() else { return };
    let author = GuideAuthor::new(installed, "read");
    for document in topic_pages().iter().chain([&read_guide()]) {
        for block in document.blocks_of_kind(&BlockKind::Json) {
            let values = serde_json::Deserializer::from_str(&block.text).into_iter();
            let read: Result<Vec<serde_json::Value>, _> = values.collect();
            assert!(read.is_ok(), "{}, line {}: {read:?}", document.name, block.line);
        }
        for block in document.blocks_of_kind(&BlockKind::Toml) {
            let read: Result<toml::Table, _> = toml::from_str(&block.text);
            assert!(read.is_ok(), "{}, line {}: {read:?}", document.name, block.line);
        }
        for block in document.blocks_of_kind(&BlockKind::C) {
            let file = author.work_folder().join(format!("{}.c", document.block_file_name(block)));
            fs::write(&file, &block.text).unwrap();
            let mut cc = author.author_command("cc");
            cc.args(["-Wall", "-Werror", "-fsyntax-only", "-I"]);
            successful_stdout(cc.arg(installed.top.join("include")).arg(file));
        }
    }
}

/// Creates a crate like `jaato plugin new`, with the additional dependencies of providers and
/// environments, and with each block as an example.
fn write_snippets(author: &GuideAuthor<'_>, snippets: &[(String, &GuideBlock)]) {
    successful_stdout(author.author_command("jaato").args(["plugin", "new", "snippets"]));
    let folder = author.work_folder().join("snippets");
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let (before, line) = manifest.split_once("jaato-plugin-sdk = ").unwrap();
    let own = line.lines().next().unwrap();
    let others = ["provider", "environment"].map(|part| {
        let path = own.replace("plugin-api/sdk", &format!("plugin-api/sdk-{part}"));
        format!("jaato-plugin-sdk-{part} = {path}\n")
    });
    let mut manifest = format!("{before}{}jaato-plugin-sdk = {line}", others.concat());
    fs::create_dir(folder.join("examples")).unwrap();
    for (name, snippet) in snippets {
        let mut source = format!("#![allow(dead_code, unused_imports)]\n{}", snippet.text);
        if is_plugin_snippet(snippet) {
            manifest += &format!("\n[[example]]\nname = \"{name}\"\ncrate-type = [\"cdylib\"]\n");
        } else if !source.contains("fn main()") {
            source += "fn main() {}\n";
        }
        fs::write(folder.join("examples").join(format!("{name}.rs")), source).unwrap();
    }
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    successful_stdout(author.author_command("sh").args(["-c", &author.shared_target_script()]));
}

fn is_plugin_snippet(snippet: &GuideBlock) -> bool {
    snippet.text.contains("export_plugin!")
}

#[test]
fn every_other_block_of_rust_is_a_plugin_that_passes_the_check_or_a_program_that_runs() {
    let Some(installed) = installed_archive() else { return };
    let author = GuideAuthor::new(installed, "snippets");
    let documents: Vec<GuideDocument> = topic_pages().into_iter().chain([read_guide()]).collect();
    let snippets = documents.iter().flat_map(|document| {
        let named = |block| (document.block_file_name(block), block);
        document.blocks_of_kind(&BlockKind::Snippet).map(named)
    });
    let snippets: Vec<(String, &GuideBlock)> = snippets.collect();
    assert!(snippets.iter().filter(|(_, snippet)| is_plugin_snippet(snippet)).count() >= 5);
    write_snippets(&author, &snippets);
    let folder = author.work_folder().join("snippets");
    let mut build = author.author_command("cargo");
    let built =
        build.args(["build", "--quiet", "--examples"]).current_dir(&folder).output().unwrap();
    let printed = printed_text(&built);
    assert!(built.status.success() && !printed.contains("warning"), "{printed}");
    let examples = folder.join("target/debug/examples");
    let mut failed = Vec::new();
    for (name, snippet) in snippets {
        let mut command = if is_plugin_snippet(snippet) {
            let mut check = author.author_command("jaato");
            check.args(["plugin", "check"]).arg(examples.join(format!("lib{name}.so")));
            check
        } else {
            author.author_command(examples.join(&name).to_str().unwrap())
        };
        let output = command.output().unwrap();
        if !output.status.success() {
            failed.push(format!("{name}: {}", printed_text(&output)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

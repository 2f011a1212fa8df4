//! The authors' guide, done: every block of it, in a folder with nothing but the unpacked archive.
//!
//! A block of `console` is run, line for line in one shell, and what it shows is what comes out
//! (`…` stands for anything, on a line of its own for any lines; a command that shows nothing must
//! only end well). Before it, a comment `file: PATH` has a block written to a file, and `same:
//! PATH` has it compared with one that is there. All other blocks of `rust` are built together in a
//! plugin's crate: a plugin is checked by `jaato plugin check`, anything else is run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::installed::{Installed, installed, root, said, target, text};

mod blocks;
mod shown;

use blocks::{Block, Use};

/// A folder of someone who follows the guide.
struct Author<'a> {
    installed: &'a Installed,
    folder: PathBuf,
}

impl<'a> Author<'a> {
    /// Lies in the same place from run to run, so that crates of others are built once.
    fn new(installed: &'a Installed, name: &str) -> Self {
        let author = Self { installed, folder: installed.folder(name) };
        fs::create_dir_all(author.work()).unwrap();
        fs::create_dir_all(author.folder.join("home")).unwrap();
        // What the checkout around it says of style is not theirs.
        fs::write(author.folder.join("rustfmt.toml"), "").unwrap();
        author
    }

    fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// A command with the archive's binary and a toolchain on its path, and nothing else.
    fn command(&self, program: &str) -> Command {
        let toolchain = Path::new(env!("CARGO")).parent().unwrap();
        let places =
            [&self.installed.top.join("bin"), toolchain, Path::new("/usr/bin"), Path::new("/bin")];
        let cargo_home = std::env::var_os("CARGO_HOME")
            .unwrap_or_else(|| Path::new(&std::env::var_os("HOME").unwrap()).join(".cargo").into());
        let mut command = Command::new(program);
        command.current_dir(self.work()).env_clear();
        command.env("PATH", std::env::join_paths(places).unwrap());
        command.env("HOME", self.folder.join("home"));
        command.env("JAATO", &self.installed.top);
        command.env("CARGO_HOME", cargo_home).env("CARGO_NET_OFFLINE", "true");
        // As the fixtures are built, so that what both stand on is built once.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        command.env("LANG", "C.UTF-8").env("TERM", "dumb");
        command
    }

    /// Has all crates built into the folder of the fixtures.
    fn share_target(&self) -> String {
        let shared = target().join("fixtures");
        format!(
            "for crate in '{work}'/*/Cargo.toml; do\n\
             crate=${{crate%/Cargo.toml}}\n\
             [ -e \"$crate/target\" ] || [ ! -e \"$crate\" ] || ln -s '{shared}' \"$crate/target\"\n\
             done\n",
            work = self.work().display(),
            shared = shared.display()
        )
    }
}

/// Makes one script of the blocks that are followed in their order. What each block came to lies in
/// `came` under its number.
fn script(author: &Author<'_>, blocks: &[Block]) -> String {
    let came = author.folder.join("came");
    fs::create_dir_all(&came).unwrap();
    let mut script = String::new();
    for (at, block) in blocks.iter().enumerate() {
        let place = came.join(at.to_string());
        let place = place.display();
        match &block.does {
            Use::File(path) => {
                fs::write(came.join(at.to_string()), &block.text).unwrap();
                let path = blocks::at_home(path);
                script +=
                    &format!("mkdir -p \"$(dirname {path})\" && cp '{place}' {path} || exit\n");
            }
            Use::Same(path) => script += &format!("cp {path} '{place}' || exit\n"),
            Use::Console => {
                for (number, step) in shown::steps(&block.text).iter().enumerate() {
                    let (command, out) = (&step.command, format!("{place}.{number}"));
                    script += &author.share_target();
                    script += &format!(
                        "{{ {command}\n}} >'{out}' 2>&1 || {{ echo >'{out}.failed'; exit 1; }}\n"
                    );
                }
            }
            Use::Snippet => {}
        }
    }
    script
}

/// Compares what came with what the guide shows; all of it, up to the first command that failed.
#[track_caller]
fn compare(author: &Author<'_>, blocks: &[Block]) {
    let came = author.folder.join("came");
    let read = |name: &str| fs::read_to_string(came.join(name));
    for (at, block) in blocks.iter().enumerate() {
        let line = block.line;
        match &block.does {
            Use::File(_) | Use::Snippet => {}
            Use::Same(path) => {
                let text = read(&at.to_string()).unwrap();
                assert_eq!(text, block.text, "line {line}: `{path}` is another");
            }
            Use::Console => {
                for (number, step) in shown::steps(&block.text).iter().enumerate() {
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

fn guide() -> Vec<Block> {
    blocks::read(&fs::read_to_string(root().join("docs/plugin-authors.md")).unwrap())
}

#[test]
fn every_step_of_the_guide_does_what_it_shows() {
    let Some(installed) = installed() else { return };
    let author = Author::new(installed, "guide");
    let blocks = guide();
    let script = script(&author, &blocks);
    let output = author.command("sh").args(["-c", &script]).output().unwrap();
    compare(&author, &blocks);
    assert!(output.status.success(), "{}", text(&output));
    let installed = author.folder.join("home/.local/share/jaato/plugins");
    assert!(installed.join("libword_count.so").is_file(), "the guide ends with a working tool");
}

/// A crate as `jaato plugin new` writes it, with what a provider names besides, and each block as
/// an example of it.
fn write_snippets(author: &Author<'_>, snippets: &[&Block]) {
    said(author.command("jaato").args(["plugin", "new", "snippets"]));
    let folder = author.work().join("snippets");
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let (before, line) = manifest.split_once("jaato-plugin-sdk = ").unwrap();
    let path = line.lines().next().unwrap().replace("plugin-api/sdk", "plugin-api/sdk-provider");
    let mut manifest =
        format!("{before}jaato-plugin-sdk-provider = {path}\njaato-plugin-sdk = {line}");
    fs::create_dir(folder.join("examples")).unwrap();
    for snippet in snippets {
        let name = name(snippet);
        let mut source = format!("#![allow(dead_code, unused_imports)]\n{}", snippet.text);
        if is_plugin(snippet) {
            manifest += &format!("\n[[example]]\nname = \"{name}\"\ncrate-type = [\"cdylib\"]\n");
        } else if !source.contains("fn main()") {
            source += "fn main() {}\n";
        }
        fs::write(folder.join("examples").join(format!("{name}.rs")), source).unwrap();
    }
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    said(author.command("sh").args(["-c", &author.share_target()]));
}

fn name(snippet: &Block) -> String {
    format!("line_{}", snippet.line)
}

fn is_plugin(snippet: &Block) -> bool {
    snippet.text.contains("export_plugin!")
}

#[test]
fn every_other_block_of_rust_is_a_plugin_that_passes_the_check_or_a_program_that_runs() {
    let Some(installed) = installed() else { return };
    let author = Author::new(installed, "snippets");
    let blocks = guide();
    let snippets: Vec<&Block> =
        blocks.iter().filter(|block| matches!(block.does, Use::Snippet)).collect();
    assert!(snippets.iter().filter(|snippet| is_plugin(snippet)).count() >= 5);
    write_snippets(&author, &snippets);
    let folder = author.work().join("snippets");
    let mut build = author.command("cargo");
    let built =
        build.args(["build", "--quiet", "--examples"]).current_dir(&folder).output().unwrap();
    let printed = text(&built);
    assert!(built.status.success() && !printed.contains("warning"), "{printed}");
    let examples = folder.join("target/debug/examples");
    for snippet in snippets {
        let name = name(snippet);
        if is_plugin(snippet) {
            let file = examples.join(format!("lib{name}.so"));
            said(author.command("jaato").args(["plugin", "check"]).arg(file));
        } else {
            said(&mut author.command(examples.join(name).to_str().unwrap()));
        }
    }
}

//! The image in which packages are installed: the C library, Python with pip, Node.js with npm and
//! a shell, but no compiler.
//!
//! The parts come from this machine, because tests do not use a registry.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::installed::InstalledArchive;

/// `cargo xtask test` removes it from an engine that is not its own.
pub const IMAGE: &str = "jaato-test:install";

/// The user and group for an installation for all users.
pub const ROOT: &str = "0:0";

/// An ordinary user with a group of their own.
pub const ANN: &str = "1000:1000";

/// The programs of busybox that installers and jaato's own tools start.
const APPLETS: [&str; 9] = ["cat", "echo", "env", "gzip", "mkdir", "sh", "stty", "tar", "uname"];

/// Folders of Python's library that installers do not read. They are the largest part.
const UNREAD: [&str; 6] =
    ["__pycache__", "dist-packages", "ensurepip", "idlelib", "site-packages", "test"];

/// Makes the image, once, or returns the reason why it cannot be made.
pub fn import_image(installed: &InstalledArchive) -> Result<(), String> {
    static IMPORTED: OnceLock<Result<(), String>> = OnceLock::new();
    let make = || {
        run_docker(&["info", "--format", "{{.ID}}"])
            .map_err(|error| format!("no engine: {error}"))?;
        let tar = installed.empty_folder("image").join("image.tar");
        pack_image(installed, &tar)?;
        run_docker(&["import", tar.to_str().unwrap(), IMAGE]).expect("the image is valid");
        Ok(())
    };
    IMPORTED.get_or_init(make).clone()
}

fn run_docker(words: &[&str]) -> Result<String, String> {
    command_output(Command::new("docker").args(words))
}

/// Runs a program of this machine and returns its output, or a reason to skip the test.
fn command_output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("`{program}` does not start: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn pack_image(installed: &InstalledArchive, tar: &Path) -> Result<(), String> {
    let python = PythonInstallation::find()?;
    let node = NodeInstallation::find()?;
    let tar = tar::Builder::new(BufWriter::new(File::create(tar).unwrap()));
    let mut image = ContainerImage { tar, folders: BTreeSet::new() };
    image.add_shell()?;
    image.add_file(&python.program);
    image.add_tree(&python.library, &UNREAD);
    image.add_tree(&python.pip, &["__pycache__"]);
    image.add_link("usr/bin/python3", &python.program);
    image.add_file(&node.program);
    image.add_tree(&node.npm, &[]);
    image.add_link("usr/bin/node", &node.program);
    image.add_link("usr/bin/npm", &node.npm.join("bin/npm-cli.js"));
    let mut programs = vec![python.program, node.program, installed.jaato_path()];
    programs.extend(dynamic_libraries(&python.library.join("lib-dynload")));
    programs.extend(dynamic_libraries(&installed.top.join("lib/jaato/plugins")));
    for library in needed_libraries(&programs)? {
        image.add_file(&library);
    }
    image.tar.into_inner().unwrap();
    Ok(())
}

struct PythonInstallation {
    program: PathBuf,
    library: PathBuf,
    pip: PathBuf,
}

impl PythonInstallation {
    fn find() -> Result<Self, String> {
        let ask = "import os, pip, sys, sysconfig\n\
                   print(os.path.realpath(sys.executable))\n\
                   print(sysconfig.get_path('stdlib'))\n\
                   print(os.path.dirname(pip.__file__))";
        let answer = command_output(Command::new("python3").args(["-c", ask]));
        let answer = answer.map_err(|error| format!("no Python with pip: {error}"))?;
        let mut paths = answer.lines().map(PathBuf::from);
        let mut next = || paths.next().unwrap();
        Ok(Self { program: next(), library: next(), pip: next() })
    }
}

struct NodeInstallation {
    program: PathBuf,
    /// The folder of npm, with all its dependencies.
    npm: PathBuf,
}

impl NodeInstallation {
    fn find() -> Result<Self, String> {
        let program = command_output(Command::new("node").args(["-p", "process.execPath"]))?;
        let npm =
            command_output(Command::new("sh").args(["-c", "readlink -f \"$(command -v npm)\""]))
                .map_err(|_| "no npm: https://nodejs.org has it")?;
        let npm = Path::new(&npm).ancestors().nth(2).map(Path::to_owned).unwrap_or_default();
        if !npm.join("node_modules").is_dir() {
            return Err("this machine's npm is not in one folder".to_owned());
        }
        Ok(Self { program: program.into(), npm })
    }
}

/// The dynamic libraries directly in a folder.
fn dynamic_libraries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "so")).collect()
}

/// The libraries with which these programs start.
fn needed_libraries(programs: &[PathBuf]) -> Result<BTreeSet<PathBuf>, String> {
    let said = command_output(Command::new("ldd").args(programs))?;
    let paths = said.lines().filter_map(|line| {
        let path = line.split_once("=> ").map_or(line, |(_, path)| path);
        path.trim().split_once(" (0x").map(|(path, _)| PathBuf::from(path))
    });
    Ok(paths.filter(|path| path.is_absolute()).collect())
}

struct ContainerImage {
    tar: tar::Builder<BufWriter<File>>,
    folders: BTreeSet<PathBuf>,
}

impl ContainerImage {
    /// Adds a shell, and the files and folders that programs expect on every system.
    fn add_shell(&mut self) -> Result<(), String> {
        let paths = ["/bin/busybox", "/usr/bin/busybox"].map(Path::new);
        let busybox = paths.into_iter().find(|path| path.exists());
        let busybox = busybox.ok_or("no static busybox: `apt-get install busybox-static`")?;
        self.add_parent_folders("bin/busybox");
        self.tar.append_path_with_name(busybox, "bin/busybox").unwrap();
        for name in APPLETS {
            self.add_link(&format!("bin/{name}"), Path::new("/bin/busybox"));
        }
        // npm starts with `#!/usr/bin/env`.
        self.add_link("usr/bin/env", Path::new("/bin/busybox"));
        self.add_text(
            "etc/passwd",
            "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n",
        );
        self.add_text("etc/group", "root:x:0:\nann:x:1000:\n");
        self.add_folder(Path::new("root"), 0o755, 0);
        self.add_folder(Path::new("tmp"), 0o1777, 0);
        self.add_folder(Path::new("home/ann"), 0o755, 1000);
        Ok(())
    }

    /// Adds a file of this machine at the same path.
    fn add_file(&mut self, path: &Path) {
        let inside = path.strip_prefix("/").unwrap();
        self.add_parent_folders(inside);
        self.tar.append_path_with_name(path, inside).unwrap();
    }

    /// Adds a folder of this machine at the same path, except subfolders with these names.
    fn add_tree(&mut self, folder: &Path, except: &[&str]) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_file() {
                self.add_file(&path);
            } else if path.is_dir() && !except.contains(&name) && !name.starts_with("config-") {
                self.add_tree(&path, except);
            }
        }
    }

    /// Adds the folders above a path. The engine makes those that are missing, but only root can
    /// enter them.
    fn add_parent_folders(&mut self, path: impl AsRef<Path>) {
        let Some(folder) = path.as_ref().parent().filter(|folder| *folder != Path::new("")) else {
            return;
        };
        if !self.folders.contains(folder) {
            self.add_folder(folder, 0o755, 0);
        }
    }

    fn add_folder(&mut self, path: &Path, mode: u32, owner: u64) {
        self.add_parent_folders(path);
        self.folders.insert(path.to_owned());
        let mut header = tar_header(tar::EntryType::Directory, mode);
        header.set_uid(owner);
        header.set_gid(owner);
        self.tar.append_data(&mut header, path, std::io::empty()).unwrap();
    }

    fn add_link(&mut self, path: &str, to: &Path) {
        if to.strip_prefix("/").is_ok_and(|to| to == Path::new(path)) {
            return;
        }
        self.add_parent_folders(path);
        let mut header = tar_header(tar::EntryType::Symlink, 0o777);
        self.tar.append_link(&mut header, path, to).unwrap();
    }

    fn add_text(&mut self, path: &str, text: &str) {
        self.add_parent_folders(path);
        let mut header = tar_header(tar::EntryType::Regular, 0o644);
        header.set_size(text.len() as u64);
        self.tar.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
}

fn tar_header(kind: tar::EntryType, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(0);
    header
}

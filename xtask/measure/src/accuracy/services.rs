//! What the programs need beside themselves: servers on loopback, folders, files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::caller::SYSTEM_PATH;
use super::programs::Program;
use xtask::child;
use xtask::setup::is_root;

/// Gets, starts and ends them.
const SCRIPT: &str = include_str!("services.sh");

/// Gets what the programs need.
pub fn install(folder: &Path) -> Result<()> {
    child::run(&mut script("install", folder))
}

/// The script with one of its words.
fn script(word: &str, folder: &Path) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", SCRIPT, word, word]).arg(folder);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin")).stdin(Stdio::null());
    command
}

/// The servers, until this is dropped.
pub struct Services {
    folder: PathBuf,
    /// Outside of the target folder, which another user may not see.
    base: PathBuf,
    user: Option<String>,
    values: BTreeMap<String, String>,
}

impl Services {
    /// Starts them; `user` is who runs the programs, where that is somebody else.
    pub fn start(folder: &Path, user: Option<&str>) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
        let folder = folder.canonicalize()?;
        let base = std::env::temp_dir().join(format!("jaato-accuracy-{}", std::process::id()));
        fs::create_dir_all(&base).with_context(|| format!("making `{}`", base.display()))?;
        let user = user.map(str::to_owned);
        // Dropped, it ends what was started, however far that went.
        let mut services = Self { folder, base, user, values: BTreeMap::new() };
        let told = child::output(&mut script("start", &services.folder))?;
        let pairs = told.lines().filter_map(|line| line.split_once('='));
        services.values = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        services.add_own();
        Ok(services)
    }

    fn add_own(&mut self) {
        let is_root = is_root() && self.user.is_none();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let person = self.values.get("person").cloned().unwrap_or_default();
        let as_user = match is_root {
            true => format!("setpriv --reuid {person} --regid {person} --init-groups "),
            false => String::new(),
        };
        let git =
            "git init -q && git config user.name moon && git config user.email moon@example.com";
        if let (false, Some(key)) = (is_root, self.values.get("user_key").cloned()) {
            self.values.insert("key".to_owned(), key);
        }
        for (name, value) in [
            ("host", host.trim()),
            ("as_user", &as_user),
            ("prompt", if is_root { "#" } else { "$" }),
            ("git", git),
        ] {
            self.values.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Lists what a program needs and is not there.
    pub fn missing(&self, program: &Program) -> Vec<String> {
        let all = [&program.command].into_iter().chain(&program.needs);
        // A placeholder that nobody filled is a server that did not start.
        let unfilled = all.filter_map(|text| {
            let text = self.fill(&text.replace("@work@", "").replace("@unique@", ""));
            let name = text.split('@').nth(1)?;
            let is_name =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            (is_name && text.contains(&format!("@{name}@"))).then(|| name.to_owned())
        });
        let programs = program.needs.iter().map(|need| self.fill(need));
        unfilled
            .chain(programs.filter(|need| !need.contains('@') && !self.is_there(need)))
            .collect()
    }

    /// Whether a program can be run by who runs them.
    fn is_there(&self, program: &str) -> bool {
        let mut command = match &self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", user, "--init-groups", "sh"]);
                command.env("PATH", SYSTEM_PATH);
                command
            }
            None => Command::new("sh"),
        };
        command.args([
            "-c",
            "command -v \"$1\" >/dev/null && test -x \"$(command -v \"$1\")\"",
            "sh",
            program,
        ]);
        command.status().is_ok_and(|status| status.success())
    }

    /// Puts values in their places.
    fn fill(&self, text: &str) -> String {
        fill(&self.values, text)
    }

    /// Makes the folder that a program runs in.
    pub fn place(&self, program: &Program, number: usize) -> Result<Place> {
        let home = self.base.join(number.to_string());
        let work = home.join(&program.folder);
        let making = || format!("making `{}`", work.display());
        fs::create_dir_all(&work).with_context(making)?;
        let mut values = self.values.clone();
        values.insert("work".to_owned(), work.display().to_string());
        values.insert("unique".to_owned(), format!("jaato-{}-{number}", std::process::id()));
        for (name, text) in &program.files {
            fs::write(work.join(name), text).with_context(making)?;
        }
        let place = Place { home, work, values, teardown: program.teardown.clone() };
        if let Some(setup) = &program.setup {
            let mut command = Command::new("sh");
            command.args(["-ec", &place.fill(setup)]).current_dir(&place.work);
            child::run(command.env("HOME", &place.home))?;
        }
        if let Some(user) = &self.user {
            child::run(Command::new("chown").args(["-R", user]).arg(&place.home))?;
        }
        Ok(place)
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        // What does not end by the script ends with the machine; the next run has folders of its
        // own.
        let _ = script("stop", &self.folder).status();
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// Where a program is played.
pub struct Place {
    pub home: PathBuf,
    pub work: PathBuf,
    values: BTreeMap<String, String>,
    teardown: Option<String>,
}

impl Place {
    /// Puts values in their places.
    pub fn fill(&self, text: &str) -> String {
        fill(&self.values, text)
    }

    /// Ends what it left, and takes it away.
    pub fn clear(&self) {
        if let Some(teardown) = &self.teardown {
            // Most often all has ended by then.
            let mut command = Command::new("sh");
            command.args(["-c", &self.fill(teardown)]).stdout(Stdio::null()).stderr(Stdio::null());
            let _ = command.status();
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}

fn fill(values: &BTreeMap<String, String>, text: &str) -> String {
    values
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), value))
}

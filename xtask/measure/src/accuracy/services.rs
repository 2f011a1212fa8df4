//! Services for the programs: servers on loopback, folders, files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::caller::SYSTEM_PATH;
use super::programs::AccuracyProgram;
use xtask::child;
use xtask::setup::is_root;

/// The script that installs, starts and stops the services.
const SCRIPT: &str = include_str!("services.sh");

/// Installs what the programs need.
pub fn install_programs(folder: &Path) -> Result<()> {
    child::run_command(&mut script_command("install", folder))
}

/// Returns the script with one of its commands.
fn script_command(word: &str, folder: &Path) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", SCRIPT, word, word]).arg(folder);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin")).stdin(Stdio::null());
    command
}

/// The running servers. Dropping this stops them.
pub struct AccuracyServers {
    folder: PathBuf,
    /// Outside the target folder, which another user may not be able to read.
    base: PathBuf,
    user: Option<String>,
    values: BTreeMap<String, String>,
}

impl AccuracyServers {
    /// Starts the servers. `user` runs the programs, if it is another user.
    pub fn start_servers(folder: &Path, user: Option<&str>) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
        let folder = folder.canonicalize()?;
        let base = std::env::temp_dir().join(format!("jaato-accuracy-{}", std::process::id()));
        fs::create_dir_all(&base).with_context(|| format!("making `{}`", base.display()))?;
        let user = user.map(str::to_owned);
        // If a later step fails, dropping this stops what was started.
        let mut services = Self { folder, base, user, values: BTreeMap::new() };
        let told = child::command_stdout(&mut script_command("start", &services.folder))?;
        let pairs = told.lines().filter_map(|line| line.split_once('='));
        services.values = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        services.add_builtin_values();
        Ok(services)
    }

    fn add_builtin_values(&mut self) {
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

    /// Lists what is missing for a program.
    pub fn list_missing_programs(&self, program: &AccuracyProgram) -> Vec<String> {
        let all = [&program.command].into_iter().chain(&program.needs);
        // An unfilled placeholder means that a server did not start.
        let unfilled = all.filter_map(|text| {
            let text = self.fill_placeholders(&text.replace("@work@", "").replace("@unique@", ""));
            let name = text.split('@').nth(1)?;
            let is_name =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            (is_name && text.contains(&format!("@{name}@"))).then(|| name.to_owned())
        });
        let programs = program.needs.iter().map(|need| self.fill_placeholders(need));
        unfilled
            .chain(programs.filter(|need| !need.contains('@') && !self.has_program(need)))
            .collect()
    }

    /// Returns true if the user can run the program.
    fn has_program(&self, program: &str) -> bool {
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

    /// Replaces placeholders with their values.
    fn fill_placeholders(&self, text: &str) -> String {
        replace_placeholders(&self.values, text)
    }

    /// Creates the folder in which a program runs.
    pub fn create_folder(&self, program: &AccuracyProgram, number: usize) -> Result<ProgramFolder> {
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
        let place = ProgramFolder { home, work, values, teardown: program.teardown.clone() };
        if let Some(setup) = &program.setup {
            let mut command = Command::new("sh");
            command.args(["-ec", &place.fill_placeholders(setup)]).current_dir(&place.work);
            child::run_command(command.env("HOME", &place.home))?;
        }
        if let Some(user) = &self.user {
            child::run_command(Command::new("chown").args(["-R", user]).arg(&place.home))?;
        }
        Ok(place)
    }
}

impl Drop for AccuracyServers {
    fn drop(&mut self) {
        // A server that the script cannot stop runs until the machine shuts down. The next run uses
        // other folders.
        let _ = script_command("stop", &self.folder).status();
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// The folder in which a program runs.
pub struct ProgramFolder {
    pub home: PathBuf,
    pub work: PathBuf,
    values: BTreeMap<String, String>,
    teardown: Option<String>,
}

impl ProgramFolder {
    /// Replaces placeholders with their values.
    pub fn fill_placeholders(&self, text: &str) -> String {
        replace_placeholders(&self.values, text)
    }

    /// Ends the processes that the program left, and removes the folder.
    pub fn clear_folder(&self) {
        if let Some(teardown) = &self.teardown {
            // Usually everything has ended by then.
            let mut command = Command::new("sh");
            command
                .args(["-c", &self.fill_placeholders(teardown)])
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let _ = command.status();
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}

fn replace_placeholders(values: &BTreeMap<String, String>, text: &str) -> String {
    values
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), value))
}

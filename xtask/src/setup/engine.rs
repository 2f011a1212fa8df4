//! The container engine of the tests: the user's own if it is running, or one that this run starts.
//!
//! An own engine is started only as root on a CI machine, so that no user is surprised. It has its
//! own socket and folders, does not affect other engines, and ends with the run. On a machine that
//! cannot run one, this prints one line.

use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{PROBE_DEADLINE, is_probe_successful, is_root};
use crate::child::{self, ChildOutcome, is_ci};

/// The variable that tells tests and engine clients where the engine listens.
const VARIABLE: &str = "DOCKER_HOST";

/// An engine starts within half a second, but a busy machine may take longer.
const START_DEADLINE: Duration = Duration::from_secs(20);

/// The engine ends its containers first.
const END_DEADLINE: Duration = Duration::from_secs(15);

/// How often to check an engine that starts or ends.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Much longer than an empty container takes.
const TRIAL_DEADLINE: Duration = Duration::from_secs(60);

/// The images that tests create. They are removed again from a user's engine.
const IMAGES: &[&str] = &[
    "jaato-test:busybox",
    "jaato-test:no-shell",
    "jaato-test:host",
    "jaato-test:install",
    TRIAL_IMAGE,
];

/// The image that tests whether containers work.
const TRIAL_IMAGE: &str = "jaato-test:trial";

/// The container engine of the tests.
pub enum TestContainerEngine {
    /// An engine that was already running, with the test images that it had before.
    Theirs(Vec<&'static str>),
    /// An engine that was started for the tests.
    Ours(EngineDaemon),
}

impl TestContainerEngine {
    /// Finds or starts an engine. The error is a one-line reason.
    pub fn find_or_start(target: &Path) -> Result<Self, String> {
        if is_probe_successful(&["docker", "info"]) {
            return Ok(Self::Theirs(test_images()));
        }
        if std::env::var_os(VARIABLE).is_some() {
            // The tests check this engine themselves, because they need no client program.
            return Ok(Self::Theirs(IMAGES.to_vec()));
        }
        let without = "tests in containers are left out";
        if !is_probe_successful(&["dockerd", "--version"]) {
            return Err(format!("no container engine: {without}"));
        }
        if !(is_ci() && is_root()) {
            return Err(format!("no container engine answers: {without}; start yours"));
        }
        let daemon =
            EngineDaemon::start_engine(target).map_err(|error| format!("{error:#}: {without}"))?;
        daemon.run_empty_container().map_err(|error| format!("{error:#}: {without}"))?;
        Ok(Self::Ours(daemon))
    }

    /// Returns the variable of the engine for programs that get only named variables.
    pub fn engine_or_inherited_variable(&self) -> Option<(&'static str, OsString)> {
        let inherited = || std::env::var_os(VARIABLE).map(|address| (VARIABLE, address));
        self.engine_variable().or_else(inherited)
    }

    /// Returns the variable of the engine, if tests do not find it otherwise.
    pub fn engine_variable(&self) -> Option<(&'static str, OsString)> {
        match self {
            Self::Theirs(_) => None,
            Self::Ours(daemon) => Some((VARIABLE, daemon.engine_address())),
        }
    }
}

impl Drop for TestContainerEngine {
    /// Removes the test images from a user's engine. Our own engine keeps them for the next run.
    fn drop(&mut self) {
        let Self::Theirs(before) = self else { return };
        for image in test_images().into_iter().filter(|image| !before.contains(image)) {
            let mut command = Command::new("docker");
            command.args(["image", "rm", image]).stdout(Stdio::null()).stderr(Stdio::null());
            if child::run_until_deadline(&mut command, PROBE_DEADLINE) != ChildOutcome::Well {
                println!("the image `{image}` of the tests is left: `docker image rm {image}`");
            }
        }
    }
}

/// Returns the test images of the engine.
fn test_images() -> Vec<&'static str> {
    let has = |image: &&&'static str| is_probe_successful(&["docker", "image", "inspect", image]);
    IMAGES.iter().filter(has).copied().collect()
}

/// An engine that this run has started. Dropping it stops the engine.
pub struct EngineDaemon {
    child: Child,
    /// Short, because a socket's path has at most about a hundred bytes.
    run: PathBuf,
}

impl EngineDaemon {
    fn start_engine(target: &Path) -> Result<Self> {
        let folder = target.join("engine");
        fs::create_dir_all(&folder).with_context(|| format!("making `{}`", folder.display()))?;
        end_previous_engine(&folder)?;
        let run = std::env::temp_dir().join(format!("jaato-engine-{}", std::process::id()));
        fs::create_dir_all(&run).with_context(|| format!("making `{}`", run.display()))?;
        let log = folder.join("dockerd.log");
        let file = fs::File::create(&log).with_context(|| format!("making `{}`", log.display()))?;
        let errors = file.try_clone().context("sharing the engine's log")?;
        let mut command = Command::new("dockerd");
        command
            .arg("--data-root")
            .arg(folder.join("data"))
            .arg("--exec-root")
            .arg(run.join("exec"))
            .arg("--pidfile")
            .arg(pid_file(&folder))
            .arg("--host")
            .arg(socket_address(&run))
            // No firewall rules and no bridge, because containers of tests need no network and the
            // machine's network must not change.
            .args(["--iptables=false", "--ip6tables=false", "--bridge=none"])
            // Works on any file system of the target folder.
            .arg("--storage-driver=vfs")
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors);
        let child = command.spawn().context("starting dockerd")?;
        let mut daemon = Self { child, run };
        daemon.wait_until_listening(&log)?;
        Ok(daemon)
    }

    fn wait_until_listening(&mut self, log: &Path) -> Result<()> {
        let start = Instant::now();
        loop {
            // The engine binds its socket early and listens late. A connection shows that it has
            // started, but not that it answers.
            if is_engine_listening(&self.run) {
                return Ok(());
            }
            if self.child.try_wait().context("looking at dockerd")?.is_some() {
                bail!("dockerd does not run here ({})", last_log_error(log));
            }
            if start.elapsed() > START_DEADLINE {
                bail!("dockerd did not start within {} s", START_DEADLINE.as_secs());
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn engine_address(&self) -> OsString {
        socket_address(&self.run)
    }

    /// Runs an empty container, because an engine may answer but be unable to run one.
    fn run_empty_container(&self) -> Result<()> {
        if !is_probe_successful(&["docker", "--version"]) {
            return Ok(());
        }
        let file = self.run.join("trial.tar");
        fs::write(&file, empty_image()?)
            .with_context(|| format!("writing `{}`", file.display()))?;
        let docker = |words: &[&str]| {
            let mut command = Command::new("docker");
            command.args(words).env(VARIABLE, self.engine_address());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let mut import = docker(&["import"]);
        import.arg(&file).arg(TRIAL_IMAGE);
        let mut trial = docker(&["run", "--rm", TRIAL_IMAGE, "/busybox", "true"]);
        for command in [&mut import, &mut trial] {
            if child::run_until_deadline(command, TRIAL_DEADLINE) != ChildOutcome::Well {
                bail!("no container runs here: {} failed", child::command_text(command));
            }
        }
        Ok(())
    }
}

impl Drop for EngineDaemon {
    fn drop(&mut self) {
        if !end_process(self.child.id(), || matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))) {
            // Its helper program notices this and ends too.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // Folders that are still mounted remain in the system's temporary folder.
        let _ = fs::remove_dir_all(&self.run);
    }
}

fn socket_address(run: &Path) -> OsString {
    let mut address = OsString::from("unix://");
    address.push(run.join("engine.sock"));
    address
}

fn is_engine_listening(run: &Path) -> bool {
    let Ok(mut socket) = UnixStream::connect(run.join("engine.sock")) else {
        return false;
    };
    let mut answer = [0; 12];
    socket.set_read_timeout(Some(LOOK_EVERY)).is_ok()
        && socket.write_all(b"GET /_ping HTTP/1.0\r\n\r\n").is_ok()
        && socket.read_exact(&mut answer).is_ok()
        && answer.ends_with(b"200")
}

fn pid_file(folder: &Path) -> PathBuf {
    folder.join("dockerd.pid")
}

/// Stops the engine of a run that was killed, because two engines cannot share a folder.
fn end_previous_engine(folder: &Path) -> Result<()> {
    let Ok(text) = fs::read_to_string(pid_file(folder)) else { return Ok(()) };
    let Ok(pid) = text.trim().parse::<u32>() else { return Ok(()) };
    let is_it = || {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let folder = folder.join("data");
        // Another process may have the id by now.
        words.split(|byte| *byte == 0).any(|word| word == folder.as_os_str().as_encoded_bytes())
    };
    if is_it() && !end_process(pid, || !is_it()) {
        bail!("an earlier dockerd (process {pid}) did not end");
    }
    Ok(())
}

/// Asks a process to end. Returns true if it has ended.
fn end_process(pid: u32, has_ended: impl FnMut() -> bool) -> bool {
    let mut has_ended = has_ended;
    let mut command = Command::new("kill");
    command.args(["-TERM", &pid.to_string()]).stderr(Stdio::null());
    if child::run_until_deadline(&mut command, PROBE_DEADLINE) != ChildOutcome::Well {
        return has_ended();
    }
    let start = Instant::now();
    while !has_ended() {
        if start.elapsed() > END_DEADLINE {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    true
}

/// Returns the last error in the log, or else its last line.
fn last_log_error(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let line =
        text.lines().rev().find(|line| line.contains("failed") || line.contains("level=fatal"));
    line.or_else(|| text.lines().last()).unwrap_or("it says nothing").to_owned()
}

fn empty_image() -> Result<Vec<u8>> {
    let paths = ["/bin/busybox", "/usr/bin/busybox"];
    let busybox = paths.iter().find_map(|path| fs::read(path).ok());
    let busybox = busybox.context("found no busybox for an image")?;
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o755);
    header.set_size(busybox.len().try_into().unwrap_or(u64::MAX));
    let mut image = tar::Builder::new(Vec::new());
    image.append_data(&mut header, "busybox", busybox.as_slice())?;
    Ok(image.into_inner()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip::skip;

    #[test]
    fn reused_process_id_of_an_old_engine_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        end_previous_engine(folder.path()).unwrap();
        // This process is not dockerd, and must survive.
        fs::write(pid_file(folder.path()), std::process::id().to_string()).unwrap();
        end_previous_engine(folder.path()).unwrap();
        fs::write(pid_file(folder.path()), "nonsense").unwrap();
        end_previous_engine(folder.path()).unwrap();
    }

    #[test]
    fn own_engine_answers_runs_a_container_and_ends() {
        if !(is_ci() && is_root() && is_probe_successful(&["dockerd", "--version"])) {
            return skip("only the CI as root starts an engine, and only with a `dockerd`");
        }
        let target = tempfile::tempdir().unwrap();
        let daemon = match EngineDaemon::start_engine(target.path()) {
            Ok(daemon) => daemon,
            Err(error) => return skip(&format!("no engine starts here: {error:#}")),
        };
        let pid = daemon.child.id();
        assert_eq!(
            fs::read_to_string(pid_file(&target.path().join("engine"))).unwrap(),
            pid.to_string()
        );
        if daemon.run_empty_container().is_ok() {
            assert!(target.path().join("engine/data").exists());
        }
        let run = daemon.run.clone();
        drop(daemon);
        assert!(!Path::new(&format!("/proc/{pid}")).exists() && !run.exists());
    }

    #[test]
    fn end_waits_until_the_process_has_exited() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        assert!(end_process(child.id(), || child.try_wait().unwrap().is_some()));
    }

    #[test]
    fn engine_failure_reason_is_read_from_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        assert_eq!(last_log_error(&log), "it says nothing");
        fs::write(&log, "a\nfailed to start daemon: Devices cgroup isn't mounted\nb\n").unwrap();
        assert_eq!(last_log_error(&log), "failed to start daemon: Devices cgroup isn't mounted");
    }

    #[test]
    fn missing_engine_socket_is_not_listening() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_engine_listening(&folder.path().join("missing")));
    }
}

//! What a command in an existing container costs, beyond the engine's own exec.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::installed::Installed;
use super::table::{Figure, Target};
use super::yardstick::figure;
use super::{Outcome, ROUNDS};
use crate::batch::Batch;
use xtask::child;
use xtask::setup::Engine;
use xtask::workspace::Workspace;

/// A command, beyond the engine's own exec of it.
const MORE_MS_MAX: f64 = 20.0;

/// Commands of a round.
const COMMANDS: usize = 10;

/// Busybox under the names that a session's commands may need.
const NAMES: &[&str] = &[
    "sh", "cat", "echo", "env", "id", "kill", "ls", "mkdir", "mktemp", "rm", "sleep", "stat",
    "test", "true", "uname",
];

const IMAGE: &str = "jaato-bench:busybox";

/// Measures commands, where there is an engine.
pub fn containers(workspace: &Workspace) -> Result<Outcome> {
    let engine = match Engine::find(&workspace.target) {
        Ok(engine) => engine,
        Err(why) => return Ok(Outcome::Skipped(why)),
    };
    let plugins = ["environment-docker", "tool-cli"];
    let installed = Installed::new(workspace, "containers", &plugins, &[], "version = 1\n")?;
    let container = Container::start(&engine, &installed)?;
    let variable = engine.variable_for_strangers();
    let variables: Vec<_> = variable.iter().map(|(name, value)| (*name, value.clone())).collect();
    let words = ["--environment", "docker", "--container", container.id.as_str()];
    let mut session = installed.start(&variables, &words)?;
    let (mut theirs, mut ours) = (f64::INFINITY, f64::INFINITY);
    command_ms(&mut session)?;
    for _ in 0..ROUNDS {
        let mut exec = child::cargo(&workspace.root);
        exec.args(["run", "--quiet", "--release", "-p", "environment-docker"]);
        exec.args(["--example", "exec_bench", "--", container.id.as_str()]);
        exec.envs(variables.iter().map(|(name, value)| (*name, value)));
        theirs = theirs.min(figure(&child::output(&mut exec)?, "exec_ms")?);
        for _ in 0..COMMANDS {
            ours = ours.min(command_ms(&mut session)?);
        }
    }
    session.end()?;
    Ok(Outcome::Figures(vec![
        Figure::new("containers: the engine's own exec", theirs, "ms", Target::None),
        Figure::new(
            "containers: a command, beyond it",
            ours - theirs,
            "ms",
            Target::AboutAtMost(MORE_MS_MAX),
        ),
    ]))
}

fn command_ms(session: &mut Batch) -> Result<f64> {
    let begun = Instant::now();
    let told = session.call("cli_based_tool", &json!({ "command": "echo x" }))?;
    let took = begun.elapsed().as_secs_f64() * 1e3;
    if told["stdout"] != "x\n" {
        bail!("`echo x` in the container came to {told}");
    }
    Ok(took)
}

/// A container that somebody has brought. It goes when this is dropped, and its image with it.
struct Container<'a> {
    engine: &'a Engine,
    id: String,
}

impl<'a> Container<'a> {
    fn start(engine: &'a Engine, installed: &Installed) -> Result<Self> {
        let image = installed.home.beside("image.tar");
        fs::write(&image, busybox()?).with_context(|| format!("writing `{}`", image.display()))?;
        child::output(docker(engine, &["import"]).arg(&image).arg(IMAGE))?;
        let mount = format!("{}:/workspace", installed.home.work().display());
        let words = ["run", "--detach", "--network=none", "--volume", mount.as_str(), IMAGE];
        let mut run = docker(engine, &words);
        let id = child::output(run.args(["sleep", "3600"]))?.trim().to_owned();
        Ok(Self { engine, id })
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        for words in [&["rm", "--force", self.id.as_str()][..], &["image", "rm", IMAGE]] {
            let mut command = docker(self.engine, words);
            if !command.stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
                println!("left behind: {} failed", child::shown(&command));
            }
        }
    }
}

fn docker(engine: &Engine, words: &[&str]) -> Command {
    let mut command = Command::new("docker");
    command.args(words).envs(engine.variable());
    command
}

/// The files of an image: the machine's own busybox, so that no registry is asked.
fn busybox() -> Result<Vec<u8>> {
    let paths = ["/bin/busybox", "/usr/bin/busybox"];
    let busybox = paths.iter().find_map(|path| fs::read(path).ok());
    let busybox = busybox.context("no busybox to make an image of")?;
    let mut image = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o755);
    header.set_size(busybox.len().try_into().unwrap_or(u64::MAX));
    image.append_data(&mut header, "bin/busybox", busybox.as_slice())?;
    for name in NAMES {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        image.append_link(&mut header, format!("bin/{name}"), "busybox")?;
    }
    Ok(image.into_inner()?)
}

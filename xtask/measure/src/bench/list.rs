//! `jaato tool list` with many plugins: it must cost hardly more than with few, and open none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::home::Home;
use super::table::{Figure, Target, median};
use super::{Outcome, ROUNDS, patch};
use xtask::build_plugins::HOST;
use xtask::workspace::Workspace;
use xtask::{child, run};

const FEW: usize = 2;
const MANY: usize = 200;

/// The list of many may take this many times that of few …
const TIMES_MAX: f64 = 2.0;

/// … or this much longer.
const MORE_MS_MAX: f64 = 3.0;

/// With an empty cache every plugin is described by a child of its own.
const EMPTY_CACHE_S_MAX: f64 = 3.0;

/// Pairs of a round; each list starts a process.
const PAIRS: usize = 15;

/// A `jaato` with so many plugins beside it.
struct Installed {
    home: Home,
    jaato: PathBuf,
    count: usize,
}

/// Measures the list.
pub fn list(workspace: &Workspace) -> Result<Outcome> {
    let (jaato, plugin) = (run::build_release(workspace)?, patch::build(workspace)?);
    let few = Installed::new(workspace, &jaato, &plugin, FEW)?;
    let many = Installed::new(workspace, &jaato, &plugin, MANY)?;

    let mut empty_cache_s = f64::INFINITY;
    for _ in 0..ROUNDS {
        let cache = many.home.cache();
        if cache.exists() {
            fs::remove_dir_all(&cache)
                .with_context(|| format!("removing `{}`", cache.display()))?;
        }
        empty_cache_s = empty_cache_s.min(many.list_ms()? / 1e3);
    }
    few.check()?;
    many.check()?;
    let best = (0..ROUNDS).try_fold(Round::WORST, |best, _| {
        let round = Round::measure(&few, &many)?;
        Ok::<_, anyhow::Error>(if round.score() < best.score() { round } else { best })
    })?;

    let mut figures = vec![
        Figure::new("list: 2 plugins", best.few_ms, "ms", Target::None),
        Figure::new("list: 200 plugins", best.many_ms, "ms", Target::AtMost(best.allowed_ms())),
        Figure::new(
            "list: 200 plugins, empty cache",
            empty_cache_s,
            "s",
            Target::AboutAtMost(EMPTY_CACHE_S_MAX),
        ),
    ];
    match many.opened()? {
        Some(count) => figures.push(Figure::new(
            "list: plugins that it opened",
            count as f64,
            "",
            Target::AtMost(0.0),
        )),
        None => println!("not measured: this system's linker does not tell what it opens"),
    }
    Ok(Outcome::Figures(figures))
}

/// Medians of one round.
#[derive(Debug, Clone, Copy)]
struct Round {
    few_ms: f64,
    many_ms: f64,
}

impl Round {
    const WORST: Self = Self { few_ms: 1.0, many_ms: f64::INFINITY };

    fn measure(few: &Installed, many: &Installed) -> Result<Self> {
        let (mut few_ms, mut many_ms) = (Vec::new(), Vec::new());
        for _ in 0..PAIRS {
            few_ms.push(few.list_ms()?);
            many_ms.push(many.list_ms()?);
        }
        Ok(Self { few_ms: median(few_ms), many_ms: median(many_ms) })
    }

    fn allowed_ms(self) -> f64 {
        (self.few_ms * TIMES_MAX).max(self.few_ms + MORE_MS_MAX)
    }

    fn score(self) -> f64 {
        self.many_ms / self.allowed_ms()
    }
}

impl Installed {
    /// Installs a copy of the binary with its plugins beside it, where they are trusted as it is.
    fn new(workspace: &Workspace, jaato: &Path, plugin: &Path, count: usize) -> Result<Self> {
        let home = Home::new(workspace, &format!("list-{count}"))?;
        let folder = home.beside("bin");
        fs::create_dir_all(&folder).with_context(|| format!("making `{}`", folder.display()))?;
        let copy = folder.join(format!("{HOST}{}", std::env::consts::EXE_SUFFIX));
        fs::copy(jaato, &copy).with_context(|| format!("copying to `{}`", copy.display()))?;
        patch::copies(plugin, &home.beside("plugins"), count)?;
        Ok(Self { home, jaato: copy, count })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.home.command(&self.jaato);
        command.args(words).stdin(Stdio::null());
        command
    }

    fn list_ms(&self) -> Result<f64> {
        let mut command = self.command(&["tool", "list"]);
        command.stdout(Stdio::null());
        let start = Instant::now();
        child::run(&mut command)?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }

    /// A list that lacks some would be a fast one.
    fn check(&self) -> Result<()> {
        let text = child::output(&mut self.command(&["tool", "list", "--json"]))?;
        let tools: Value =
            serde_json::from_str(&text).context("reading `jaato tool list --json`")?;
        let enabled = tools.as_array().into_iter().flatten().filter(|it| it["status"] == "enabled");
        let (mut names, mut plugins) = (BTreeSet::new(), BTreeSet::new());
        for tool in enabled {
            names.extend(tool["name"].as_str().map(str::to_owned));
            plugins.extend(tool["plugin"].as_str().map(str::to_owned));
        }
        let wanted = self.count;
        if names.len() != wanted || plugins.len() != wanted {
            let (tools, plugins) = (names.len(), plugins.len());
            bail!(
                "of {wanted} plugins with a tool each, {plugins} plugins and {tools} tools are listed"
            );
        }
        Ok(())
    }

    /// Counts the plugins that a list opens, by what the dynamic linker tells. A call, which opens
    /// one, must be seen to do so, or nothing is known.
    fn opened(&self) -> Result<Option<usize>> {
        let tool = patch::tool(self.count - 1);
        let by_call = self.opened_by(&["call", &tool, r#"{"text": "a b"}"#])?;
        if by_call == 0 && !cfg!(all(target_os = "linux", target_env = "gnu")) {
            return Ok(None);
        }
        if by_call != 1 {
            bail!("a call of one tool opened {by_call} plugins");
        }
        self.opened_by(&["tool", "list"]).map(Some)
    }

    fn opened_by(&self, words: &[&str]) -> Result<usize> {
        let mut command = self.command(words);
        command.env("LD_DEBUG", "files");
        let output = command.output().with_context(|| child::shown(&command))?;
        child::check(&command, output.status)?;
        let folder = self.home.beside("plugins").display().to_string();
        Ok(count_opened(&String::from_utf8_lossy(&output.stderr), &folder))
    }
}

/// The linker names every file whose constructors it runs.
fn count_opened(linker_says: &str, folder: &str) -> usize {
    let begun = linker_says.lines().filter_map(|line| line.split_once("calling init: "));
    begun.filter(|(_, file)| file.trim().starts_with(folder)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_may_take_twice_as_long_or_three_milliseconds_more() {
        let allowed = |few_ms: f64| Round { few_ms, many_ms: 0.0 }.allowed_ms();
        assert_eq!(allowed(2.0), 5.0);
        assert_eq!(allowed(10.0), 20.0);
    }

    #[test]
    fn what_the_linker_begins_is_counted_by_its_folder() {
        let says = "  12:\tfile=/p/a.so [0];  generating link map\n  12:\t\n  \
                    12:\tcalling init: /lib/libc.so.6\n  12:\tcalling init: /p/a.so\n  \
                    12:\tcalling fini: /p/a.so [0]\n";
        assert_eq!(count_opened(says, "/p"), 1);
        assert_eq!(count_opened(says, "/q"), 0);
    }
}

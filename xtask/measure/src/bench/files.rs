//! What confined files cost against plain system calls, and walks and patterns against the `ignore`
//! crate; and what a tool pays for them that asks its session's environment.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use super::Outcome;
use super::installed::Installed;
use super::table::{Figure, Target};
use super::yardstick::figure;
use xtask::child;
use xtask::workspace::Workspace;

/// Reading or writing 4 KiB, beyond the same system calls.
const MORE_US_MAX: f64 = 20.0;
/// A stream of 64 MiB, in hundredths of what plain reads reach.
const STREAM_PERCENT_MIN: f64 = 70.0;
/// The same through the environment in its worker.
const WORKER_MORE_US_MAX: f64 = 80.0;
const WORKER_STREAM_PERCENT_MIN: f64 = 40.0;
/// Where Linux shows a file system in memory (shm_overview(7)).
const MEMORY_FOLDER: &str = "/dev/shm";
/// A tree of 100,000 files, against the `ignore` crate used directly.
const IGNORE_TIMES_MAX: f64 = 1.5;

/// Measures files. The program keeps the best of its rounds itself, as its tree takes long to make.
pub fn files(workspace: &Workspace) -> Result<Outcome> {
    let mut command = child::cargo(&workspace.root);
    command.args(["run", "--quiet", "--release", "-p", "jaato-plugin-sdk-environment"]);
    command.args(["--example", "files_bench"]);
    let mut all = figures(&child::output(&mut command)?)?;
    let memory = InMemory::new()?;
    let memory = memory.as_ref().map(|it| it.0.as_path());
    let allowed: Vec<&Path> = [Some(Path::new(".")), memory].into_iter().flatten().collect();
    let config = format!("version = 1\n[plugins.environment-local]\nallowed_paths = {allowed:?}\n");
    let plugins = ["environment-local"];
    let installed = Installed::new(workspace, "files", &plugins, &["measures"], &config)?;
    for way in [Way::InProcess, Way::InWorker] {
        all.extend(asked(&measured(&installed, memory, way)?, way)?);
    }
    Ok(Outcome::Figures(all))
}

/// A folder of a file system in memory. Taken away when it is dropped.
struct InMemory(PathBuf);

impl InMemory {
    /// Makes it; none where this machine shows no such file system (macOS).
    fn new() -> Result<Option<Self>> {
        let folder = Path::new(MEMORY_FOLDER);
        if !folder.is_dir() {
            return Ok(None);
        }
        let own = Self(folder.join(format!("jaato-bench-{}", std::process::id())));
        fs::create_dir(&own.0).with_context(|| format!("making `{}`", own.0.display()))?;
        Ok(Some(own))
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        // Two small files at most stay there until the next start of the machine.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Where the environment runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    InProcess,
    InWorker,
}

/// Has a tool measure the files of its session's environment.
fn measured(installed: &Installed, memory: Option<&Path>, way: Way) -> Result<String> {
    let folder = installed.file("files");
    fs::create_dir_all(&folder).with_context(|| format!("making `{}`", folder.display()))?;
    let isolated = [("JAATO_PLUGINS_ISOLATED", OsString::from("environment-local"))];
    let variables = match way {
        Way::InProcess => &[][..],
        Way::InWorker => &isolated[..],
    };
    let mut session = installed.start(variables, &[])?;
    let told = session.call("measure_files", &json!({ "folder": folder, "memory": memory }))?;
    session.end()?;
    Ok(told.to_string())
}

/// What a tool pays beyond the plain calls.
fn asked(line: &str, way: Way) -> Result<Vec<Figure>> {
    let (place, more_us_max, percent_min) = match way {
        Way::InProcess => ("a tool", MORE_US_MAX, STREAM_PERCENT_MIN),
        Way::InWorker => ("in a worker", WORKER_MORE_US_MAX, WORKER_STREAM_PERCENT_MIN),
    };
    let of = |name: &str| figure(line, name);
    let small = |what: &str, name: &str| {
        let more = of(&format!("{name}_us"))? - of(&format!("{name}_plain_us"))?;
        let what = format!("files, {place}: {what}, beyond plain calls");
        Ok::<_, anyhow::Error>(Figure::new(&what, more, "µs", Target::AboutAtMost(more_us_max)))
    };
    let large = |what: &str, name: &str| {
        let percent = 100.0 * of(&format!("{name}_plain_ms"))? / of(&format!("{name}_ms"))?;
        let what = format!("files, {place}: {what} 64 MiB, to plain calls");
        Ok::<_, anyhow::Error>(Figure::new(&what, percent, "%", Target::AtLeast(percent_min)))
    };
    let mut figures = vec![small("reading 4 KiB", "read")?];
    if line.contains("write_in_memory_us") {
        figures.push(small("writing 4 KiB", "write_in_memory")?);
        // It is given each small write at once, and what it does with that takes longer the more
        // the processor has to find again afterwards: told, but no target (decision 49).
        figures.push(small("writing 4 KiB to this disk", "write")?.without_target());
    } else {
        figures.push(small("writing 4 KiB", "write")?);
    }
    figures.extend([large("reading", "stream")?, large("writing", "upload")?]);
    Ok(figures)
}

fn figures(line: &str) -> Result<Vec<Figure>> {
    let of = |name: &str| figure(line, name);
    let plain = |what: &str, name: &str, unit| {
        of(name).map(|measured| Figure::new(what, measured, unit, Target::None))
    };
    let beyond = |what: &str, name: &str, plain: &str| {
        let more = of(name)? - of(plain)?;
        Ok::<_, anyhow::Error>(Figure::new(what, more, "µs", Target::AboutAtMost(MORE_US_MAX)))
    };
    let times = |what: &str, name: &str, plain: &str| {
        let times = of(name)? / of(plain)?;
        Ok::<_, anyhow::Error>(Figure::new(what, times, "times", Target::AtMost(IGNORE_TIMES_MAX)))
    };
    Ok(vec![
        plain("files: reading 4 KiB, plain calls", "read_plain_us", "µs")?,
        beyond("files: reading 4 KiB, beyond them", "read_us", "read_plain_us")?,
        beyond("files: the same in place, beyond them", "read_cached_us", "read_plain_us")?,
        plain("files: writing 4 KiB, plain calls", "write_plain_us", "µs")?,
        beyond("files: writing 4 KiB, beyond them", "write_us", "write_plain_us")?,
        plain("files: 64 MiB, plain reads", "stream_plain_ms", "ms")?,
        Figure::new(
            "files: a stream of 64 MiB, to plain reads",
            100.0 * of("stream_plain_ms")? / of("stream_ms")?,
            "%",
            Target::AtLeast(STREAM_PERCENT_MIN),
        ),
        plain("files: 100,000 files by `ignore`", "walk_ignore_ms", "ms")?,
        times("files: a walk, to `ignore`", "walk_ms", "walk_ignore_ms")?,
        times("files: a pattern, newest first, to `ignore`", "glob_ms", "glob_ignore_ms")?,
        times("files: a pattern, by path, to `ignore`", "glob_by_path_ms", "glob_ignore_ms")?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::table::Verdict;

    #[test]
    fn each_figure_is_compared_with_its_yardstick() {
        let line = r#"{"read_plain_us":2,"read_us":22,"read_cached_us":3,"write_plain_us":70,
            "write_us":120,"stream_plain_ms":7,"stream_ms":10,"walk_ignore_ms":100,"walk_ms":150,
            "glob_ignore_ms":100,"glob_ms":151,"glob_by_path_ms":80}"#;
        let verdicts: Vec<Verdict> = figures(line).unwrap().iter().map(Figure::verdict).collect();
        use Verdict::{Met, Missed, None};
        let expected = [None, Met, Met, None, Missed, None, Met, None, Met, Missed, Met];
        assert_eq!(verdicts, expected);
        assert!(figures("{}").is_err());
    }

    #[test]
    fn a_worker_may_cost_more() {
        let line = r#"{"read_plain_us":2,"read_us":60,"write_plain_us":2,"write_us":3,
            "stream_plain_ms":5,"stream_ms":10,"upload_plain_ms":9,"upload_ms":10}"#;
        let verdicts =
            |line, way| asked(line, way).unwrap().iter().map(Figure::verdict).collect::<Vec<_>>();
        assert_eq!(
            verdicts(line, Way::InProcess),
            [Verdict::Missed, Verdict::Met, Verdict::Missed, Verdict::Met]
        );
        assert_eq!(verdicts(line, Way::InWorker), [Verdict::Met; 4]);
        let in_memory = line.replace(
            "\"write_us\":3",
            "\"write_us\":300,\"write_in_memory_us\":9,\"write_in_memory_plain_us\":5",
        );
        let expected = [Verdict::Met, Verdict::Met, Verdict::None, Verdict::Met, Verdict::Met];
        assert_eq!(verdicts(&in_memory, Way::InWorker), expected);
    }
}

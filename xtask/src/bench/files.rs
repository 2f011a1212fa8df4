//! What confined files cost against plain system calls, and walks and patterns against the `ignore` crate; and what a
//! tool pays for them that asks its session's environment.

use std::ffi::OsString;
use std::fs;

use anyhow::{Context, Result};
use serde_json::json;

use super::Outcome;
use super::installed::Installed;
use super::table::{Figure, Target};
use super::yardstick::figure;
use crate::child;
use crate::workspace::Workspace;

/// Reading or writing 4 KiB, beyond the same system calls.
const MORE_US_MAX: f64 = 20.0;
/// A stream of 64 MiB, in hundredths of what plain reads reach.
const STREAM_PERCENT_MIN: f64 = 70.0;
/// The same through the environment in its worker.
const WORKER_MORE_US_MAX: f64 = 80.0;
const WORKER_STREAM_PERCENT_MIN: f64 = 40.0;
/// A tree of 100,000 files, against the `ignore` crate used directly.
const IGNORE_TIMES_MAX: f64 = 1.5;

/// Measures files. The program keeps the best of its rounds itself, as its tree takes long to make.
pub fn files(workspace: &Workspace) -> Result<Outcome> {
    let mut command = child::cargo(&workspace.root);
    command.args(["run", "--quiet", "--release", "-p", "jaato-plugin-sdk-environment"]);
    command.args(["--example", "files_bench"]);
    let mut all = figures(&child::output(&mut command)?)?;
    let config = "version = 1\n";
    let plugins = ["environment-local"];
    let installed = Installed::new(workspace, "files", &plugins, &["measures"], config)?;
    for way in [Way::InProcess, Way::InWorker] {
        all.extend(asked(&measured(&installed, way)?, way)?);
    }
    Ok(Outcome::Figures(all))
}

/// Where the environment runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    InProcess,
    InWorker,
}

/// Has a tool measure the files of its session's environment.
fn measured(installed: &Installed, way: Way) -> Result<String> {
    let folder = installed.file("files");
    fs::create_dir_all(&folder).with_context(|| format!("making `{}`", folder.display()))?;
    let isolated = [("JAATO_PLUGINS_ISOLATED", OsString::from("environment-local"))];
    let variables = match way {
        Way::InProcess => &[][..],
        Way::InWorker => &isolated[..],
    };
    let mut session = installed.start(variables, &[])?;
    let told = session.call("measure_files", &json!({ "folder": folder }))?;
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
        let what = format!("files, {place}: {what} 4 KiB, beyond plain calls");
        Ok::<_, anyhow::Error>(Figure::new(&what, more, "µs", Target::AboutAtMost(more_us_max)))
    };
    let large = |what: &str, name: &str| {
        let percent = 100.0 * of(&format!("{name}_plain_ms"))? / of(&format!("{name}_ms"))?;
        let what = format!("files, {place}: {what} 64 MiB, to plain calls");
        Ok::<_, anyhow::Error>(Figure::new(&what, percent, "%", Target::AtLeast(percent_min)))
    };
    Ok(vec![
        small("reading", "read")?,
        small("writing", "write")?,
        large("reading", "stream")?,
        large("writing", "upload")?,
    ])
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
            |way| asked(line, way).unwrap().iter().map(Figure::verdict).collect::<Vec<_>>();
        assert_eq!(
            verdicts(Way::InProcess),
            [Verdict::Missed, Verdict::Met, Verdict::Missed, Verdict::Met]
        );
        assert_eq!(verdicts(Way::InWorker), [Verdict::Met; 4]);
    }
}

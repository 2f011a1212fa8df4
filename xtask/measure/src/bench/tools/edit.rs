//! An edit of a large file, against reading and writing it plainly; and how much is read of one to
//! show some lines of it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::super::installed::Installed;
use super::super::table::{Figure, Target};
use super::keep;
use crate::batch::Batch;

/// An edit may take this many times what reading and writing the file takes.
const PLAIN_TIMES_MAX: f64 = 3.0;

/// How often a file is edited. Of fewer rounds all may fall into a moment in which the disk still
/// writes what came before, and the first few fill memory that the others use again.
const EDIT_ROUNDS: usize = 15;

const EDITED_BYTES: usize = 10_000_000;
const READ_BYTES: usize = 100_000_000;
const LINES_READ: usize = 200;

/// Bytes that may be read beyond those that are shown, in MiB.
const BEYOND_MIB_MAX: f64 = 1.0;

/// Measures them.
pub fn edit(installed: &Installed) -> Result<Vec<Figure>> {
    let mut session = installed.start(&[], &[])?;
    let mut figures = update(installed, &mut session)?;
    figures.push(read(installed, &mut session)?);
    session.end()?;
    Ok(figures)
}

fn update(installed: &Installed, session: &mut Batch) -> Result<Vec<Figure>> {
    let file = installed.file("edited.txt");
    fs::write(&file, text(EDITED_BYTES)).context("writing the file that is edited")?;
    let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
    for round in 0..EDIT_ROUNDS {
        let (old, new) = (format!("middle {round}"), format!("middle {}", round + 1));
        keep(&mut ours, || {
            let arguments = json!({ "path": "edited.txt", "old": old, "new": new });
            session.call("updateFile", &arguments).map(drop)
        })?;
        keep(&mut theirs, || plain(&file))?;
    }
    let bytes = fs::read_to_string(&file).context("reading what was edited")?;
    if !bytes.contains(&format!("middle {EDIT_ROUNDS}\n")) {
        bail!("the file was not edited");
    }
    fs::remove_file(&file).context("removing the file that was edited")?;
    let times = ours / theirs;
    Ok(vec![
        Figure::new("tools: 10 MB, read and written plainly", theirs, "ms", Target::None),
        Figure::new(
            "tools: `updateFile` of 10 MB, to that",
            times,
            "times",
            Target::AtMost(PLAIN_TIMES_MAX),
        ),
    ])
}

/// What an edit cannot do without: the whole is read, and written beside and renamed.
fn plain(file: &Path) -> Result<()> {
    let bytes = fs::read(file).context("reading plainly")?;
    let beside = file.with_extension("beside");
    fs::write(&beside, &bytes).context("writing plainly")?;
    fs::rename(&beside, file).context("renaming plainly")
}

fn read(installed: &Installed, session: &mut Batch) -> Result<Figure> {
    let file = installed.file("read.txt");
    fs::write(&file, text(READ_BYTES)).context("writing the file that is read")?;
    let arguments = json!({ "path": "read.txt", "offset": 1, "limit": LINES_READ });
    // The first call opens the plugin.
    session.call("readFile", &json!({ "path": "read.txt", "limit": 1 }))?;
    let before = bytes_read(session.id())?;
    let told = session.call("readFile", &arguments)?;
    let read = bytes_read(session.id())? - before;
    fs::remove_file(&file).context("removing the file that was read")?;
    let shown = told["result"].as_str().unwrap_or_default();
    if shown.lines().count() < LINES_READ {
        bail!("`readFile` shows {} lines", shown.lines().count());
    }
    let beyond = read.saturating_sub(shown.len() as u64) as f64 / f64::from(1 << 20);
    let name = "tools: `readFile`, 200 lines of 100 MB, read beyond what is shown";
    Ok(Figure::new(name, beyond, "MiB", Target::AtMost(BEYOND_MIB_MAX)))
}

/// Bytes that a process has read so far.
fn bytes_read(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/io");
    let facts = fs::read_to_string(&path).with_context(|| format!("reading `{path}`"))?;
    let line = facts.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.and_then(|bytes| bytes.parse().ok()).with_context(|| format!("`{path}` has no `rchar`"))
}

/// Lines of a text, with `middle 0` in the middle.
fn text(bytes: usize) -> String {
    let line = "a line of a file that is neither short nor long, as they are\n";
    let half = line.repeat(bytes / 2 / line.len());
    format!("{half}middle 0\n{half}")
}

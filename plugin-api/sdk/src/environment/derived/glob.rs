//! Finds files by a pattern, over a tree.

use std::cmp::Reverse;

use jaato_types::files::{
    FileGlob, FileOrder, FileWalk, FilesFound, GLOB_BYTES_MAX, GLOB_PATHS_MAX,
};
use jaato_types::{Error, ErrorKind, Result};

use super::pattern::Pattern;
use super::tree::Tree;
use super::{joined, named};
use crate::context::Reporter;
use crate::environment::Files;

/// Finds over [`Files::list`], and [`Files::stat`] where the newest come first.
pub(in crate::environment) async fn glob<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    request: FileGlob,
) -> Result<FilesFound> {
    let (folder, rest) = split(&request.pattern)?;
    let is_absolute = folder.starts_with('/') || request.path.is_empty();
    let base = if is_absolute { folder.to_owned() } else { joined(&request.path, folder) };
    if rest.is_empty() {
        return exactly(files, host, &base, folder).await;
    }
    let pattern = Pattern::new(rest.trim_end_matches('/'))?;
    let walk = FileWalk {
        path: base.clone(),
        include_ignored: request.include_ignored,
        depth_max: pattern.depth(),
        ..FileWalk::default()
    };
    let mut tree = Tree::begin(files, host, walk).await?;
    let mut paths = Vec::new();
    while let Some(entry) = tree.next_entry(files, host).await? {
        if pattern.matches(&entry.path) {
            paths.push(entry.path);
        }
    }
    match request.order {
        FileOrder::Path => paths.sort_unstable(),
        FileOrder::Newest => paths = newest_first(files, host, &base, paths).await?,
    }
    let count = paths.len();
    let limit = request.limit.unwrap_or(GLOB_PATHS_MAX).min(GLOB_PATHS_MAX);
    let mut bytes = 0;
    let told = paths.into_iter().take(limit).map(|path| format!("{folder}{path}"));
    let paths = told.take_while(|path| {
        bytes += path.len();
        bytes <= GLOB_BYTES_MAX
    });
    let paths = paths.collect();
    Ok(FilesFound { paths, count, unreadable: tree.take_unreadable(), ..FilesFound::default() })
}

/// Splits a pattern at the folder that its first names are.
pub(super) fn split(pattern: &str) -> Result<(&str, &str)> {
    let wrong = |text: String, hint: &str| {
        Err(Error::new(ErrorKind::InvalidArguments, text).with_hint(hint))
    };
    if pattern.is_empty() {
        return wrong("the pattern is empty".to_owned(), "for instance `**/*.rs`");
    }
    let is_sign = |name: &&str| name.contains(['*', '?', '[', ']', '{', '}', '\\']);
    let literal = pattern.split_inclusive('/').take_while(|name| !is_sign(name)).map(str::len);
    let (folder, rest) = pattern.split_at(literal.sum());
    if rest.split('/').any(|name| name == "..") {
        let text = format!("the pattern `{pattern}` has `..` behind a sign for other names");
        return wrong(text, "begin with the folder: `../x/*.rs`");
    }
    Ok((folder, rest))
}

/// A pattern without a sign is a path.
async fn exactly<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    path: &str,
    told: &str,
) -> Result<FilesFound> {
    let paths = match files.stat(host, named(path)).await {
        Ok(_) if told.len() > 1 => vec![told.trim_end_matches('/').to_owned()],
        Ok(_) => vec![told.to_owned()],
        Err(error) if error.kind == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    Ok(FilesFound { count: paths.len(), paths, ..FilesFound::default() })
}

async fn newest_first<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    base: &str,
    paths: Vec<String>,
) -> Result<Vec<String>> {
    let mut dated = Vec::with_capacity(paths.len());
    for path in paths {
        // What went meanwhile, or leads outside, comes last.
        let facts = files.stat(host, named(&joined(base, &path))).await;
        let modified_ms = facts.map_or(i64::MIN, |facts| facts.modified_ms);
        dated.push((Reverse(modified_ms), path));
    }
    dated.sort_unstable();
    Ok(dated.into_iter().map(|(_, path)| path).collect())
}

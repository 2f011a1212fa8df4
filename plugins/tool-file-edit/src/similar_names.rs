//! Finds the file that a path refers to if no file has exactly that name.
//!
//! Some names look the same but differ: macOS uses U+202F in the names of screenshots, other
//! programs use U+00A0, and accented letters have two forms. If exactly one name looks the same,
//! the path refers to that file. Otherwise the error suggests similar paths.

use jaato_plugin_sdk::files::{FileFind, FileKind, FileOrder, FolderEntry, FolderList};
use jaato_plugin_sdk::prelude::*;
use unicode_normalization::UnicodeNormalization as _;

use crate::edit::to_ascii_char;
use crate::files::read_facts;
use crate::plan::EditPlan;

/// The maximum number of paths that an error suggests.
const NEAR_MAX: usize = 3;
/// The minimum similarity of a suggested name (Jaro-Winkler).
const NEAR_ENOUGH: f64 = 0.85;
/// The time limit of the search for similar paths, in milliseconds.
const SEARCH_MS: u64 = 500;

impl EditPlan {
    /// Reads a file that must exist and returns its number in the plan.
    ///
    /// # Errors
    /// The errors of [`EditPlan::open_file`], or `not_found` with similar paths.
    pub async fn open_existing(&mut self, cx: &Reporter, path: &str) -> Result<usize> {
        if read_facts(cx, path).await?.is_some() {
            return self.open_file(cx, path).await;
        }
        match find_lookalike_path(cx, path).await {
            Some(path) => self.open_file(cx, &path).await,
            None => Err(missing_file_error(cx, path).await),
        }
    }
}

/// Returns the only path that looks the same as a path that does not exist.
pub async fn find_lookalike_path(cx: &Reporter, path: &str) -> Option<String> {
    let mut found = if path.starts_with('/') { "/".to_owned() } else { String::new() };
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let exact = format!("{found}{name}");
        if read_facts(cx, &exact).await.ok()?.is_some() {
            found = format!("{exact}/");
            continue;
        }
        let wanted = normalize_name(name);
        let entries = folder_entries(cx, &found).await?;
        let mut same = entries.iter().filter(|entry| normalize_name(&entry.name) == wanted);
        let only = same.next().filter(|_| same.next().is_none())?;
        found = format!("{found}{}/", only.name);
    }
    found.pop();
    (found != path).then_some(found)
}

/// Returns the error for a missing file, with similar paths.
pub async fn missing_file_error(cx: &Reporter, path: &str) -> Error {
    let error = Error::new(ErrorKind::NotFound, format!("File not found: {path}"));
    if path.contains(char::REPLACEMENT_CHARACTER) {
        let hint = "a name with � is not UTF-8: use a command with a pattern, such as `cat a*`";
        return error.with_hint(hint);
    }
    let near = find_similar_paths(cx, path).await;
    if near.is_empty() {
        return error;
    }
    let near: Vec<String> = near.iter().map(|path| format!("`{path}`")).collect();
    error.with_hint(format!("near: {}", near.join(", ")))
}

async fn find_similar_paths(cx: &Reporter, path: &str) -> Vec<String> {
    let (folder, name) = match path.trim_end_matches('/').rsplit_once('/') {
        Some((folder, name)) => (format!("{folder}/"), name),
        None => (String::new(), path),
    };
    let mut near = Vec::new();
    // Replaces special characters, so that the name is never a pattern.
    let pattern: String =
        name.chars().map(|sign| if "*?[]{}\\!".contains(sign) { '?' } else { sign }).collect();
    let find = FileFind {
        pattern: format!("**/{pattern}"),
        include_hidden: true,
        order: FileOrder::Path,
        limit: Some(NEAR_MAX),
        within_ms: Some(SEARCH_MS),
        ..FileFind::default()
    };
    if let Ok(mut pages) = cx.files().find(find).await {
        while let Ok(Some(page)) = pages.next().await {
            near.extend(page.files.into_iter().map(|file| file.path));
        }
    }
    let wanted = normalize_name(name).to_lowercase();
    let files = folder_entries(cx, &folder).await.unwrap_or_default();
    let mut alike: Vec<(f64, String)> = files
        .into_iter()
        .filter(|entry| entry.kind != FileKind::Folder)
        .map(|entry| {
            let nearness =
                strsim::jaro_winkler(&wanted, &normalize_name(&entry.name).to_lowercase());
            (nearness, format!("{folder}{}", entry.name))
        })
        .filter(|(nearness, path)| *nearness >= NEAR_ENOUGH && !near.contains(path))
        .collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.extend(alike.into_iter().map(|(_, path)| path));
    near.truncate(NEAR_MAX);
    near
}

async fn folder_entries(cx: &Reporter, folder: &str) -> Option<Vec<FolderEntry>> {
    let list = FolderList { path: folder.to_owned(), ..FolderList::default() };
    Some(cx.files().list(list).await.ok()?.entries)
}

/// Returns a name without invisible characters and with plain variants of others.
fn normalize_name(name: &str) -> String {
    name.nfkc()
        .filter(|sign| {
            !matches!(*sign, '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}' | '\u{AD}')
        })
        .map(|sign| match sign {
            '\u{2BC}' => '\'',
            sign if sign.is_whitespace() => ' ',
            sign => to_ascii_char(sign),
        })
        .collect()
}

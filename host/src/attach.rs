//! Files attached to a prompt: `--attach FILE`, `/attach FILE`, and `@FILE` in the user's text.

use std::path::{Component, Path, PathBuf};

use jaato_runtime::Runtime;
use jaato_runtime::policy::{PluginSource, PolicyCall, file_limits, folder_of_pattern};
use jaato_runtime::session_loop::{Session, UserPrompt};
use jaato_runtime::types::{Annotations, PathGlob};
use serde_json::Value;

use crate::exit::{CommandFailure, Exit};
use crate::report;
use crate::terminal::{NAME_COLUMNS, exact_line};

/// The characters that may precede the `@`.
const BEGINS: [char; 3] = ['(', '"', '\''];

/// The quotes around a name that contains blanks.
const QUOTES: [char; 2] = ['"', '\''];

/// The characters that end a sentence rather than a file name.
const ENDS: [char; 8] = ['.', ',', ';', ':', '!', '?', ')', '"'];

/// The maximum number of names that a note lists.
const NAMES_MAX: usize = 3;

/// Attaches these files and those that the text names with `@`, and prints a line for each.
///
/// The text may be pasted from anywhere. So `@` attaches only files inside the workspace that are
/// not hidden. For any other file the user has to write `--attach` or `/attach`.
///
/// # Errors
/// For a file that cannot be attached, or that a rule denies. If a file named with `@` does not
/// exist, or `@` does not attach it, the name is sent as text, with a note.
pub async fn attach_files(
    runtime: &Runtime,
    session: &Session,
    prompt: UserPrompt,
    files: &[PathBuf],
) -> Result<UserPrompt, CommandFailure> {
    check_not_denied(session, files)?;
    let mut files = files.to_vec();
    for file in mentioned_files(&prompt.text) {
        if files.contains(&file) {
            continue;
        }
        let shown = file.display();
        let workspace = runtime.setup().workspace.root();
        let refusal = denied_path(session, &file)
            .map(|rule| format!("`@{shown}` is not attached: a rule denies `{rule}`"))
            .or_else(|| {
                let why = reason_not_attachable(&file, workspace)?;
                let hint = format!("`--attach` or `/attach {shown}` attaches it");
                Some(format!("`@{shown}` is not attached: {why}\nhint: {hint}"))
            });
        match refusal {
            Some(refusal) => report::print_problems(&[refusal]),
            None => files.push(file),
        }
    }
    report::print_problems(unattached_note(&prompt.text).as_slice());
    let attached = attach_listed(runtime, session, prompt, &files).await?;
    for file in &files {
        let bytes = file.metadata().map_or(0, |facts| facts.len());
        report::print_remark(&format!("attached {}, {bytes} bytes", file.display()));
    }
    Ok(attached)
}

/// Attaches these files and no others, and prints nothing.
///
/// # Errors
/// For a file that cannot be attached, or that a rule denies.
pub async fn attach_listed(
    runtime: &Runtime,
    session: &Session,
    prompt: UserPrompt,
    files: &[PathBuf],
) -> Result<UserPrompt, CommandFailure> {
    check_not_denied(session, files)?;
    let attached = runtime.attach_files(session.id(), prompt, files).await;
    attached.map_err(|error| CommandFailure {
        exit: Exit::Usage,
        message: error.message,
        hint: error.hint,
    })
}

fn check_not_denied(session: &Session, files: &[PathBuf]) -> Result<(), CommandFailure> {
    let rule_of = |file: &PathBuf| Some((denied_path(session, file)?, file.display().to_string()));
    match files.iter().find_map(rule_of) {
        None => Ok(()),
        Some((rule, file)) => {
            let text = format!("cannot attach `{file}`: a rule denies `{rule}`");
            Err(CommandFailure::new(Exit::Usage, text).hint("`jaato permission list` shows it"))
        }
    }
}

/// Returns why `@` does not attach a file. Returns `None` if it does.
fn reason_not_attachable(file: &Path, workspace: &Path) -> Option<&'static str> {
    let real = file.canonicalize().ok();
    let Some(inside) = real.as_deref().and_then(|real| real.strip_prefix(workspace).ok()) else {
        return Some("it is outside the workspace");
    };
    let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    inside.components().any(is_hidden).then_some("it is hidden")
}

/// Returns the path of a rule that denies reading a file, by its name or its target.
fn denied_path(session: &Session, file: &Path) -> Option<String> {
    let (tool, plugin) = ("readFile".into(), "tool-file-edit".into());
    let call = PolicyCall {
        source: PluginSource::Shipped,
        annotations: Annotations { read_only: true, ..Annotations::default() },
        ..PolicyCall::new(&tool, &plugin, &Value::Null)
    };
    let denied = file_limits(&session.rules().lock(), &call, None).denied;
    let names = [std::path::absolute(file).ok(), file.canonicalize().ok()];
    let covers = |pattern: &String| names.iter().flatten().any(|name| is_covered(name, pattern));
    denied.into_iter().find(covers)
}

/// Returns true if a rule's path covers a file, even if the path's folder is a link.
fn is_covered(file: &Path, pattern: &str) -> bool {
    let folder = folder_of_pattern(pattern);
    let followed = Path::new(folder).canonicalize().ok();
    let followed = followed.map(|led| format!("{}{}", led.display(), &pattern[folder.len()..]));
    PathGlob::new(pattern).is_path_match(file)
        || followed.is_some_and(|pattern| PathGlob::new(pattern).is_path_match(file))
}

/// Splits the files of `/attach`. A file whose name contains blanks must be the only one.
pub fn parse_file_list(files: &str) -> Vec<PathBuf> {
    if is_file(&files) {
        return vec![files.into()];
    }
    files.split_whitespace().map(PathBuf::from).collect()
}

/// Lists the files that a text names with `@`, without duplicates.
pub fn mentioned_files(text: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for file in mention_names(text).filter_map(find_mentioned_file) {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

/// Returns a note about the words after `@` that look like paths and name no file, if there are
/// any. Such a word is sent as text.
pub fn unattached_note(text: &str) -> Option<String> {
    let is_path = |name: &str| name.contains(['.', '/']) || Path::new(name).is_dir();
    let mut others: Vec<&str> = Vec::new();
    for name in mention_names(text).filter(|name| find_mentioned_file(name).is_none()) {
        let name = name.trim_end_matches(ENDS);
        if is_path(name) && !others.contains(&name) {
            others.push(name);
        }
    }
    let reason =
        |name: &str| if Path::new(name).is_dir() { "is a folder" } else { "is not a file" };
    let shown = |name: &&str| format!("`@{}` {}", exact_line(name, NAME_COLUMNS), reason(name));
    let listed: Vec<String> = others.iter().take(NAMES_MAX).map(shown).collect();
    let more = match others.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let is_any = !listed.is_empty();
    is_any.then(|| format!("sent as text, without a file: {}{more}", listed.join(", ")))
}

/// Lists the text after each `@` that begins a word: the rest of the word, or the text in quotes.
fn mention_names(text: &str) -> impl Iterator<Item = &str> {
    let is_begin = |at: &usize| {
        let before = text[..*at].trim_end_matches(BEGINS);
        before.is_empty() || before.ends_with(char::is_whitespace)
    };
    let begins = text.match_indices('@').map(|(at, _)| at).filter(is_begin);
    begins.map(|at| {
        let rest = &text[at + 1..];
        let quote = rest.chars().next().filter(|sign| QUOTES.contains(sign));
        let quoted = quote.and_then(|quote| rest[1..].split_once(quote));
        match quoted {
            Some((name, _)) if !name.contains('\n') => name,
            _ => rest.split(char::is_whitespace).next().unwrap_or_default(),
        }
    })
}

/// Returns the file of a name, which may be the end of a sentence.
fn find_mentioned_file(name: &str) -> Option<PathBuf> {
    let found = [name, name.trim_end_matches(ENDS)].into_iter().find(is_file);
    found.map(PathBuf::from)
}

fn is_file(path: &&str) -> bool {
    !path.is_empty() && Path::new(path).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_with_an_at_sign_names_a_file_only_if_the_file_exists() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("moon.png");
        std::fs::write(&path, "x").unwrap();
        let path = path.to_str().unwrap();
        let found = |text: String| mentioned_files(&text);
        assert_eq!(found(format!("what is on @{path}?")), [PathBuf::from(path)]);
        assert_eq!(found(format!("@{path} @{path}")), [PathBuf::from(path)]);
        assert_eq!(found(format!("the moon (@{path})")), [PathBuf::from(path)]);
        let named = folder.path().join("my moon.png");
        std::fs::write(&named, "x").unwrap();
        for quote in QUOTES {
            let text = format!("see @{quote}{}{quote}, please", named.display());
            assert_eq!(found(text), std::slice::from_ref(&named));
        }
        let see = format!("see {path}");
        let words =
            ["mail ann@example.org", "@nobody here", "@", "@@ -1,3 @@", "f(\"@a.b\")", &see];
        for text in words {
            assert_eq!(
                (mentioned_files(text), unattached_note(text)),
                (Vec::new(), None),
                "{text}"
            );
        }
        let folder = folder.path().to_str().unwrap();
        let text = format!("@{folder} and (@nope.py) or @'a b.c', @nope.py.");
        assert_eq!(mentioned_files(&text), Vec::<PathBuf>::new(), "a folder is none");
        let note = format!(
            "sent as text, without a file: `@{folder}` is a folder, `@nope.py` is not a file, \
             `@a b.c` is not a file"
        );
        assert_eq!(unattached_note(&text), Some(note));
    }

    #[test]
    fn hidden_files_and_files_outside_the_workspace_are_not_attached_by_name() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let workspace = home.join("work");
        std::fs::create_dir_all(workspace.join(".git")).unwrap();
        std::fs::create_dir(home.join(".ssh")).unwrap();
        for name in [".ssh/id", "work/a.txt", "work/.env", "work/.git/config"] {
            std::fs::write(home.join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink("../.ssh", workspace.join("keys")).unwrap();
        let why = |name: &str| reason_not_attachable(&workspace.join(name), &workspace);
        assert_eq!(why("a.txt"), None);
        assert_eq!(why("keys/../a.txt"), Some("it is outside the workspace"));
        for name in ["../.ssh/id", "keys/id"] {
            assert_eq!(why(name), Some("it is outside the workspace"), "{name}");
        }
        for name in [".env", ".git/config"] {
            assert_eq!(why(name), Some("it is hidden"), "{name}");
        }
    }

    #[test]
    fn a_rule_covers_a_file_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("real")).unwrap();
        std::os::unix::fs::symlink("real", folder.join("link")).unwrap();
        let covered = |name: &str, pattern: &str| {
            is_covered(&folder.join(name), &folder.join(pattern).to_string_lossy())
        };
        for pattern in ["real", "real/key", "real/*", "link", "link/k*"] {
            assert!(covered("real/key", pattern), "{pattern}");
        }
        assert!(!covered("real/key", "real/k"));
        assert!(!covered("real/key", "other/*"));
    }
}

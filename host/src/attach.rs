//! Files beside a prompt: `--attach FILE`, `/attach FILE`, and `@FILE` in what a person types.

use std::path::{Path, PathBuf};

use jaato_runtime::Runtime;
use jaato_runtime::session_loop::{Prompt, Session};

use crate::exit::{Exit, Failure};

/// What may stand before the `@`.
const BEGINS: [char; 3] = ['(', '"', '\''];

/// What ends a sentence and no file's name.
const ENDS: [char; 8] = ['.', ',', ';', ':', '!', '?', ')', '"'];

/// Puts these files and those that the text names with `@` beside it.
///
/// # Errors
/// For a file that cannot be attached. One named with `@` that is not there is an ordinary word.
pub async fn beside(
    runtime: &Runtime,
    session: &Session,
    prompt: Prompt,
    files: &[PathBuf],
) -> Result<Prompt, Failure> {
    let mut files = files.to_vec();
    files.extend(mentioned(&prompt.text));
    let attached = runtime.attach(session.id(), prompt, &files).await;
    attached.map_err(|error| Failure {
        exit: Exit::Usage,
        message: error.message,
        hint: error.hint,
    })
}

/// Takes the files of `/attach` apart. One whose name has blanks stands alone.
pub fn listed(files: &str) -> Vec<PathBuf> {
    if is_file(&files) {
        return vec![files.into()];
    }
    files.split_whitespace().map(PathBuf::from).collect()
}

/// Lists the files that a text names with `@`, each once.
pub fn mentioned(text: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    let words = text.split_whitespace().map(|word| word.trim_start_matches(BEGINS));
    for word in words.filter_map(|word| word.strip_prefix('@')) {
        let file = [word, word.trim_end_matches(ENDS)].into_iter().find(is_file);
        if let Some(file) = file.map(PathBuf::from).filter(|file| !files.contains(file)) {
            files.push(file);
        }
    }
    files
}

fn is_file(path: &&str) -> bool {
    !path.is_empty() && Path::new(path).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_an_at_names_a_file_where_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("moon.png");
        std::fs::write(&path, "x").unwrap();
        let path = path.to_str().unwrap();
        let found = |text: String| mentioned(&text);
        assert_eq!(found(format!("what is on @{path}?")), [PathBuf::from(path)]);
        assert_eq!(found(format!("@{path} @{path}")), [PathBuf::from(path)]);
        assert_eq!(found(format!("the moon (@{path})")), [PathBuf::from(path)]);
        for text in ["mail ann@example.org", "@nobody here", "@", &format!("see {path}")] {
            assert_eq!(mentioned(text), Vec::<PathBuf>::new(), "{text}");
        }
        let folder = folder.path().to_str().unwrap();
        assert_eq!(found(format!("@{folder}")), Vec::<PathBuf>::new(), "a folder is none");
    }
}

//! The change that a call makes, or would make, to a file, for permission prompts and clients.

use serde::{Deserialize, Serialize};

/// The maximum length of a file's text for which a [`FileChange`] contains the whole text, in
/// bytes.
pub const WHOLE_TEXT_BYTES_MAX: usize = 64 * 1024;

/// The maximum length of all [`FileHunk`]s of a [`FileChange`], in bytes.
pub const HUNKS_BYTES_MAX: usize = 64 * 1024;

/// A change to a file. Texts are plain, as in the file, without colors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileChange {
    /// The path. For a move, the new path.
    pub path: String,
    /// The kind of change.
    pub kind: FileChangeKind,
    /// For a move, the old path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// The whole text before the change. `None` if there was no file, if it was not text, or if it
    /// was longer than [`WHOLE_TEXT_BYTES_MAX`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The whole text after the change, under the same conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// The hunks that differ, in order. Empty if the file is not text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<FileHunk>,
    /// The number of added lines.
    pub lines_added: u64,
    /// The number of removed lines.
    pub lines_removed: u64,
    /// Whether hunks at the end are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// The kind of a file change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// The content changes.
    #[default]
    Changed,
    /// The file is created.
    Created,
    /// The file is deleted.
    Deleted,
    /// The path changes, and possibly the content.
    Moved,
    /// A kind from a newer version.
    #[serde(other)]
    Unknown,
}

/// A changed part of a file, with some lines of context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileHunk {
    /// The number of its first line in the old text, counted from 1. If it has no lines there, the
    /// number of the line before.
    pub old_start: u64,
    /// The same for the new text.
    pub new_start: u64,
    /// Its lines.
    pub lines: Vec<HunkLine>,
}

/// A line of a hunk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HunkLine {
    /// Which of the two texts contains the line.
    pub kind: HunkLineKind,
    /// The text without its line feed. A carriage return before the line feed is part of it.
    pub text: String,
    /// Whether this is the last line and has no line feed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unended: bool,
}

/// Which of the two texts contains a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HunkLineKind {
    /// Both texts.
    #[default]
    Same,
    /// The old text only.
    Removed,
    /// The new text only.
    Added,
    /// A kind from a newer version.
    #[serde(other)]
    Unknown,
}

impl FileChange {
    /// Returns the change as a unified diff in the format of `git diff`.
    pub fn to_unified_diff(&self) -> String {
        let before = self.moved_from.as_ref().unwrap_or(&self.path);
        let name = |side: &str, path: &str, is_there: bool| match is_there {
            true => format!("{side}/{path}"),
            false => "/dev/null".to_owned(),
        };
        let old = name("a", before, self.kind != FileChangeKind::Created);
        let new = name("b", &self.path, self.kind != FileChangeKind::Deleted);
        let mut text = format!("--- {old}\n+++ {new}\n");
        for hunk in &self.hunks {
            hunk.write_hunk(&mut text);
        }
        if self.is_cut {
            text.push_str("[… the rest is left out]\n");
        }
        text
    }

    /// Returns the number of bytes in all texts of this change.
    pub fn text_bytes(&self) -> usize {
        let whole = [&self.old, &self.new].into_iter().flatten().map(String::len).sum::<usize>();
        whole + self.hunks.iter().map(FileHunk::text_bytes).sum::<usize>()
    }

    /// Removes the whole texts, then hunks from the end, until the remaining texts have at most
    /// this many bytes.
    pub fn truncate_texts(&mut self, bytes: usize) {
        if self.text_bytes() <= bytes {
            return;
        }
        (self.old, self.new) = (None, None);
        let mut left = bytes;
        let fits = |hunk: &FileHunk| {
            let size = hunk.text_bytes();
            let fits = size <= left;
            left = if fits { left - size } else { 0 };
            fits
        };
        let kept = self.hunks.iter().map(fits).take_while(|fits| *fits).count();
        self.is_cut |= kept < self.hunks.len();
        self.hunks.truncate(kept);
    }
}

impl FileHunk {
    fn count_lines(&self, but: HunkLineKind) -> usize {
        self.lines.iter().filter(|line| line.kind != but).count()
    }

    fn text_bytes(&self) -> usize {
        self.lines.iter().map(|line| line.text.len() + 1).sum()
    }

    fn write_hunk(&self, text: &mut String) {
        let range = |start: u64, count: usize| match count {
            1 => start.to_string(),
            count => format!("{start},{count}"),
        };
        let old = range(self.old_start, self.count_lines(HunkLineKind::Added));
        let new = range(self.new_start, self.count_lines(HunkLineKind::Removed));
        text.push_str(&format!("@@ -{old} +{new} @@\n"));
        for line in &self.lines {
            text.push(match line.kind {
                HunkLineKind::Removed => '-',
                HunkLineKind::Added => '+',
                HunkLineKind::Same | HunkLineKind::Unknown => ' ',
            });
            text.push_str(&line.text);
            text.push('\n');
            if line.is_unended {
                text.push_str("\\ No newline at end of file\n");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk_line(kind: HunkLineKind, text: &str) -> HunkLine {
        HunkLine { kind, text: text.to_owned(), ..HunkLine::default() }
    }

    fn sample_change() -> FileChange {
        let lines = vec![
            hunk_line(HunkLineKind::Same, "one"),
            hunk_line(HunkLineKind::Removed, "two"),
            HunkLine { is_unended: true, ..hunk_line(HunkLineKind::Added, "2") },
        ];
        FileChange {
            path: "a.txt".to_owned(),
            old: Some("one\ntwo\n".to_owned()),
            new: Some("one\n2".to_owned()),
            hunks: vec![FileHunk { old_start: 1, new_start: 1, lines }],
            lines_added: 1,
            lines_removed: 1,
            ..FileChange::default()
        }
    }

    #[test]
    fn file_change_is_written_as_a_git_diff() {
        let expected = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\
                        \\ No newline at end of file\n";
        assert_eq!(sample_change().to_unified_diff(), expected);
        let new = FileChange { kind: FileChangeKind::Created, ..sample_change() };
        assert!(new.to_unified_diff().starts_with("--- /dev/null\n+++ b/a.txt\n"));
        let gone = FileChange { kind: FileChangeKind::Deleted, ..sample_change() };
        assert!(gone.to_unified_diff().starts_with("--- a/a.txt\n+++ /dev/null\n"));
        let from = Some("b.txt".to_owned());
        let moved = FileChange { kind: FileChangeKind::Moved, moved_from: from, ..sample_change() };
        assert!(moved.to_unified_diff().starts_with("--- a/b.txt\n+++ b/a.txt\n"));
    }

    #[test]
    fn truncation_removes_whole_texts_before_hunks() {
        let mut cut = sample_change();
        cut.truncate_texts(cut.text_bytes());
        assert_eq!(cut, sample_change());
        cut.truncate_texts(cut.text_bytes() - 1);
        assert_eq!((cut.old.is_none(), cut.hunks.len(), cut.is_cut), (true, 1, false));
        cut.truncate_texts(1);
        assert_eq!((cut.hunks.len(), cut.is_cut), (0, true));
        assert!(cut.to_unified_diff().ends_with("[… the rest is left out]\n"));
    }
}

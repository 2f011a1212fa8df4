//! How a call changes a file, or would: for the person who is asked, and for who watches.

use serde::{Deserialize, Serialize};

/// Longest text of a file that a [`FileChange`] holds whole, in bytes.
pub const WHOLE_TEXT_BYTES_MAX: usize = 64 * 1024;

/// Longest text of all [`FileHunk`]s of a [`FileChange`], in bytes.
pub const HUNKS_BYTES_MAX: usize = 64 * 1024;

/// How a file changes. Texts are as they stand in the file: plain, and never coloured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileChange {
    /// Its path, the new one where it moves.
    pub path: String,
    /// What becomes of it.
    pub kind: FileChangeKind,
    /// Its path before, where it moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// Its whole text before: none where there was no file, where that is no text, or longer than
    /// [`WHOLE_TEXT_BYTES_MAX`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// Its whole text after, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// The pieces that differ, in order; none where it is no text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<FileHunk>,
    /// Lines that come.
    pub lines_added: u64,
    /// Lines that go.
    pub lines_removed: u64,
    /// Whether pieces are left out behind those that are here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// What becomes of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// It gets another content.
    #[default]
    Changed,
    /// It was not there.
    Created,
    /// It goes.
    Deleted,
    /// It gets another path, and maybe another content.
    Moved,
    /// Something that this side does not know.
    #[serde(other)]
    Unknown,
}

/// A piece of a file that changes, with some lines around it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileHunk {
    /// The number of its first line in the old text, from 1; that of the line before where it has
    /// none there.
    pub old_start: u64,
    /// The same in the new text.
    pub new_start: u64,
    /// Its lines.
    pub lines: Vec<HunkLine>,
}

/// A line of a piece that changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HunkLine {
    /// In which of the texts it stands.
    pub kind: HunkLineKind,
    /// The line, without its end of line; a carriage return before that is a part of it.
    pub text: String,
    /// Whether it is the last and has no end of line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unended: bool,
}

/// In which of the texts a line stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HunkLineKind {
    /// In both.
    #[default]
    Same,
    /// In the old one.
    Removed,
    /// In the new one.
    Added,
    /// Something that this side does not know.
    #[serde(other)]
    Unknown,
}

impl FileChange {
    /// Writes it as a unified diff, as `git diff` shows it.
    pub fn unified(&self) -> String {
        let before = self.moved_from.as_ref().unwrap_or(&self.path);
        let name = |side: &str, path: &str, is_there: bool| match is_there {
            true => format!("{side}/{path}"),
            false => "/dev/null".to_owned(),
        };
        let old = name("a", before, self.kind != FileChangeKind::Created);
        let new = name("b", &self.path, self.kind != FileChangeKind::Deleted);
        let mut text = format!("--- {old}\n+++ {new}\n");
        for hunk in &self.hunks {
            hunk.write(&mut text);
        }
        if self.is_cut {
            text.push_str("[… the rest is left out]\n");
        }
        text
    }

    /// Bytes of the texts that it holds.
    pub fn text_bytes(&self) -> usize {
        let whole = [&self.old, &self.new].into_iter().flatten().map(String::len).sum::<usize>();
        whole + self.hunks.iter().map(FileHunk::text_bytes).sum::<usize>()
    }

    /// Leaves out the whole texts, then pieces from behind, until its texts have at most so many
    /// bytes.
    pub fn cut_to(&mut self, bytes: usize) {
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
    fn count(&self, but: HunkLineKind) -> usize {
        self.lines.iter().filter(|line| line.kind != but).count()
    }

    fn text_bytes(&self) -> usize {
        self.lines.iter().map(|line| line.text.len() + 1).sum()
    }

    fn write(&self, text: &mut String) {
        let range = |start: u64, count: usize| match count {
            1 => start.to_string(),
            count => format!("{start},{count}"),
        };
        let old = range(self.old_start, self.count(HunkLineKind::Added));
        let new = range(self.new_start, self.count(HunkLineKind::Removed));
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

    fn line(kind: HunkLineKind, text: &str) -> HunkLine {
        HunkLine { kind, text: text.to_owned(), ..HunkLine::default() }
    }

    fn change() -> FileChange {
        let lines = vec![
            line(HunkLineKind::Same, "one"),
            line(HunkLineKind::Removed, "two"),
            HunkLine { is_unended: true, ..line(HunkLineKind::Added, "2") },
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
    fn it_is_written_as_git_writes_it() {
        let expected = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\
                        \\ No newline at end of file\n";
        assert_eq!(change().unified(), expected);
        let new = FileChange { kind: FileChangeKind::Created, ..change() };
        assert!(new.unified().starts_with("--- /dev/null\n+++ b/a.txt\n"));
        let gone = FileChange { kind: FileChangeKind::Deleted, ..change() };
        assert!(gone.unified().starts_with("--- a/a.txt\n+++ /dev/null\n"));
        let from = Some("b.txt".to_owned());
        let moved = FileChange { kind: FileChangeKind::Moved, moved_from: from, ..change() };
        assert!(moved.unified().starts_with("--- a/b.txt\n+++ b/a.txt\n"));
    }

    #[test]
    fn whole_texts_are_left_out_before_pieces() {
        let mut cut = change();
        cut.cut_to(cut.text_bytes());
        assert_eq!(cut, change());
        cut.cut_to(cut.text_bytes() - 1);
        assert_eq!((cut.old.is_none(), cut.hunks.len(), cut.is_cut), (true, 1, false));
        cut.cut_to(1);
        assert_eq!((cut.hunks.len(), cut.is_cut), (0, true));
        assert!(cut.unified().ends_with("[… the rest is left out]\n"));
    }
}

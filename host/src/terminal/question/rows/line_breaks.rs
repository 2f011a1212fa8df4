//! Breaks texts into rows.

use jaato_runtime::visible;

/// Returns the most columns that a text may take. A character outside ASCII may take two,
/// regardless of the terminal's tables.
pub(super) fn columns_of(text: &str) -> usize {
    text.chars().map(columns_of_sign).sum()
}

fn columns_of_sign(sign: char) -> usize {
    if sign.is_ascii() { 1 } else { 2 }
}

/// Breaks a text at its line ends and where a row is full: after the last space if that is in the
/// second half of the row. The rows contain the whole text.
pub(super) fn broken(text: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let (mut row, mut taken) = (String::new(), 0);
        for sign in line.chars() {
            if taken + columns_of_sign(sign) > width {
                let end = row.rfind(' ').map_or(0, |at| at + 1);
                let is_late = columns_of(&row[..end]) * 2 > width;
                let rest = if is_late { row.split_off(end) } else { String::new() };
                rows.push(std::mem::replace(&mut row, rest));
                taken = columns_of(&row);
            }
            row.push(sign);
            taken += columns_of_sign(sign);
        }
        rows.push(row);
    }
    rows
}

/// Breaks one line at spaces, and a word that is too long where the row is full.
pub(super) fn broken_at_words(line: &str, width: usize) -> Vec<String> {
    let line = visible::visible_name(line);
    let (mut rows, mut row) = (Vec::new(), String::new());
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let gap = usize::from(!row.is_empty());
        if columns_of(&row) + gap + columns_of(word) > width && !row.is_empty() {
            rows.push(std::mem::take(&mut row));
        }
        if !row.is_empty() {
            row.push(' ');
        }
        row.push_str(word);
        while columns_of(&row) > width {
            let mut parts = broken(&row, width);
            row = parts.pop().unwrap_or_default();
            rows.extend(parts);
        }
    }
    if !row.is_empty() {
        rows.push(row);
    }
    rows
}

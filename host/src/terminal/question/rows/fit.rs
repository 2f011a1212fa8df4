//! Fits the values of a question into the rows that the screen has for them.

use jaato_runtime::visible;

use super::line_breaks::{broken, columns_of};
use super::{BAR_COLUMNS, Extent, Row, SET_IN, Value};
use crate::terminal::Look;

/// Rows of the shortest truncated value: its name, its beginning, the number of omitted lines, and
/// its end.
pub(super) const CUT_ROWS: usize = 4;

/// A value as rows.
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
    /// Rows of the core below the name. Empty if the value has no core.
    core: Vec<Row>,
    /// How many of the first rows hold only the name, which is never omitted.
    title_rows: usize,
    is_brief: bool,
}

impl Rows {
    pub(super) fn of(value: &Value, width: usize, extent: Extent) -> Self {
        let lines = visible_lines(&value.lines);
        let (core, is_brief) = (Vec::new(), value.is_brief);
        let Some(name) = &value.name else {
            let rows_of = |lines: &[_]| rows_of(lines, width - BAR_COLUMNS, Row::barred);
            let (rows, core) = (rows_of(&lines), rows_of(&visible_lines(&value.core)));
            return Self { rows, core, title_rows: 0, is_brief };
        };
        let (name, barred) = (format!("{}: ", visible::visible_name(name)), width - BAR_COLUMNS);
        if let [(Look::Plain, text)] = &lines[..]
            && !text.contains('\n')
            && columns_of(&name) + columns_of(text) <= barred
        {
            let rows = vec![Row::barred(Look::Plain, name + text)];
            return Self { rows, core, title_rows: 0, is_brief };
        }
        let mut title = broken(name.trim_end(), barred);
        if extent == Extent::Fitted {
            cut_title(&mut title, value.title_rows_max, barred);
        }
        let mut rows: Vec<_> =
            title.into_iter().map(|text| Row::barred(value.title_look(), text)).collect();
        let title_rows = rows.len();
        // Indented more than the names, so that no line looks like a name.
        let lines_of = |lines: &[(Look, String)]| rows_of(lines, barred - SET_IN.len(), Row::deep);
        rows.extend(lines_of(&lines));
        let core = lines_of(&visible_lines(&value.core));
        Self { rows, core, title_rows, is_brief }
    }

    /// Removes the lines outside the core.
    fn shortened(mut self) -> Self {
        if !self.core.is_empty() {
            self.rows.truncate(self.title_rows);
            self.rows.append(&mut self.core);
        }
        self
    }

    fn rows_min(&self) -> usize {
        self.rows.len().min(CUT_ROWS - 1 + self.title_rows.max(1))
    }

    /// Returns at most `rows_max` rows: the beginning, a row that counts the omitted lines, and the
    /// end.
    fn cut(self, rows_max: usize, width: usize) -> Vec<Row> {
        if self.rows.len() <= rows_max {
            return self.rows;
        }
        let shown = rows_max.saturating_sub(self.title_rows + 1);
        let (first, last) = (self.title_rows + shown.div_ceil(2), self.rows.len() - shown / 2);
        let left_out = &self.rows[first..last];
        let note = left_out_note(left_out, width);
        let mut rows = self.rows[..first].to_vec();
        rows.push(note);
        rows.extend_from_slice(&self.rows[last..]);
        rows
    }
}

/// Removes the middle of a title that is too long, because the end of a path is its name.
fn cut_title(title: &mut Vec<String>, rows_max: usize, width: usize) {
    if title.len() <= rows_max {
        return;
    }
    if rows_max < 2 {
        // In a title of one row, the beginning says what it is.
        title.truncate(1);
        title[0].pop();
        return title[0].push('…');
    }
    let end = title.split_off(title.len() - 2).concat();
    title.truncate(rows_max - 1);
    let mut end = end.as_str();
    while columns_of(end) >= width {
        end = &end[end.chars().next().map_or(1, char::len_utf8)..];
    }
    title.push(format!("…{end}"));
}

fn visible_lines(lines: &[(Look, String)]) -> Vec<(Look, String)> {
    let visible = |text: &str| visible::escape_lines(text).replace('\t', "    ");
    lines.iter().map(|(look, text)| (*look, visible(text))).collect()
}

fn rows_of(lines: &[(Look, String)], width: usize, row: impl Fn(Look, String) -> Row) -> Vec<Row> {
    let rows = lines.iter().flat_map(|(look, text)| {
        broken(text, width).into_iter().map(|text| row(*look, text)).collect::<Vec<_>>()
    });
    rows.collect()
}

/// Returns the note with the number of omitted rows. It is shorter if the row is narrow.
fn left_out_note(rows: &[Row], width: usize) -> Row {
    let long = format!("  … {} more lines", rows.len());
    let fits = columns_of(&long) <= width;
    Row(vec![(Look::Dim, if fits { long } else { format!("… {}", rows.len()) })])
}

/// Fits values into `room` rows. Each value gets as many rows as possible. The first values take
/// precedence if not all of them fit.
pub(super) fn fitted(values: Vec<Rows>, room: usize, width: usize) -> Vec<Row> {
    let fit = |values: &[Rows]| values.iter().map(|value| value.rows.len()).sum::<usize>() <= room;
    let mut values = values;
    if !fit(&values) {
        values = values.into_iter().map(Rows::shortened).collect();
    }
    if fit(&values) {
        return values.into_iter().flat_map(|value| value.rows).collect();
    }
    let mut taken = 0;
    let fits = |value: &&Rows| {
        taken += value.rows_min();
        // One row counts the values that do not fit.
        taken < room
    };
    let count = values.iter().take_while(fits).count();
    let rest: Vec<Row> = values.split_off(count).into_iter().flat_map(|it| it.rows).collect();
    let least = values.iter().map(Rows::rows_min).sum::<usize>();
    let given = shares(&values, room - least - usize::from(!rest.is_empty()));
    let mut rows = Vec::new();
    for (value, more) in values.into_iter().zip(given) {
        let rows_max = value.rows_min() + more;
        rows.extend(value.cut(rows_max, width));
    }
    if !rest.is_empty() {
        rows.push(left_out_note(&rest, width));
    }
    rows
}

/// Distributes spare rows evenly among the values that need more. Brief values get the remaining
/// rows.
fn shares(values: &[Rows], spare: usize) -> Vec<usize> {
    let need = |value: &Rows| value.rows.len() - value.rows_min();
    let mut order: Vec<usize> = (0..values.len()).collect();
    // Begin with the value that needs the fewest rows, so that the others get the rest of its
    // share.
    order.sort_by_key(|&number| (values[number].is_brief, need(&values[number])));
    let mut given = vec![0; values.len()];
    let mut spare = spare;
    for is_brief in [false, true] {
        let of_kind = order.iter().filter(|number| values[**number].is_brief == is_brief);
        let numbers: Vec<usize> = of_kind.copied().collect();
        for (at, &number) in numbers.iter().enumerate() {
            given[number] = need(&values[number]).min(spare / (numbers.len() - at));
            spare -= given[number];
        }
    }
    given
}

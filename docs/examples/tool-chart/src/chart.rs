//! The chart: numbers as bars or a line, and as text. Independent of plugins.

use crate::png::Picture;

/// The maximum number of numbers in one chart. More bars than this could not be distinguished.
pub const VALUES_MAX: usize = 100;

const WIDTH: usize = 640;
const HEIGHT: usize = 360;
const MARGIN: usize = 16;
/// The number of grid lines, from the smallest value to the largest.
const GRID_LINES: usize = 5;

const INK: u8 = 1;
const GRID: u8 = 2;
const AXIS: u8 = 3;

/// The shape of the chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartShape {
    /// A bar for each number.
    Bars,
    /// Points that a line joins.
    Line,
}

/// Returns what is wrong with the numbers, if anything.
pub fn input_error(labels: &[String], values: &[f64]) -> Option<String> {
    if values.is_empty() || values.len() > VALUES_MAX {
        return Some(format!("a chart has 1 to {VALUES_MAX} values, not {}", values.len()));
    }
    if labels.len() != values.len() {
        return Some(format!("there are {} labels for {} values", labels.len(), values.len()));
    }
    // The difference between any two numbers must be finite too.
    values.iter().any(|value| value.abs() > 1e300).then(|| "a value is too large".to_owned())
}

/// Draws the numbers. The axis always includes zero.
pub fn draw_picture(shape: ChartShape, values: &[f64]) -> Picture {
    let mut picture = Picture::new(WIDTH, HEIGHT);
    let (low, high) = value_range(values);
    let (right, bottom) = (WIDTH - MARGIN, HEIGHT - MARGIN);
    let row = |value: f64| bottom - scale((value - low) / (high - low), bottom - MARGIN);
    for line in 0..GRID_LINES {
        let at = MARGIN + line * (bottom - MARGIN) / (GRID_LINES - 1);
        picture.fill((MARGIN, at), (right, at), GRID);
    }
    let slot = (right - MARGIN) / values.len();
    let center = |number: usize| MARGIN + number * slot + slot / 2;
    match shape {
        ChartShape::Bars => {
            for (number, value) in values.iter().enumerate() {
                let (top, foot) = (row(value.max(0.0)), row(value.min(0.0)));
                let half = (slot * 2 / 5).max(1);
                let at = center(number);
                picture.fill((at - half, top), (at + half, foot), INK);
            }
        }
        ChartShape::Line => {
            let points: Vec<_> = values
                .iter()
                .enumerate()
                .map(|(number, value)| (center(number), row(*value)))
                .collect();
            for pair in points.windows(2) {
                draw_line(&mut picture, pair[0], pair[1]);
            }
            for (column, row) in points {
                picture.fill((column - 3, row.saturating_sub(3)), (column + 3, row + 3), INK);
            }
        }
    }
    picture.fill((MARGIN, row(0.0)), (right, row(0.0)), AXIS);
    picture.fill((MARGIN, MARGIN), (MARGIN, bottom), AXIS);
    picture
}

/// Joins two points from left to right, with a column of pixels at each step.
fn draw_line(picture: &mut Picture, from: (usize, usize), to: (usize, usize)) {
    let columns = (to.0 - from.0).max(1);
    let at = |step: usize| (from.1 * (columns - step) + to.1 * step) / columns;
    for step in 0..columns {
        let (one, other) = (at(step), at(step + 1));
        picture.fill((from.0 + step, one.min(other)), (from.0 + step, one.max(other) + 1), INK);
    }
}

/// Returns the smallest and the largest value, including zero. They always differ.
fn value_range(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(0.0, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    if low < high { (low, high) } else { (0.0, 1.0) }
}

/// Scales a length by a factor from 0 to 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "it is a number of pixels of a small picture"
)]
fn scale(part: f64, length: usize) -> usize {
    ((part * length as f64).round() as usize).min(length)
}

/// Returns the chart as text, for models without vision and for users who want the numbers.
pub fn describe(title: &str, labels: &[String], values: &[f64]) -> String {
    let numbers = labels.iter().zip(values).map(|(label, value)| format!("{label}: {value}"));
    let numbers = numbers.collect::<Vec<_>>().join(", ");
    let (low, high) = value_range(values);
    format!("{title}. From left to right, on an axis from {low} to {high}: {numbers}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inked_rows(picture: &Picture, column: usize) -> usize {
        let rows = picture.pixels.chunks(WIDTH);
        rows.filter(|row| row[column] == INK).count()
    }

    #[test]
    fn a_bar_is_as_high_as_its_value() {
        let picture = draw_picture(ChartShape::Bars, &[1.0, 2.0]);
        let (one, two) = (inked_rows(&picture, 168), inked_rows(&picture, 472));
        assert!(one > 100 && two.abs_diff(2 * one) <= 2, "{one} {two}");
    }

    #[test]
    fn all_numbers_can_be_drawn() {
        let many = vec![-3.5; VALUES_MAX];
        for values in [&[0.0][..], &[-1.0, 1.0], &[1e300, -1e300], &[5e-324], &many] {
            for shape in [ChartShape::Bars, ChartShape::Line] {
                let picture = draw_picture(shape, values);
                assert_eq!(picture.pixels.len(), WIDTH * HEIGHT, "{shape:?} {values:?}");
            }
        }
    }

    #[test]
    fn unusable_labels_and_values_are_reported() {
        let labels = |count: usize| vec!["a".to_owned(); count];
        assert_eq!(input_error(&labels(2), &[1.0, 2.0]), None);
        for (count, values) in
            [(0, vec![]), (1, vec![1.0, 2.0]), (101, vec![1.0; 101]), (1, vec![f64::MAX])]
        {
            assert!(input_error(&labels(count), &values).is_some(), "{values:?}");
        }
    }
}

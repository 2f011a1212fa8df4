//! Human-readable sizes.

use std::fmt;

/// A number of bytes, displayed as `1.12 GB` in decimal units, as is common for downloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("GB", 1e9, 2), ("MB", 1e6, 0), ("kB", 1e3, 0)];
        let bytes = self.0 as f64;
        match units.into_iter().find(|(_, unit, _)| bytes >= *unit) {
            Some((name, unit, digits)) => write!(f, "{:.digits$} {name}", bytes / unit),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_sizes_are_shown_with_three_digits_and_a_unit() {
        let shown = [0, 999, 1_000, 491_400_064, 1_117_320_768].map(|n| ByteSize(n).to_string());
        assert_eq!(shown, ["0 bytes", "999 bytes", "1 kB", "491 MB", "1.12 GB"]);
    }
}

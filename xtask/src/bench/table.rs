//! Figures beside their targets.

/// What a figure must be.
#[allow(dead_code, reason = "the yardsticks have no targets of their own")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    AtMost(f64),
    /// For scores and for ratios that must be large.
    AtLeast(f64),
    /// A yardstick: only there to be compared with.
    None,
}

/// One measured value.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub what: String,
    pub unit: &'static str,
    pub measured: f64,
    pub target: Target,
}

impl Figure {
    /// Whether the target is met. What could not be measured meets none.
    pub fn is_met(&self) -> bool {
        match self.target {
            Target::AtMost(limit) => self.measured <= limit,
            Target::AtLeast(limit) => self.measured >= limit,
            Target::None => true,
        }
    }
}

/// A table for people.
pub fn render(figures: &[Figure]) -> String {
    let width = figures.iter().map(|figure| figure.what.chars().count()).max().unwrap_or(0).max(4);
    let mut text = format!("{:width$}  {:>12}  {:>12}\n", "what", "measured", "target");
    for figure in figures {
        let target = match figure.target {
            Target::AtMost(limit) => format!("≤ {}", short(limit)),
            Target::AtLeast(limit) => format!("≥ {}", short(limit)),
            Target::None => String::new(),
        };
        let mark = if figure.is_met() { "" } else { "  MISSED" };
        let line = format!(
            "{:width$}  {:>12}  {target:>12}  {}{mark}",
            figure.what,
            short(figure.measured),
            figure.unit
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Three digits that count are enough for what scatters by a tenth.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// The median; of an even number the lower middle one. None of nothing.
#[allow(dead_code, reason = "for the measurements of the host")]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(measured: f64, target: Target) -> Figure {
        Figure { what: "a call".into(), unit: "µs", measured, target }
    }

    #[test]
    fn a_target_is_met_at_its_limit_and_missed_beyond() {
        assert!(figure(4.0, Target::AtMost(4.0)).is_met());
        assert!(!figure(4.01, Target::AtMost(4.0)).is_met());
        assert!(figure(33.0, Target::AtLeast(33.0)).is_met());
        assert!(!figure(32.0, Target::AtLeast(33.0)).is_met());
        assert!(figure(1e9, Target::None).is_met());
        assert!(!figure(f64::NAN, Target::AtMost(4.0)).is_met());
    }

    #[test]
    fn a_missed_target_is_marked_in_its_own_line() {
        let text = render(&[figure(0.4, Target::AtMost(4.0)), figure(15.25, Target::AtMost(15.0))]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].ends_with("µs"), "{text}");
        assert!(lines[2].ends_with("MISSED"), "{text}");
    }

    #[test]
    fn the_median_is_one_of_the_values() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }
}

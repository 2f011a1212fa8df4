//! Figures with their targets.

/// The target of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FigureTarget {
    AtMost(f64),
    /// For scores and ratios that must be high.
    AtLeast(f64),
    /// A time without a yardstick. A slow or busy machine may take up to twice as long.
    AboutAtMost(f64),
    /// A yardstick, only for comparison.
    None,
}

/// The result of comparing a figure with its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureVerdict {
    Met,
    /// Beyond the target, but at most twice as much.
    Slow,
    Missed,
    None,
}

/// One measured value.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchmarkFigure {
    pub what: String,
    pub unit: &'static str,
    pub measured: f64,
    pub target: FigureTarget,
}

impl BenchmarkFigure {
    /// Creates a figure.
    pub fn new(what: &str, measured: f64, unit: &'static str, target: FigureTarget) -> Self {
        Self { what: what.to_owned(), unit, measured, target }
    }

    /// Returns the figure without a target.
    pub fn without_target(self) -> Self {
        Self { target: FigureTarget::None, ..self }
    }

    /// Compares the figure with its target. A figure that could not be measured fails.
    pub fn compare_with_target(&self) -> FigureVerdict {
        let measured = self.measured;
        match self.target {
            FigureTarget::AtMost(limit) | FigureTarget::AboutAtMost(limit) if measured <= limit => {
                FigureVerdict::Met
            }
            FigureTarget::AtLeast(limit) if measured >= limit => FigureVerdict::Met,
            FigureTarget::AboutAtMost(limit) if measured <= 2.0 * limit => FigureVerdict::Slow,
            FigureTarget::AtMost(_) | FigureTarget::AtLeast(_) | FigureTarget::AboutAtMost(_) => {
                FigureVerdict::Missed
            }
            FigureTarget::None => FigureVerdict::None,
        }
    }
}

impl FigureTarget {
    fn target_text(self) -> String {
        match self {
            Self::AtMost(limit) | Self::AboutAtMost(limit) => {
                format!("≤ {}", format_three_digits(limit))
            }
            Self::AtLeast(limit) => format!("≥ {}", format_three_digits(limit)),
            Self::None => String::new(),
        }
    }
}

impl FigureVerdict {
    fn verdict_text(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Slow => "slow: beyond the target, within twice of it",
            Self::Missed => "MISSED",
            Self::None => "",
        }
    }
}

/// Formats a table for users.
pub fn render_table(figures: &[BenchmarkFigure]) -> String {
    let width = figures.iter().map(|figure| figure.what.chars().count()).max().unwrap_or(0).max(4);
    let mut text = String::new();
    let mut row = |what: &str, measured: &str, unit: &str, target: &str, verdict: &str| {
        let line = format!("{what:width$}  {measured:>8} {unit:<6}  {target:>8}  {verdict}");
        text.push_str(line.trim_end());
        text.push('\n');
    };
    row("what", "measured", "", "target", "verdict");
    for figure in figures {
        let target = figure.target.target_text();
        let verdict = figure.compare_with_target().verdict_text();
        row(&figure.what, &format_three_digits(figure.measured), figure.unit, &target, verdict);
    }
    text
}

/// Formats three significant digits, enough for values that vary by a tenth.
fn format_three_digits(value: f64) -> String {
    if value.fract() == 0.0 {
        return format!("{value}");
    }
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_verdict(measured: f64, target: FigureTarget, expected: FigureVerdict) {
        assert_eq!(
            BenchmarkFigure::new("a call", measured, "µs", target).compare_with_target(),
            expected
        );
    }

    #[test]
    fn a_target_is_met_at_its_limit_and_missed_beyond() {
        check_verdict(4.0, FigureTarget::AtMost(4.0), FigureVerdict::Met);
        check_verdict(4.01, FigureTarget::AtMost(4.0), FigureVerdict::Missed);
        check_verdict(33.0, FigureTarget::AtLeast(33.0), FigureVerdict::Met);
        check_verdict(32.0, FigureTarget::AtLeast(33.0), FigureVerdict::Missed);
        check_verdict(1e9, FigureTarget::None, FigureVerdict::None);
        check_verdict(f64::NAN, FigureTarget::AtMost(4.0), FigureVerdict::Missed);
        check_verdict(f64::NAN, FigureTarget::AtLeast(4.0), FigureVerdict::Missed);
    }

    #[test]
    fn time_target_without_a_yardstick_is_missed_beyond_twice_its_value() {
        check_verdict(3.0, FigureTarget::AboutAtMost(3.0), FigureVerdict::Met);
        check_verdict(6.0, FigureTarget::AboutAtMost(3.0), FigureVerdict::Slow);
        check_verdict(6.1, FigureTarget::AboutAtMost(3.0), FigureVerdict::Missed);
        check_verdict(f64::NAN, FigureTarget::AboutAtMost(3.0), FigureVerdict::Missed);
    }

    #[test]
    fn each_line_has_figure_target_and_verdict() {
        let text = render_table(&[
            BenchmarkFigure::new("a call", 0.4, "µs", FigureTarget::AtMost(4.0)),
            BenchmarkFigure::new("a hop there and back", 15.25, "µs", FigureTarget::AtMost(15.0)),
            BenchmarkFigure::new("a yardstick", 100.0, "µs", FigureTarget::None),
        ]);
        assert_eq!(
            text,
            "what                  measured           target  verdict\n\
             a call                   0.400 µs           ≤ 4  met\n\
             a hop there and back      15.2 µs          ≤ 15  MISSED\n\
             a yardstick                100 µs\n"
        );
    }
}

//! Figures with their targets.

/// The target of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
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
pub enum Verdict {
    Met,
    /// Beyond the target, but at most twice as much.
    Slow,
    Missed,
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
    /// Creates a figure.
    pub fn new(what: &str, measured: f64, unit: &'static str, target: Target) -> Self {
        Self { what: what.to_owned(), unit, measured, target }
    }

    /// Returns the figure without a target.
    pub fn without_target(self) -> Self {
        Self { target: Target::None, ..self }
    }

    /// Compares the figure with its target. A figure that could not be measured fails.
    pub fn verdict(&self) -> Verdict {
        let measured = self.measured;
        match self.target {
            Target::AtMost(limit) | Target::AboutAtMost(limit) if measured <= limit => Verdict::Met,
            Target::AtLeast(limit) if measured >= limit => Verdict::Met,
            Target::AboutAtMost(limit) if measured <= 2.0 * limit => Verdict::Slow,
            Target::AtMost(_) | Target::AtLeast(_) | Target::AboutAtMost(_) => Verdict::Missed,
            Target::None => Verdict::None,
        }
    }
}

impl Target {
    fn shown(self) -> String {
        match self {
            Self::AtMost(limit) | Self::AboutAtMost(limit) => format!("≤ {}", short(limit)),
            Self::AtLeast(limit) => format!("≥ {}", short(limit)),
            Self::None => String::new(),
        }
    }
}

impl Verdict {
    fn shown(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Slow => "slow: beyond the target, within twice of it",
            Self::Missed => "MISSED",
            Self::None => "",
        }
    }
}

/// Formats a table for users.
pub fn render(figures: &[Figure]) -> String {
    let width = figures.iter().map(|figure| figure.what.chars().count()).max().unwrap_or(0).max(4);
    let mut text = String::new();
    let mut row = |what: &str, measured: &str, unit: &str, target: &str, verdict: &str| {
        let line = format!("{what:width$}  {measured:>8} {unit:<6}  {target:>8}  {verdict}");
        text.push_str(line.trim_end());
        text.push('\n');
    };
    row("what", "measured", "", "target", "verdict");
    for figure in figures {
        let target = figure.target.shown();
        let verdict = figure.verdict().shown();
        row(&figure.what, &short(figure.measured), figure.unit, &target, verdict);
    }
    text
}

/// Formats three significant digits, enough for values that vary by a tenth.
fn short(value: f64) -> String {
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
    fn check(measured: f64, target: Target, expected: Verdict) {
        assert_eq!(Figure::new("a call", measured, "µs", target).verdict(), expected);
    }

    #[test]
    fn a_target_is_met_at_its_limit_and_missed_beyond() {
        check(4.0, Target::AtMost(4.0), Verdict::Met);
        check(4.01, Target::AtMost(4.0), Verdict::Missed);
        check(33.0, Target::AtLeast(33.0), Verdict::Met);
        check(32.0, Target::AtLeast(33.0), Verdict::Missed);
        check(1e9, Target::None, Verdict::None);
        check(f64::NAN, Target::AtMost(4.0), Verdict::Missed);
        check(f64::NAN, Target::AtLeast(4.0), Verdict::Missed);
    }

    #[test]
    fn a_time_without_a_yardstick_is_missed_beyond_twice() {
        check(3.0, Target::AboutAtMost(3.0), Verdict::Met);
        check(6.0, Target::AboutAtMost(3.0), Verdict::Slow);
        check(6.1, Target::AboutAtMost(3.0), Verdict::Missed);
        check(f64::NAN, Target::AboutAtMost(3.0), Verdict::Missed);
    }

    #[test]
    fn each_line_has_figure_target_and_verdict() {
        let text = render(&[
            Figure::new("a call", 0.4, "µs", Target::AtMost(4.0)),
            Figure::new("a hop there and back", 15.25, "µs", Target::AtMost(15.0)),
            Figure::new("a yardstick", 100.0, "µs", Target::None),
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

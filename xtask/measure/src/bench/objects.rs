//! What a session's object environment costs: it must not grow with what is there.

use anyhow::Result;

use super::table::{Figure, Target};
use super::yardstick::figure;
use super::{Outcome, ROUNDS};
use xtask::child;
use xtask::workspace::Workspace;

/// `get_objects` of ten among 100,000.
const GET_MS_MAX: f64 = 1.0;

/// With 100,000 objects against with 1,000: what differs is what the processor's caches hold.
const TIMES_MAX: f64 = 3.0;

/// Writing one addition against writing everything.
const SAVED_MIN: f64 = 1_000.0;

/// Measures 1,000 objects against 100,000; the best of some rounds.
pub fn objects(workspace: &Workspace) -> Result<Outcome> {
    let mut best = Round::measure(workspace)?;
    for _ in 1..ROUNDS {
        best = best.better(Round::measure(workspace)?);
    }
    let at_most = Target::AtMost;
    Ok(Outcome::Figures(vec![
        Figure::new(
            "objects: `get_objects`, 10 of 100,000",
            best.get_us / 1e3,
            "ms",
            Target::AboutAtMost(GET_MS_MAX),
        ),
        Figure::new("objects: `add` to 1,000", best.add_few_us, "µs", Target::None),
        Figure::new("objects: `add` to 100,000", best.add_many_us, "µs", Target::None),
        Figure::new("objects: `add`, many to few", best.adds(), "times", at_most(TIMES_MAX)),
        Figure::new("objects: saving one `add` to 1,000", best.save_few_us, "µs", Target::None),
        Figure::new("objects: saving one `add` to 100,000", best.save_many_us, "µs", Target::None),
        Figure::new("objects: saving, many to few", best.saves(), "times", at_most(TIMES_MAX)),
        Figure::new(
            "objects: saving all 100,000 to saving one `add`",
            best.save_all_us / best.save_many_us,
            "times",
            Target::AtLeast(SAVED_MIN),
        ),
    ]))
}

/// What one run of the program says.
#[derive(Debug, Clone, Copy)]
struct Round {
    get_us: f64,
    add_few_us: f64,
    add_many_us: f64,
    save_few_us: f64,
    save_many_us: f64,
    save_all_us: f64,
}

impl Round {
    fn measure(workspace: &Workspace) -> Result<Self> {
        let mut command = child::cargo(&workspace.root);
        command.args(["run", "--quiet", "--release", "-p", "jaato-objects"]);
        command.args(["--example", "objects_bench"]);
        Self::read(&child::output(&mut command)?)
    }

    fn read(line: &str) -> Result<Self> {
        Ok(Self {
            get_us: figure(line, "get_us")?,
            add_few_us: figure(line, "add_few_us")?,
            add_many_us: figure(line, "add_many_us")?,
            save_few_us: figure(line, "save_few_us")?,
            save_many_us: figure(line, "save_many_us")?,
            save_all_us: figure(line, "save_all_us")?,
        })
    }

    fn adds(self) -> f64 {
        self.add_many_us / self.add_few_us
    }

    fn saves(self) -> f64 {
        self.save_many_us / self.save_few_us
    }

    /// The round in which many cost least against few, whole.
    fn better(self, other: Self) -> Self {
        let score = |round: Self| round.adds().max(round.saves());
        if score(other) < score(self) { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_that_grows_least_is_kept_whole() {
        let round = |add_many_us: f64, get_us: f64| Round {
            get_us,
            add_few_us: 1.0,
            add_many_us,
            save_few_us: 2.0,
            save_many_us: 2.0,
            save_all_us: 9.0,
        };
        let best = round(3.0, 1.0).better(round(2.0, 7.0)).better(round(4.0, 1.0));
        assert_eq!((best.add_many_us, best.get_us), (2.0, 7.0));
    }
}

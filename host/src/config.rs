//! `jaato config`: the configuration and where each value came from.

use crate::args::Global;
use crate::exit::{Exit, Outcome};
use crate::{report, start};

/// Prints each value with the layer it came from.
pub fn show(global: Global) -> Outcome {
    let setup = start::setup(start::arguments(global))?;
    report::problems(&start::workspace_line(&setup).into_iter().collect::<Vec<_>>());
    let warnings: Vec<_> =
        setup.config.warnings.iter().map(|warning| warning.text.clone()).collect();
    report::problems(&warnings);
    report::line(setup.config.shown().trim_end())?;
    Ok(Exit::Done)
}

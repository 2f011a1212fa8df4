//! Prints the averages of both sides next to each other, and a verdict.

use crate::summary::{BenchSummary, RunAverages};

/// The columns of a table.
const HEAD: [&str; 5] = ["METRIC", "CLI", "MCP", "DIFF", "WINNER"];

/// Prints a table for each scenario.
pub fn print_comparison(summary: &BenchSummary) {
    for (scenario, [cli, mcp]) in &summary.scenarios {
        let (cli, mcp) = (RunAverages::from_runs(cli), RunAverages::from_runs(mcp));
        println!("\n{scenario}");
        let head = HEAD.map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> =
            [head].into_iter().chain(comparison_rows(&cli, &mcp)).collect();
        for row in &rows {
            println!("{}", align_row(row, &rows));
        }
        println!("{}", overall_verdict(&cli, &mcp));
    }
}

/// Returns a row whose cells are as wide as the widest ones of the table.
fn align_row(row: &[String], rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let cells = row.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column)));
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

fn comparison_rows(cli: &RunAverages, mcp: &RunAverages) -> Vec<Vec<String>> {
    let metrics = [
        ("Prompt Tokens", cli.prompt_tokens, mcp.prompt_tokens),
        ("Output Tokens", cli.output_tokens, mcp.output_tokens),
        ("Total Tokens", cli.total_tokens(), mcp.total_tokens()),
        ("Avg Turns", cli.turns, mcp.turns),
    ];
    let row = |(metric, cli, mcp): (&str, f64, f64)| {
        let numbers = [format!("{cli:.1}"), format!("{mcp:.1}"), format!("{:+.1}", mcp - cli)];
        let ends = [metric.to_owned()].into_iter().chain(numbers);
        ends.chain([winning_side(cli, mcp).to_owned()]).collect()
    };
    metrics.map(row).to_vec()
}

/// Returns the side with the lower number.
fn winning_side(cli: f64, mcp: f64) -> &'static str {
    match cli.total_cmp(&mcp) {
        std::cmp::Ordering::Less => "CLI",
        std::cmp::Ordering::Greater => "MCP",
        std::cmp::Ordering::Equal => "TIE",
    }
}

fn overall_verdict(cli: &RunAverages, mcp: &RunAverages) -> String {
    let measured = |side: &RunAverages| side.runs > side.errors;
    if !measured(cli) || !measured(mcp) {
        return "Overall: nothing to compare, as all runs of a side failed".to_owned();
    }
    let (less, more) = match cli.total_tokens() <= mcp.total_tokens() {
        true => (cli.total_tokens(), mcp.total_tokens()),
        false => (mcp.total_tokens(), cli.total_tokens()),
    };
    let failed = cli.errors + mcp.errors;
    let note =
        if failed > 0 { format!(" (without {failed} runs that failed)") } else { String::new() };
    match winning_side(cli.total_tokens(), mcp.total_tokens()) {
        "TIE" => format!("Overall: TIE{note}"),
        side => {
            let percent = 100.0 * (more - less) / more;
            format!(
                "Overall: {side} wins with {:.0} fewer tokens ({percent:.1}% savings){note}",
                more - less
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn averages(prompt: f64, output: f64, turns: f64) -> RunAverages {
        RunAverages { runs: 1, errors: 0, prompt_tokens: prompt, output_tokens: output, turns }
    }

    #[test]
    fn the_lower_number_wins() {
        let (cli, mcp) = (averages(100.0, 20.0, 2.0), averages(160.0, 10.0, 2.0));
        let rows = comparison_rows(&cli, &mcp);
        let rows: Vec<String> = rows.iter().map(|row| row.join("|")).collect();
        assert_eq!(
            rows,
            [
                "Prompt Tokens|100.0|160.0|+60.0|CLI",
                "Output Tokens|20.0|10.0|-10.0|MCP",
                "Total Tokens|120.0|170.0|+50.0|CLI",
                "Avg Turns|2.0|2.0|+0.0|TIE",
            ]
        );
        let won = "Overall: CLI wins with 50 fewer tokens (29.4% savings)";
        assert_eq!(overall_verdict(&cli, &mcp), won);
        assert_eq!(overall_verdict(&mcp, &cli), won.replace("CLI", "MCP"));
        assert_eq!(overall_verdict(&cli, &cli), "Overall: TIE");
    }

    #[test]
    fn side_without_a_successful_run_cannot_win() {
        let failed = RunAverages { runs: 2, errors: 2, ..RunAverages::default() };
        let none = "Overall: nothing to compare, as all runs of a side failed";
        assert_eq!(overall_verdict(&averages(1.0, 1.0, 1.0), &failed), none);
        let half = RunAverages { runs: 2, errors: 1, ..averages(1.0, 1.0, 1.0) };
        assert!(
            overall_verdict(&half, &averages(2.0, 2.0, 1.0))
                .ends_with("(without 1 runs that failed)")
        );
    }
}

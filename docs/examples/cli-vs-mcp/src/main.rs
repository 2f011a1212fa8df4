//! Runs the same scenarios with a command line and with an MCP server, and compares their tokens.
//!
//! A scenario is two prompts, each in a template file. Each run is a session with its own ledger:
//! `TRACES/TIME/DOMAIN/SCENARIO/cli|mcp/runN.jsonl`. All of them share one host, with the user's
//! model and the plugins of an installed jaato.

mod domain;
mod one_run;
mod params;
mod summary;
mod table;
mod trace;

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use jaato_library::{Configuration, Error, ErrorKind, Jaato, Result};
use jiff::Timestamp;
use serde_json::json;

use crate::domain::{BenchDomain, BenchSide, ScenarioTemplates};
use crate::one_run::BenchRun;
use crate::summary::{BenchSummary, RunMeasurement};

/// The maximum number of runs of a scenario in one call. Each run asks a model twice.
const RUNS_MAX: u64 = 1000;

/// Run the same scenarios with a CLI and with an MCP server, and compare their tokens; all tools
/// run without asking
#[derive(Debug, Parser)]
pub struct Arguments {
    /// The domain of the scenarios: `git` (a local repository), `github` or `confluence`; defaults
    /// to the domain that has the scenarios, or `github`
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,

    /// The scenarios to run
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "all")]
    pub scenarios: Vec<String>,

    /// Read variables such as MODEL_NAME from this file
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,

    /// The number of runs of each scenario on each side
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=RUNS_MAX))]
    pub runs: u64,

    /// The model; defaults to the configured one
    #[arg(long, alias = "model", value_name = "PROVIDER/MODEL")]
    pub model_name: Option<String>,

    /// The Confluence page: `PAGE_ID` in the templates
    #[arg(long, value_name = "ID")]
    pub page_id: Option<String>,

    /// Values for the templates, for example {"OWNER": "me", "REPO": "moon"}; `CURRENT_BODY_FILE`
    /// names the file with `CURRENT_BODY`
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub domain_params: String,

    /// The program of the CLI side, or its folder; defaults to the program of the domain on PATH
    #[arg(long, value_name = "PATH")]
    pub cli_path: Option<PathBuf>,

    /// The server of the MCP side, by its name in .mcp.json; defaults to the usual one of the
    /// domain
    #[arg(long, value_name = "NAME")]
    pub mcp_server: Option<String>,

    /// A folder with templates `DOMAIN/cli|mcp/SCENARIO.txt`, which override the built-in ones
    #[arg(long, value_name = "DIR")]
    pub template_dir: Option<PathBuf>,

    /// The file for the summary, which is also written to the trace folder
    #[arg(long, value_name = "FILE", default_value = "cli_vs_mcp/harness_summary.json")]
    pub output: PathBuf,

    /// Write the messages and calls of each run to `runN.trace.json`
    #[arg(long)]
    pub trace: bool,

    /// The folder for ledgers, traces and summaries
    #[arg(long, value_name = "DIR", default_value = "cli_vs_mcp/traces")]
    pub trace_dir: PathBuf,

    /// Print the averages side by side, and the side that needs fewer tokens
    #[arg(long)]
    pub verbose: bool,
}

/// The state that all runs of a call share.
struct BenchPlan {
    domain: &'static BenchDomain,
    server: String,
    /// `None` is the configured one.
    model: Option<String>,
    prompts: BTreeMap<String, [String; 2]>,
    folder: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match compare_sides(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(match error.kind {
                ErrorKind::InvalidArguments => 2,
                ErrorKind::Cancelled => 130,
                _ => 1,
            })
        }
    }
}

/// Plans the runs, starts a host for them, and ends it.
async fn compare_sides(args: &Arguments) -> Result<()> {
    let now = Timestamp::now();
    let plan = plan_runs(args, now)?;
    let executable = std::env::var_os("JAATO").unwrap_or_else(|| "jaato".into());
    let mut builder = Jaato::builder().configuration(Configuration::OfUser).executable(executable);
    if let Some(path) = &args.env_file {
        builder = builder.env_file(path);
    }
    let jaato = builder.start().await?;
    // Dropping the runs cancels the current one.
    let ended = tokio::select! {
        ended = run_all(&jaato, &plan, args, now) => ended,
        _ = tokio::signal::ctrl_c() => Err(Error::cancelled()),
    };
    jaato.close().await;
    ended
}

/// Runs the scenarios on both sides.
async fn run_all(jaato: &Jaato, plan: &BenchPlan, args: &Arguments, now: Timestamp) -> Result<()> {
    let tools = one_run::connect_server(jaato, plan).await?;
    let model = plan.model.clone().unwrap_or_else(|| jaato.runtime().model().to_string());
    print_settings(plan, args, &model, &tools);
    let mut summary = BenchSummary::default();
    for (scenario, prompts) in &plan.prompts {
        for number in 1..=args.runs {
            for side in BenchSide::BOTH {
                let run = BenchRun { scenario, number, side, prompt: &prompts[side as usize] };
                let measured = one_run::run_scenario(jaato, plan, &run, args.trace).await?;
                print_run(&run, &measured);
                summary.add_run(scenario, side, measured);
            }
        }
    }
    let meta = json!({
        "runs": args.runs, "model": model, "domain": plan.domain.name,
        "submission_timestamp": now.to_string(),
    });
    let text = format!("{:#}\n", summary.to_json(meta));
    for path in [plan.folder.join("harness_summary.json"), args.output.clone()] {
        write_file(&path, &text)?;
    }
    if args.verbose {
        table::print_comparison(&summary);
    }
    println!("summary: {}", args.output.display());
    match summary.error_count() {
        0 => Ok(()),
        count => Err(Error::failed(format!("runs that failed: {count}"))),
    }
}

/// Plans the runs, before anything is started.
fn plan_runs(args: &Arguments, now: Timestamp) -> Result<BenchPlan> {
    let (domain, scenarios) =
        BenchDomain::find(args.domain.as_deref(), &args.scenarios, args.template_dir.as_deref())?;
    let values = params::parameter_values(domain, args, now)?;
    let prompts = fill_templates(&scenarios, &values)?;
    let server = args.mcp_server.clone().unwrap_or_else(|| domain.server.to_owned());
    domain::check_server(&server)?;
    let time = now.strftime("%Y-%m-%d_%H-%M-%S").to_string();
    let folder = args.trace_dir.join(time).join(domain.name);
    let folder =
        std::path::absolute(&folder).map_err(|error| unwritable_file_error(&folder, &error))?;
    Ok(BenchPlan { domain, server, model: args.model_name.clone(), prompts, folder })
}

fn fill_templates(
    scenarios: &ScenarioTemplates,
    values: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, [String; 2]>> {
    let prompts = scenarios.iter().map(|(name, [cli, mcp])| {
        let both = [params::fill_template(cli, values)?, params::fill_template(mcp, values)?];
        Ok((name.clone(), both))
    });
    prompts.collect()
}

/// Prints the settings of the coming runs.
fn print_settings(plan: &BenchPlan, args: &Arguments, model: &str, tools: &str) {
    let scenarios: Vec<&str> = plan.prompts.keys().map(String::as_str).collect();
    let rule = "=".repeat(70);
    println!("{rule}\nCLI vs MCP");
    println!("domain       {}", plan.domain.name);
    println!("scenarios    {}", scenarios.join(", "));
    println!("runs         {} on each side", args.runs);
    println!("model        {model}");
    println!("cli          cli_based_tool, which runs without asking");
    println!("mcp          server `{}`: {tools}; they run without asking", plan.server);
    println!("traces       {}", plan.folder.display());
    println!("{rule}");
}

fn print_run(run: &BenchRun<'_>, measured: &RunMeasurement) {
    let result = match &measured.error {
        Some(error) => format!("failed: {error}"),
        None => format!("{} tokens, {} turns", measured.tokens(), measured.turns),
    };
    println!("{} {} run {}: {result}", run.scenario, run.side.name(), run.number);
}

/// Writes a file, and its folder.
fn write_file(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        make_folder(folder)?;
    }
    std::fs::write(path, text).map_err(|error| unwritable_file_error(path, &error))
}

/// Creates a folder that is private to this user, because it will contain conversations.
fn make_folder(folder: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| unwritable_file_error(folder, &error))
}

fn unwritable_file_error(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write `{}`: {error}", path.display()))
}

/// Creates the error of arguments that cannot be used.
fn usage_error(text: String) -> Error {
    Error::new(ErrorKind::InvalidArguments, text)
}

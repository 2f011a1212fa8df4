//! `jaato bench cli-vs-mcp`: runs the same scenarios with a command line and with an MCP server,
//! and compares their tokens.
//!
//! A scenario is two prompts, each in a template file. Each run has its own session in its own
//! runtime, with its own ledger: `TRACES/TIME/DOMAIN/SCENARIO/cli|mcp/runN.jsonl`.

mod domain;
mod one_run;
mod params;
mod summary;
mod table;
mod trace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use jaato_runtime::session_loop::Cancel;
use jaato_runtime::{SetupArguments, config, make_private_folder};
use jiff::Timestamp;
use serde_json::{Value, json};

use self::domain::{BenchDomain, BenchSide, ScenarioTemplates};
use self::one_run::BenchRun;
use self::summary::{BenchSummary, RunMeasurement};
use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::signals::cancel_on_signals;
use crate::{report, start, terminal};

/// The maximum number of runs of a scenario in one call. Each run asks a model twice.
const RUNS_MAX: u64 = 1000;

/// The arguments of `cli-vs-mcp`. The names are the original harness's.
#[derive(Debug, Args)]
pub struct CliVsMcpArgs {
    /// The domain of the scenarios: `git` (a local repository), `github` or `confluence`; defaults
    /// to the domain that has the scenarios, or `github`
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,

    /// The scenarios to run
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "all")]
    pub scenarios: Vec<String>,

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
    arguments: SetupArguments,
    domain: &'static BenchDomain,
    server: String,
    prompts: BTreeMap<String, [String; 2]>,
    folder: PathBuf,
}

/// Runs the scenarios on both sides.
pub async fn cli_vs_mcp(global: GlobalArgs, args: CliVsMcpArgs) -> CommandResult {
    terminal::reserve();
    let now = Timestamp::now();
    let plan = plan_runs(global, &args, now)?;
    let cancel = Cancel::new();
    cancel_on_signals(cancel.clone());
    let (model, tools) = one_run::prepare(&plan, &cancel).await?;
    print_settings(&plan, &args, &model, &tools)?;
    let mut summary = BenchSummary::default();
    for (scenario, prompts) in &plan.prompts {
        for number in 1..=args.runs {
            for side in BenchSide::BOTH {
                if cancel.is_cancelled() {
                    return Ok(Exit::Cancelled);
                }
                let run = BenchRun { scenario, number, side, prompt: &prompts[side as usize] };
                let measured = one_run::run(&plan, &run, args.trace, &cancel).await?;
                print_run(&run, &measured)?;
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
        table::print(&summary)?;
    }
    report::print_line(&format!("summary: {}", args.output.display()))?;
    match summary.errors() {
        0 => Ok(Exit::Done),
        count => Err(CommandFailure::new(Exit::Failed, format!("runs that failed: {count}"))),
    }
}

/// Plans the runs, before anything is started.
fn plan_runs(
    global: GlobalArgs,
    args: &CliVsMcpArgs,
    now: Timestamp,
) -> Result<BenchPlan, CommandFailure> {
    let mut arguments = start::setup_arguments(global);
    if let Some(model) = &args.model_name {
        let name = config::parse_model_name(model).map_or_else(
            || {
                config::parse_model_id(model)
                    .map_err(|error| CommandFailure::new(Exit::Usage, error))
            },
            Ok,
        )?;
        arguments.overrides.model = Some(name);
    }
    let (domain, scenarios) =
        BenchDomain::find(args.domain.as_deref(), &args.scenarios, args.template_dir.as_deref())?;
    let values = params::parameter_values(domain, args, now)?;
    let prompts = fill_templates(&scenarios, &values)?;
    let server = args.mcp_server.clone().unwrap_or_else(|| domain.server.to_owned());
    domain::check_server(&server)?;
    let time = now.strftime("%Y-%m-%d_%H-%M-%S").to_string();
    let folder = args.trace_dir.join(time).join(domain.name);
    let folder =
        std::path::absolute(&folder).map_err(|error| unwritable_file_failure(&folder, &error))?;
    Ok(BenchPlan { arguments, domain, server, prompts, folder })
}

fn fill_templates(
    scenarios: &ScenarioTemplates,
    values: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, [String; 2]>, CommandFailure> {
    let prompts = scenarios.iter().map(|(name, [cli, mcp])| {
        let both = [params::fill_template(cli, values)?, params::fill_template(mcp, values)?];
        Ok((name.clone(), both))
    });
    prompts.collect()
}

/// Prints the settings of the coming runs.
fn print_settings(
    plan: &BenchPlan,
    args: &CliVsMcpArgs,
    model: &str,
    tools: &str,
) -> Result<(), CommandFailure> {
    let scenarios: Vec<&str> = plan.prompts.keys().map(String::as_str).collect();
    let rule = "=".repeat(70);
    let lines = [
        rule.as_str(),
        "CLI vs MCP",
        &format!("domain       {}", plan.domain.name),
        &format!("scenarios    {}", scenarios.join(", ")),
        &format!("runs         {} on each side", args.runs),
        &format!("model        {model}"),
        "cli          cli_based_tool, which runs without asking",
        &format!("mcp          server `{}`: {tools}; they run without asking", plan.server),
        &format!("traces       {}", plan.folder.display()),
        &rule,
    ];
    lines.into_iter().try_for_each(report::print_line)
}

fn print_run(run: &BenchRun<'_>, measured: &RunMeasurement) -> Result<(), CommandFailure> {
    let came_to = match &measured.error {
        Some(error) => format!("failed: {error}"),
        None => format!("{} tokens, {} turns", measured.tokens(), measured.turns),
    };
    report::print_line(&format!(
        "{} {} run {}: {came_to}",
        run.scenario,
        run.side.name(),
        run.number
    ))
}

/// Writes a file, and its folder.
fn write_file(path: &Path, text: &str) -> Result<(), CommandFailure> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        make_folder(folder)?;
    }
    std::fs::write(path, text).map_err(|error| unwritable_file_failure(path, &error))
}

/// Creates a folder that is private to this user, because it will contain conversations.
fn make_folder(folder: &Path) -> Result<(), CommandFailure> {
    make_private_folder(folder)
        .map_err(|error| CommandFailure::new(Exit::Failed, error.to_string()))
}

fn unwritable_file_failure(path: &Path, error: &std::io::Error) -> CommandFailure {
    CommandFailure::new(Exit::Failed, format!("cannot write `{}`: {error}", path.display()))
}

/// Writes a value as a file.
fn write_json(path: &Path, value: &Value) -> Result<(), CommandFailure> {
    write_file(path, &format!("{value:#}\n"))
}

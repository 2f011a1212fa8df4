//! `jaato plugin check`: what a plugin file declares, and whether it works in a worker.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jaato_runtime::session_loop::{Cancel, EventSink, Session};
use jaato_runtime::types::{Error, ErrorKind, EventEnvelope, PluginKind, ToolSpec};
use jaato_runtime::{ConformanceSuite, Runtime, SessionOptions};
use serde_json::Value;

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::{plugin, report, start};

/// How long one example may take, because it demonstrates a tool.
const EXAMPLE_DEADLINE: Duration = Duration::from_secs(20);

/// Up to this many tools, each has its own line, regardless of its result.
const LINE_EACH_MAX: usize = 20;

/// Checks a plugin file step by step. An invalid declaration is refused with an error. The plugin's
/// behaviour is reported line by line to the end.
pub async fn check_plugin(
    global: GlobalArgs,
    file: &Path,
    settings: &[(String, String)],
) -> CommandResult {
    let manifest = plugin::read_manifest(file)?;
    report::print_line(&format!(
        "manifest     ok: {} {}, plugin-api {}",
        manifest.name, manifest.version, manifest.api
    ))?;
    let setup = start::read_setup(start::setup_arguments(global))?;
    let description = plugin::describe_plugin(&setup, file).await?;
    report::print_line("layout       ok: it fits this host")?;
    report::print_line(&format!(
        "description  ok: {}",
        plugin::describe_offer(&manifest, &description)
    ))?;
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let made = Runtime::start_for_check(setup, &file, manifest, description, settings).await;
    let runtime = made.map_err(|error| {
        let text = format!("cannot use `{}` as a plugin: {}", file.display(), error.message);
        CommandFailure::new(Exit::Plugin, text).maybe_hint(error.hint)
    })?;
    let settings = runtime
        .registry()
        .plugins()
        .first()
        .map_or_else(|| Ok(Arc::default()), |entry| runtime.checked_settings(entry))?;
    let session =
        runtime.open_session_for_calls(SessionOptions::unattended(Arc::new(CheckEventSink)))?;
    let mut told = run_checks(&runtime, &session).await;
    runtime.close_session(session.id()).await;
    if let Ok(failed) = &mut told {
        *failed += run_conformance(&runtime, &file, &settings).await?;
    }
    start::close_runtime(runtime).await;
    match told? {
        0 => Ok(Exit::Done),
        failed => {
            let what = if failed == 1 { "check" } else { "checks" };
            let text = format!("{failed} {what} of `{}` failed", file.display());
            Err(CommandFailure::new(Exit::Plugin, text))
        }
    }
}

/// Runs the checks that may run, and counts the failures.
async fn run_checks(runtime: &Runtime, session: &Session) -> Result<usize, CommandFailure> {
    let registry = runtime.registry();
    let Some(entry) = registry.plugins().first() else { return Ok(0) };
    let (mut failed, mut is_usable) = (0, true);
    match runtime.make_instance(entry, session).await {
        Ok(()) => {
            print_check_result("instance", &Ok("it starts in a worker".to_owned()))?;
        }
        Err(error) if error.kind == ErrorKind::Configuration => {
            let why = error.message;
            report::print_line(&format!("instance     left out: it needs a setting: {why}"))?;
            report::print_line("             `--setting KEY=VALUE` sets one")?;
            is_usable = false;
        }
        Err(error) => {
            failed += print_check_result("instance", &Err(error))?;
            is_usable = false;
        }
    }
    for left_out in &entry.left_out {
        failed += print_check_result(&left_out.what, &Err(Error::failed(left_out.why.clone())))?;
    }
    if !is_usable {
        return Ok(failed);
    }
    let tools = entry.description().map_or(&[][..], |it| &it.tools);
    // If there are many tools, neighbours that are left out for the same reason share one line.
    for group in tools.chunk_by(|one, next| {
        let why = skip_reason(one);
        tools.len() > LINE_EACH_MAX && why.is_some() && why == skip_reason(next)
    }) {
        let [tool, rest @ ..] = group else { continue };
        let what = match rest.last() {
            Some(last) => format!("tools {} to {} ({})", tool.name, last.name, group.len()),
            None => format!("tool {}", tool.name),
        };
        match skip_reason(tool) {
            Some(why) => report::print_line(&format!("{what:<11}  left out: {why}"))?,
            None => failed += print_check_result(&what, &run_examples(session, tool).await)?,
        }
    }
    let manifest = &entry.candidate.manifest;
    if manifest.kinds.contains(&PluginKind::Gc) {
        let trying =
            run_with_timeout(|cancel| async move { runtime.try_gc(session, cancel.clone()).await });
        let told = trying.await.map(|(dropped, count)| {
            format!("of {count} messages that fill the context it would drop {dropped}")
        });
        let what = format!("gc {}", manifest.name.source());
        match told {
            // A gc may need settings that the user has not configured yet.
            Err(error) if !is_broken(&error) => report::print_line(&format!(
                "{what:<11}  left out: it makes no plan with this configuration: {}",
                error.message
            ))?,
            told => failed += print_check_result(&what, &told)?,
        }
    }
    if let Some(provider) = entry.description().and_then(|it| it.provider.as_ref()) {
        let name = &provider.name;
        let what = format!("provider {name}");
        report::print_line(&format!("{what:<11}  left out: an answer may cost something"))?;
    }
    Ok(failed)
}

/// Returns true if an error means that the plugin does not work, rather than that it needs
/// something.
fn is_broken(error: &Error) -> bool {
    let broken = [
        ErrorKind::PluginPanicked,
        ErrorKind::PluginMisbehaved,
        ErrorKind::PluginCrashed,
        ErrorKind::PluginDisabled,
        ErrorKind::Timeout,
        ErrorKind::HostBug,
    ];
    broken.contains(&error.kind)
}

/// Runs the conformance suite, and counts the failures.
async fn run_conformance(
    runtime: &Runtime,
    file: &Path,
    settings: &Value,
) -> Result<usize, CommandFailure> {
    let registry = runtime.registry();
    let kinds = registry.plugins().first().map(|entry| &entry.candidate.manifest.kinds);
    let checks = jaato_runtime::conformance_checks(kinds.map_or(&[], Vec::as_slice));
    let suite = ConformanceSuite::new(runtime, file, settings)?;
    let (mut held, mut failures) = (0_usize, Vec::<(Error, Vec<String>)>::new());
    let (mut left_out, mut unset) = (0, 0);
    for (number, check) in checks.iter().enumerate() {
        let what = match suite.run(check).await {
            Ok(None) => {
                held += 1;
                continue;
            }
            Ok(Some(what)) => Error::new(ErrorKind::PluginMisbehaved, what),
            // The line about the instance names the setting.
            Err(error) if error.kind == ErrorKind::Configuration => {
                unset += 1;
                continue;
            }
            Err(error) => error,
        };
        let (has_hung, name) = (what.kind == ErrorKind::Timeout, check_phrase(check));
        // Many checks may find the same problem of one tool.
        match failures.iter_mut().find(|(error, _)| *error == what) {
            Some((_, names)) => names.push(name),
            None => failures.push((what, vec![name])),
        }
        if has_hung {
            left_out = checks.len() - number - 1;
            break;
        }
    }
    let failed = checks.len() - held - left_out - unset;
    let needing = match unset {
        0 => String::new(),
        unset => format!("; {unset} are left out, because they need the setting"),
    };
    if failed == 0 {
        return print_check_result("conformance", &Ok(format!("{held} checks hold{needing}")));
    }
    for (error, names) in failures {
        let message = format!("{}: {}", names.join("; "), error.message);
        print_check_result("conformance", &Err(Error { message, ..error }))?;
    }
    if left_out > 0 {
        report::print_line(&format!(
            "conformance  left out: the {left_out} checks after one that hung"
        ))?;
    }
    report::print_line(&format!("conformance  {held} of {} checks hold{needing}", checks.len()))?;
    Ok(failed)
}

/// Turns a check's name into a phrase: `tool::examples_work` becomes `examples work (tool)`.
fn check_phrase(check: &str) -> String {
    let (group, name) = check.split_once("::").unwrap_or_default();
    format!("{} ({group})", name.replace('_', " "))
}

/// Returns why a tool is not called. Returns `None` if it may be called.
fn skip_reason(tool: &ToolSpec) -> Option<&'static str> {
    if !tool.annotations.read_only {
        Some("it may change things")
    } else if tool.annotations.open_world {
        Some("it may reach beyond this machine")
    } else if tool.examples.is_empty() {
        Some("it has no example")
    } else {
        None
    }
}

/// Runs a tool's examples up to the first failure. An example that needs something that is not
/// here, such as a session with a model, is not the plugin's fault.
async fn run_examples(session: &Session, tool: &ToolSpec) -> Result<String, Error> {
    let (mut ran, mut wanting) = (0_usize, Vec::new());
    for example in &tool.examples {
        let arguments = Value::Object(example.arguments.clone());
        let calling = run_with_timeout(|cancel| async move {
            session.run_user_call(&tool.name, arguments, &cancel).await
        });
        match calling.await {
            Ok(_) => ran += 1,
            // Neither is an example that needs a service that the user has not granted.
            Err(error) if is_missing_or_denied(&error) => {
                wanting.push(format!(
                    "; \"{}\" cannot be run here: {}",
                    example.phrase, error.message
                ));
            }
            Err(error) => {
                let text = format!("example \"{}\": {}", example.phrase, error.message);
                let told = Error::new(error.kind, text);
                return Err(error.hint.into_iter().fold(told, Error::with_hint));
            }
        }
    }
    let examples = if ran == 1 { "example" } else { "examples" };
    Ok(format!("{ran} {examples} ran{}", wanting.concat()))
}

/// Returns true if an error means that something is missing (an example may name a file of the
/// user) or not granted.
fn is_missing_or_denied(error: &Error) -> bool {
    use ErrorKind::{NotFound, PermissionDenied, Unavailable};
    matches!(error.kind, Unavailable | PermissionDenied | NotFound)
}

/// Cancels the work if it does not end in time, and reports that.
async fn run_with_timeout<T, F>(start: impl FnOnce(Cancel) -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let cancel = Cancel::new();
    let mut work = std::pin::pin!(start(cancel.clone()));
    if let Ok(ended) = tokio::time::timeout(EXAMPLE_DEADLINE, work.as_mut()).await {
        return ended;
    }
    cancel.cancel();
    match work.await {
        Ok(done) => Ok(done),
        Err(_) => {
            let text = format!("it did not finish within {} s", EXAMPLE_DEADLINE.as_secs());
            Err(Error::new(ErrorKind::Timeout, text))
        }
    }
}

/// Prints the result of one check. Returns 1 if it failed.
fn print_check_result(what: &str, told: &Result<String, Error>) -> Result<usize, CommandFailure> {
    match told {
        Ok(text) => report::print_line(&format!("{what:<11}  ok: {text}"))?,
        Err(error) => {
            report::print_line(&format!("{what:<11}  failed: {}", error.message))?;
            if let Some(hint) = &error.hint {
                report::print_line(&format!("             {hint}"))?;
            }
        }
    }
    Ok(usize::from(told.is_err()))
}

/// No one watches. Only the result of a call counts.
struct CheckEventSink;

impl EventSink for CheckEventSink {
    fn receive_event(&self, _envelope: EventEnvelope) {}
}

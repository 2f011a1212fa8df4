//! Tests the service `process` with the engine's checks and a real guardian.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_config::EnvironmentVariables;
use jaato_loader::testing::LoaderHost;
use jaato_loader::{EngineServiceAnswer, EngineServices, ServiceCaller};
use jaato_plugin_engine::testing::{PROCESS_CHECKS, run_checks};
use jaato_process::{GuardianCommand, Supervisor};
use jaato_types::process::Spawn;
use jaato_types::{Error, ErrorKind, SessionId};

use super::*;

/// The example that acts as guardian. `cargo test` builds it next to the tests.
fn new_supervisor() -> Supervisor {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/guardian");
    assert!(program.is_file(), "`{}` is missing: cargo build --examples", program.display());
    Supervisor::new(GuardianCommand { program, args: Vec::new() })
}

fn new_program_registry() -> Arc<ProgramRegistry> {
    let variables: EnvironmentVariables =
        [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("A_TOKEN", "secret")].into_iter().collect();
    let directory = std::env::temp_dir();
    Arc::new(ProgramRegistry::new(new_supervisor(), &variables, &BTreeSet::new(), &[], directory))
}

struct ProcessesOnlyServices(CallProcesses);

impl EngineServices for ProcessesOnlyServices {
    fn call(
        &self,
        _caller: ServiceCaller,
        operation: &str,
        frame: Vec<u8>,
    ) -> BoxFuture<'static, Result<EngineServiceAnswer, Error>> {
        self.0.call(operation, &frame).unwrap_or_else(|| {
            let error = Error::new(ErrorKind::UnknownOperation, operation);
            Box::pin(std::future::ready(Err(error)))
        })
    }
}

#[test]
fn the_real_host_runs_programs_as_the_fake_one_does() {
    let processes = new_program_registry();
    let services = || {
        let of_session = CallProcesses::new(Arc::clone(&processes), SessionId::from("s1"));
        Arc::new(ProcessesOnlyServices(of_session)) as Arc<dyn EngineServices>
    };
    let host = LoaderHost::new(services);
    run_checks(PROCESS_CHECKS, &host);
    assert!(processes.lock_running().is_empty(), "every place was given back");
    host.runtime().block_on(async {
        // Processes that the checks left running are identified by their name and the command that
        // started them.
        let left = processes.list_living().await;
        let told: Vec<String> = left.iter().map(ToString::to_string).collect();
        let is_told = |line: &String| {
            line.starts_with("ended process ")
                && line.ends_with("(sleep), left running by `sh -c sleep 300 & printf done`")
        };
        assert!(told.iter().any(is_told), "{told:?}");
        assert_eq!(processes.list_living().await, left, "to list them ends nothing");
        processes.supervisor.end_all().await.unwrap();
        assert_eq!(processes.list_living().await, []);
    });
}

#[test]
fn running_programs_per_session_are_limited() {
    let processes = new_program_registry();
    let (one, other) = (SessionId::from("one"), SessionId::from("other"));
    let places: Vec<_> =
        (0..RUNNING_PER_SESSION_MAX).map(|_| processes.take_slot(&one).ok().unwrap()).collect();
    let refused = processes.take_slot(&one).err().unwrap();
    assert_eq!(refused.kind, ErrorKind::LimitReached);
    assert!(processes.take_slot(&other).is_ok());
    drop(places);
    assert!(processes.take_slot(&one).is_ok());
    assert!(processes.lock_running().is_empty());
}

#[test]
fn a_program_is_given_the_marker_of_its_session_and_no_secret() {
    let processes = new_program_registry();
    let spawn = Spawn::program("x").directory("sub");
    let command = processes.child_command(&spawn, &SessionId::from("s1"));
    let value = |name: &str| command.variables.get(&OsString::from(name)).cloned();
    assert_eq!(value(SESSION_MARKER), Some("s1".into()));
    assert_eq!(value("A_TOKEN"), None);
    assert_eq!(command.directory, std::env::temp_dir().join("sub"));
    assert_eq!(value("PWD"), Some(command.directory.clone().into()));
    let nobody = processes.child_command(&spawn, &SessionId::from(""));
    assert_eq!(nobody.variables[&OsString::from(SESSION_MARKER)], NO_SESSION);
    // An environment names the session for which it runs a program. A tool's value does not get
    // this far.
    let told =
        processes.child_command(&spawn.variable(SESSION_MARKER, "s2"), &SessionId::from("e1"));
    assert_eq!(told.variables[&OsString::from(SESSION_MARKER)], "s2");
}

#[test]
fn folders_are_appended_to_the_path() {
    let mut variables = BTreeMap::from([("PATH".into(), "/bin".into())]);
    append_paths(&mut variables, &["/a".to_owned(), "/b c".to_owned()]);
    assert_eq!(variables[&OsString::from("PATH")], "/bin:/a:/b c");
    let mut none = BTreeMap::new();
    append_paths(&mut none, &["/a".to_owned()]);
    assert_eq!(none[&OsString::from("PATH")], "/a");
}

#[test]
fn variables_declared_secret_by_a_later_plugin_are_withheld() {
    let variables: EnvironmentVariables =
        [("PATH", "/bin"), ("MOON_ACCESS", "m"), ("SUN_ACCESS", "s")].into_iter().collect();
    let (pass, none) = (["SUN_ACCESS".to_owned()], BTreeSet::new());
    let processes =
        ProgramRegistry::new(new_supervisor(), &variables, &none, &pass, std::env::temp_dir());
    let names = || processes.variables().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(), ["MOON_ACCESS", "PATH", "SUN_ACCESS"]);
    let declared = ["MOON_ACCESS", "SUN_ACCESS", "STAR_ACCESS"].map(str::to_owned);
    processes.withhold_variables(&declared.into_iter().collect(), &pass);
    assert_eq!(names(), ["PATH", "SUN_ACCESS"]);
}

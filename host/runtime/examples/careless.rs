//! An embedder that ignores the requirements: it is started as its own guardian, and continues as
//! if it were a host.

use std::io::Write as _;

use jaato_runtime::{Runtime, Setup, SetupArguments};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Started processes are counted in a file, because a guardian has no variables and no output.
    let started = std::env::current_exe()?.with_extension("started");
    let mut started = std::fs::OpenOptions::new().create(true).append(true).open(started)?;
    writeln!(started, "{}", std::process::id())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let setup = Setup::from_process(SetupArguments::default()).inspect_err(|error| {
            eprintln!("{error}\n{}", error.hint().unwrap_or_default());
        })?;
        let runtime = Runtime::start(setup).await;
        let command = jaato_process::ChildCommand::new("/bin/true", "/");
        let told = runtime.supervisor().spawn(command).await.map(drop);
        if let Err(error) = told {
            eprintln!("{error}\n{}", error.hint().unwrap_or_default());
        }
        Ok(())
    })
}

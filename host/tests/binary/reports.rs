//! Tests faults that users reported about agent hosts, and that others found in ours. Each is a
//! script in `host/tests/reports`, which prints its findings and ends with `PASS` or `FAIL`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::support::{fixtures, skip};

/// Number of scripts that run at the same time. They mostly wait for jaato to start.
const AT_ONCE: usize = 4;

/// Programs that the scripts need.
const PROGRAMS: [&str; 2] = ["bash", "python3"];

#[test]
fn reported_faults_do_not_occur() {
    let Some(house) = fixtures::test_house() else { return };
    for program in PROGRAMS {
        let found = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        if found.is_err() {
            return skip(&format!("the reported faults need `{program}`"));
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut scripts: Vec<PathBuf> = entries.map(|entry| entry.join("run.sh")).collect();
    scripts.retain(|script| script.is_file());
    assert!(scripts.len() >= 30, "{scripts:?}");
    let (rest, failed) = (Mutex::new(scripts), Mutex::new(String::new()));
    let work = || {
        loop {
            let Some(script) = rest.lock().unwrap().pop() else { return };
            let output = Command::new("bash")
                .arg(&script)
                .env("JAATO", house.join("bin/jaato"))
                .stdin(Stdio::null())
                .output()
                .unwrap();
            if !output.status.success() {
                let text = String::from_utf8_lossy(&output.stdout);
                let errors = String::from_utf8_lossy(&output.stderr);
                writeln!(failed.lock().unwrap(), "{}:\n{text}{errors}", script.display()).unwrap();
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{failed}");
}

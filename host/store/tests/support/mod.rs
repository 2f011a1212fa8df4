//! Records, and processes that write them.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use jaato_store::{LedgerFile, LedgerLine, LedgerReader, LedgerRecord, LedgerStage};
use jaato_types::{CallId, Outcome, SessionId, ToolName};

/// Variables that turn a test program into a writer: the file and the number of records.
const FILE: &str = "JAATO_TEST_LEDGER";
const COUNT: &str = "JAATO_TEST_RECORDS";

pub fn numbered_record(index: u64) -> LedgerRecord {
    let stage = LedgerStage::PermissionCheck {
        call_id: CallId::from("call_0123456789abcdef"),
        tool: ToolName::from("cli_based_tool"),
        allowed: true,
        rule: "person.once".into(),
        place: None,
        answered_by: "terminal".into(),
        scope: "once".into(),
        pattern: String::new(),
        agent_type: "main".into(),
        agent_name: String::new(),
    };
    ledger_record(index, stage)
}

pub fn turn_end(index: u64) -> LedgerRecord {
    let model = "test/moon".into();
    let outcome = Outcome::Done;
    ledger_record(
        index,
        LedgerStage::Turn { model, outcome, error_kind: None, steps: 1, duration_ms: 1 },
    )
}

fn ledger_record(event_index: u64, stage: LedgerStage) -> LedgerRecord {
    let (v, ts) = (LedgerRecord::VERSION, "2026-11-21T19:40:03.123Z".to_owned());
    LedgerRecord { v, ts, session: SessionId::from("s1"), turn: 1, event_index, stage }
}

pub fn numbered_line(index: u64) -> Vec<u8> {
    numbered_record(index).to_line().unwrap()
}

/// Returns the indices of a ledger's records. Fails on an invalid line.
#[track_caller]
pub fn recorded_indexes(path: &Path) -> Vec<u64> {
    let text = fs::read(path).unwrap();
    assert!(text.ends_with(b"\n") || text.is_empty(), "the last line is whole");
    let mut reader = LedgerReader::open(path).unwrap();
    let mut indices = Vec::new();
    while let Some(line) = reader.next_line().unwrap() {
        match line {
            LedgerLine::Record(record) => indices.push(record.event_index),
            LedgerLine::Bad { number } => panic!("line {number} is not a record"),
        }
    }
    indices
}

/// A process that appends records, one after the other.
pub struct Writer {
    child: Child,
    path: PathBuf,
}

impl Writer {
    pub fn start(path: &Path, count: usize) -> Self {
        Self::start_writer(Command::new(std::env::current_exe().unwrap()), path, count)
    }

    /// Limits the file to 8 KiB, and ignores the signal for exceeding that.
    pub fn start_with_limit(path: &Path, count: usize) -> Self {
        let mut command = Command::new("bash");
        command.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""]);
        command.arg(std::env::current_exe().unwrap());
        Self::start_writer(command, path, count)
    }

    fn start_writer(mut command: Command, path: &Path, count: usize) -> Self {
        command.args(["--exact", "support::a_writer", "--nocapture"]);
        command.env(FILE, path).env(COUNT, count.to_string());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, path: path.to_owned() }
    }

    pub fn assert_success(mut self) {
        assert!(self.child.wait().unwrap().success());
    }

    /// Waits for its failure and returns its output.
    pub fn assert_failure(mut self) -> String {
        assert!(!self.child.wait().unwrap().success());
        let mut said = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }

    pub fn wait_for_records(&mut self, count: usize) {
        let bytes = (count * numbered_line(1).len()) as u64;
        while fs::metadata(&self.path).map_or(0, |metadata| metadata.len()) < bytes {
            assert!(self.child.try_wait().unwrap().is_none(), "the writer has ended");
            std::thread::yield_now();
        }
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Not a real test: writes records if a [`Writer`] starts it.
#[test]
fn a_writer() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let count: usize = std::env::var(COUNT).unwrap().parse().unwrap();
    let mut file = LedgerFile::open(Path::new(&path)).unwrap();
    for index in 1..=count {
        let appended = file.append(&[numbered_line(index as u64)]);
        if let Some(error) = appended.error {
            println!("{error}");
            std::process::exit(1);
        }
    }
}

//! Runs the program without a model. The tests with one are in `host/tests/binary/embedders.rs`.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// The sample program.
const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sample_cobol.cbl");

/// The result of a run.
#[derive(Debug, PartialEq)]
struct ProgramResult {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs the program in a folder, with the sample as its source.
fn run_modlog(folder: &Path, words: &[&str]) -> ProgramResult {
    run_modlog_verbose(folder, &[&["--source", SAMPLE], words].concat(), "1")
}

fn run_modlog_verbose(folder: &Path, words: &[&str], verbose: &str) -> ProgramResult {
    let mut command = Command::new(env!("CARGO_BIN_EXE_modlog"));
    command.args(words).current_dir(folder).env_clear().env("VERBOSE", verbose);
    let output = command.env("HOME", folder).env("PATH", folder).output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    ProgramResult { code: output.status.code().unwrap(), stdout, stderr }
}

fn read_lines(folder: &Path, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn training_set_is_made_without_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--out", "training_data.jsonl", "--mode", "full-heuristic"];
    let ended = run_modlog(folder.path(), &words);
    let shown = "[mode] Applied mode \"full-heuristic\" -> parse_only=False explain_only=False \
        stream=False heuristic=True validate=False append=False\n\
        [2/7] Loading COBOL source...\n\
        [3/7] Parsing modification history (by its columns)...\n\
        [4/7] Generating training pairs...\n\
        [5/7] Generated 7 pairs -> training_data.jsonl\n\
        [6/7] ✅ Done. Wrote 7 examples to training_data.jsonl (heuristic line mapping enabled)\n\
        [7/7] Complete.\n";
    assert_eq!(ended, ProgramResult { code: 0, stdout: shown.to_owned(), stderr: String::new() });
    let pairs = read_lines(folder.path(), "training_data.jsonl");
    let classes: Vec<&str> =
        pairs.iter().map(|pair| pair["metadata"]["change_type"].as_str().unwrap()).collect();
    let expected =
        ["bug_fix", "performance", "security", "enhancement", "refactor", "bug_fix", "other"];
    assert_eq!(classes, expected);
    let third = &pairs[2];
    let description = "SECURITY: MASK LN-TAX-ID ON THE ACCRUAL REPORT";
    let question = format!(
        "Identify the concrete COBOL code changed by the logged modification (security) from \
         2019-08-02 by J. LINDQVIST: {description}"
    );
    assert_eq!(third["messages"][0], json!({ "role": "user", "content": question }));
    assert_eq!(third["metadata"]["delimiter"], "JL0802");
    assert_eq!(
        (&third["metadata"]["heuristic"], &third["metadata"]["programmer"]),
        (&json!(true), &json!("J. LINDQVIST"))
    );
    let items = third["metadata"]["changed_items"].as_array().unwrap();
    assert_eq!(third["metadata"]["changed_item_count"], items.len());
    assert!(items.len() <= 12, "{items:?}");
    let source = fs::read_to_string(SAMPLE).unwrap();
    for item in items {
        let number = item["line_number"].as_u64().unwrap() as usize;
        assert_eq!(source.lines().nth(number - 1), item["code_line"].as_str());
    }
    let answer = third["messages"][1]["content"].as_str().unwrap();
    assert!(answer.starts_with("Likely affected lines (heuristic):\n"), "{answer}");
    assert!(answer.contains("MOVE LN-TAX-ID(6:4) TO WD-TAX-LAST"), "{answer}");
}

#[test]
fn entries_are_written_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let parse = ["--parse-only", "--entries-out", "entries.jsonl", "--heuristic-lines"];
    let ended = run_modlog(folder.path(), &parse);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("[early] Writing 7 raw entries to entries.jsonl\n"));
    assert!(ended.stdout.contains("[6/7] ✅ Done. Parsed 7 entries.\n"), "{ended:?}");
    let entries = read_lines(folder.path(), "entries.jsonl");
    assert_eq!(
        entries[0],
        json!({
            "date": "2017-05-09", "programmer": "R. ALVAREZ", "change_type": "bug_fix",
            "description": "BUG FIX: S0C7 ABEND WHEN LN-RATE-OVERRIDE CONTAINS SPACES",
            "delimiter": "RA0509",
        })
    );
    assert!(!folder.path().join("training_data.jsonl").exists());

    let explain = [
        "--explain-only",
        "--entries-in",
        "entries.jsonl",
        "--heuristic-lines",
        "--validate-entries",
    ];
    let ended = run_modlog(folder.path(), &explain);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("[loaded] 7 entries from entries.jsonl\n"), "{ended:?}");
    assert!(ended.stdout.contains("[validation] 7 entries passed schema checks.\n"));
    assert!(ended.stdout.contains(" (entries loaded from entries.jsonl)"), "{ended:?}");
    let whole = fs::read(folder.path().join("training_data.jsonl")).unwrap();
    assert_eq!(run_modlog(folder.path(), &["--mode", "full-heuristic"]).code, 0);
    assert!(fs::read(folder.path().join("training_data.jsonl")).unwrap() == whole);
}

#[test]
fn pairs_are_appended_or_go_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    for count in [7, 14] {
        let ended = run_modlog(folder.path(), &["--append", "--heuristic-lines"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        let text = "[append] Writing pairs in append mode to training_data.jsonl\n";
        assert!(ended.stdout.contains(text), "{ended:?}");
        assert_eq!(read_lines(folder.path(), "training_data.jsonl").len(), count);
    }
    let ended = run_modlog(folder.path(), &["--out", "-", "--heuristic-lines"]);
    assert_eq!(ended.stdout.lines().filter(|line| line.starts_with("{\"messages\"")).count(), 7);
    assert_eq!(ended.stdout.lines().count(), 7);
    assert!(ended.stderr.ends_with("[7/7] Complete.\n"), "{ended:?}");
    let words = ["--source", SAMPLE, "--heuristic-lines", "--entries-out", "e.jsonl"];
    let quiet = run_modlog_verbose(folder.path(), &words, "0");
    assert_eq!(quiet.stdout, "Wrote 7 examples. Entries: 7\n", "{quiet:?}");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let check = |words: &[&str], text: &str| {
        let ended = run_modlog(folder.path(), words);
        assert_eq!((ended.code, ended.stderr), (2, format!("error: {text}\n")), "{words:?}");
    };
    check(
        &["--parse-only", "--explain-only"],
        "cannot use --parse-only and --explain-only together",
    );
    check(&["--explain-only"], "--explain-only requires --entries-in FILE");
    check(&["--parse-only"], "--parse-only requires --entries-out FILE");
    let words = ["--append", "--parse-only", "--entries-out", "e.jsonl"];
    check(&words, "--append has no effect with --parse-only");
    check(&["--append", "--out", "-"], "--append requires a file in --out, not `-`");
    check(&["--out", SAMPLE], "--out would overwrite --source: choose another file");
    for words in [&["--mode", "moon"][..], &["--max-history-chars", "-1"], &["--moon"]] {
        assert_eq!(run_modlog(folder.path(), words).code, 2, "{words:?}");
    }
    assert_eq!(run_modlog_verbose(folder.path(), &[], "1").code, 2);
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());

    let words = ["--stream", "--heuristic-lines", "--entries-in", "e.jsonl"];
    let ended = run_modlog(folder.path(), &words);
    let warned = "[warn] --heuristic-lines overrides --stream (batch mode required).\n\
                  [warn] --entries-in has no effect without --explain-only.\n";
    assert!(ended.code == 0 && ended.stdout.starts_with(warned), "{ended:?}");
    let words = ["--mode", "full-heuristic", "--append", "--stream"];
    let ended = run_modlog(folder.path(), &words);
    let warned = "[warn] --mode overrides explicit flags: --stream, --append\n[mode] Applied ";
    assert!(ended.code == 0 && ended.stdout.starts_with(warned), "{ended:?}");
}

#[test]
fn bad_entries_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--explain-only", "--entries-in", "bad.jsonl", "--heuristic-lines"];
    let checked = [&words[..], &["--validate-entries"]].concat();
    fs::write(folder.path().join("bad.jsonl"), "{\"description\": \"x\"}\n7\n".repeat(20)).unwrap();
    let ended = run_modlog(folder.path(), &checked);
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (1, "error: Validation failed with 60 problems.\n")
    );
    let shown: Vec<&str> =
        ended.stdout.lines().filter(|line| line.starts_with("[validation][error] ")).collect();
    assert_eq!(shown.len(), 50);
    let missing = "Entry 1 missing keys: change_type, date, delimiter, programmer";
    assert_eq!(shown[0], format!("[validation][error] {missing}"));
    assert_eq!(shown[2], "[validation][error] Entry 2 not an object");

    let ended = run_modlog(folder.path(), &words);
    assert!(ended.stderr.contains("entry 2 of `bad.jsonl` has no description"), "{ended:?}");
    fs::write(folder.path().join("bad.jsonl"), "{}\n\n{").unwrap();
    let ended = run_modlog(folder.path(), &words);
    assert!(ended.stderr.contains("`bad.jsonl`, line 3: not valid JSON: "), "{ended:?}");
    assert!(!folder.path().join("training_data.jsonl").exists());
}

#[test]
fn source_that_cannot_be_used_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("empty.cbl", b" \n");
    write("latin.cbl", b"      * GR\xd6SSE\n");
    write("no_log.cbl", b"       WORKING-STORAGE SECTION.\n");
    let huge = fs::File::create(folder.path().join("huge.cbl")).unwrap();
    huge.set_len(8 * 1024 * 1024 + 1).unwrap();
    for (name, code, text) in [
        ("missing.cbl", 2, "cannot use `missing.cbl`: "),
        (".", 2, "cannot use `.`: it is not a file"),
        ("empty.cbl", 2, "cannot use `empty.cbl`: it is empty"),
        ("latin.cbl", 2, "cannot use `latin.cbl`: it is not UTF-8 at byte 10\nhint: convert it"),
        ("huge.cbl", 2, "cannot use `huge.cbl`: it has more than 8388608 bytes"),
        ("no_log.cbl", 1, "No modification entries identified; aborting.\nhint: the log is in"),
    ] {
        let ended =
            run_modlog_verbose(folder.path(), &["--source", name, "--heuristic-lines"], "1");
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(ended.stderr.starts_with(&format!("error: {text}")), "{ended:?}");
    }
    // A file of the largest size is read.
    huge.set_len(8 * 1024 * 1024).unwrap();
    let ended =
        run_modlog_verbose(folder.path(), &["--source", "huge.cbl", "--heuristic-lines"], "1");
    assert!(ended.stderr.contains("No modification entries"), "{ended:?}");
}

#[test]
fn model_needs_an_installed_jaato() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run_modlog(folder.path(), &[]);
    let text = "error: there is no program `jaato` on PATH\nhint: install jaato, ";
    assert!(ended.code == 1 && ended.stderr.starts_with(text), "{ended:?}");
    assert!(!folder.path().join("training_data.jsonl").exists());
}

//! Compares confined files with plain system calls and the `ignore` crate. Prints one line of JSON
//! with the best results. `cargo xtask bench files` runs it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

use ignore::WalkBuilder;
use jaato_plugin_sdk_environment::files::{AllowedFolder, ConfinedFiles, ConfinedFilesSettings};
use jaato_types::files::{FileFind, FileOrder, FileRead, FileWalk, FileWrite};
use tempfile::TempDir;

/// The number of rounds. The best result of each figure counts.
const ROUNDS: usize = 5;
/// The number of small reads and writes in a round.
const CALLS: u32 = 2000;
const SMALL_BYTES: usize = 4096;
const LARGE_BYTES: usize = 64 * 1024 * 1024;
/// The number of files in the tree, in folders of [`FILES_PER_FOLDER`].
const FILES: usize = 100_000;
const FILES_PER_FOLDER: usize = 50;

fn main() {
    let folder = TempDir::new().unwrap();
    let root = folder.path();
    let tree = root.join("tree");
    make_tree(&tree);
    fs::write(root.join("small"), [7; SMALL_BYTES]).unwrap();
    fs::write(root.join("large"), vec![7; LARGE_BYTES]).unwrap();
    // Small writes use memory if possible (shm_overview(7)), because the speed of a disk varies.
    let shm = Path::new("/dev/shm");
    let memory = if shm.is_dir() { TempDir::new_in(shm) } else { TempDir::new_in(root) }.unwrap();
    let confined = ConfinedFiles::open(&ConfinedFilesSettings {
        roots: vec![AllowedFolder::local(root), AllowedFolder::local(memory.path())],
        default_folder: root.to_owned(),
        temporary: None,
    })
    .unwrap();
    let mut best = BestTimings::default();
    for _ in 0..ROUNDS {
        bench_small_reads(&confined, root, &mut best);
        bench_small_writes(&confined, memory.path(), &mut best);
        bench_large_files(&confined, root, &mut best);
        bench_trees(&confined, &tree, &mut best);
    }
    println!("{}", best.summary_line());
}

/// The lowest value of each figure.
#[derive(Default)]
struct BestTimings(Vec<(&'static str, f64)>);

impl BestTimings {
    fn record_lowest(&mut self, name: &'static str, value: f64) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, least)) => *least = least.min(value),
            None => self.0.push((name, value)),
        }
    }

    fn summary_line(&self) -> String {
        let figures = self.0.iter().map(|(name, value)| format!("\"{name}\":{value}"));
        format!("{{{}}}", figures.collect::<Vec<_>>().join(","))
    }
}

fn make_tree(tree: &Path) {
    for at in 0..FILES {
        let number = at / FILES_PER_FOLDER;
        let folder = tree.join(format!("a{}", number / 50)).join(format!("b{}", number % 50));
        if at % FILES_PER_FOLDER == 0 {
            fs::create_dir_all(&folder).unwrap();
        }
        let ending = if at % 10 == 0 { "rs" } else { "txt" };
        File::create(folder.join(format!("file_{at}.{ending}"))).unwrap();
    }
    fs::write(tree.join(".gitignore"), "*.log\n/target\nnode_modules/\n!keep.log\n").unwrap();
    fs::create_dir(tree.join(".git")).unwrap();
}

/// Returns the microseconds of one call.
fn microseconds_per_call(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..CALLS).for_each(|_| call());
    start.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
}

fn elapsed_ms(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

fn bench_small_reads(confined: &ConfinedFiles, root: &Path, best: &mut BestTimings) {
    let path = root.join("small");
    let read = FileRead { path: path.display().to_string(), ..FileRead::default() };
    best.record_lowest(
        "read_plain_us",
        microseconds_per_call(|| {
            let mut file = File::open(&path).unwrap();
            let mut bytes = Vec::with_capacity(SMALL_BYTES);
            file.read_to_end(&mut bytes).unwrap();
            black_box(bytes);
        }),
    );
    best.record_lowest(
        "read_us",
        microseconds_per_call(|| {
            black_box(confined.read(&read).unwrap());
        }),
    );
    best.record_lowest(
        "read_cached_us",
        microseconds_per_call(|| {
            black_box(confined.read_cached(&read).or_else(|| confined.read(&read).ok()));
        }),
    );
}

fn bench_small_writes(confined: &ConfinedFiles, root: &Path, best: &mut BestTimings) {
    let path = root.join("small");
    let write = FileWrite { path: path.display().to_string(), ..FileWrite::default() };
    let draft = root.join("draft");
    let bytes = [8; SMALL_BYTES];
    // The same system calls: a temporary file in the same folder, and a rename.
    best.record_lowest(
        "write_plain_us",
        microseconds_per_call(|| {
            let mut file = File::options().write(true).create_new(true).open(&draft).unwrap();
            file.write_all(&bytes).unwrap();
            fs::rename(&draft, &path).unwrap();
        }),
    );
    best.record_lowest(
        "write_us",
        microseconds_per_call(|| {
            black_box(confined.write(&write, &bytes).unwrap());
        }),
    );
}

fn bench_large_files(confined: &ConfinedFiles, root: &Path, best: &mut BestTimings) {
    let path = root.join("large");
    let mut buffer = vec![0; 1024 * 1024];
    best.record_lowest(
        "stream_plain_ms",
        elapsed_ms(|| {
            let mut file = File::open(&path).unwrap();
            while file.read(&mut buffer).unwrap() > 0 {
                black_box(&buffer);
            }
        }),
    );
    let read = FileRead { path: path.display().to_string(), ..FileRead::default() };
    best.record_lowest(
        "stream_ms",
        elapsed_ms(|| {
            let (_, mut pieces) = confined.read_stream(&read).unwrap();
            while let Some(piece) = pieces.read_piece().unwrap() {
                black_box(piece);
            }
        }),
    );
}

fn bench_trees(confined: &ConfinedFiles, tree: &Path, best: &mut BestTimings) {
    let name = tree.display().to_string();
    let (mut theirs, mut ours) = (0, 0);
    best.record_lowest(
        "walk_ignore_ms",
        elapsed_ms(|| theirs = WalkBuilder::new(tree).build().skip(1).count()),
    );
    let walk = FileWalk { path: name.clone(), ..FileWalk::default() };
    best.record_lowest(
        "walk_ms",
        elapsed_ms(|| {
            ours = confined
                .walk(&walk)
                .unwrap()
                .map(|page| page.unwrap().entries.len())
                .sum::<usize>();
        }),
    );
    assert_eq!(ours, theirs, "both must find the same");
    best.record_lowest(
        "glob_ignore_ms",
        elapsed_ms(|| {
            let glob =
                globset::GlobBuilder::new("**/*.rs").literal_separator(true).build().unwrap();
            let set = globset::GlobSetBuilder::new().add(glob).build().unwrap();
            let mut found = Vec::new();
            for entry in WalkBuilder::new(tree).build() {
                let entry = entry.unwrap();
                let below = entry.path().strip_prefix(tree).unwrap();
                if set.is_match(below) {
                    found.push((entry.metadata().unwrap().modified().unwrap(), below.to_owned()));
                }
            }
            found.sort();
            theirs = found.len();
        }),
    );
    for (figure, order) in [("glob_ms", FileOrder::Newest), ("glob_by_path_ms", FileOrder::Path)] {
        let pattern = "**/*.rs".to_owned();
        let find = FileFind { pattern, path: name.clone(), order, ..FileFind::default() };
        let count = || confined.find(&find).unwrap().last().unwrap().unwrap().count as usize;
        best.record_lowest(figure, elapsed_ms(|| ours = count()));
        assert_eq!(ours, theirs, "both must find the same");
    }
}

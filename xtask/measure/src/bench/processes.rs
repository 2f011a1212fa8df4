//! Reads a process and its helpers from the system: their ids and their memory (Linux).

use std::collections::BTreeMap;
use std::fs;

/// The largest change of the same memory between two consecutive samples.
const SAME_MEMORY_KIB_MAX: u64 = 256;

/// The peak resident memory of each process in KiB, by process id.
#[derive(Debug, Default)]
pub struct PeakMemory(BTreeMap<u32, u64>);

impl PeakMemory {
    /// Samples a process and all its descendants. The system keeps each peak, so this can miss only
    /// changes right before the end.
    pub fn sample_process_tree(&mut self, root: u32) {
        for process in find_descendants(root, &process_parents()) {
            if let Some(peak) = peak_kib(process) {
                self.0.insert(process, peak);
            }
        }
    }

    /// Returns the sum of all peaks in GiB, an upper bound for the memory at any one time. Returns
    /// `None` without samples.
    pub fn sum_gib(&self) -> Option<f64> {
        let sum: u64 = self.0.values().sum();
        (sum > 0).then(|| sum as f64 / (1024.0 * 1024.0))
    }
}

/// Returns the descendants of a process. Some of them may have ended by now.
pub fn descendants_of(root: u32) -> Vec<u32> {
    let mut found = find_descendants(root, &process_parents());
    found.remove(0);
    found
}

/// Returns the total memory of these processes in KiB. Shared pages count proportionally, and ended
/// processes count as zero.
pub fn pss_kib(processes: &[u32]) -> u64 {
    let rollup = |process| fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok();
    total_pss(
        processes.iter().filter_map(rollup).filter_map(|text| ProcessMemory::parse_rollup(&text)),
    )
}

/// The memory of one process, in KiB.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProcessMemory {
    /// The range of its addresses, which is random at a program's start and inherited by forks.
    range: String,
    pss: u64,
    private: u64,
}

impl ProcessMemory {
    fn parse_rollup(rollup: &str) -> Option<Self> {
        let range = rollup.split(' ').next()?.to_owned();
        let kib = |name| parse_kib_field(name, rollup);
        let private = kib("Private_Clean:")? + kib("Private_Dirty:")?;
        Some(Self { range, pss: kib("Pss:")?, private })
    }

    /// Returns true if both share one memory without a copy. A child before its `exec` may use its
    /// parent's memory (`vfork`), and both then report the whole memory. After a `fork`, each
    /// reports half.
    fn has_same_memory_as(&self, other: &Self) -> bool {
        self.range == other.range
            && self.private > self.pss / 2
            && self.pss.abs_diff(other.pss) <= SAME_MEMORY_KIB_MAX
    }
}

fn total_pss(all: impl Iterator<Item = ProcessMemory>) -> u64 {
    let mut counted: Vec<ProcessMemory> = Vec::new();
    for held in all {
        if !counted.iter().any(|other| held.has_same_memory_as(other)) {
            counted.push(held);
        }
    }
    counted.iter().map(|held| held.pss).sum()
}

/// Returns each process with its parent. Omits processes that end during the call.
fn process_parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|number| Some((number, parent_process(number)?))).collect()
}

fn parent_process(process: u32) -> Option<u32> {
    parse_parent(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Parses the parent. The second field is the program's name in brackets, which may contain
/// anything.
fn parse_parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn find_descendants(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process));
        at += 1;
    }
    found
}

/// Returns the peak resident memory of a process in KiB. The system keeps it.
pub fn peak_kib(process: u32) -> Option<u64> {
    parse_kib_field("VmHWM:", &fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

fn parse_kib_field(name: &str, text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_and_peak_memory_are_read_from_proc_files() {
        assert_eq!(parse_parent("12 (a b) c) S 7 12 12 0"), Some(7));
        assert_eq!(parse_parent(""), None);
        assert_eq!(parse_kib_field("VmHWM:", "Name:\tx\nVmHWM:\t    2048 kB\n"), Some(2048));
        assert_eq!(parse_kib_field("VmHWM:", "Name:\tx\n"), None);
        assert_eq!(
            parse_kib_field("Pss:", "x [rollup]\nPss:      274 kB\nPss_Dirty: 1 kB\n"),
            Some(274)
        );
    }

    fn process_memory(range: &str, pss: u64, private: u64) -> ProcessMemory {
        ProcessMemory { range: range.to_owned(), pss, private }
    }

    #[test]
    fn child_that_shares_its_parents_memory_counts_once() {
        let rollup = "5592-7ffc ---p 00000000 00:00 0   [rollup]\nRss:  900 kB\nPss:  800 kB\n\
                      Pss_Dirty:  700 kB\nPrivate_Clean:   200 kB\nPrivate_Dirty:   500 kB\n";
        assert_eq!(
            ProcessMemory::parse_rollup(rollup),
            Some(process_memory("5592-7ffc", 800, 700))
        );
        assert_eq!(ProcessMemory::parse_rollup(""), None);
        let parent = process_memory("a-z", 10_000, 9_000);
        let before_exec = process_memory("a-z", 10_004, 9_004);
        let other = process_memory("b-z", 10_000, 9_000);
        assert_eq!(total_pss([parent.clone(), before_exec, other].into_iter()), 20_000);
        // A fork shares its parent's memory, and each reports half of it.
        let (parent, fork) = (process_memory("a-z", 5_100, 100), process_memory("a-z", 5_000, 50));
        assert_eq!(total_pss([parent, fork].into_iter()), 10_100);
    }

    #[test]
    fn all_descendants_count_and_other_processes_do_not() {
        let parents = [(2, 1), (5, 2), (6, 5), (7, 1), (8, 6)];
        assert_eq!(find_descendants(2, &parents), [2, 5, 6, 8]);
    }
}

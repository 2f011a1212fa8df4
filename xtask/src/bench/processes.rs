//! The peak memory of a process and its helpers, where the system tells it (Linux).

use std::collections::BTreeMap;
use std::fs;

/// The most that each process was seen to hold resident, in KiB, by its number.
#[derive(Debug, Default)]
pub struct Peaks(BTreeMap<u32, u64>);

impl Peaks {
    /// Looks at a process and all that descend from it. The system itself remembers each one's peak, so
    /// only what happens right before its end can be missed.
    pub fn look(&mut self, root: u32) {
        for process in descendants(root, &parents()) {
            if let Some(peak) = peak_kib(process) {
                self.0.insert(process, peak);
            }
        }
    }

    /// The sum of all peaks, in GiB: no less than what was held at any one time. None where nothing
    /// could be seen.
    pub fn sum_gib(&self) -> Option<f64> {
        let sum: u64 = self.0.values().sum();
        (sum > 0).then(|| sum as f64 / (1024.0 * 1024.0))
    }
}

/// Each process and its parent. Those that end meanwhile are left out.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|number| Some((number, parent_of(number)?))).collect()
}

fn parent_of(process: u32) -> Option<u32> {
    parent_in(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// The second field is the program's name in brackets, which may hold anything.
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn descendants(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process));
        at += 1;
    }
    found
}

fn peak_kib(process: u32) -> Option<u64> {
    peak_in(&fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

fn peak_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_and_peaks_are_read_from_the_systems_words() {
        assert_eq!(parent_in("12 (a b) c) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in(""), None);
        assert_eq!(peak_in("Name:\tx\nVmHWM:\t    2048 kB\n"), Some(2048));
        assert_eq!(peak_in("Name:\tx\n"), None);
    }

    #[test]
    fn helpers_of_helpers_count_and_strangers_do_not() {
        let parents = [(2, 1), (5, 2), (6, 5), (7, 1), (8, 6)];
        assert_eq!(descendants(2, &parents), [2, 5, 6, 8]);
    }
}

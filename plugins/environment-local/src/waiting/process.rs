//! A process as `/proc` shows it.

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};

use jaato_plugin_sdk_environment::waiting::terminal_index;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};

/// The device of `/dev/tty`, which is the controlling terminal of the process that opens it.
const OWN_TERMINAL: u64 = device_number(5, 0);

/// The device of `/dev/ptmx`, the controlling side of a terminal.
const OTHER_SIDE: u64 = device_number(5, 2);

/// The major number of pseudo-terminals.
const TERMINALS_MAJOR: u64 = 136;

/// Threads of a process to inspect.
const THREADS_MAX: usize = 64;

/// Descriptors of a process to inspect.
const DESCRIPTORS_MAX: usize = 256;

/// Bytes to read at once, which is how much of such a file the kernel generates at a time.
const PIECE_BYTES: usize = 4096;

/// A shorter read returned the whole file, because the kernel ends a piece early only if the next
/// line does not fit.
const WHOLE_BYTES: usize = PIECE_BYTES / 2;

/// Numbers a device as the kernel does.
const fn device_number(major: u64, minor: u64) -> u64 {
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// A terminal, identified by its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalDevice(pub(super) u64);

impl TerminalDevice {
    /// Returns the device from the metadata of a terminal's path.
    pub fn from_metadata(metadata: &fs::Metadata) -> Self {
        Self(metadata.rdev())
    }

    fn from_pts_index(index: u32) -> Self {
        Self(device_number(TERMINALS_MAJOR, u64::from(index)))
    }

    /// Returns true if unread input is pending, or `None` if the terminal cannot be opened. Polling
    /// makes the system first deliver input that it holds back.
    pub(super) fn has_input(self) -> Option<bool> {
        let index = (self.0 & 0xff) | (self.0 >> 12 & !0xff);
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let terminal = open(format!("/dev/pts/{index}"), flags, Mode::empty()).ok()?;
        let terminal = fs::File::from(terminal);
        // Containers reuse these numbers for other terminals.
        if terminal.metadata().ok()?.rdev() != self.0 {
            return None;
        }
        let mut polled = [PollFd::new(&terminal, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&at_once)).ok()?;
        Some(polled[0].revents().contains(PollFlags::IN))
    }
}

/// The contents of `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessStat {
    pub(super) pid: u32,
    pub(super) name: String,
    /// `R`, `S`, `D`, `T` or `Z`.
    pub(super) state: char,
    pub(super) group: u32,
    /// The controlling terminal, or 0 if there is none.
    pub(super) terminal: TerminalDevice,
    /// The foreground process group of that terminal.
    pub(super) foreground: u32,
    threads: usize,
}

impl ProcessStat {
    /// Reads the state of a process.
    pub(super) fn read_stat(pid: u32) -> Option<Self> {
        Self::parse(&read_proc_file(&format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // A name may contain anything, including parentheses and line breaks.
        let (before, after) = text.rsplit_once(')')?;
        let (pid, name) = before.split_once(" (")?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<i64>().ok();
        Some(Self {
            pid: pid.parse().ok()?,
            name: name.to_owned(),
            state: fields.first()?.chars().next()?,
            group: u32::try_from(number(2)?).ok()?,
            terminal: TerminalDevice(u64::from(i32::try_from(number(4)?).ok()?.cast_unsigned())),
            foreground: u32::try_from(number(5)?).unwrap_or(0),
            threads: usize::try_from(number(17)?).unwrap_or(1),
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Lists the threads, main thread first.
    pub(super) fn list_threads(&self) -> Vec<u32> {
        if self.threads <= 1 {
            return vec![self.pid];
        }
        let Ok(entries) = fs::read_dir(format!("/proc/{}/task", self.pid)) else {
            return vec![self.pid];
        };
        let named = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut threads: Vec<u32> = named.take(THREADS_MAX).collect();
        threads.sort_unstable();
        threads
    }

    /// Lists the children.
    pub(super) fn list_children(&self) -> Vec<u32> {
        let mut children = Vec::new();
        for thread in self.list_threads() {
            let path = format!("/proc/{}/task/{thread}/children", self.pid);
            let listed = read_proc_file(&path).unwrap_or_default();
            children.extend(listed.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        children
    }

    /// Returns true if another thread runs or waits for a disk, for example a worker of an event
    /// loop.
    pub(super) fn has_other_working_thread(&self, thread: u32) -> bool {
        let mut others = self.list_threads().into_iter().filter(|other| *other != thread);
        others.any(|other| {
            let read = read_proc_file(&format!("/proc/{}/task/{other}/stat", self.pid)).ok();
            let read = read.and_then(|text| Self::parse(&text));
            read.is_some_and(|other| matches!(other.state, 'R' | 'D'))
        })
    }

    /// Returns a thread's system call in the kernel's notation.
    pub(super) fn system_call(&self, thread: u32) -> io::Result<String> {
        read_proc_file(&format!("/proc/{}/task/{thread}/syscall", self.pid))
    }

    /// Returns the kernel function in which a thread sleeps.
    pub(super) fn sleep_function(&self, thread: u32) -> String {
        read_proc_file(&format!("/proc/{}/task/{thread}/wchan", self.pid)).unwrap_or_default()
    }

    /// Returns how long a thread has run. Equal texts mean that it did not run in the meantime.
    pub(super) fn run_time(&self, thread: u32) -> Option<String> {
        read_proc_file(&format!("/proc/{}/task/{thread}/schedstat", self.pid)).ok()
    }

    /// Reads memory of the process. Returns `None` if it cannot be read completely.
    pub(super) fn read_memory(&self, from: u64, bytes: usize) -> Option<Vec<u8>> {
        let memory = fs::File::open(format!("/proc/{}/mem", self.pid)).ok()?;
        let mut read = vec![0; bytes];
        memory.read_exact_at(&mut read, from).ok()?;
        Some(read)
    }

    /// Returns the `/proc` details of a descriptor.
    pub(super) fn descriptor_info(&self, number: u32) -> Option<String> {
        read_proc_file(&format!("/proc/{}/fdinfo/{number}", self.pid)).ok()
    }

    /// Returns true if a descriptor is the terminal.
    pub(super) fn is_terminal(&self, number: u32, terminal: TerminalDevice) -> bool {
        match self.descriptor_device(number) {
            Some(OWN_TERMINAL) => self.terminal == terminal,
            Some(device) => device == terminal.0,
            None => false,
        }
    }

    /// Finds the terminals whose controlling side the process holds.
    pub(super) fn inner_terminals(&self) -> Vec<TerminalDevice> {
        let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", self.pid)) else { return Vec::new() };
        let numbers =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let other_sides = numbers
            .take(DESCRIPTORS_MAX)
            .filter(|number| self.descriptor_device(*number) == Some(OTHER_SIDE));
        let indexes =
            other_sides.filter_map(|number| terminal_index(&self.descriptor_info(number)?));
        indexes.map(TerminalDevice::from_pts_index).collect()
    }

    /// Returns true if another user owns the process, so that it cannot be inspected.
    pub(super) fn is_owned_by_other_user(&self) -> bool {
        // The kernel gives the folder of a process that cannot be inspected to root. That may
        // include this process's own folder.
        let owner = fs::metadata(format!("/proc/{}", self.pid)).map(|metadata| metadata.uid());
        owner.ok() != Some(rustix::process::geteuid().as_raw())
    }

    fn descriptor_device(&self, number: u32) -> Option<u64> {
        read_descriptor_device(self.pid, number)
    }
}

/// Reads a file of `/proc`. Most of them fit into one read, while the standard library first asks
/// for length and position, then reads in growing steps and again for the end.
fn read_proc_file(path: &str) -> io::Result<String> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut piece = [0; PIECE_BYTES];
    let mut bytes = Vec::new();
    loop {
        let read = match read(&file, &mut piece) {
            Ok(read) => read,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        bytes.extend_from_slice(&piece[..read]);
        if read < WHOLE_BYTES {
            break;
        }
    }
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Lists the programs with this name that have a terminal open, and the descriptor of each. Such a
/// program serves the clients of a multiplexer.
pub(super) fn list_terminal_holders(name: &str, terminal: TerminalDevice) -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let named = pids.filter(|pid: &u32| {
        let own = read_proc_file(&format!("/proc/{pid}/comm")).unwrap_or_default();
        own.trim_end() == name
    });
    named.filter_map(|pid| Some((pid, find_terminal_descriptor(pid, terminal)?))).collect()
}

/// Finds the descriptor with which a process has a terminal open.
fn find_terminal_descriptor(pid: u32, terminal: TerminalDevice) -> Option<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.take(DESCRIPTORS_MAX).find(|number| is_terminal_descriptor(pid, *number, terminal))
}

/// Returns true if this descriptor of a process is the terminal.
pub(super) fn is_terminal_descriptor(pid: u32, number: u32, terminal: TerminalDevice) -> bool {
    read_descriptor_device(pid, number) == Some(terminal.0)
}

fn read_descriptor_device(pid: u32, number: u32) -> Option<u64> {
    // The link leads to the file itself, regardless of the mounts that this process sees.
    let metadata = fs::metadata(format!("/proc/{pid}/fd/{number}")).ok()?;
    metadata.file_type().is_char_device().then(|| metadata.rdev())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_stat_is_parsed_whatever_the_process_name() {
        let text =
            "4711 (a) b (c)) S 4700 4711 4700 34830 4711 4194304 1 0 0 0 0 0 0 0 20 0 11 0 99";
        let read = ProcessStat::parse(text).unwrap();
        let expected = ProcessStat {
            pid: 4711,
            name: "a) b (c)".to_owned(),
            state: 'S',
            group: 4711,
            terminal: TerminalDevice::from_pts_index(14),
            foreground: 4711,
            threads: 11,
        };
        assert_eq!(read, expected);
        let daemon = "7 (d) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9";
        let daemon = ProcessStat::parse(daemon).unwrap();
        assert_eq!((daemon.terminal, daemon.foreground), (TerminalDevice(0), 0));
        assert_eq!(ProcessStat::parse("7 (d) S 1 7"), None);
    }

    #[test]
    fn proc_file_of_any_length_is_read_completely() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [0, 1, WHOLE_BYTES - 1, WHOLE_BYTES, PIECE_BYTES, 3 * PIECE_BYTES + 7] {
            let path = folder.path().join(bytes.to_string());
            fs::write(&path, "x".repeat(bytes)).unwrap();
            assert_eq!(read_proc_file(path.to_str().unwrap()).unwrap(), "x".repeat(bytes));
        }
        let own = read_proc_file("/proc/self/status").unwrap();
        assert!(own.ends_with('\n') && own.contains("nonvoluntary_ctxt_switches"), "{own}");
        let missing = read_proc_file("/proc/self/none").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn high_terminal_numbers_match_the_kernels_encoding() {
        assert_eq!(TerminalDevice::from_pts_index(0).0, 34816);
        assert_eq!(TerminalDevice::from_pts_index(300).0, 0x10_882c);
    }
}

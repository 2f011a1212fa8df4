//! Parses sets of descriptors to wait for, from a process's memory and from `/proc`. Pure.

/// The maximum number of descriptors of one set to look at. A terminal is among the first.
pub const DESCRIPTORS_MAX: usize = 256;

/// The size of an entry in the list of `poll`, in bytes.
pub const POLL_ENTRY_BYTES: usize = 8;

/// `POLLIN` and `POLLRDNORM`.
const POLL_READ: u16 = 0x41;

/// `EPOLLIN` and `EPOLLRDNORM`.
const EPOLL_READ: u32 = 0x41;

/// Lists the descriptors that `poll` waits to read from.
pub fn poll_descriptors(list: &[u8]) -> Vec<u32> {
    let entries = list.chunks_exact(POLL_ENTRY_BYTES);
    let wanted = entries.filter_map(|entry| {
        let &[a, b, c, d, low, high, ..] = entry else { return None };
        let descriptor = i32::from_ne_bytes([a, b, c, d]);
        let is_read = u16::from_ne_bytes([low, high]) & POLL_READ != 0;
        // `poll` ignores negative descriptors too.
        is_read.then(|| u32::try_from(descriptor).ok()).flatten()
    });
    wanted.collect()
}

/// Returns the size of a set with this many descriptors in bytes, rounded up to whole words.
pub fn select_bytes(descriptors: u64) -> usize {
    let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX).min(DESCRIPTORS_MAX);
    descriptors.div_ceil(64) * 8
}

/// Lists the members of a `select` set.
pub fn select_descriptors(set: &[u8], descriptors: u64) -> Vec<u32> {
    let words = set.chunks_exact(8).filter_map(|word| word.try_into().ok());
    let words = words.map(u64::from_ne_bytes).zip((0_u32..).step_by(64));
    let members = words.flat_map(|(word, first)| {
        (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| first + bit)
    });
    members.filter(|descriptor| u64::from(*descriptor) < descriptors).collect()
}

/// Lists the descriptors that an `epoll` set waits to read from: the lines `tfd:` of
/// `/proc/PID/fdinfo/FD`.
pub fn epoll_descriptors(text: &str) -> Vec<u32> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.strip_prefix("tfd:")?.split_whitespace();
        let descriptor = words.next()?.parse().ok()?;
        let (_, events) = (words.next()?, words.next()?);
        let is_read = u32::from_str_radix(events, 16).ok()? & EPOLL_READ != 0;
        is_read.then_some(descriptor)
    });
    lines.take(DESCRIPTORS_MAX).collect()
}

/// Reads the number of a terminal from `/proc/PID/fdinfo/FD` of the process that holds its other
/// side.
pub fn terminal_index(text: &str) -> Option<u32> {
    text.lines().find_map(|line| line.strip_prefix("tty-index:")?.trim().parse().ok())
}

/// The size of a time in bytes: two numbers of the kernel.
pub const TIME_BYTES: usize = 16;

/// Converts a time to milliseconds. Its second number counts `parts` per second.
pub fn to_milliseconds(time: &[u8], parts: u64) -> Option<u64> {
    let number = |at| Some(u64::from_ne_bytes(time.get(at..at + 8)?.try_into().ok()?));
    let (seconds, rest): (u64, u64) = (number(0)?, number(8)?);
    Some(seconds.saturating_mul(1000).saturating_add(rest / (parts / 1000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll_entry(descriptor: i32, events: u16) -> Vec<u8> {
        let parts = [&descriptor.to_ne_bytes()[..], &events.to_ne_bytes(), &[0, 0]];
        parts.concat()
    }

    #[test]
    fn poll_list_returns_the_descriptors_awaited_for_reading() {
        let list =
            [poll_entry(3, 1), poll_entry(-1, 1), poll_entry(4, 4), poll_entry(0, 0x43)].concat();
        assert_eq!(poll_descriptors(&list), [3, 0]);
        assert_eq!(poll_descriptors(&list[..9]), [3], "a cut list is read as far as it goes");
    }

    #[test]
    fn select_set_is_read_up_to_the_descriptor_count() {
        let mut set = [0; 16];
        (set[0], set[8]) = (0b1001, 0b10);
        assert_eq!(select_descriptors(&set, 66), [0, 3, 65]);
        assert_eq!(select_descriptors(&set, 65), [0, 3]);
        assert_eq!((select_bytes(1), select_bytes(65), select_bytes(u64::MAX)), (8, 16, 32));
    }

    #[test]
    fn timeouts_are_converted_to_milliseconds() {
        let time = [4_u64.to_ne_bytes(), 250_000_000_u64.to_ne_bytes()].concat();
        assert_eq!(to_milliseconds(&time, 1_000_000_000), Some(4250));
        let time = [0_u64.to_ne_bytes(), 100_000_u64.to_ne_bytes()].concat();
        assert_eq!(to_milliseconds(&time, 1_000_000), Some(100));
        assert_eq!(to_milliseconds(&time[1..], 1_000_000), None);
    }

    #[test]
    fn recorded_descriptor_texts_are_parsed() {
        let text = "pos:\t0\nflags:\t02000002\nmnt_id:\t16\nino:\t1065\n\
            tfd:       12 events:       19 data:                c  pos:0 ino:429 sdev:f\n\
            tfd:       17 events:        4 data:               11  pos:0 ino:3 sdev:18\n\
            tfd:        0 events: 40000001 data:                0  pos:0 ino:3 sdev:18\n";
        assert_eq!(epoll_descriptors(text), [12, 0]);
        let text = "pos:\t0\nflags:\t0102\nmnt_id:\t27\nino:\t2\ntty-index:\t14\n";
        assert_eq!(terminal_index(text), Some(14));
        assert_eq!(terminal_index("pos:\t0\n"), None);
    }
}

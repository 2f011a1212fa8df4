//! Parses the system call in which a thread is blocked, from `/proc/PID/task/TID/syscall`. Pure.

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// The thread runs, or is about to.
    Running,
    /// The thread is blocked in a system call.
    Blocked(Call),
}

/// A system call that may wait for input. Addresses are those of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `read`, `readv`.
    Read {
        /// The descriptor that it reads.
        descriptor: u32,
    },
    /// `poll`, `ppoll`.
    Poll {
        /// The address of the list.
        list: u64,
        /// The length of the list.
        length: u64,
        /// The timeout.
        timeout: Timeout,
    },
    /// `select`, `pselect6`.
    Select {
        /// The address of the set of descriptors to read.
        set: u64,
        /// The highest descriptor plus one.
        descriptors: u64,
        /// The timeout.
        timeout: Timeout,
    },
    /// `epoll_wait` and its variants.
    Epoll {
        /// The descriptor of the epoll set.
        descriptor: u32,
        /// The timeout.
        timeout: Timeout,
    },
    /// A wait that a signal has interrupted. Its arguments are no longer known.
    Restarted,
    /// Another call.
    Other,
}

/// The timeout of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// No timeout.
    Endless,
    /// The number of milliseconds.
    Milliseconds(u64),
    /// A time stored in the process's memory.
    Stands {
        /// The address of the time.
        at: u64,
        /// The number of parts per second in the second of its two numbers.
        parts: u64,
    },
    /// An unknown timeout.
    Unknown,
}

/// The system call numbers of an architecture.
pub struct Numbers {
    reads: &'static [i64],
    polls: &'static [(i64, Wait)],
    selects: &'static [(i64, Wait)],
    epolls: &'static [(i64, Wait)],
    restart: i64,
}

/// How a call receives its timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// Milliseconds. A negative number means no timeout.
    Milliseconds,
    /// The address of seconds and nanoseconds. Zero means no timeout.
    Nanoseconds,
    /// The address of seconds and microseconds. Zero means no timeout.
    Microseconds,
}

const X86_64: Numbers = Numbers {
    reads: &[0, 19],
    polls: &[(7, Wait::Milliseconds), (271, Wait::Nanoseconds)],
    selects: &[(23, Wait::Microseconds), (270, Wait::Nanoseconds)],
    epolls: &[(232, Wait::Milliseconds), (281, Wait::Milliseconds), (441, Wait::Nanoseconds)],
    restart: 219,
};

const AARCH64: Numbers = Numbers {
    reads: &[63, 65],
    polls: &[(73, Wait::Nanoseconds)],
    selects: &[(72, Wait::Nanoseconds)],
    epolls: &[(22, Wait::Milliseconds), (441, Wait::Nanoseconds)],
    restart: 128,
};

impl Numbers {
    /// Returns the numbers of this machine, if they are known.
    pub fn own() -> Option<&'static Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(&X86_64),
            "aarch64" => Some(&AARCH64),
            _ => None,
        }
    }

    /// Parses the state of a thread. Returns `None` for an invalid text.
    pub fn read(&self, text: &str) -> Option<Doing> {
        let mut words = text.split_whitespace();
        let number = match words.next()? {
            "running" => return Some(Doing::Running),
            number => number.parse::<i64>().ok()?,
        };
        let mut arguments = [0; 6];
        for (argument, word) in arguments.iter_mut().zip(words) {
            *argument = u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Doing::Blocked(self.call(number, arguments)))
    }

    fn call(&self, number: i64, arguments: [u64; 6]) -> Call {
        let [first, second, third, fourth, fifth, _] = arguments;
        let wait =
            |calls: &[(i64, Wait)]| calls.iter().find(|call| call.0 == number).map(|call| call.1);
        // A descriptor is an `int`, so the upper half of its register is meaningless.
        let descriptor = first as u32;
        if self.reads.contains(&number) {
            return Call::Read { descriptor };
        }
        if let Some(wait) = wait(self.polls) {
            return Call::Poll { list: first, length: second, timeout: wait.of(third) };
        }
        if let Some(wait) = wait(self.selects) {
            return Call::Select { set: second, descriptors: first, timeout: wait.of(fifth) };
        }
        if let Some(wait) = wait(self.epolls) {
            return Call::Epoll { descriptor, timeout: wait.of(fourth) };
        }
        if number == self.restart { Call::Restarted } else { Call::Other }
    }
}

impl Wait {
    fn of(self, argument: u64) -> Timeout {
        let stands = |parts| match argument {
            0 => Timeout::Endless,
            at => Timeout::Stands { at, parts },
        };
        match self {
            // The timeout is an `int`, like a descriptor.
            Self::Milliseconds => {
                match u64::try_from(i32::from_ne_bytes((argument as u32).to_ne_bytes())) {
                    Ok(milliseconds) => Timeout::Milliseconds(milliseconds),
                    Err(_) => Timeout::Endless,
                }
            }
            Self::Nanoseconds => stands(1_000_000_000),
            Self::Microseconds => stands(1_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(numbers: &Numbers, text: &str, expected: Option<Doing>) {
        assert_eq!(numbers.read(text), expected, "{text}");
    }

    fn blocked(call: Call) -> Option<Doing> {
        Some(Doing::Blocked(call))
    }

    #[test]
    fn recorded_calls_are_read() {
        // bash at its prompt, cat, python 3.13 at its prompt, node, sleep, and a thread without a
        // call.
        let bash =
            "270 0x1 0x7ffd5b1d2c50 0x0 0x0 0x0 0x7ffd5b1d2bd0 0x7ffd5b1d2b88 0x7f7ae7d16c26\n";
        let select =
            Call::Select { set: 0x7ffd_5b1d_2c50, descriptors: 1, timeout: Timeout::Endless };
        check(&X86_64, bash, blocked(select));
        let cat = "0 0x0 0x7f3c1f5d1000 0x20000 0x22 0x0 0x0 0x7ffee4f0 0x7f3c1f6e519d\n";
        check(&X86_64, cat, blocked(Call::Read { descriptor: 0 }));
        let python = "7 0x7ffd03a1f0b0 0x1 0x64 0x0 0x0 0x0 0x7ffd03a1f060 0x7f0e1a0d5c3f\n";
        let poll =
            Call::Poll { list: 0x7ffd_03a1_f0b0, length: 1, timeout: Timeout::Milliseconds(100) };
        check(&X86_64, python, blocked(poll));
        let node = "281 0xd 0x7ffc3b5f0 0x400 0xffffffff 0x0 0x8 0x7ffc3b5d0 0x7f9b5c2f3a5e\n";
        let epoll = Call::Epoll { descriptor: 13, timeout: Timeout::Endless };
        check(&X86_64, node, blocked(epoll));
        let vim = "270 0x1 0x7ffd1000 0x0 0x7ffd1080 0x7ffd1100 0x0 0x7ffd0f00 0x7f7ae7d16c26\n";
        let timeout = Timeout::Stands { at: 0x7ffd_1100, parts: 1_000_000_000 };
        check(&X86_64, vim, blocked(Call::Select { set: 0x7ffd_1000, descriptors: 1, timeout }));
        let sleep = "230 0x0 0x0 0x7ffe2c0 0x0 0x0 0x0 0x7ffe2b0 0x7fe9b9e8c7f7\n";
        check(&X86_64, sleep, blocked(Call::Other));
        check(&X86_64, "-1 0x7ffe2b0 0x7fe9b9e8c7f7\n", blocked(Call::Other));
        check(&X86_64, "running\n", Some(Doing::Running));
        check(&X86_64, "219 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x2\n", blocked(Call::Restarted));
    }

    #[test]
    fn architectures_have_numbers_of_their_own() {
        let text = "63 0xffffffff00000003 0x1 0x1 0x0 0x0 0x0 0x1 0x2";
        check(&AARCH64, text, blocked(Call::Read { descriptor: 3 }));
        check(&X86_64, text, blocked(Call::Other));
        let text = "73 0x10 0x2 0x0 0x0 0x0 0x0 0x1 0x2";
        let poll = Call::Poll { list: 16, length: 2, timeout: Timeout::Endless };
        check(&AARCH64, text, blocked(poll));
    }

    #[test]
    fn what_is_no_such_text_says_nothing() {
        for text in ["", "sleeping", "0 zero", "0x0 0x0"] {
            check(&X86_64, text, None);
        }
    }
}

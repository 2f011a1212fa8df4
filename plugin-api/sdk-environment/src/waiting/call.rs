//! Parses the system call in which a thread is blocked, from `/proc/PID/task/TID/syscall`. Pure.

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadActivity {
    /// The thread runs, or is about to.
    Running,
    /// The thread is blocked in a system call.
    Blocked(WaitingSystemCall),
}

/// A system call that may wait for input. Addresses are those of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingSystemCall {
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
        timeout: SystemCallTimeout,
    },
    /// `select`, `pselect6`.
    Select {
        /// The address of the set of descriptors to read.
        set: u64,
        /// The highest descriptor plus one.
        descriptors: u64,
        /// The timeout.
        timeout: SystemCallTimeout,
    },
    /// `epoll_wait` and its variants.
    Epoll {
        /// The descriptor of the epoll set.
        descriptor: u32,
        /// The timeout.
        timeout: SystemCallTimeout,
    },
    /// A wait that a signal has interrupted. Its arguments are unknown.
    Restarted,
    /// Another call.
    Other,
}

/// The timeout of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemCallTimeout {
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
pub struct SystemCallNumbers {
    reads: &'static [i64],
    polls: &'static [(i64, TimeoutEncoding)],
    selects: &'static [(i64, TimeoutEncoding)],
    epolls: &'static [(i64, TimeoutEncoding)],
    restart: i64,
}

/// How a call receives its timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeoutEncoding {
    /// Milliseconds. A negative number means no timeout.
    Milliseconds,
    /// The address of seconds and nanoseconds. Zero means no timeout.
    Nanoseconds,
    /// The address of seconds and microseconds. Zero means no timeout.
    Microseconds,
}

const X86_64: SystemCallNumbers = SystemCallNumbers {
    reads: &[0, 19],
    polls: &[(7, TimeoutEncoding::Milliseconds), (271, TimeoutEncoding::Nanoseconds)],
    selects: &[(23, TimeoutEncoding::Microseconds), (270, TimeoutEncoding::Nanoseconds)],
    epolls: &[
        (232, TimeoutEncoding::Milliseconds),
        (281, TimeoutEncoding::Milliseconds),
        (441, TimeoutEncoding::Nanoseconds),
    ],
    restart: 219,
};

const AARCH64: SystemCallNumbers = SystemCallNumbers {
    reads: &[63, 65],
    polls: &[(73, TimeoutEncoding::Nanoseconds)],
    selects: &[(72, TimeoutEncoding::Nanoseconds)],
    epolls: &[(22, TimeoutEncoding::Milliseconds), (441, TimeoutEncoding::Nanoseconds)],
    restart: 128,
};

impl SystemCallNumbers {
    /// Returns the numbers of this machine, if they are known.
    pub fn for_this_architecture() -> Option<&'static Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(&X86_64),
            "aarch64" => Some(&AARCH64),
            _ => None,
        }
    }

    /// Parses the state of a thread. Returns `None` for an invalid text.
    pub fn parse_activity(&self, text: &str) -> Option<ThreadActivity> {
        let mut words = text.split_whitespace();
        let number = match words.next()? {
            "running" => return Some(ThreadActivity::Running),
            number => number.parse::<i64>().ok()?,
        };
        let mut arguments = [0; 6];
        for (argument, word) in arguments.iter_mut().zip(words) {
            *argument = u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
        }
        Some(ThreadActivity::Blocked(self.classify_call(number, arguments)))
    }

    fn classify_call(&self, number: i64, arguments: [u64; 6]) -> WaitingSystemCall {
        let [first, second, third, fourth, fifth, _] = arguments;
        let wait = |calls: &[(i64, TimeoutEncoding)]| {
            calls.iter().find(|call| call.0 == number).map(|call| call.1)
        };
        // A descriptor is an `int`, so the upper half of its register is meaningless.
        let descriptor = first as u32;
        if self.reads.contains(&number) {
            return WaitingSystemCall::Read { descriptor };
        }
        if let Some(wait) = wait(self.polls) {
            return WaitingSystemCall::Poll {
                list: first,
                length: second,
                timeout: wait.decode_timeout(third),
            };
        }
        if let Some(wait) = wait(self.selects) {
            return WaitingSystemCall::Select {
                set: second,
                descriptors: first,
                timeout: wait.decode_timeout(fifth),
            };
        }
        if let Some(wait) = wait(self.epolls) {
            return WaitingSystemCall::Epoll { descriptor, timeout: wait.decode_timeout(fourth) };
        }
        if number == self.restart { WaitingSystemCall::Restarted } else { WaitingSystemCall::Other }
    }
}

impl TimeoutEncoding {
    fn decode_timeout(self, argument: u64) -> SystemCallTimeout {
        let stands = |parts| match argument {
            0 => SystemCallTimeout::Endless,
            at => SystemCallTimeout::Stands { at, parts },
        };
        match self {
            // The timeout is an `int`, like a descriptor.
            Self::Milliseconds => {
                match u64::try_from(i32::from_ne_bytes((argument as u32).to_ne_bytes())) {
                    Ok(milliseconds) => SystemCallTimeout::Milliseconds(milliseconds),
                    Err(_) => SystemCallTimeout::Endless,
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
    fn check_activity(numbers: &SystemCallNumbers, text: &str, expected: Option<ThreadActivity>) {
        assert_eq!(numbers.parse_activity(text), expected, "{text}");
    }

    fn blocked_activity(call: WaitingSystemCall) -> Option<ThreadActivity> {
        Some(ThreadActivity::Blocked(call))
    }

    #[test]
    fn recorded_system_calls_are_parsed() {
        // bash at its prompt, cat, python 3.13 at its prompt, node, sleep, and a thread without a
        // call.
        let bash =
            "270 0x1 0x7ffd5b1d2c50 0x0 0x0 0x0 0x7ffd5b1d2bd0 0x7ffd5b1d2b88 0x7f7ae7d16c26\n";
        let select = WaitingSystemCall::Select {
            set: 0x7ffd_5b1d_2c50,
            descriptors: 1,
            timeout: SystemCallTimeout::Endless,
        };
        check_activity(&X86_64, bash, blocked_activity(select));
        let cat = "0 0x0 0x7f3c1f5d1000 0x20000 0x22 0x0 0x0 0x7ffee4f0 0x7f3c1f6e519d\n";
        check_activity(&X86_64, cat, blocked_activity(WaitingSystemCall::Read { descriptor: 0 }));
        let python = "7 0x7ffd03a1f0b0 0x1 0x64 0x0 0x0 0x0 0x7ffd03a1f060 0x7f0e1a0d5c3f\n";
        let poll = WaitingSystemCall::Poll {
            list: 0x7ffd_03a1_f0b0,
            length: 1,
            timeout: SystemCallTimeout::Milliseconds(100),
        };
        check_activity(&X86_64, python, blocked_activity(poll));
        let node = "281 0xd 0x7ffc3b5f0 0x400 0xffffffff 0x0 0x8 0x7ffc3b5d0 0x7f9b5c2f3a5e\n";
        let epoll =
            WaitingSystemCall::Epoll { descriptor: 13, timeout: SystemCallTimeout::Endless };
        check_activity(&X86_64, node, blocked_activity(epoll));
        let vim = "270 0x1 0x7ffd1000 0x0 0x7ffd1080 0x7ffd1100 0x0 0x7ffd0f00 0x7f7ae7d16c26\n";
        let timeout = SystemCallTimeout::Stands { at: 0x7ffd_1100, parts: 1_000_000_000 };
        check_activity(
            &X86_64,
            vim,
            blocked_activity(WaitingSystemCall::Select {
                set: 0x7ffd_1000,
                descriptors: 1,
                timeout,
            }),
        );
        let sleep = "230 0x0 0x0 0x7ffe2c0 0x0 0x0 0x0 0x7ffe2b0 0x7fe9b9e8c7f7\n";
        check_activity(&X86_64, sleep, blocked_activity(WaitingSystemCall::Other));
        check_activity(
            &X86_64,
            "-1 0x7ffe2b0 0x7fe9b9e8c7f7\n",
            blocked_activity(WaitingSystemCall::Other),
        );
        check_activity(&X86_64, "running\n", Some(ThreadActivity::Running));
        check_activity(
            &X86_64,
            "219 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x2\n",
            blocked_activity(WaitingSystemCall::Restarted),
        );
    }

    #[test]
    fn architectures_have_their_own_call_numbers() {
        let text = "63 0xffffffff00000003 0x1 0x1 0x0 0x0 0x0 0x1 0x2";
        check_activity(&AARCH64, text, blocked_activity(WaitingSystemCall::Read { descriptor: 3 }));
        check_activity(&X86_64, text, blocked_activity(WaitingSystemCall::Other));
        let text = "73 0x10 0x2 0x0 0x0 0x0 0x0 0x1 0x2";
        let poll =
            WaitingSystemCall::Poll { list: 16, length: 2, timeout: SystemCallTimeout::Endless };
        check_activity(&AARCH64, text, blocked_activity(poll));
    }

    #[test]
    fn invalid_system_call_text_is_ignored() {
        for text in ["", "sleeping", "0 zero", "0x0 0x0"] {
            check_activity(&X86_64, text, None);
        }
    }
}

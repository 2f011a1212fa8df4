//! Reports how much processor time of a virtual machine went to others during the measurement.

/// From this percentage on, the times are unreliable.
const PERCENT_MIN: u64 = 2;

/// The processor time so far in ticks, if the system reports it (Linux).
pub struct ProcessorTicks {
    all: u64,
    stolen: u64,
}

impl ProcessorTicks {
    /// Reads the current time.
    pub fn read_now() -> Option<Self> {
        Self::parse_stat(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq,
    /// steal, and two that are parts of the first two (proc(5)).
    fn parse_stat(text: &str) -> Option<Self> {
        let fields = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
        let fields: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self { all: fields.iter().sum(), stolen: *fields.get(7)? })
    }

    /// Returns a warning if much time was stolen between `self` and `later`.
    pub fn stolen_time_warning(&self, later: &Self) -> Option<String> {
        let all = later.all.saturating_sub(self.all);
        let percent = (100 * later.stolen.saturating_sub(self.stolen)).checked_div(all)?;
        (percent >= PERCENT_MIN).then(|| {
            format!("STOLEN: the host of this machine gave {percent} % of its processors to others; times are too long")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_reported_above_a_few_percent() {
        let ticks = |text: &str| ProcessorTicks::parse_stat(text).unwrap();
        let before = ticks("cpu  100 0 100 700 0 0 0 100 50 0\ncpu0 1 2 3");
        let line =
            before.stolen_time_warning(&ticks("cpu  110 0 110 760 0 0 0 120 60 0\n")).unwrap();
        assert!(line.starts_with("STOLEN: the host of this machine gave 20 % of"), "{line}");
        assert_eq!(before.stolen_time_warning(&ticks("cpu  199 0 100 700 0 0 0 101 50 0\n")), None);
        assert_eq!(before.stolen_time_warning(&before), None);
        assert!(
            ProcessorTicks::parse_stat("cpu  1 2 3").is_none()
                && ProcessorTicks::parse_stat("intr 1").is_none()
        );
    }
}

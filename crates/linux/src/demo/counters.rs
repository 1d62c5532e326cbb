//! Counters of the namespaces' TCP, and the processor time that the process has used.
//!
//! Invariant: counters are of the namespace, not of the caller's.

use millpond_worlds::namespace;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::time::Duration;

/// One namespace's counters, by group and name as the kernel has them (`TcpExt.TCPOFOQueue`).
#[derive(Clone, Debug, Default)]
pub struct Counters(HashMap<String, u64>);

impl Counters {
    /// Of a namespace.
    pub fn read(namespace: &str) -> io::Result<Counters> {
        namespace::within(Some(namespace), || {
            // Of this thread: the process is in another namespace.
            let text = fs::read_to_string("/proc/thread-self/net/netstat")?;
            let more = fs::read_to_string("/proc/thread-self/net/snmp")?;
            Ok(Counters::parse(&(text + &more)))
        })?
    }
    fn parse(text: &str) -> Counters {
        let mut counters = HashMap::new();
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks(2) {
            let [names, values] = pair else { continue };
            let (Some((group, names)), Some((_, values))) =
                (names.split_once(':'), values.split_once(':'))
            else {
                continue;
            };
            for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
                counters.insert(format!("{group}.{name}"), value.parse().unwrap_or(0));
            }
        }
        Counters(counters)
    }
    /// How much one has grown since `before`.
    pub fn since(&self, before: &Counters, name: &str) -> u64 {
        let of = |c: &Counters| c.0.get(name).copied().unwrap_or(0);
        of(self).saturating_sub(of(before))
    }
}

/// Processor time that this process has used, its kernel's work for it included. Work that the
/// kernel moves to threads of its own (ksoftirqd) is not in it.
pub fn processor_time() -> Duration {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    // Nanoseconds on a processor, of each thread; finer than the ticks of /proc/self/stat.
    let mut total = 0;
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let text = read(&task.path().join("schedstat").to_string_lossy());
        total += text.split_whitespace().next().and_then(|t| t.parse::<u64>().ok()).unwrap_or(0);
    }
    Duration::from_nanos(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_paired() {
        let text = "TcpExt: A B\nTcpExt: 1 2\nTcp: A\nTcp: -1\n";
        let counters = Counters::parse(text);
        assert_eq!(counters.0["TcpExt.B"], 2);
        assert_eq!(counters.since(&Counters::default(), "TcpExt.A"), 1);
        assert_eq!(counters.since(&Counters::default(), "none"), 0);
    }

    #[test]
    fn work_takes_time() {
        // Threads of other tests end meanwhile, and take theirs with them; this one does not.
        let own = || {
            Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))
                .unwrap()
        };
        let before = own();
        while own() < before + Duration::from_millis(60) {}
        // The kernel's counts of threads are as old as its last tick.
        assert!(processor_time() >= before + Duration::from_millis(30));
    }
}

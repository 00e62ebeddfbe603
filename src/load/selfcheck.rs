//! What the driver itself used: processor time and waits of its threads, and the processors it shares.
//!
//! Without these a client at its own limit would be taken for the server's.

use rustix::thread::ClockId;

/// CPU seconds of the calling thread.
pub(super) fn thread_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds that the calling thread was ready and waited for a processor; `None` where the kernel does not tell.
pub(super) fn thread_run_queue_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let waited: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(waited as f64 / 1e9)
}

/// Ties the calling thread to the processors given; says what could not be done.
pub(super) fn pin(processors: &[usize]) -> anyhow::Result<()> {
    use anyhow::Context;
    let mut set = rustix::thread::CpuSet::new();
    for &processor in processors {
        anyhow::ensure!(
            processor < rustix::thread::CpuSet::MAX_CPU,
            "there is no processor {processor}"
        );
        set.set(processor);
    }
    rustix::thread::sched_setaffinity(None, &set)
        .with_context(|| format!("pinning a load thread to the processors {processors:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_uses_its_processor() {
        let before = thread_cpu_s();
        let mut sum = 0u64;
        while thread_cpu_s() - before < 0.002 {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        assert!(sum > 0);
        assert!(pin(&[usize::MAX]).is_err());
    }
}

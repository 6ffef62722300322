//! Reads the resources of a process from the kernel.

use std::fs;
use std::time::Duration;

use crate::BenchResult;

/// A field of `/proc/PID/status` in bytes.
fn status_bytes(pid: u32, field: &str) -> BenchResult<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with(field)).ok_or("no such field")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).ok_or("no value")?.parse()?;
    Ok(kilobytes * 1024)
}

pub(crate) fn resident(pid: u32) -> BenchResult<u64> {
    status_bytes(pid, "VmRSS")
}

pub(crate) fn peak_resident(pid: u32) -> BenchResult<u64> {
    status_bytes(pid, "VmHWM")
}

/// The user and system time of a process together.
pub(crate) fn cpu(pid: u32) -> BenchResult<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit_once(')').ok_or("odd stat")?.1;
    let mut fields = after_name.split_whitespace().skip(11);
    let mut ticks = || -> BenchResult<u64> { Ok(fields.next().ok_or("odd stat")?.parse()?) };
    let total = ticks()? + ticks()?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Ok(Duration::from_secs_f64(total as f64 / per_second as f64))
}

/// Processes whose parent is `pid`.
pub(crate) fn children(pid: u32) -> BenchResult<Vec<u32>> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, after_name)) = stat.rsplit_once(')') else { continue };
        if after_name.split_whitespace().nth(1) == Some(pid.to_string().as_str()) {
            children.push(entry.file_name().to_string_lossy().parse()?);
        }
    }
    Ok(children)
}

/// All descendants of the process `pid`.
pub(crate) fn descendants(pid: u32) -> BenchResult<Vec<u32>> {
    let mut found = children(pid)?;
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children(*pid)?);
        next += 1;
    }
    Ok(found)
}

pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0))
}

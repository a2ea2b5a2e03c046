//! Facts about processes from /proc that tell one from another for certain.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// What tells this process from every other, dead or alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    pub pid_namespace: u64,
    pub start_ticks: u64,
    pub boot_id: u128,
}

/// Facts about the calling process; 0 for what /proc does not say.
pub fn this() -> ProcessFacts {
    let proc_self = Path::new("/proc/self");
    ProcessFacts {
        pid_namespace: pid_namespace(proc_self).unwrap_or(0),
        start_ticks: start_ticks(proc_self).unwrap_or(0),
        boot_id: boot_id().unwrap_or(0),
    }
}

/// Inode of the pid namespace of the process whose /proc folder is `proc_pid`.
pub fn pid_namespace(proc_pid: &Path) -> Option<u64> {
    Some(fs::metadata(proc_pid.join("ns/pid")).ok()?.ino())
}

/// When the process started, in clock ticks since boot: field 22 of /proc/PID/stat (proc(5)).
pub fn start_ticks(proc_pid: &Path) -> Option<u64> {
    stat_field(proc_pid, 22)?.parse().ok()
}

/// Whether the process exists and is not a zombie. One whose first thread has ended while others run looks like a
/// zombie from outside, and is not.
pub fn is_running(proc_pid: &Path) -> bool {
    let lives = |folder: &Path| stat_field(folder, 3).is_some_and(|state| state != "Z" && state != "X");
    let threads = || fs::read_dir(proc_pid.join("task")).into_iter().flatten().flatten();
    lives(proc_pid) || threads().any(|thread| lives(&thread.path()))
}

/// Whether the kernel is sure that this process has no thread `tid`. False where it will not say.
pub fn has_no_thread(tid: u64) -> bool {
    // SAFETY: no memory is passed, and signal 0 is only asked about.
    let failed = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid as libc::pid_t, 0) } != 0;
    failed && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// Whether a file of user `uid` may have been made by the process: it runs, or ran, as that user, or root vouches.
pub fn may_own(proc_pid: &Path, uid: u32) -> bool {
    let uids = |status: String| {
        let line = status.lines().find_map(|l| l.strip_prefix("Uid:"))?.to_owned();
        Some(line.split_whitespace().any(|u| u.parse() == Ok(uid)))
    };
    uid == 0 || fs::read_to_string(proc_pid.join("status")).ok().and_then(uids).unwrap_or(false)
}

fn stat_field(proc_pid: &Path, number: usize) -> Option<String> {
    let stat = fs::read(proc_pid.join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // Field 2, the command in parentheses, may hold spaces and parentheses itself.
    let after_command = &stat[stat.rfind(')')? + 1..];
    after_command.split_whitespace().nth(number.checked_sub(3)?).map(String::from)
}

fn boot_id() -> Option<u128> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
}

/// The pids of a process from the reader's namespace inwards: the NSpid line of /proc/PID/status.
pub fn namespace_pids(proc_pid: &Path) -> Option<Vec<u32>> {
    let status = fs::read_to_string(proc_pid.join("status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("NSpid:"))?;
    line.split_whitespace().map(|p| p.parse().ok()).collect()
}

/// Every process that /proc shows.
pub fn all_pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// The pid, as we see it, of the process that is `pid` in the namespace `pid_namespace` and started at `start_ticks`;
/// `None` where it does not run or cannot be seen.
pub fn locate(pid: u32, pid_namespace_inode: u64, start: u64) -> Option<u32> {
    find(pid, pid_namespace_inode, |folder| start_ticks(folder) == Some(start))
}

/// As [`locate`], where it is not known when the process started.
pub fn locate_any(pid: u32, pid_namespace_inode: u64) -> Option<u32> {
    find(pid, pid_namespace_inode, |_| true)
}

fn find(pid: u32, pid_namespace_inode: u64, is_the_one: impl Fn(&Path) -> bool) -> Option<u32> {
    let is_it = |candidate: &u32| {
        let folder = Path::new("/proc").join(candidate.to_string());
        is_the_one(&folder)
            && is_running(&folder)
            && self::pid_namespace(&folder).is_none_or(|inode| inode == pid_namespace_inode)
            && namespace_pids(&folder).and_then(|p| p.last().copied()).unwrap_or(*candidate) == pid
    };
    // A /proc that was mounted outside our namespace shows other numbers than ours.
    let own = Path::new("/proc/self");
    let numbers_are_ours = namespace_pids(own).is_none_or(|pids| pids.len() == 1);
    if numbers_are_ours && pid_namespace(own) == Some(pid_namespace_inode) {
        return Some(pid).filter(is_it);
    }
    all_pids().into_iter().find(is_it)
}

/// CLOCK_MONOTONIC in nanoseconds. Through the vDSO: no system call.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME in nanoseconds since the epoch.
pub fn realtime_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a timespec that the call may write.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// A random number from the kernel; falls back to the clock where there is none.
pub fn random() -> u64 {
    let mut value = 0u64;
    // SAFETY: the buffer is the 8 bytes of `value`.
    let got = unsafe { libc::getrandom((&raw mut value).cast(), 8, libc::GRND_NONBLOCK) };
    if got == 8 { value } else { realtime_ns().rotate_left(32) ^ monotonic_ns() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_gone_only_when_it_has_ended() {
        // SAFETY: no preconditions.
        let tid = || unsafe { libc::gettid() } as u64;
        let ended = std::thread::spawn(tid).join().unwrap();
        assert!(!has_no_thread(tid()) && !has_no_thread(0) && !has_no_thread(u64::MAX));
        // The kernel forgets a thread a moment after it woke who waited for it.
        while !has_no_thread(ended) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn this_process_is_found_by_its_facts() {
        let facts = this();
        assert!(facts.pid_namespace != 0 && facts.start_ticks != 0 && facts.boot_id != 0, "{facts:?}");
        let pid = std::process::id();
        assert_eq!(locate(pid, facts.pid_namespace, facts.start_ticks), Some(pid));
        assert_eq!(locate(pid, facts.pid_namespace, facts.start_ticks + 1), None);
    }
}

//! How much memory a tap may take without hurting anybody: read from /proc and /sys by the housekeeping thread.

use std::{ffi::CString, fs, path::Path};

/// Left untouched below a memory cgroup's limit.
const CGROUP_MARGIN_BYTES: u64 = 64 << 20;

/// Free bytes of the file system at `folder`; `None` where there is no such folder.
pub fn free_bytes(folder: &str) -> Option<u64> {
    space(folder).map(|s| s.f_bavail.saturating_mul(s.f_frsize))
}

/// All bytes of the file system at `folder`, used or not.
pub fn size_bytes(folder: &str) -> Option<u64> {
    space(folder).map(|s| s.f_blocks.saturating_mul(s.f_frsize))
}

fn space(folder: &str) -> Option<libc::statvfs> {
    let folder = CString::new(folder).ok()?;
    // SAFETY: zero is a valid statvfs, and the call fills it.
    let mut s: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `folder` is NUL-terminated and `s` may be written.
    let failed = unsafe { libc::statvfs(folder.as_ptr(), &mut s) } != 0;
    (!failed).then_some(s)
}

/// Of the running kernel: 4, 16 or 64 KiB on the machines that we know.
pub fn page_bytes() -> u64 {
    // SAFETY: no memory is passed.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// The largest file that this process may make (RLIMIT_FSIZE): growing past it raises SIGXFSZ.
pub fn file_size_limit_bytes() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` may be written.
    let failed = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } != 0;
    if failed || limit.rlim_cur == libc::RLIM_INFINITY { u64::MAX } else { limit.rlim_cur }
}

/// What the memory cgroups of this process leave, less a margin; `u64::MAX` where nothing limits. Populating past it
/// would bring the OOM killer, not an error.
pub fn cgroup_headroom_bytes() -> u64 {
    let Ok(groups) = fs::read_to_string("/proc/self/cgroup") else { return u64::MAX };
    groups.lines().map(headroom_of_line).min().unwrap_or(u64::MAX)
}

fn headroom_of_line(line: &str) -> u64 {
    let mut fields = line.splitn(3, ':');
    let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
        return u64::MAX;
    };
    match controllers {
        "" => headroom_upwards("/sys/fs/cgroup", path, "memory.max", "memory.current"),
        c if c.split(',').any(|c| c == "memory") => {
            headroom_upwards("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes")
        }
        _ => u64::MAX,
    }
}

/// The least headroom of the group at `path` and of all above it, whose limits hold too.
fn headroom_upwards(root: &str, path: &str, max: &str, current: &str) -> u64 {
    let path = Path::new(path.trim_start_matches('/'));
    path.ancestors()
        .map(|group| headroom_of_group(&Path::new(root).join(group), max, current))
        .min()
        .unwrap_or(u64::MAX)
}

fn headroom_of_group(group: &Path, max: &str, current: &str) -> u64 {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let (Some(max), Some(current)) = (number(max), number(current)) else { return u64::MAX };
    // Cold page cache is counted as used, but it is given back before anybody is killed.
    let cold = fs::read_to_string(group.join("memory.stat")).ok().and_then(|s| cold_page_cache(&s)).unwrap_or(0);
    max.saturating_sub(current.saturating_sub(cold)).saturating_sub(CGROUP_MARGIN_BYTES)
}

fn cold_page_cache(stat: &str) -> Option<u64> {
    let value =
        |name: &str| stat.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok());
    value("total_inactive_file").or_else(|| value("inactive_file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headroom_is_the_least_of_the_group_and_those_above() {
        let root = std::env::temp_dir().join(format!("gputap-cgroup-{}", std::process::id()));
        let inner = root.join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let mib = |n: u64| (n << 20).to_string();
        fs::write(root.join("a/memory.max"), mib(1000)).unwrap();
        fs::write(root.join("a/memory.current"), mib(900)).unwrap();
        fs::write(root.join("a/memory.stat"), format!("anon 5\ninactive_file {}\n", 100u64 << 20)).unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        fs::write(inner.join("memory.current"), mib(1)).unwrap();
        let headroom = headroom_upwards(root.to_str().unwrap(), "/a/b", "memory.max", "memory.current");
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(headroom, (200 << 20) - CGROUP_MARGIN_BYTES);
    }

    #[test]
    fn free_room_of_a_missing_folder_is_unknown() {
        assert_eq!(free_bytes("/no/such/folder"), None);
        assert!(free_bytes("/proc").is_some());
    }
}

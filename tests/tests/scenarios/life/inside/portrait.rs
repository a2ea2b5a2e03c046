//! What a process can see of itself that a library in it, or in its parent, might have changed.

use std::fs;

/// The process's working folder, mask for new files, signals and descriptors, in one line.
pub fn portrait() -> String {
    let status = fs::read_to_string("/proc/thread-self/status").expect("readable");
    let of_status = |name: &&str| status.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    let mut parts: Vec<String> = ["Umask:", "SigBlk:", "SigIgn:", "SigCgt:", "Seccomp:", "NoNewPrivs:"]
        .iter()
        .map(of_status)
        .map(|line| line.replace('\t', ""))
        .collect();
    parts.push(format!("cwd {}", std::env::current_dir().expect("there").display()));
    let attribute = |what: i32| {
        // SAFETY: these two take no memory.
        unsafe { libc::prctl(what, 0, 0, 0, 0) }
    };
    parts.push(format!("dumpable {} slack {}", attribute(libc::PR_GET_DUMPABLE), attribute(libc::PR_GET_TIMERSLACK)));
    parts.push(format!("children {:?}", children()));
    parts.push(descriptors().join(" "));
    parts.join("; ")
}

/// Numbers and kinds of what is open, but for what the tap in this process keeps at high numbers.
fn descriptors() -> Vec<String> {
    let listed: Vec<_> = fs::read_dir("/proc/self/fd").expect("readable").flatten().collect();
    let mut open: Vec<(u32, String)> = listed
        .iter()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            // The list's own is closed by now.
            let target = fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
            // Of a pipe the number differs from run to run, of a file the folder.
            let kind = target
                .trim_end_matches(" (deleted)")
                .split(":[")
                .next()
                .unwrap_or_default()
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned();
            Some((number, kind))
        })
        .collect();
    open.sort();
    open.into_iter().map(|(number, kind)| format!("{number}={kind}")).collect()
}

/// Child processes of any thread.
fn children() -> Vec<String> {
    let threads = fs::read_dir("/proc/self/task").expect("readable").flatten();
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    threads.map(of_thread).filter(|children| !children.is_empty()).collect()
}

//! A job that closes every descriptor it has and gives the numbers to others keeps its tap, and its pipes end.
#![cfg(not(loom))]

mod child;

use child::{Child, backing, can_unshare, say, small_tap, stay, wait_for};
use gputap_ringbuf::{
    attach::Attached,
    backing::keeper::Held,
    control::client::ControlClient,
    discover::{self, Found},
};
use std::{
    ffi::CString,
    io::{Read, Write},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

/// What this test binary does when it is a child.
#[test]
fn child() {
    let role = child::role();
    let words: Vec<&str> = role.iter().map(String::as_str).collect();
    match words[..] {
        [] => {}
        ["closes", name] => closes_all(name),
        ["forbidden", name] => {
            forbid(&[libc::SYS_close_range, libc::SYS_unshare]);
            closes_all(name);
        }
        #[cfg(target_arch = "x86_64")]
        ["sandbox"] => {
            let _tap = small_tap(backing("memfd"));
            forbid(&[libc::SYS_pause]);
            say("forbidden");
            stay();
        }
        ["pipe"] => pipe_ends(),
        ["threads"] => threads_of_ours(),
        _ => panic!("{role:?}"),
    }
}

fn closes_all(name: &str) {
    let (tap, created) = small_tap(backing(name));
    tap.enter_lane(100, 1).unwrap().write(1, &[7; 8]).unwrap();
    say(match created.reserver.held() {
        Held::ByName => "by name".into(),
        Held::ByKeeper => "by keeper".into(),
        Held::ByJob { error } => format!("by job {error}"),
    });
    say("ready");
    let mut questions = child::questions();
    questions.next();
    // SAFETY: no memory is passed; this process uses none of them again.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    // Other files take the numbers: those that ours had, and all around.
    let taken: Vec<i32> = (3..1100).filter(|&fd| take(fd)).collect();
    assert!(taken.len() > 1000);
    say("closed");
    questions.next();
    tap.enter_lane(100, 1).unwrap().write(1, &[8; 8]).unwrap();
    say("written");
    drop(questions);
    stay();
    // What is at our numbers is the job's.
    drop(created);
    // SAFETY: no memory is passed.
    assert!(taken.iter().all(|&fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0));
}

fn take(number: i32) -> bool {
    // SAFETY: the path is NUL-terminated; the numbers are free or this process' own to use.
    unsafe {
        let fd = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        fd == number || (libc::dup2(fd, number) == number && libc::close(fd) == 0)
    }
}

/// As a seccomp filter that does not know the calls: they fail with EPERM, in every thread.
fn forbid(calls: &[libc::c_long]) {
    let filter = |code: u32, jt: usize, k: u32| libc::sock_filter { code: code as u16, jt: jt as u8, jf: 0, k };
    let equals = |(i, call): (usize, &libc::c_long)| {
        filter(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, calls.len() - i, *call as u32)
    };
    let mut program = vec![filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    program.extend(calls.iter().enumerate().map(equals));
    program.push(filter(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    program.push(filter(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
    // SAFETY: the program is whole and outlives the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::syscall(libc::SYS_seccomp, mode, flags, &program), 0);
    }
}

fn found(child: &Child) -> Found {
    wait_for("the tap", || discover::find(child.pid()).ok())
}

fn payloads(attached: &Attached) -> Vec<u64> {
    let mut seen = Vec::new();
    (0..attached.lane_count()).for_each(|lane| _ = attached.lane(lane).drain(u64::MAX, |r| seen.push(r.words[0])));
    seen
}

/// Finds the tap of a job that has closed everything, reads all of it, and what comes after.
fn is_read_after_all_is_closed(name: &str, held: &str) {
    let mut child = Child::start(&format!("closes {name}"));
    assert_eq!((child.line().as_str(), child.line().as_str()), (held, "ready"));
    let before = found(&child);
    assert_eq!(child.ask("close"), "closed");
    let after = found(&child);
    assert_eq!((&after.segment, &after.control), (&before.segment, &before.control), "the way to it stays the same");
    assert!(discover::discover().contains(&after));
    let attached = Attached::open(&after).unwrap();
    assert_eq!(payloads(&attached), [7]);
    assert!(ControlClient::open(&before).unwrap().renew());
    assert_eq!(child.ask("write"), "written");
    assert_eq!(payloads(&attached), [7, 8]);
    child.kill();
    let _ = std::fs::remove_file(&after.segment);
    let _ = std::fs::remove_file(&after.control);
}

#[test]
fn a_named_tap_outlives_the_closing_of_all_descriptors() {
    is_read_after_all_is_closed("shm", "by name");
}

#[test]
fn a_memfd_outlives_the_closing_of_all_descriptors() {
    is_read_after_all_is_closed("memfd", "by keeper");
}

/// The control: without a table of its own nobody finds the memfd any more, and the maker was told.
#[test]
fn where_no_table_of_its_own_can_be_had_the_maker_is_told() {
    let mut child = Child::start("forbidden memfd");
    assert_eq!((child.line(), child.line().as_str()), (format!("by job {}", libc::EPERM), "ready"));
    found(&child);
    // The filter makes close_range fail in the job as well: it closes nothing, and has its descriptors taken over.
    assert_eq!(child.ask("close"), "closed");
    assert!(discover::find(child.pid()).is_err());
    assert!(Held::ByJob { error: libc::EPERM }.complaint().contains("GPUTAP_BACKING=shm"));
}

/// A thread that is let go on after SIGSTOP meets the filters that came meanwhile. One that then turned in a loop would
/// never be seen asleep.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_job_that_forbids_itself_to_pause_gets_no_busy_thread() {
    let mut child = Child::start("sandbox");
    assert_eq!(child.line(), "forbidden");
    let state = || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", child.pid())).unwrap().flatten();
        let stats = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
        let keeper = stats.into_iter().find(|stat| stat.contains("(gputap-keep)")).expect("a keeper");
        keeper.split(' ').nth(2).unwrap().to_owned()
    };
    let signal = |signal: libc::c_int, expected: &str| {
        // SAFETY: no memory is passed; the child is ours.
        assert_eq!(unsafe { libc::kill(child.pid() as libc::pid_t, signal) }, 0);
        wait_for(&format!("state {expected} of the keeper"), || (state() == expected).then_some(()));
    };
    signal(libc::SIGSTOP, "T");
    signal(libc::SIGCONT, "S");
    found(&child);
}

/// A copy of the writing end in the keeper's table would keep the pipe open.
fn pipe_ends() {
    let mut ends = [0; 2];
    // SAFETY: the array takes two numbers.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: both are new and ours.
    let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    let (_tap, created) = small_tap(backing("memfd"));
    assert_eq!(created.reserver.held(), Held::ByKeeper);
    let (mut read, mut write) = (std::fs::File::from(read), std::fs::File::from(write));
    write.write_all(b"all").unwrap();
    drop(write);
    // SAFETY: no memory is passed. A pipe that somebody could still write to would block.
    assert_eq!(unsafe { libc::fcntl(read.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }, 0);
    let mut text = String::new();
    read.read_to_string(&mut text).unwrap();
    say(text);
}

#[test]
fn the_job_s_pipes_end_when_it_closes_them() {
    let mut child = Child::start("pipe");
    assert_eq!(child.line(), "all");
    assert!(child.wait().success());
}

/// The thread blocks every signal that can be, holds two descriptors, and has the name that readers look for.
fn threads_of_ours() {
    let (_tap, created) = small_tap(backing("memfd"));
    let keepers: Vec<_> = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|t| t.unwrap().path())
        .filter(|t| std::fs::read_to_string(t.join("comm")).unwrap() == "gputap-keep\n")
        .collect();
    assert_eq!(keepers.len(), 1);
    let descriptors: Vec<_> = std::fs::read_dir(keepers[0].join("fd"))
        .unwrap()
        .map(|d| std::fs::read_link(d.unwrap().path()).unwrap().to_string_lossy().into_owned())
        .collect();
    let nonce = created.identity.nonce;
    let expected = ["ring", "ctl"].map(|what| format!("/memfd:gputap-{nonce:016x}.{what} (deleted)"));
    assert_eq!(descriptors.len(), 2);
    assert!(expected.iter().all(|e| descriptors.contains(e)), "{descriptors:?}");
    let status = std::fs::read_to_string(keepers[0].join("status")).unwrap();
    let blocked = status.lines().find_map(|l| l.strip_prefix("SigBlk:")).unwrap().trim().to_owned();
    // All but those that cannot be blocked (9, 19) and the two that the C library keeps for itself (32, 33).
    let free = !u64::from_str_radix(&blocked, 16).unwrap();
    assert_eq!(free & !(1 << 8 | 1 << 18 | 1 << 31 | 1 << 32), 0, "{blocked}");
    // The C library changes the user of every thread, ours too, or it would wait for ever here.
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::setuid(libc::getuid()) }, 0);
    // SAFETY: the child of fork runs this one thread and ends at once.
    match unsafe { libc::fork() } {
        0 => {
            let alone = std::fs::read_dir("/proc/self/task").unwrap().count() == 1;
            // SAFETY: ends the process without running what its parent arranged.
            unsafe { libc::_exit(if alone { 0 } else { 1 }) }
        }
        pid => {
            let mut status = 0;
            // SAFETY: `status` may be written.
            assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
            assert_eq!(status, 0, "nothing of ours runs in a forked child");
        }
    }
    say("checked");
}

#[test]
fn the_keeper_is_quiet_and_has_two_descriptors() {
    let mut child = Child::start("threads");
    assert_eq!(child.line(), "checked");
    assert!(child.wait().success());
}

/// Whoever is not root cannot cut the segment by mistake, its own user neither; readers still read.
#[test]
fn a_careless_redirection_does_not_cut_a_named_segment() {
    if !can_unshare("the mode of the segment", &["--setuid", "65534", "--setgid", "65534"]) {
        return;
    }
    let (_tap, created) = small_tap(backing("shm"));
    let (ring, control) = (child::named(&created, "ring"), child::named(&created, "ctl"));
    for path in [&ring, &control] {
        let path = CString::new(path.as_str()).unwrap();
        // SAFETY: the path is NUL-terminated.
        assert_eq!(unsafe { libc::chown(path.as_ptr(), 65534, 65534) }, 0);
    }
    let sh = |script: String| {
        let mut command = std::process::Command::new("unshare");
        command.args(["--setuid", "65534", "--setgid", "65534", "sh", "-c"]).arg(script);
        command.output().unwrap().status.success()
    };
    let cut = sh(format!(": > {ring}"));
    let read = sh(format!("head -c 8 {ring} > /dev/null"));
    let controlled = sh(format!(": >> {control}"));
    let len = std::fs::metadata(&ring).unwrap().len();
    [&ring, &control].into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert!(!cut && len == created.layout.total_words as u64 * 8);
    assert!(read && controlled);
}

/// Our descriptors are not among the low numbers, which programs count on.
#[test]
fn low_numbers_are_left_to_the_job() {
    for name in ["shm", "memfd"] {
        let mut child = Child::start(&format!("closes {name}"));
        child.line();
        child.line();
        let open: Vec<u32> = std::fs::read_dir(format!("/proc/{}/fd", child.pid()))
            .unwrap()
            .map(|d| d.unwrap())
            .filter(|d| std::fs::read_link(d.path()).is_ok_and(|l| l.to_string_lossy().contains("gputap-")))
            .filter_map(|d| d.file_name().to_str()?.parse().ok())
            .filter(|&fd| fd > 2)
            .collect();
        assert!(!open.is_empty() && open.iter().all(|&fd| fd >= 200), "{name}: {open:?}");
        let found = found(&child);
        child.kill();
        let _ = std::fs::remove_file(&found.segment);
        let _ = std::fs::remove_file(&found.control);
    }
}

//! Children that do something, and how they leave.

use std::ffi::CString;
use std::sync::Mutex;
use std::time::Instant;

use super::making::{Program, copy_of_this, reap};
use crate::app::{Inside, Launch};

/// What a child answers that did well.
const WELL: i32 = 7;

/// Has a child that leaves, perhaps after a launch; `CODE MILLISECONDS` of its end.
///
/// Some other thread may hold the C library's locks while the child is made, and a raw clone leaves them so: the child
/// looks nothing up and allocates nothing. (The driver shows a cubin in one of three places in turn, which have to be
/// large enough by now.)
pub fn leaves(inside: &mut Inside, how: &str, leave: &str, launches: bool) -> String {
    let launch = launches.then(|| inside.prepare_a_load());
    let leave = way_out(leave);
    let began = Instant::now();
    let pid = copy_of_this(how);
    if pid == 0 {
        let well = launch.is_none_or(|launch| launch.call() == 0);
        leave(if well { WELL } else { 1 });
    }
    format!("{} {}", reap(pid), began.elapsed().as_millis())
}

fn way_out(leave: &str) -> fn(i32) {
    match leave {
        // SAFETY: runs the exit handlers, which is the point.
        "exit" => |code| unsafe { libc::exit(code) },
        // SAFETY: no preconditions; ends the process at once.
        "_exit" => |code| unsafe { libc::_exit(code) },
        "abort" => |_| std::process::abort(),
        // SAFETY: no memory is passed.
        "kill" => |_| _ = unsafe { libc::raise(libc::SIGKILL) },
        other => panic!("{other:?} is no way out"),
    }
}

/// Workers that were started: their pids, and the pipe that they wait at.
static WORKERS: Mutex<(Vec<libc::pid_t>, [i32; 2])> = Mutex::new((Vec::new(), [-1; 2]));
/// What each of them launches.
const LAUNCHES_OF_A_WORKER: usize = 50;

/// Forks workers as multiprocessing and a DataLoader do: from a thread of its own, not the one that made them use CUDA.
/// Each launches, and stays until it is dismissed. Their pids.
pub fn start_workers(inside: &mut Inside, count: u64) -> String {
    let launch = inside.prepare_a_load();
    let mut workers = WORKERS.lock().expect("held by nobody else");
    // SAFETY: two numbers that may be written.
    assert_eq!(unsafe { libc::pipe2(workers.1.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    let ends = workers.1;
    let fork_them = || {
        (0..count)
            .map(|_| match copy_of_this("fork") {
                0 => work(launch, ends),
                pid => pid,
            })
            .collect()
    };
    workers.0 = std::thread::scope(|scope| scope.spawn(fork_them).join().expect("forked"));
    workers.0.iter().map(i32::to_string).collect::<Vec<_>>().join(" ")
}

/// In a worker.
fn work(launch: Launch, [wait_at, other]: [i32; 2]) -> ! {
    let mut byte = 0_u8;
    // SAFETY: descriptors of our own, and a byte that may be written; `_exit` has no preconditions.
    unsafe {
        let well = launch.set_current() == 0 && (0..LAUNCHES_OF_A_WORKER).all(|_| launch.call() == 0);
        libc::close(other);
        while libc::read(wait_at, (&raw mut byte).cast(), 1) < 0 {}
        libc::_exit(if well { WELL } else { 1 })
    }
}

/// Lets the workers leave by `_exit`; their codes.
pub fn dismiss_workers() -> String {
    let mut workers = WORKERS.lock().expect("held by nobody else");
    // SAFETY: both are ours. The workers read the end of the pipe.
    workers.1.iter().for_each(|&end| _ = unsafe { libc::close(end) });
    let codes = std::mem::take(&mut workers.0).into_iter().map(|pid| reap(pid).to_string());
    codes.collect::<Vec<_>>().join(" ")
}

/// Becomes a daemon as Python's recipes do it: fork, setsid, fork, chdir, umask, all descriptors closed, the three first
/// ones opened anew. Answers here, and once more in the daemon, through the folder.
pub fn daemonize(folder: &str) -> String {
    // Its end is ours to see, for the test's sake; init would reap it otherwise.
    // SAFETY: no memory is passed.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    let [words, answers] = ["words", "answers"].map(|name| CString::new(format!("{folder}/{name}")).expect("a path"));
    let first = copy_of_this("fork");
    if first > 0 {
        return format!("{}", reap(first));
    }
    // SAFETY: no memory is passed but whole strings; this process has one thread.
    unsafe {
        libc::setsid();
        if copy_of_this("fork") > 0 {
            libc::_exit(0);
        }
        libc::chdir(c"/".as_ptr());
        libc::umask(0);
        (0..4096).for_each(|fd| _ = libc::close(fd));
        let ends = [
            libc::open(words.as_ptr(), libc::O_RDONLY),
            libc::open(answers.as_ptr(), libc::O_WRONLY | libc::O_APPEND),
            libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY),
        ];
        assert_eq!(ends, [0, 1, 2]);
    }
    String::from("a daemon")
}

/// Runs this program once more in a child that `how` makes, to be talked to through the folder; its pid.
pub fn run(how: &str, folder: &str) -> libc::pid_t {
    let open = |name: &str, flags: i32| {
        let path = CString::new(format!("{folder}/{name}")).expect("a path");
        // SAFETY: a whole string.
        let fd = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
        assert!(fd >= 0, "{name}: {}", std::io::Error::last_os_error());
        fd
    };
    let ends = [open("words", libc::O_RDONLY), open("answers", libc::O_WRONLY | libc::O_APPEND)];
    let pid = Program::this(ends).start(how);
    // SAFETY: both are ours.
    ends.iter().for_each(|&end| _ = unsafe { libc::close(end) });
    pid
}

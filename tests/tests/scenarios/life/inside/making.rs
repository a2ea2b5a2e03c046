//! The ways in which a process gets a child.

use std::ffi::{CString, c_char, c_int, c_void};
use std::time::{Duration, Instant};

/// How long a child may take before it counts as hung.
const LIMIT: Duration = Duration::from_secs(8);
/// Of a child that shares its parent's memory.
const STACK_BYTES: usize = 256 << 10;

/// Makes a child that has a copy of this process: by `fork`, or by a raw `clone`, which no handler of pthread_atfork
/// sees and which leaves the C library's locks as they are. 0 in the child.
pub fn copy_of_this(how: &str) -> libc::pid_t {
    let pid = match how {
        // SAFETY: what the child does next is the caller's business: it has only the calling thread.
        "fork" => unsafe { libc::fork() },
        // SAFETY: as fork(2): no memory is passed, and the child goes on with a copy of this one's.
        "clone" => unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t },
        other => panic!("{other:?} makes no child"),
    };
    assert!(pid >= 0, "no child: {}", std::io::Error::last_os_error());
    pid
}

/// A program that is to run in a child, made ready before: a child that shares our memory must not allocate.
pub struct Program {
    path: CString,
    arguments: Vec<CString>,
    /// What becomes its stdin and stdout.
    ends: [c_int; 2],
}

impl Program {
    /// This program once more, with the same arguments, between these two descriptors.
    pub fn this(ends: [c_int; 2]) -> Self {
        let text = |text: std::ffi::OsString| CString::new(text.into_encoded_bytes()).expect("no NUL");
        let path = text(std::env::current_exe().expect("a path").into_os_string());
        Self { path, arguments: std::env::args_os().map(text).collect(), ends }
    }

    /// Runs in a child that `how` makes; its pid.
    pub fn start(&self, how: &str) -> libc::pid_t {
        let mut pointers: Vec<*const c_char> = self.arguments.iter().map(|argument| argument.as_ptr()).collect();
        pointers.push(std::ptr::null());
        let ready = Ready { path: self.path.as_ptr(), arguments: pointers.as_ptr(), ends: self.ends };
        match how {
            "spawn" => self.spawn(&pointers),
            "vfork" => vfork(&ready),
            _ => match copy_of_this(how) {
                // SAFETY: made above.
                0 => unsafe { ready.become_it() },
                pid => pid,
            },
        }
    }

    fn spawn(&self, pointers: &[*const c_char]) -> libc::pid_t {
        let mut pid = 0;
        // SAFETY: zero is a valid value to initialise; the places may be written; path and arguments are whole, and the
        // pointers end with null.
        let failed = unsafe {
            let mut actions: libc::posix_spawn_file_actions_t = std::mem::zeroed();
            libc::posix_spawn_file_actions_init(&raw mut actions);
            libc::posix_spawn_file_actions_adddup2(&raw mut actions, self.ends[0], 0);
            libc::posix_spawn_file_actions_adddup2(&raw mut actions, self.ends[1], 1);
            let (arguments, environment) = (pointers.as_ptr().cast::<*mut c_char>(), environ.cast());
            let failed = libc::posix_spawn(
                &raw mut pid,
                self.path.as_ptr(),
                &raw const actions,
                std::ptr::null(),
                arguments,
                environment,
            );
            libc::posix_spawn_file_actions_destroy(&raw mut actions);
            failed
        };
        assert_eq!(failed, 0, "posix_spawn");
        pid
    }
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

struct Ready {
    path: *const c_char,
    arguments: *const *const c_char,
    ends: [c_int; 2],
}

impl Ready {
    /// # Safety
    /// `path` is a string, `arguments` are strings up to a null; the process is a child of nothing but this.
    unsafe fn become_it(&self) -> ! {
        // SAFETY: by contract. Nothing here allocates or takes a lock.
        unsafe {
            libc::dup2(self.ends[0], 0);
            libc::dup2(self.ends[1], 1);
            libc::execv(self.path, self.arguments);
            libc::_exit(127)
        }
    }
}

/// As vfork(2) and the C library's posix_spawn make one: the child runs in our memory until it executes, and this thread
/// waits. On a stack of its own, which vfork's lacks and Rust needs.
fn vfork(ready: &Ready) -> libc::pid_t {
    extern "C" fn child(ready: *mut c_void) -> c_int {
        // SAFETY: a `Ready` that its maker keeps while it waits.
        unsafe { (*ready.cast::<Ready>()).become_it() }
    }
    let mut stack = vec![0_u128; STACK_BYTES / 16];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack's upper end, aligned to 16; the child only reads `ready`, and this thread waits until it is gone.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.len()).cast();
        libc::clone(child, top, flags, std::ptr::from_ref(ready).cast_mut().cast())
    };
    assert!(pid > 0, "no child: {}", std::io::Error::last_os_error());
    pid
}

/// Waits for a child's end: its exit code, or the negative number of the signal that ended it. One that hangs is killed.
pub fn reap(pid: libc::pid_t) -> i32 {
    let began = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: the place may be written.
        let ended = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if ended == pid {
            return if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) };
        }
        assert_eq!(ended, 0, "{pid} is no child");
        if began.elapsed() > LIMIT {
            // SAFETY: our own child, not reaped yet.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

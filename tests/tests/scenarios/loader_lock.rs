//! A module loads (its callback runs under the driver's lock) while another thread is inside `dlopen` (it holds the
//! loader's lock) of a library whose constructor wants the driver's lock.
//!
//! A callback that needs the loader's lock, even only to register a thread-local's destructor, closes the cycle. The
//! threads that load modules are here to do nothing else that needs that lock while it is held: they are started, and
//! everything that they call is looked up, before.

use std::ffi::{CString, c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gputap_tests::{Watched, artifact, child_command, is_child};

use crate::app::image;
use crate::cuda::Cuda;
use crate::job::tap;
use crate::reading::LIMIT;

const NAME: &str = "loader_lock::child";
const INSIDE: &str = "a constructor runs";
const LOADED: &str = "all modules are loaded";
const LOADING_THREADS: usize = 8;

/// How long a control may make no progress before it counts as hung; it has some microseconds' work to do.
const STALL: Duration = Duration::from_secs(2);

enum End {
    Loaded,
    Hung { stacks: String },
}

/// Runs the scenario under an injection library.
fn run(shim: &str, env: &[(&str, &str)], limit: Duration) -> End {
    let mut command = child_command(NAME);
    tap(&mut command, shim, env);
    let mut child = Watched::spawn(&mut command).expect("the child starts");
    let mut wait_for = |line: &str, limit: Duration| {
        let deadline = Instant::now() + limit;
        std::iter::from_fn(|| child.next_line(deadline)).any(|found| found == line)
    };
    assert!(wait_for(INSIDE, LIMIT), "the scenario did not begin: {}", child.end().expect("reaped").1);
    if !wait_for(LOADED, limit) {
        assert!(!child.exited(), "the child failed: {}", child.end().expect("reaped").1);
        return End::Hung { stacks: child.stacks() };
    }
    let deadline = Instant::now() + LIMIT;
    while child.next_line(deadline).is_some() {}
    assert!(child.exited(), "not over:\n{}", child.stacks());
    let (status, stderr) = child.end().expect("reaped");
    assert!(status.success(), "{status}:\n{stderr}");
    End::Loaded
}

#[test]
fn gputap_does_not_wait_for_the_loader() {
    let env = [("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "1")];
    if let End::Hung { stacks } = run("gputap_shim", &env, LIMIT) {
        panic!("gputap hung:\n{stacks}");
    }
}

#[test]
fn a_callback_with_a_thread_local_that_has_a_destructor_hangs() {
    let End::Hung { stacks } = run("tls_shim", &[], STALL) else { panic!("the control did not hang") };
    for thread in ["in-dlopen", "loading-0"] {
        assert!(stacks.contains(thread), "{thread} is missing in:\n{stacks}");
    }
}

#[test]
fn a_callback_with_a_lock_of_its_own_does_not_hang() {
    assert!(matches!(run("locking_shim", &[], LIMIT), End::Loaded), "so the scenario itself hangs");
}

/// In the child: the scenario. Nothing where the tests are run.
#[test]
fn child() {
    if !is_child(NAME) {
        return;
    }
    // The test runner has begun a line.
    println!();
    let (inside, inside_write) = pipe();
    let (until_read, until) = pipe();
    // SAFETY: the only other threads are the test runner's, which waits for this one.
    unsafe {
        std::env::set_var("LOADER_LOCK_PIPES", format!("{},{}", inside_write.as_raw_fd(), until_read.as_raw_fd()))
    };
    let gate = Arc::new(Gate::default());
    let loading = start_loading_threads(&gate);
    gate.wait_until(|counts| counts.ready == LOADING_THREADS);
    let in_dlopen = std::thread::Builder::new().name("in-dlopen".into()).spawn(open_library).expect("a thread");
    assert!(has_byte(&inside), "the constructor did not begin");
    println!("{INSIDE}");
    gate.change(|counts| counts.open = true);
    gate.wait_until(|counts| counts.loaded == LOADING_THREADS);
    println!("{LOADED}");
    drop(until);
    in_dlopen.join().expect("opened");
    loading.into_iter().for_each(|thread| thread.join().expect("loaded"));
}

fn open_library() {
    let path = artifact("loader_lock_lib").expect("built");
    let path = CString::new(path.into_os_string().into_encoded_bytes()).expect("a path");
    // SAFETY: our own library, and a NUL-terminated path.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null());
}

/// Threads that wait at the gate and then each load a module, by launching its kernel.
fn start_loading_threads(gate: &Arc<Gate>) -> Vec<std::thread::JoinHandle<()>> {
    let cuda = Cuda::load();
    let context = cuda.start().expose_provenance();
    let launch = cuda.launch_function();
    let start = |number: usize| {
        let (image, name) = image(number as u64);
        let module = cuda.load_module(&image).expect("a cubin");
        let function = cuda.function(module, &name).expect("its kernel").expose_provenance();
        let gate = Arc::clone(gate);
        let body = move || {
            assert_eq!(Cuda::load().set_current(std::ptr::with_exposed_provenance_mut(context)), 0);
            gate.change(|counts| counts.ready += 1);
            gate.wait_until(|counts| counts.open);
            let function: *mut c_void = std::ptr::with_exposed_provenance_mut(function);
            let none = std::ptr::null_mut();
            // SAFETY: NVIDIA's type; a handle of this driver, and a kernel without parameters.
            let code = unsafe { launch(function, 1, 1, 1, 32, 1, 1, 0, none, none.cast(), none.cast()) };
            assert_eq!(code, 0);
            gate.change(|counts| counts.loaded += 1);
        };
        std::thread::Builder::new().name(format!("loading-{number}")).spawn(body).expect("a thread")
    };
    (0..LOADING_THREADS).map(start).collect()
}

/// Where the threads wait for each other, without anything that is made on first use.
#[derive(Default)]
struct Gate {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Default)]
struct Counts {
    ready: usize,
    open: bool,
    loaded: usize,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn wait_until(&self, is_so: impl Fn(&Counts) -> bool) {
        drop(self.changed.wait_while(self.lock(), |counts| !is_so(counts)));
    }
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends: [c_int; 2] = [-1; 2];
    // SAFETY: two numbers that may be written.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: both descriptors are new and ours.
    ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }).into()
}

/// Waits for a byte in the pipe.
fn has_byte(pipe: &OwnedFd) -> bool {
    let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure that may be written.
    unsafe { libc::poll(&raw mut poll, 1, LIMIT.as_millis() as c_int) == 1 }
}

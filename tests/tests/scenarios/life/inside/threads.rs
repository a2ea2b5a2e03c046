//! Threads that are in the middle of something when another one forks or exits.

use std::ffi::{c_int, c_void};
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fake_cuda::hook_abi::{ApiCall, Door, HOOK_ABI, Hooks, HostEvent, RegisterHooks, ResourceEvent, Work};
use gputap_sim_job::{CubinKernel, generate_cubin};

use super::driver;
use crate::app::{Inside, image};
use crate::cuda::Cuda;

static DOOR: OnceLock<Door> = OnceLock::new();

/// Gets at the driver's lock, as CUPTI does. Before `init`: CUPTI comes later, and is who the driver talks to.
pub fn open_the_door() -> String {
    unsafe extern "C" fn resource(_: *const ResourceEvent) {}
    unsafe extern "C" fn work(_: *const Work) {}
    unsafe extern "C" fn host(_: *const HostEvent) {}
    extern "C" fn synchronized(_: *mut c_void, _: *mut c_void) {}
    extern "C" fn api_wanted(_: u32, _: u32) -> bool {
        false
    }
    unsafe extern "C" fn api(_: *const ApiCall) {}
    static NOBODY: Hooks = Hooks { abi: HOOK_ABI, resource, work, host, synchronized, api_wanted, api };
    let mut door = std::mem::MaybeUninit::<Door>::uninit();
    // SAFETY: the fake's own function; the hooks live for ever, and the door may be written.
    let refused =
        unsafe { driver::function::<RegisterHooks>("fake_cuda_register_hooks")(&raw const NOBODY, door.as_mut_ptr()) };
    assert_eq!(refused, 0);
    // SAFETY: registered, so it was filled.
    DOOR.get_or_init(|| unsafe { door.assume_init() });
    String::from("ok")
}

/// Exits from inside the driver, as a host function that a stream calls might.
pub fn exit_with_the_drivers_lock() -> ! {
    (DOOR.get().expect("open").lock)();
    // Not Rust's, which is for Rust's own threads: the exit handlers run with the lock held.
    // SAFETY: runs the exit handlers, which is the point.
    unsafe { libc::exit(5) }
}

/// Of the thread that loads modules for ever.
static LOADER: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);
static STOP: AtomicBool = AtomicBool::new(false);

/// What became of the last signal to it.
static STRUCK: AtomicU32 = AtomicU32::new(NOT_YET);
const NOT_YET: u32 = 0;
const MISSED: u32 = 1;
const INSIDE: u32 = 2;
/// What the handler does once it has found the thread in a callback.
static EXITS: AtomicBool = AtomicBool::new(false);
static THAWED: AtomicBool = AtomicBool::new(false);
/// `callback_watch_inside` of the preloaded library.
static WATCH: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_signal(_: c_int) {
    // SAFETY: stored from a symbol that has this type, before the first signal.
    let inside = unsafe { std::mem::transmute::<usize, extern "C" fn() -> bool>(WATCH.load(Ordering::Relaxed)) };
    if !inside() {
        return STRUCK.store(MISSED, Ordering::Relaxed);
    }
    STRUCK.store(INSIDE, Ordering::Relaxed);
    if EXITS.load(Ordering::Relaxed) {
        // SAFETY: runs the exit handlers, from where nobody should: that is the point.
        unsafe { libc::exit(4) };
    }
    while !THAWED.load(Ordering::Relaxed) {
        let millisecond = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        // SAFETY: a whole timespec; nanosleep may be called in a handler.
        unsafe { libc::nanosleep(&raw const millisecond, std::ptr::null_mut()) };
    }
}

/// Has a thread that loads a module, and stops it in the middle of a callback, where the driver's lock is held.
pub fn freeze_in_a_callback(inside: &Inside) -> String {
    start_loader(inside);
    strike_until(|| STRUCK.load(Ordering::Relaxed) == INSIDE);
    String::from("ok")
}

/// Exits from a handler that interrupts a callback.
pub fn exit_in_a_callback(inside: &Inside) -> ! {
    EXITS.store(true, Ordering::Relaxed);
    start_loader(inside);
    strike_until(|| STRUCK.load(Ordering::Relaxed) == INSIDE);
    loop {
        std::thread::park();
    }
}

/// Lets the stopped thread finish its load, and end.
pub fn thaw() -> String {
    STOP.store(true, Ordering::Relaxed);
    THAWED.store(true, Ordering::Relaxed);
    LOADER.lock().expect("held by nobody else").take().expect("started").join().expect("well");
    String::from("ok")
}

/// So large that a load takes milliseconds, of which the callback has its part.
const LOADED_BYTES: usize = 8 << 20;

fn start_loader(inside: &Inside) {
    // SAFETY: a NUL-terminated name.
    let watch = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"callback_watch_inside".as_ptr()) };
    assert!(!watch.is_null(), "not preloaded");
    WATCH.store(watch.expose_provenance(), Ordering::Relaxed);
    // SAFETY: zero is a valid sigaction; the handler is of its type and calls what a handler may call.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
    }
    let kernel = CubinKernel { name: "large".into(), duration_ns: 1, registers: 42, static_shared_bytes: 0 };
    let image = generate_cubin(99, &[kernel], LOADED_BYTES);
    let context = inside.context.expose_provenance();
    let body = move || {
        let cuda = Cuda::load();
        assert_eq!(cuda.set_current(std::ptr::with_exposed_provenance_mut(context)), 0);
        while !STOP.load(Ordering::Relaxed) {
            load_and_launch(&cuda, &image, "large", 1);
        }
    };
    *LOADER.lock().expect("held by nobody else") = Some(std::thread::spawn(body));
}

/// Signals the loading thread until `is_done`, once it has taken the last signal.
fn strike_until(is_done: impl Fn() -> bool) {
    let loader = LOADER.lock().expect("held by nobody else").as_ref().expect("started").as_pthread_t();
    while !is_done() {
        STRUCK.store(NOT_YET, Ordering::Relaxed);
        // SAFETY: a thread that is not joined yet.
        assert_eq!(unsafe { libc::pthread_kill(loader, libc::SIGUSR2) }, 0);
        while STRUCK.load(Ordering::Relaxed) == NOT_YET {
            std::thread::yield_now();
        }
    }
}

fn load_and_launch(cuda: &Cuda, image: &[u8], name: &str, launches: u64) {
    let module = cuda.load_module(image).expect("a cubin");
    let function = cuda.function(module, name).expect("its kernel");
    (0..launches).for_each(|_| assert_eq!(cuda.launch(function, std::ptr::null_mut()), 0));
    cuda.synchronize();
    assert_eq!(cuda.unload(module), 0);
}

/// Launches of the busy threads.
static BUSY: AtomicU64 = AtomicU64::new(0);

/// Starts threads that load modules, launch and unload until the process is gone; returns once all are at it.
pub fn start_busy(inside: &Inside, threads: u64) -> String {
    for number in 0..threads {
        let context = inside.context.expose_provenance();
        std::thread::spawn(move || {
            let cuda = Cuda::load();
            assert_eq!(cuda.set_current(std::ptr::with_exposed_provenance_mut(context)), 0);
            for seed in (0..).map(|round| 100 * number + round % 20) {
                let (image, name) = image(seed);
                load_and_launch(&cuda, &image, &name, 20);
                BUSY.fetch_add(20, Ordering::Relaxed);
            }
        });
    }
    let begun = Instant::now();
    while BUSY.load(Ordering::Relaxed) < 200 * threads && begun.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    String::from("ok")
}

/// How long the application's own exit handler works.
static WORKS_MS: AtomicU64 = AtomicU64::new(0);

/// Registers a handler that works at exit while other threads go on. Before `init`, so that it runs when the tap's has
/// run.
pub fn add_exit_handler(works_ms: u64) -> String {
    extern "C" fn work() {
        let until = Instant::now() + Duration::from_millis(WORKS_MS.load(Ordering::Relaxed));
        let before = BUSY.load(Ordering::Relaxed);
        while Instant::now() < until || BUSY.load(Ordering::Relaxed) < before + 500 {
            std::thread::yield_now();
        }
    }
    WORKS_MS.store(works_ms, Ordering::Relaxed);
    // SAFETY: a function of this program.
    assert_eq!(unsafe { libc::atexit(work) }, 0);
    String::from("ok")
}

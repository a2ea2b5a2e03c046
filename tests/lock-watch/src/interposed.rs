//! The C library's functions that wait, in front of its own.

use std::ffi::{CStr, c_int, c_long};
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::{pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, sem_t, timespec};

use crate::{about_to_take, gave_back, sum_up, took};

/// The next function of this name behind ours, looked up once.
struct Real {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Real {
    const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicUsize::new(0) }
    }

    fn address(&self) -> usize {
        let known = self.address.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        // SAFETY: a NUL-terminated name.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) }.expose_provenance();
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// Calls the real function that `$real` names.
macro_rules! real {
    ($real:ident: fn($($type:ty),*) -> $result:ty, $($argument:expr),*) => {{
        let at = std::ptr::with_exposed_provenance::<()>($real.address());
        // SAFETY: the C library has a function of this name and type; the caller's promises are passed on.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn($($type),*) -> $result>(at)($($argument),*) }
    }};
}

static MUTEX_LOCK: Real = Real::new(c"pthread_mutex_lock");
static MUTEX_TRYLOCK: Real = Real::new(c"pthread_mutex_trylock");
static MUTEX_UNLOCK: Real = Real::new(c"pthread_mutex_unlock");
static READ_LOCK: Real = Real::new(c"pthread_rwlock_rdlock");
static WRITE_LOCK: Real = Real::new(c"pthread_rwlock_wrlock");
static RWLOCK_UNLOCK: Real = Real::new(c"pthread_rwlock_unlock");
static COND_WAIT: Real = Real::new(c"pthread_cond_wait");
static COND_TIMEDWAIT: Real = Real::new(c"pthread_cond_timedwait");
static SEM_WAIT: Real = Real::new(c"sem_wait");
static SYSCALL: Real = Real::new(c"syscall");

/// Looked up before the program runs: a lookup takes the loader's lock, which a callback must not wait for.
extern "C" fn look_up() {
    let all = [&MUTEX_LOCK, &MUTEX_TRYLOCK, &MUTEX_UNLOCK, &READ_LOCK, &WRITE_LOCK, &RWLOCK_UNLOCK, &COND_WAIT];
    for real in all.into_iter().chain([&COND_TIMEDWAIT, &SEM_WAIT, &SYSCALL]) {
        real.address();
    }
    // SAFETY: the function may be called at exit; it only writes a line.
    unsafe { libc::atexit(sum_up) };
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_UP: extern "C" fn() = look_up;

/// # Safety
/// As pthread_mutex_lock(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    about_to_take("mutex", mutex.addr());
    let code = real!(MUTEX_LOCK: fn(*mut pthread_mutex_t) -> c_int, mutex);
    if code == 0 {
        took(mutex.addr());
    }
    code
}

/// Trying waits for nothing; what it got is held all the same.
///
/// # Safety
/// As pthread_mutex_trylock(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int {
    let code = real!(MUTEX_TRYLOCK: fn(*mut pthread_mutex_t) -> c_int, mutex);
    if code == 0 {
        took(mutex.addr());
    }
    code
}

/// # Safety
/// As pthread_mutex_unlock(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    gave_back(mutex.addr());
    real!(MUTEX_UNLOCK: fn(*mut pthread_mutex_t) -> c_int, mutex)
}

/// # Safety
/// As pthread_rwlock_rdlock(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int {
    about_to_take("read-write lock", lock.addr());
    let code = real!(READ_LOCK: fn(*mut pthread_rwlock_t) -> c_int, lock);
    if code == 0 {
        took(lock.addr());
    }
    code
}

/// # Safety
/// As pthread_rwlock_wrlock(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int {
    about_to_take("read-write lock", lock.addr());
    let code = real!(WRITE_LOCK: fn(*mut pthread_rwlock_t) -> c_int, lock);
    if code == 0 {
        took(lock.addr());
    }
    code
}

/// # Safety
/// As pthread_rwlock_unlock(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int {
    gave_back(lock.addr());
    real!(RWLOCK_UNLOCK: fn(*mut pthread_rwlock_t) -> c_int, lock)
}

/// # Safety
/// As pthread_cond_wait(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
    about_to_take("condition variable", cond.addr());
    real!(COND_WAIT: fn(*mut pthread_cond_t, *mut pthread_mutex_t) -> c_int, cond, mutex)
}

/// # Safety
/// As pthread_cond_timedwait(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_timedwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    about_to_take("condition variable", cond.addr());
    real!(COND_TIMEDWAIT: fn(*mut pthread_cond_t, *mut pthread_mutex_t, *const timespec) -> c_int, cond, mutex, until)
}

/// # Safety
/// As sem_wait(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_wait(semaphore: *mut sem_t) -> c_int {
    about_to_take("semaphore", semaphore.addr());
    real!(SEM_WAIT: fn(*mut sem_t) -> c_int, semaphore)
}

/// Variadic in C; on x86_64 and aarch64 whole-number arguments travel alike either way, and one that the caller did not
/// pass is a value that nobody looks at.
///
/// # Safety
/// As syscall(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long {
    if number == libc::SYS_futex && waits(b as c_int) {
        about_to_take("futex", a);
    }
    real!(
        SYSCALL: fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long,
        number, a, b, c, d, e, f
    )
}

fn waits(operation: c_int) -> bool {
    let command = operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    matches!(command, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_LOCK_PI)
}

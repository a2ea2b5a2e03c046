//! Preloaded into a process (`LD_PRELOAD`), sets its wall clock: [`wall_clock_step`] moves CLOCK_REALTIME, for whoever
//! in the process asks the C library for it. All other clocks are as they were.

use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering};

const SECOND_NS: i64 = 1_000_000_000;

static AHEAD_NS: AtomicI64 = AtomicI64::new(0);
/// The C library's clock_gettime.
static REAL: AtomicPtr<libc::c_void> = AtomicPtr::new(std::ptr::null_mut());

type Gettime = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int;

/// Looked up before anybody can ask: a callback that reads a clock must not be kept by the loader.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_UP: extern "C" fn() = look_up;

extern "C" fn look_up() {
    // SAFETY: a NUL-terminated name.
    let real = unsafe { libc::dlsym(libc::RTLD_NEXT, c"clock_gettime".as_ptr()) };
    REAL.store(real, Ordering::Relaxed);
}

/// Sets the wall clock `by_ns` ahead, or back.
#[unsafe(no_mangle)]
pub extern "C" fn wall_clock_step(by_ns: i64) {
    AHEAD_NS.fetch_add(by_ns, Ordering::Relaxed);
}

/// # Safety
/// As clock_gettime(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    let real = REAL.load(Ordering::Relaxed);
    let code = if real.is_null() {
        // Another library's initialiser came before ours.
        // SAFETY: the caller's promise.
        unsafe { libc::syscall(libc::SYS_clock_gettime, c_long::from(clock), time) as c_int }
    } else {
        // SAFETY: found under this name, which has this type; the rest is the caller's promise.
        unsafe { std::mem::transmute::<*mut libc::c_void, Gettime>(real)(clock, time) }
    };
    if code == 0 && matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE) {
        // SAFETY: the call above has written it.
        unsafe { move_by(&mut *time, AHEAD_NS.load(Ordering::Relaxed)) };
    }
    code
}

fn move_by(time: &mut libc::timespec, by_ns: i64) {
    let ns = time.tv_nsec + by_ns % SECOND_NS;
    time.tv_sec += by_ns / SECOND_NS + ns.div_euclid(SECOND_NS);
    time.tv_nsec = ns.rem_euclid(SECOND_NS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_moved_over_the_second() {
        let moved = |nsec: i64, by_ns: i64| {
            let mut time = libc::timespec { tv_sec: 100, tv_nsec: nsec };
            move_by(&mut time, by_ns);
            (time.tv_sec, time.tv_nsec)
        };
        assert_eq!(moved(900_000_000, 200_000_000), (101, 100_000_000));
        assert_eq!(moved(100_000_000, -200_000_000), (99, 900_000_000));
        assert_eq!(moved(1, -3_600 * SECOND_NS), (-3_500, 1));
    }
}

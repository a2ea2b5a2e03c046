//! Nothing that a callback does with a tap allocates: a preloaded library counts the calls of malloc and its like, the
//! C library's and Rust's alike.

#[path = "../../ringbuf/tests/write_path/calls.rs"]
mod calls;

use calls::{CALLS, Prepared};
use gputap_tests::{artifact, in_child};
use std::{ffi::CStr, hint::black_box};

/// The function that the preloaded library exports as `name`, as an `F`.
fn watch<F: Copy>(name: &CStr) -> F {
    // SAFETY: a NUL-terminated name.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    assert!(!symbol.is_null(), "not preloaded");
    const { assert!(size_of::<F>() == size_of::<*mut libc::c_void>()) };
    // SAFETY: the callers name the type that the library exports under that name: a function, as large as a pointer.
    unsafe { std::mem::transmute_copy(&symbol) }
}

/// Calls of the allocator that `body` makes on this thread.
fn calls_in(body: impl FnOnce()) -> u64 {
    let enter: extern "C" fn() = watch(c"callback_watch_enter");
    let leave: extern "C" fn() = watch(c"callback_watch_leave");
    let calls: extern "C" fn() -> u64 = watch(c"callback_watch_calls");
    let before = calls();
    enter();
    body();
    leave();
    calls() - before
}

/// Runs `body` as the test `name` in a child under the counting allocator.
fn under_watch(name: &str, body: impl FnOnce()) {
    let preload = artifact("malloc_watch").expect("built");
    if let Some(finished) = in_child(name, &[("LD_PRELOAD", preload.to_str().expect("UTF-8"))], body) {
        let passed = finished.status.success() && finished.stdout.contains("1 passed");
        assert!(passed, "{name}: {}\n{}\n{}", finished.status, finished.stdout, finished.stderr);
    }
}

#[test]
fn nothing_that_a_callback_does_with_a_tap_allocates() {
    under_watch("nothing_that_a_callback_does_with_a_tap_allocates", || {
        let prepared = Prepared::new();
        for (name, call) in CALLS {
            let mut done = false;
            let calls = calls_in(|| done = call(&prepared));
            assert_eq!((done, calls), (true, 0), "{name}");
        }
        prepared.check_segment();
    });
}

#[test]
fn one_vector_is_seen() {
    under_watch("one_vector_is_seen", || {
        assert_eq!(calls_in(|| ()), 0);
        assert_eq!(calls_in(|| std::mem::forget(black_box(Vec::<u8>::with_capacity(black_box(64))))), 1);
        // SAFETY: no memory is passed but what malloc gave; that of C counts as well.
        assert_eq!(calls_in(|| unsafe { libc::free(black_box(libc::malloc(black_box(64)))) }), 2);
    });
}

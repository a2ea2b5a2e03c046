//! Callbacks allocate nothing: a preloaded library counts the calls of malloc and its like that are made inside them.

use std::ffi::CStr;

use gputap_ringbuf::event::BASIC_KINDS;
use gputap_tests::artifact;

use crate::app::App;
use crate::reading::{balanced, command, read_until_delivered, step_until};

/// Loads, launches, loads again; calls of the allocator inside callbacks, and how many callbacks there were.
fn watch(shim: &str, app: impl FnOnce(&mut App)) -> (u64, u64) {
    let preload = artifact("malloc_watch").expect("built");
    let env =
        [("LD_PRELOAD", preload.to_str().expect("UTF-8")), ("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "1")];
    let mut started = App::start_under(shim, &env);
    (0..30).for_each(|seed| started.load(seed));
    started.launch(20_000);
    (0..30).for_each(|seed| started.load(seed));
    app(&mut started);
    let answer = started.ask("watched");
    let (calls, callbacks) = answer.split_once(' ').expect("two numbers");
    (calls.parse().expect("a number"), callbacks.parse().expect("a number"))
}

#[test]
fn gputap_allocates_nothing_in_callbacks() {
    let (calls, callbacks) = watch("gputap_shim", |app| {
        let mut session = app.session(BASIC_KINDS);
        read_until_delivered(&mut session, 1_000);
        step_until(&mut session, &mut gputap_reader::session::NoSink, "all", |session, _| {
            balanced(session).counts.attempted == 20_060
        });
        command(&app.found(), gputap_ringbuf::control::Command::Flush);
    });
    assert_eq!(calls, 0, "in {callbacks} callbacks");
    // Sixty modules, and a buffer asked for and completed at least once.
    assert!(callbacks > 62, "{callbacks}");
}

#[test]
fn a_callback_that_copies_into_a_vector_is_seen() {
    let (calls, callbacks) = watch("locking_shim", |_| {});
    assert!(calls >= 60 && callbacks > 62, "{calls} calls in {callbacks} callbacks");
}

/// In the application: what the preloaded library has counted.
pub fn watched() -> String {
    let ask = |name: &CStr| {
        // SAFETY: a NUL-terminated name.
        let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        assert!(!symbol.is_null(), "not preloaded");
        // SAFETY: under these names the preloaded library exports functions of this type.
        unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> u64>(symbol)() }
    };
    format!("{} {}", ask(c"callback_watch_calls"), ask(c"callback_watch_callbacks"))
}

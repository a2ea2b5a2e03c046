//! Which callbacks run under the driver lock: in those a client that waits for a flusher hangs.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use gputap_tests::isolated;

use crate::cuda::{Cuda, Handle, cubin};
use crate::cupti::{Cupti, during_callbacks, events};

const WAIT: Duration = Duration::from_millis(150);

/// Subscribes to one callback, and tells of each that comes during `act` whether the driver lock was held.
fn held_during(domain: u32, cbid: u32, act: impl FnOnce(&Cuda, Handle)) -> Vec<bool> {
    let (cuda, cupti) = (Cuda::load(), Cupti::load());
    let subscriber = cupti.subscribe().unwrap();
    let context = cuda.start();
    assert_eq!(cupti.enable_callback(true, subscriber, domain, cbid), 0);
    let (answers, answered) = channel();
    let (home, answers) = (context.expose_provenance(), Mutex::new(answers));
    during_callbacks(move || {
        let (through, got_through) = channel();
        // Needs the driver lock, and gets through once it is free.
        std::thread::spawn(move || {
            let cuda = Cuda::load();
            cuda.set_current(std::ptr::with_exposed_provenance_mut(home));
            let _ = through.send(());
        });
        answers.lock().unwrap().send(got_through.recv_timeout(WAIT).is_err()).unwrap();
    });
    act(&cuda, context);
    let held: Vec<_> = answered.try_iter().collect();
    assert_eq!(held.len(), events().len());
    held
}

fn launched(cuda: &Cuda, times: usize) {
    let module = cuda.load_module(&cubin("k", 1_000)).unwrap();
    let function = cuda.function(module, "k").unwrap();
    (0..times).for_each(|_| assert_eq!(cuda.launch(function, std::ptr::null_mut()), 0));
}

#[test]
fn a_modules_unload_is_told_under_the_driver_lock() {
    isolated("driver_lock::a_modules_unload_is_told_under_the_driver_lock", &[], || {
        let held = held_during(3, 7, |cuda, _| {
            let module = cuda.load_module(&cubin("k", 1_000)).unwrap();
            cuda.launch(cuda.function(module, "k").unwrap(), std::ptr::null_mut());
            cuda.unload(module);
        });
        assert_eq!(held, [true]);
    });
}

#[test]
fn a_new_context_is_told_under_the_driver_lock() {
    isolated("driver_lock::a_new_context_is_told_under_the_driver_lock", &[], || {
        assert_eq!(held_during(3, 1, |cuda, _| _ = cuda.create_context(0)), [true]);
    });
}

#[test]
fn the_end_of_a_context_is_told_under_the_driver_lock() {
    isolated("driver_lock::the_end_of_a_context_is_told_under_the_driver_lock", &[], || {
        let held = held_during(3, 2, |cuda, _| {
            let context = cuda.create_context(0);
            assert_eq!(cuda.destroy_context(context), 0);
            assert_eq!(cuda.destroy_context(context), 201, "destroyed once");
            cuda.reset_device();
        });
        assert_eq!(held, [true, true]);
    });
}

#[test]
fn only_a_launch_that_loads_is_told_under_the_driver_lock() {
    isolated("driver_lock::only_a_launch_that_loads_is_told_under_the_driver_lock", &[], || {
        let held = held_during(1, 307, |cuda, _| launched(cuda, 2));
        assert_eq!(held, [true, true, false, false], "begin and end of the first launch, and of the second");
    });
}

#[test]
fn the_end_of_a_wait_is_told_under_the_driver_lock() {
    isolated("driver_lock::the_end_of_a_wait_is_told_under_the_driver_lock", &[], || {
        let held = held_during(4, 2, |cuda, _| {
            launched(cuda, 1);
            cuda.synchronize();
        });
        assert_eq!(held, [true]);
    });
}

#[test]
fn the_call_that_waits_holds_nothing() {
    isolated("driver_lock::the_call_that_waits_holds_nothing", &[], || {
        assert_eq!(held_during(1, 17, |cuda, _| cuda.synchronize()), [false, false]);
    });
}

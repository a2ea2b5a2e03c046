//! Which callbacks run under the driver lock: in those a client that waits for a flusher hangs.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use gputap_tests::isolated;

use crate::cuda::{Cuda, cubin};
use crate::cupti::{Cupti, during_callbacks, events};

/// Subscribes to one callback, and tells of each that comes during `act` whether its thread held the driver lock.
fn held_during(domain: u32, cbid: u32, act: impl FnOnce(&Cuda)) -> Vec<bool> {
    let (cuda, cupti) = (Cuda::load(), Cupti::load());
    let subscriber = cupti.subscribe().unwrap();
    cuda.start();
    assert_eq!(cupti.enable_callback(true, subscriber, domain, cbid), 0);
    let (answers, answered) = channel();
    let (answers, holds_lock) = (Mutex::new(answers), cuda.holds_lock_function());
    during_callbacks(move || answers.lock().unwrap().send(holds_lock()).unwrap());
    act(&cuda);
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
        let held = held_during(3, 7, |cuda| {
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
        assert_eq!(held_during(3, 1, |cuda| _ = cuda.create_context(0)), [true]);
    });
}

#[test]
fn the_end_of_a_context_is_told_under_the_driver_lock() {
    isolated("driver_lock::the_end_of_a_context_is_told_under_the_driver_lock", &[], || {
        let held = held_during(3, 2, |cuda| {
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
        let held = held_during(1, 307, |cuda| launched(cuda, 2));
        assert_eq!(held, [true, true, false, false], "begin and end of the first launch, and of the second");
    });
}

#[test]
fn the_end_of_a_wait_is_told_under_the_driver_lock() {
    isolated("driver_lock::the_end_of_a_wait_is_told_under_the_driver_lock", &[], || {
        let held = held_during(4, 2, |cuda| {
            launched(cuda, 1);
            cuda.synchronize();
        });
        assert_eq!(held, [true]);
    });
}

#[test]
fn the_call_that_waits_holds_nothing() {
    isolated("driver_lock::the_call_that_waits_holds_nothing", &[], || {
        assert_eq!(held_during(1, 17, |cuda| cuda.synchronize()), [false, false]);
    });
}

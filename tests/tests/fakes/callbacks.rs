//! Subscriptions and module loads.

use std::sync::mpsc::channel;
use std::time::Duration;

use gputap_tests::isolated;

use crate::cuda::{Cuda, cubin};
use crate::cupti::{Cupti, during_callbacks, events};

const RESOURCE: u32 = 3;
const DRIVER_API: u32 = 1;
const CONTEXT_CREATED: u32 = 1;
const STREAM_CREATED: u32 = 3;
const MODULE_LOADED: u32 = 6;
const LAUNCH_KERNEL: u32 = 307;

fn ids() -> Vec<(u32, u32)> {
    events().iter().map(|event| (event.domain, event.cbid)).collect()
}

#[test]
fn callbacks_come_only_for_enabled_ids() {
    isolated("callbacks::callbacks_come_only_for_enabled_ids", &[], || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        let subscriber = cupti.subscribe().unwrap();
        cupti.enable_callback(true, subscriber, RESOURCE, CONTEXT_CREATED);
        cuda.start();
        let first = cuda.stream();
        assert_eq!(ids(), [(RESOURCE, CONTEXT_CREATED)]);

        cupti.enable_callback(true, subscriber, RESOURCE, STREAM_CREATED);
        cuda.stream();
        assert_eq!(ids(), [(RESOURCE, STREAM_CREATED)]);

        cupti.enable_callback(false, subscriber, RESOURCE, STREAM_CREATED);
        cupti.enable_callback(true, subscriber, DRIVER_API, LAUNCH_KERNEL);
        cuda.stream();
        let module = cuda.load_module(&cubin("k", 1_000)).unwrap();
        let function = cuda.function(module, "k").unwrap();
        assert_eq!(cuda.launch(function, first), 0);
        assert_eq!(ids(), [(DRIVER_API, LAUNCH_KERNEL); 2], "at the call's begin and end, and nothing else");
    });
}

#[test]
fn a_module_loads_in_its_first_launch_under_the_driver_lock() {
    isolated("callbacks::a_module_loads_in_its_first_launch_under_the_driver_lock", &[], || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        let subscriber = cupti.subscribe().unwrap();
        cupti.enable_callback(true, subscriber, RESOURCE, MODULE_LOADED);
        let context = cuda.start();
        let image = cubin("k", 1_000);
        let module = cuda.load_module(&image).unwrap();
        let function = cuda.function(module, "k").unwrap();
        assert_eq!(ids(), [], "registering a lazy module loads nothing");

        // While the callback runs, another thread cannot get through a call that needs the driver lock.
        let context = context.expose_provenance();
        let (through, got_through) = channel();
        let (blocked, was_blocked) = channel();
        let got_through = std::sync::Mutex::new(got_through);
        during_callbacks(move || {
            let through = through.clone();
            std::thread::spawn(move || {
                let cuda = Cuda::load();
                cuda.set_current(std::ptr::with_exposed_provenance_mut(context));
                cuda.allocate();
                let _ = through.send(());
            });
            let got_through = got_through.lock().unwrap();
            blocked.send(got_through.recv_timeout(Duration::from_millis(200)).is_err()).unwrap();
        });
        assert_eq!(cuda.launch(function, std::ptr::null_mut()), 0);
        assert!(was_blocked.recv().unwrap(), "the driver lock was free during the callback");
        cuda.allocate();

        let loaded = events();
        assert_eq!(loaded.len(), 1);
        assert_eq!(loaded[0].thread, std::thread::current().id(), "on the launching thread");
        assert_eq!(loaded[0].cubin.as_ref().unwrap().1, image);
        assert_eq!(cuda.launch(function, std::ptr::null_mut()), 0);
        assert_eq!(ids(), [], "loaded once");
    });
}

#[test]
fn an_eager_module_loads_at_once() {
    let env = [("CUDA_MODULE_LOADING", "EAGER")];
    isolated("callbacks::an_eager_module_loads_at_once", &env, || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        let subscriber = cupti.subscribe().unwrap();
        cupti.enable_callback(true, subscriber, RESOURCE, MODULE_LOADED);
        cuda.start();
        cuda.load_module(&cubin("k", 1_000)).unwrap();
        assert_eq!(ids(), [(RESOURCE, MODULE_LOADED)]);
    });
}

#[test]
fn the_cubin_is_other_bytes_after_the_callback() {
    isolated("callbacks::the_cubin_is_other_bytes_after_the_callback", &[], || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        let subscriber = cupti.subscribe().unwrap();
        cupti.enable_callback(true, subscriber, RESOURCE, MODULE_LOADED);
        cuda.start();
        let image = cubin("k", 1_000);
        let module = cuda.load_module(&image).unwrap();
        cuda.launch(cuda.function(module, "k").unwrap(), std::ptr::null_mut());
        let (address, copied) = events().remove(0).cubin.unwrap();
        assert_eq!(copied, image);
        // SAFETY: the fake keeps this memory mapped for ever, and no module loads now.
        let after =
            unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(address), image.len()) };
        assert!(after.iter().zip(&image).all(|(now, then)| now != then), "every byte is another one");
    });
}

#[test]
fn there_is_one_subscriber_and_no_replay() {
    isolated("callbacks::there_is_one_subscriber_and_no_replay", &[], || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        let first = cupti.subscribe().unwrap();
        assert_eq!(cupti.subscribe(), Err(39));
        cuda.start();
        let module = cuda.load_module(&cubin("k", 1_000)).unwrap();
        cuda.launch(cuda.function(module, "k").unwrap(), std::ptr::null_mut());

        assert_eq!(cupti.unsubscribe(first), 0);
        assert_eq!(cupti.finalize(), 0);
        let second = cupti.subscribe().expect("the place is free again");
        assert_ne!(cupti.enable_callback(true, first, RESOURCE, MODULE_LOADED), 0, "the old handle is worth nothing");
        assert_eq!(cupti.enable_callback(true, second, RESOURCE, MODULE_LOADED), 0);
        assert_eq!(ids(), [], "what loaded before is not told");
        let late = cuda.load_module(&cubin("late", 1_000)).unwrap();
        cuda.launch(cuda.function(late, "late").unwrap(), std::ptr::null_mut());
        assert_eq!(ids(), [(RESOURCE, MODULE_LOADED)]);
    });
}

#[test]
fn the_driver_refuses_what_it_must() {
    isolated("callbacks::the_driver_refuses_what_it_must", &[], || {
        let cuda = Cuda::load();
        cuda.start();
        assert_eq!(cuda.load_module(&[0x5a; 4096]), Err(200));
        let module = cuda.load_module(&cubin("k", 1_000)).unwrap();
        assert_eq!(cuda.function(module, "other"), Err(500));
        let function = cuda.function(module, "k").unwrap();
        assert_eq!(cuda.unload(module), 0);
        assert_eq!(cuda.unload(module), 400);
        assert_eq!(cuda.launch(function, std::ptr::null_mut()), 400, "its module is gone");
    });
}

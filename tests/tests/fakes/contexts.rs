//! Contexts, devices, and what goes with them.

use gputap_tests::isolated;

use crate::cuda::{Cuda, cubin};
use crate::cupti::{Cupti, Record, events, records};

const RESOURCE: u32 = 3;

fn ids() -> Vec<u32> {
    events().iter().map(|event| event.cbid).collect()
}

#[test]
fn a_contexts_modules_go_with_it() {
    isolated("contexts::a_contexts_modules_go_with_it", &[], || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        let subscriber = cupti.subscribe().unwrap();
        (1..=7).filter(|cbid| *cbid != 5).for_each(|cbid| _ = cupti.enable_callback(true, subscriber, RESOURCE, cbid));
        let home = cuda.start();
        let context = cuda.create_context(0);
        let loaded = cuda.load_module(&cubin("k", 1_000)).unwrap();
        let function = cuda.function(loaded, "k").unwrap();
        assert_eq!(cuda.launch(function, std::ptr::null_mut()), 0);
        cuda.load_module(&cubin("never launched", 1_000)).unwrap();
        assert_eq!(cuda.destroy_context(context), 0);
        // Made twice, a module loaded, the context about to go, and its one loaded module with it.
        assert_eq!(ids(), [1, 1, 6, 2, 7]);
        assert_eq!(cuda.unload(loaded), 400, "gone");
        assert_eq!(cuda.launch(function, std::ptr::null_mut()), 201, "no context is current");
        assert_eq!(cuda.set_current(context), 201);
        assert_eq!(cuda.set_current(home), 0);
    });
}

#[test]
fn a_reset_device_has_a_new_primary_context() {
    isolated("contexts::a_reset_device_has_a_new_primary_context", &[], || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        let before = cuda.start();
        cupti.record();
        cuda.clear(0, 0, 64, std::ptr::null_mut());
        cuda.reset_device();
        assert_eq!(cuda.set_current(before), 201);
        let after = cuda.start();
        assert_ne!(before, after);
        cuda.clear(0, 0, 64, std::ptr::null_mut());
        cuda.synchronize();
        cupti.flush(false);
        let [Record::Memset(old), Record::Memset(new)] = records()[..] else { panic!("two memsets") };
        assert_eq!((old.context_id, new.context_id), (1, 2));
        assert_ne!(old.stream_id, new.stream_id, "each has its own default stream");
    });
}

#[test]
fn a_copy_between_devices_names_both() {
    isolated("contexts::a_copy_between_devices_names_both", &[("FAKE_CUDA_DEVICES", "2")], || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        let first = cuda.start();
        let second = cuda.primary_context(1);
        assert_eq!((cupti.device_id(first), cupti.device_id(second)), (0, 1));
        cupti.record();
        assert_eq!(cupti.enable(22), 0);
        assert_eq!(cuda.copy_to_peer(second, first, 4096), 0);
        cuda.set_current(second);
        cuda.clear(0, 0, 64, std::ptr::null_mut());
        cuda.synchronize();
        cuda.set_current(first);
        cuda.synchronize();
        cupti.flush(false);
        let [Record::PeerCopy(copy), Record::Memset(set)] = records()[..] else { panic!("a copy and a memset") };
        assert_eq!((copy.kind, copy.copy_kind, copy.bytes), (22, 10, 4096));
        assert_eq!((copy.device_id, copy.context_id, copy.stream_id), (0, 1, 7));
        assert_eq!((copy.src_device_id, copy.src_context_id), (0, 1));
        assert_eq!((copy.dst_device_id, copy.dst_context_id), (1, 2));
        assert!(copy.start < copy.end);
        assert_eq!((set.device_id, set.context_id), (1, 2));
    });
}

#[test]
fn the_driver_says_the_version_that_it_is_told() {
    let env = [("FAKE_CUDA_DRIVER_VERSION", "12020")];
    isolated("contexts::the_driver_says_the_version_that_it_is_told", &env, || {
        assert_eq!(Cuda::load().driver_version(), 12_020);
    });
}

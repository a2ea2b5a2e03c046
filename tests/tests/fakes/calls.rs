//! API calls: callbacks and records.

use gputap_tests::isolated;

use crate::cuda::{Cuda, Handle, cubin};
use crate::cupti::{Call, Cupti, Record, events, records};

const DRIVER_API: u32 = 1;
const RUNTIME_API: u32 = 2;

fn loaded(cuda: &Cuda) -> Handle {
    let module = cuda.load_module(&cubin("_Z4axpyfPfS_", 1_000)).unwrap();
    cuda.function(module, "_Z4axpyfPfS_").unwrap()
}

#[test]
fn every_launch_is_told_with_its_kernels_name_and_its_records_id() {
    isolated("calls::every_launch_is_told_with_its_kernels_name_and_its_records_id", &[], || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        let subscriber = cupti.subscribe().unwrap();
        let ids = [(307, "cuLaunchKernel"), (477, "cuLaunchCooperativeKernel"), (652, "cuLaunchKernelEx")];
        ids.iter().for_each(|&(cbid, _)| _ = cupti.enable_callback(true, subscriber, DRIVER_API, cbid));
        cuda.start();
        cupti.record();
        let function = loaded(&cuda);
        assert_eq!(cuda.launch(function, std::ptr::null_mut()), 0);
        assert_eq!(cuda.launch_cooperative(function), 0);
        assert_eq!(cuda.launch_ex(function), 0);
        cuda.synchronize();
        cupti.flush(false);
        let kernels = records();
        let Record::Kernel(by_ex) = kernels[2] else { panic!("a kernel") };
        assert_eq!(by_ex.shape, [4, 1, 1, 64, 1, 1]);
        let told: Vec<Call> = events().into_iter().map(|event| event.call.unwrap()).collect();
        let expected: Vec<Call> = std::iter::zip(ids, &kernels)
            .flat_map(|((_, function), kernel)| {
                [0, 1].map(|site| Call {
                    site,
                    function: function.into(),
                    symbol: Some("_Z4axpyfPfS_".into()),
                    correlation_id: kernel.correlation_id(),
                })
            })
            .collect();
        assert_eq!(told, expected);
    });
}

#[test]
fn a_runtime_call_and_the_drivers_inside_it_share_an_id() {
    isolated("calls::a_runtime_call_and_the_drivers_inside_it_share_an_id", &[], || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        let subscriber = cupti.subscribe().unwrap();
        cupti.enable_callback(true, subscriber, RUNTIME_API, 211);
        cupti.enable_callback(true, subscriber, DRIVER_API, 307);
        cuda.start();
        cupti.record();
        [4, 5].iter().for_each(|&kind| assert_eq!(cupti.enable(kind), 0));
        let function = loaded(&cuda);
        assert_eq!(cuda.runtime_launch(function), 0);
        assert_ne!(cuda.runtime_launch(std::ptr::null_mut()), 0);
        // The end of a record is when the call ended; the kernel's lies ahead.
        cuda.synchronize();
        cupti.flush(false);
        let told: Vec<_> = events().iter().map(|e| (e.domain, e.call.as_ref().unwrap().correlation_id)).collect();
        assert_eq!(told[..4].iter().map(|t| t.0).collect::<Vec<_>>(), [2, 1, 1, 2], "the driver's call lies inside");
        assert!(told[..4].iter().all(|t| t.1 == told[0].1) && told[4].1 == told[0].1 + 1);
        let calls: Vec<_> = records()
            .iter()
            .filter_map(|record| match record {
                Record::Api(call) if matches!(call.cbid, 211 | 307) => Some(*call),
                _ => None,
            })
            .collect();
        let facts: Vec<_> = calls.iter().map(|c| (c.kind, c.cbid, c.correlation_id, c.return_value)).collect();
        let (first, second) = (told[0].1, told[4].1);
        let expected = [(4, 307, first, 0), (5, 211, first, 0), (4, 307, second, 400), (5, 211, second, 400)];
        assert_eq!(facts, expected, "in the order in which they end");
        // SAFETY: no preconditions.
        let me = unsafe { libc::gettid() } as u32;
        assert!(calls.iter().all(|c| c.process_id == std::process::id() && c.thread_id == me && c.start <= c.end));
        assert!(calls[1].start <= calls[0].start && calls[0].end <= calls[1].end);
    });
}

#[test]
fn correlation_ids_wrap() {
    let env = [("FAKE_CUDA_FIRST_CORRELATION", "4294967290")];
    isolated("calls::correlation_ids_wrap", &env, || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        cuda.start();
        cupti.record();
        let function = loaded(&cuda);
        (0..20).for_each(|_| assert_eq!(cuda.launch(function, std::ptr::null_mut()), 0));
        cuda.synchronize();
        cupti.flush(false);
        let ids: Vec<_> = records().iter().map(Record::correlation_id).collect();
        assert_eq!(ids.len(), 20);
        assert!(ids.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "{ids:?}");
        assert!(ids[0] > u32::MAX - 10 && ids[19] < 20, "{ids:?}");
    });
}

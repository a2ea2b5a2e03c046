//! NVTX ranges, from the application's side: what NVIDIA's header does, as far as these tests need it.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::Ordering;

use gputap_tests::{artifact, isolated};

use crate::cuda::Cuda;
use crate::cupti::{Cupti, Record, records, text};
use crate::nvtx_side::{CORE, CORE2, initialize};

const MARKER: u32 = 12;

/// A function that was injected, by its number.
macro_rules! injected {
    ($places:ident[$number:literal], fn($($type:ty),*) $(-> $result:ty)? $(, $argument:expr)*) => {{
        let function = $places[$number].load(Ordering::Relaxed);
        assert!(!function.is_null());
        // SAFETY: the number is that of a function of this type in NVIDIA's header, and strings are passed where it
        // wants strings.
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) $(-> $result)?>(function)($($argument),*) }
    }};
}

fn push(name: &str) -> c_int {
    let name = CString::new(name).unwrap();
    injected!(CORE[9], fn(*const c_char) -> c_int, name.as_ptr())
}

fn pop() -> c_int {
    injected!(CORE[11], fn() -> c_int)
}

fn mark(name: &str) {
    let name = CString::new(name).unwrap();
    injected!(CORE[2], fn(*const c_char), name.as_ptr());
}

fn domain(name: &str) -> *mut c_void {
    let name = CString::new(name).unwrap();
    injected!(CORE2[12], fn(*const c_char) -> *mut c_void, name.as_ptr())
}

/// `nvtxEventAttributes_t` with an ASCII (1) or registered (3) message.
#[repr(C)]
struct Attributes {
    head: [u32; 8],
    message_type: i32,
    message: *const c_void,
}

impl Attributes {
    fn new(message_type: i32, message: *const c_void) -> Self {
        Self { head: [3 | 48 << 16, 0, 0, 0, 0, 0, 0, 0], message_type, message }
    }
}

fn recording() -> Cupti {
    let (cuda, cupti) = (Cuda::load(), Cupti::load());
    cuda.start();
    cupti.record();
    assert_eq!(cupti.enable(MARKER), 0);
    assert_eq!(initialize(), 1);
    cupti
}

/// Flags, id, name and domain of each marker.
fn markers(cupti: &Cupti) -> Vec<(u32, u32, Option<String>, Option<String>)> {
    assert_eq!(cupti.flush(false), 0);
    let marker = |record: &Record| match record {
        Record::Marker(m) => (m.flags, m.id, text(m.name), text(m.domain)),
        other => panic!("{other:?}"),
    };
    records().iter().map(marker).collect()
}

fn named(name: &str) -> Option<String> {
    Some(name.into())
}

fn in_application(test: &str, body: impl FnOnce()) {
    let cupti = artifact("fake_cupti").expect("built");
    isolated(test, &[("NVTX_INJECTION64_PATH", cupti.to_str().unwrap())], body);
}

#[test]
fn ranges_nest_and_end_under_their_own_ids() {
    in_application("nvtx::ranges_nest_and_end_under_their_own_ids", || {
        let cupti = recording();
        assert_eq!((push("step"), push("forward")), (0, 1));
        mark("here");
        assert_eq!((pop(), pop(), pop()), (1, 0, -1));
        let expected = [
            (2, 1, named("step"), None),
            (2, 2, named("forward"), None),
            (1, 3, named("here"), None),
            (4, 2, None, None),
            (4, 1, None, None),
        ];
        assert_eq!(markers(&cupti), expected);
    });
}

#[test]
fn domains_have_ranges_of_their_own() {
    in_application("nvtx::domains_have_ranges_of_their_own", || {
        let cupti = recording();
        let nccl = domain("NCCL");
        let text = |name: &CString| Attributes::new(1, name.as_ptr().cast());
        let name = CString::new("all-reduce").unwrap();
        let ascii = text(&name);
        push("step");
        let depth = injected!(CORE2[4], fn(*mut c_void, *const Attributes) -> c_int, nccl, &raw const ascii);
        assert_eq!(depth, 0, "the first in its domain");
        assert_eq!(pop(), 0, "of the default domain");
        assert_eq!(injected!(CORE2[5], fn(*mut c_void) -> c_int, nccl), 0);
        let handle = injected!(CORE2[10], fn(*mut c_void, *const c_char) -> *mut c_void, nccl, name.as_ptr());
        let registered = Attributes::new(3, handle);
        let id = injected!(CORE2[2], fn(*mut c_void, *const Attributes) -> u64, nccl, &raw const registered);
        injected!(CORE2[3], fn(*mut c_void, u64), nccl, id);
        let expected = [
            (2, 1, named("step"), None),
            (2, 2, named("all-reduce"), named("NCCL")),
            (4, 1, None, None),
            (4, 2, None, named("NCCL")),
            (2, 3, named("all-reduce"), named("NCCL")),
            (4, 3, None, named("NCCL")),
        ];
        assert_eq!(markers(&cupti), expected);
    });
}

#[test]
fn markers_are_recorded_only_while_enabled() {
    in_application("nvtx::markers_are_recorded_only_while_enabled", || {
        let cupti = recording();
        cupti.disable(MARKER);
        mark("unseen");
        cupti.enable(MARKER);
        mark("seen");
        assert_eq!(markers(&cupti), [(1, 2, named("seen"), None)]);
    });
}

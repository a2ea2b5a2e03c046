//! Functions of the driver by themselves, for moments at which nothing may be looked up.

use std::sync::OnceLock;

use gputap_tests::artifact;
use libloading::Library;

use crate::cuda::{Handle, LaunchKernel};

type OnContext = unsafe extern "C" fn(Handle) -> u32;

/// A function that the fake driver exports.
///
/// # Safety
/// `T` is the type of the function of this name.
pub unsafe fn function<T: Copy>(name: &str) -> T {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    // SAFETY: our own library, which the process has open already.
    let open = || unsafe { Library::new(artifact("fake_cuda").expect("built")) }.expect("loads");
    // SAFETY: by contract; the library is never unloaded.
    *unsafe { LIBRARY.get_or_init(open).get::<T>(name) }.expect("exported")
}

/// A launch that loads its module, ready to be called where nothing may be allocated.
#[derive(Clone, Copy)]
pub struct Launch {
    launch: LaunchKernel,
    set_current: OnContext,
    function: usize,
    context: usize,
}

impl Launch {
    pub fn of(launch: LaunchKernel, function: Handle, context: Handle) -> Self {
        // SAFETY: the type is that of NVIDIA's documentation.
        let set_current = unsafe { self::function("cuCtxSetCurrent") };
        Self { launch, set_current, function: function.expose_provenance(), context: context.expose_provenance() }
    }

    /// Makes the context current on the calling thread; the driver's error number.
    pub fn set_current(&self) -> u32 {
        // SAFETY: a handle of this driver.
        unsafe { (self.set_current)(std::ptr::with_exposed_provenance_mut(self.context)) }
    }

    /// The driver's error number.
    pub fn call(&self) -> u32 {
        let none = std::ptr::null_mut();
        let function = std::ptr::with_exposed_provenance_mut(self.function);
        // SAFETY: NVIDIA's type; a handle of this driver, and a kernel without parameters.
        unsafe { (self.launch)(function, 1, 1, 1, 32, 1, 1, 0, none, none.cast(), none.cast()) }
    }
}

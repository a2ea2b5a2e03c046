//! The fake driver, called as an application calls it.

use std::ffi::{CString, c_void};

use gputap_sim_job::{CubinKernel, generate_cubin};
use gputap_tests::artifact;
use libloading::Library;

pub type Handle = *mut c_void;
/// `cuLaunchKernel`.
pub type LaunchKernel =
    unsafe extern "C" fn(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut Handle, *mut Handle) -> u32;

/// The driver, initialised, with the primary context current on the calling thread.
pub struct Cuda {
    library: &'static Library,
}

macro_rules! call {
    ($self:expr, $name:literal, fn($($type:ty),*), $($argument:expr),*) => {{
        // SAFETY: the type is that of NVIDIA's documentation; the arguments are handles of this driver, places that may
        // be written, or whole images.
        unsafe {
            let function = $self.library.get::<unsafe extern "C" fn($($type),*) -> u32>(concat!($name, "\0").as_bytes());
            function.expect($name)($($argument),*)
        }
    }};
}

impl Cuda {
    /// Loads the driver without initialising it.
    pub fn load() -> Self {
        let path = artifact("fake_cuda").expect("built");
        // SAFETY: our own library.
        let library = unsafe { Library::new(path) }.expect("loads");
        Self { library: Box::leak(Box::new(library)) }
    }

    /// Initialises the driver and makes the primary context current.
    pub fn start(&self) -> Handle {
        assert_eq!(call!(self, "cuInit", fn(u32), 0), 0);
        let mut context = std::ptr::null_mut();
        assert_eq!(call!(self, "cuDevicePrimaryCtxRetain", fn(*mut Handle, i32), &raw mut context, 0), 0);
        assert_eq!(call!(self, "cuCtxSetCurrent", fn(Handle), context), 0);
        context
    }

    pub fn stream(&self) -> Handle {
        let mut stream = std::ptr::null_mut();
        assert_eq!(call!(self, "cuStreamCreate", fn(*mut Handle, u32), &raw mut stream, 1), 0);
        stream
    }

    pub fn set_current(&self, context: Handle) -> u32 {
        call!(self, "cuCtxSetCurrent", fn(Handle), context)
    }

    pub fn allocate(&self) -> u64 {
        let mut address = 0;
        assert_eq!(call!(self, "cuMemAlloc_v2", fn(*mut u64, usize), &raw mut address, 4096), 0);
        address
    }

    pub fn load_module(&self, image: &[u8]) -> Result<Handle, u32> {
        let mut module = std::ptr::null_mut();
        match call!(self, "cuModuleLoadData", fn(*mut Handle, *const u8), &raw mut module, image.as_ptr()) {
            0 => Ok(module),
            code => Err(code),
        }
    }

    pub fn unload(&self, module: Handle) -> u32 {
        call!(self, "cuModuleUnload", fn(Handle), module)
    }

    pub fn function(&self, module: Handle, name: &str) -> Result<Handle, u32> {
        let (name, mut function) = (CString::new(name).unwrap(), std::ptr::null_mut());
        let code = call!(
            self,
            "cuModuleGetFunction",
            fn(*mut Handle, Handle, *const std::ffi::c_char),
            &raw mut function,
            module,
            name.as_ptr()
        );
        if code == 0 { Ok(function) } else { Err(code) }
    }

    /// Launches with grid (2, 3, 4), block (32, 2, 1) and 512 bytes of dynamic shared memory.
    pub fn launch(&self, function: Handle, stream: Handle) -> u32 {
        let none: *mut Handle = std::ptr::null_mut();
        // SAFETY: handles of this driver; the made-up kernels take no parameters.
        unsafe { self.launch_function()(function, 2, 3, 4, 32, 2, 1, 512, stream, none, none) }
    }

    /// `cuLaunchKernel` itself, for threads that must not look it up when they launch.
    pub fn launch_function(&self) -> LaunchKernel {
        // SAFETY: the type is that of NVIDIA's documentation; the library is never unloaded.
        *unsafe { self.library.get::<LaunchKernel>(b"cuLaunchKernel\0") }.expect("exported")
    }

    pub fn copy_to_device(&self, to: u64, bytes: &'static [u8], stream: Handle) -> u32 {
        call!(self, "cuMemcpyHtoDAsync_v2", fn(u64, *const u8, usize, Handle), to, bytes.as_ptr(), bytes.len(), stream)
    }

    pub fn clear(&self, at: u64, value: u8, bytes: usize, stream: Handle) -> u32 {
        call!(self, "cuMemsetD8Async", fn(u64, u8, usize, Handle), at, value, bytes, stream)
    }

    pub fn synchronize(&self) {
        assert_eq!(call!(self, "cuCtxSynchronize", fn(),), 0);
    }
}

/// A cubin with one kernel of this duration.
pub fn cubin(name: &str, duration_ns: u64) -> Vec<u8> {
    let kernel = CubinKernel { name: name.into(), duration_ns, registers: 42, static_shared_bytes: 128 };
    generate_cubin(1, &[kernel], 16 << 10)
}

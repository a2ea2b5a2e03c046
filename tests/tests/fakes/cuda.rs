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

    /// A context of its own on a device, current on the calling thread.
    pub fn create_context(&self, device: i32) -> Handle {
        let mut context = std::ptr::null_mut();
        assert_eq!(call!(self, "cuCtxCreate_v2", fn(*mut Handle, u32, i32), &raw mut context, 0, device), 0);
        context
    }

    pub fn destroy_context(&self, context: Handle) -> u32 {
        call!(self, "cuCtxDestroy_v2", fn(Handle), context)
    }

    /// The primary context of a device.
    pub fn primary_context(&self, device: i32) -> Handle {
        let mut context = std::ptr::null_mut();
        assert_eq!(call!(self, "cuDevicePrimaryCtxRetain", fn(*mut Handle, i32), &raw mut context, device), 0);
        context
    }

    pub fn reset_device(&self) {
        assert_eq!(call!(self, "cuDevicePrimaryCtxReset_v2", fn(i32), 0), 0);
    }

    pub fn driver_version(&self) -> i32 {
        let mut version = 0;
        assert_eq!(call!(self, "cuDriverGetVersion", fn(*mut i32), &raw mut version), 0);
        version
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

    pub fn free(&self, address: u64) -> u32 {
        call!(self, "cuMemFree_v2", fn(u64), address)
    }

    /// From the device's default pool.
    pub fn allocate_async(&self, bytes: usize, stream: Handle) -> u64 {
        let mut address = 0;
        let code = call!(self, "cuMemAllocAsync", fn(*mut u64, usize, Handle), &raw mut address, bytes, stream);
        assert_eq!(code, 0);
        address
    }

    pub fn free_async(&self, address: u64, stream: Handle) -> u32 {
        call!(self, "cuMemFreeAsync", fn(u64, Handle), address, stream)
    }

    pub fn create_pool(&self) -> Handle {
        let mut pool = std::ptr::null_mut();
        let code = call!(self, "cuMemPoolCreate", fn(*mut Handle, Handle), &raw mut pool, std::ptr::null_mut());
        assert_eq!(code, 0);
        pool
    }

    pub fn allocate_from_pool(&self, bytes: usize, pool: Handle, stream: Handle) -> u64 {
        let mut address = 0;
        let code = call!(
            self,
            "cuMemAllocFromPoolAsync",
            fn(*mut u64, usize, Handle, Handle),
            &raw mut address,
            bytes,
            pool,
            stream
        );
        assert_eq!(code, 0);
        address
    }

    pub fn trim_pool(&self, pool: Handle, keep_bytes: usize) -> u32 {
        call!(self, "cuMemPoolTrimTo", fn(Handle, usize), pool, keep_bytes)
    }

    pub fn destroy_pool(&self, pool: Handle) -> u32 {
        call!(self, "cuMemPoolDestroy", fn(Handle), pool)
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

    pub fn launch_cooperative(&self, function: Handle) -> u32 {
        let none = std::ptr::null_mut();
        call!(
            self,
            "cuLaunchCooperativeKernel",
            fn(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, Handle),
            function,
            1,
            1,
            1,
            32,
            1,
            1,
            0,
            none,
            none
        )
    }

    /// By `cuLaunchKernelEx`, with grid (4, 1, 1) and block (64, 1, 1).
    pub fn launch_ex(&self, function: Handle) -> u32 {
        let config: [u64; 6] = [4 | 1 << 32, 1 | 64 << 32, 1 | 1 << 32, 0, 0, 0];
        let none = std::ptr::null_mut();
        let at = (&raw const config).cast();
        call!(self, "cuLaunchKernelEx", fn(*const c_void, Handle, Handle, Handle), at, function, none, none)
    }

    /// By the runtime, with grid (1, 1, 1) and block (32, 1, 1).
    pub fn runtime_launch(&self, function: Handle) -> u32 {
        type Dim3 = [u32; 3];
        #[repr(C)]
        struct ByValue(Dim3);
        let none = std::ptr::null_mut();
        call!(
            self,
            "cudaLaunchKernel",
            fn(Handle, ByValue, ByValue, *mut Handle, usize, Handle),
            function,
            ByValue([1, 1, 1]),
            ByValue([32, 1, 1]),
            std::ptr::null_mut(),
            0,
            none
        )
    }

    /// A graph of these kernels, and its executable.
    pub fn graph(&self, functions: &[Handle]) -> (Handle, Handle) {
        #[repr(C)]
        struct Params(Handle, [u32; 7], [Handle; 4]);
        let (mut graph, mut exec, none) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        assert_eq!(call!(self, "cuGraphCreate", fn(*mut Handle, u32), &raw mut graph, 0), 0);
        for &function in functions {
            let (params, mut node) = (Params(function, [8, 1, 1, 128, 1, 1, 0], [none; 4]), none);
            let code = call!(
                self,
                "cuGraphAddKernelNode_v2",
                fn(*mut Handle, Handle, Handle, usize, *const Params),
                &raw mut node,
                graph,
                none,
                0,
                &raw const params
            );
            assert_eq!(code, 0);
        }
        let code = call!(self, "cuGraphInstantiateWithFlags", fn(*mut Handle, Handle, u64), &raw mut exec, graph, 0);
        assert_eq!(code, 0);
        (graph, exec)
    }

    pub fn launch_graph(&self, exec: Handle, stream: Handle) -> u32 {
        call!(self, "cuGraphLaunch", fn(Handle, Handle), exec, stream)
    }

    pub fn destroy_graph(&self, graph: Handle, exec: Handle) {
        assert_eq!(call!(self, "cuGraphDestroy", fn(Handle), graph), 0);
        assert_eq!(call!(self, "cuGraphExecDestroy", fn(Handle), exec), 0);
    }

    /// `cuLaunchKernel` itself, for threads that must not look it up when they launch.
    pub fn launch_function(&self) -> LaunchKernel {
        // SAFETY: the type is that of NVIDIA's documentation; the library is never unloaded.
        *unsafe { self.library.get::<LaunchKernel>(b"cuLaunchKernel\0") }.expect("exported")
    }

    /// Tells whether the calling thread holds the driver lock.
    pub fn holds_lock_function(&self) -> extern "C" fn() -> bool {
        // SAFETY: the fake's own function, of this type; the library is never unloaded.
        *unsafe { self.library.get::<extern "C" fn() -> bool>(b"fake_cuda_holds_driver_lock\0") }.expect("exported")
    }

    pub fn copy_to_device(&self, to: u64, bytes: &'static [u8], stream: Handle) -> u32 {
        call!(self, "cuMemcpyHtoDAsync_v2", fn(u64, *const u8, usize, Handle), to, bytes.as_ptr(), bytes.len(), stream)
    }

    pub fn copy_to_peer(&self, to: Handle, from: Handle, bytes: usize) -> u32 {
        let none = std::ptr::null_mut();
        call!(self, "cuMemcpyPeerAsync", fn(u64, Handle, u64, Handle, usize, Handle), 1, to, 2, from, bytes, none)
    }

    pub fn clear(&self, at: u64, value: u8, bytes: usize, stream: Handle) -> u32 {
        call!(self, "cuMemsetD8Async", fn(u64, u8, usize, Handle), at, value, bytes, stream)
    }

    pub fn synchronize_stream(&self, stream: Handle) -> u32 {
        call!(self, "cuStreamSynchronize", fn(Handle), stream)
    }

    pub fn event(&self) -> Handle {
        let mut event = std::ptr::null_mut();
        assert_eq!(call!(self, "cuEventCreate", fn(*mut Handle, u32), &raw mut event, 0), 0);
        event
    }

    pub fn record_event(&self, event: Handle, stream: Handle) -> u32 {
        call!(self, "cuEventRecord", fn(Handle, Handle), event, stream)
    }

    pub fn synchronize_event(&self, event: Handle) -> u32 {
        call!(self, "cuEventSynchronize", fn(Handle), event)
    }

    pub fn wait_for_event(&self, stream: Handle, event: Handle) -> u32 {
        call!(self, "cuStreamWaitEvent", fn(Handle, Handle, u32), stream, event, 0)
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

//! The driver API through `libloading`: safe calls for the one use that this job makes of each.

use std::ffi::{CString, c_void};
use std::path::Path;

use libloading::Library;

use crate::job::JobError;

type Handle = *mut c_void;
type Result<T> = std::result::Result<T, JobError>;

macro_rules! driver_functions {
    ($($field:ident = $symbol:literal : fn($($argument:ty),*);)*) => {
        struct Functions { $($field: unsafe extern "C" fn($($argument),*) -> u32,)* }

        impl Functions {
            /// # Safety
            /// `library` is a CUDA driver: its functions have NVIDIA's documented types. It is never unloaded.
            unsafe fn load(library: &Library) -> std::result::Result<Self, libloading::Error> {
                // SAFETY: by contract the symbols have these types.
                Ok(unsafe { Self { $($field: *library.get(concat!($symbol, "\0").as_bytes())?,)* } })
            }
        }
    };
}

driver_functions! {
    init = "cuInit": fn(u32);
    primary_context = "cuDevicePrimaryCtxRetain": fn(*mut Handle, i32);
    set_current = "cuCtxSetCurrent": fn(Handle);
    context_create = "cuCtxCreate_v2": fn(*mut Handle, u32, i32);
    context_destroy = "cuCtxDestroy_v2": fn(Handle);
    synchronize = "cuCtxSynchronize": fn();
    stream_create = "cuStreamCreate": fn(*mut Handle, u32);
    stream_synchronize = "cuStreamSynchronize": fn(Handle);
    allocate = "cuMemAlloc_v2": fn(*mut u64, usize);
    module_load = "cuModuleLoadData": fn(*mut Handle, *const c_void);
    get_function = "cuModuleGetFunction": fn(*mut Handle, Handle, *const std::ffi::c_char);
    module_unload = "cuModuleUnload": fn(Handle);
    launch = "cuLaunchKernel": fn(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut Handle, *mut Handle);
    copy_to_device = "cuMemcpyHtoDAsync_v2": fn(u64, *const c_void, usize, Handle);
    copy_to_host = "cuMemcpyDtoHAsync_v2": fn(*mut c_void, u64, usize, Handle);
    copy_on_device = "cuMemcpyDtoDAsync_v2": fn(u64, u64, usize, Handle);
    memset = "cuMemsetD8Async": fn(u64, u8, usize, Handle);
}

/// Handles of the driver: opaque, never followed here.
#[derive(Clone, Copy)]
pub struct Context(Handle);
#[derive(Clone, Copy)]
pub struct Stream(Handle);
#[derive(Clone, Copy)]
pub struct Module(Handle);
#[derive(Clone, Copy)]
pub struct Function(Handle);

macro_rules! opaque {
    ($($handle:ty),*) => { $(
        // SAFETY: the driver allows its handles on every thread, and this crate never follows the pointer.
        unsafe impl Send for $handle {}
        // SAFETY: as above.
        unsafe impl Sync for $handle {}
    )* };
}
opaque!(Context, Stream, Module, Function);

/// A launch's shape.
#[derive(Clone, Copy)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: u32,
    pub shared_bytes: u32,
}

pub struct Driver {
    functions: Functions,
}

impl Driver {
    /// Opens the driver at `path`, initialises it, and gives device 0's primary context.
    pub fn open(path: &Path) -> Result<(Self, Context)> {
        let load = |source| JobError::Load { path: path.to_owned(), source };
        // SAFETY: whoever named the library vouches for its constructors.
        let library = unsafe { Library::new(path) }.map_err(load)?;
        // A driver is not unloaded: its threads and whoever taps it may still run.
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: the caller named it as a driver, and it was leaked above.
        let driver = Self { functions: unsafe { Functions::load(library) }.map_err(load)? };
        let mut context = std::ptr::null_mut();
        // SAFETY: NVIDIA's types, and the place may be written.
        unsafe {
            check("cuInit", (driver.functions.init)(0))?;
            check("cuDevicePrimaryCtxRetain", (driver.functions.primary_context)(&raw mut context, 0))?;
        }
        Ok((driver, Context(context)))
    }

    pub fn set_current(&self, context: Context) -> Result<()> {
        // SAFETY: a handle from this driver.
        check("cuCtxSetCurrent", unsafe { (self.functions.set_current)(context.0) })
    }

    /// A new context, current on the calling thread.
    pub fn create_context(&self) -> Result<Context> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the place may be written.
        check("cuCtxCreate_v2", unsafe { (self.functions.context_create)(&raw mut context, 0, 0) })?;
        Ok(Context(context))
    }

    pub fn destroy_context(&self, context: Context) -> Result<()> {
        // SAFETY: a handle from this driver, used no more.
        check("cuCtxDestroy_v2", unsafe { (self.functions.context_destroy)(context.0) })
    }

    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: no arguments.
        check("cuCtxSynchronize", unsafe { (self.functions.synchronize)() })
    }

    pub fn create_stream(&self) -> Result<Stream> {
        const NON_BLOCKING: u32 = 1;
        let mut stream = std::ptr::null_mut();
        // SAFETY: the place may be written.
        check("cuStreamCreate", unsafe { (self.functions.stream_create)(&raw mut stream, NON_BLOCKING) })?;
        Ok(Stream(stream))
    }

    pub fn synchronize_stream(&self, stream: Stream) -> Result<()> {
        // SAFETY: a handle from this driver.
        check("cuStreamSynchronize", unsafe { (self.functions.stream_synchronize)(stream.0) })
    }

    pub fn allocate(&self, bytes: usize) -> Result<u64> {
        let mut address = 0;
        // SAFETY: the place may be written.
        check("cuMemAlloc_v2", unsafe { (self.functions.allocate)(&raw mut address, bytes) })?;
        Ok(address)
    }

    pub fn load_module(&self, cubin: &[u8]) -> Result<Module> {
        let mut module = std::ptr::null_mut();
        // SAFETY: the place may be written; the cubin is a whole ELF image made by this crate.
        check("cuModuleLoadData", unsafe { (self.functions.module_load)(&raw mut module, cubin.as_ptr().cast()) })?;
        Ok(Module(module))
    }

    pub fn function(&self, module: Module, name: &str) -> Result<Function> {
        let name = CString::new(name).unwrap_or_default();
        let mut function = std::ptr::null_mut();
        // SAFETY: the place may be written; a handle from this driver; a NUL-terminated name.
        let code = unsafe { (self.functions.get_function)(&raw mut function, module.0, name.as_ptr()) };
        check("cuModuleGetFunction", code)?;
        Ok(Function(function))
    }

    pub fn unload(&self, module: Module) -> Result<()> {
        // SAFETY: a handle from this driver, used no more.
        check("cuModuleUnload", unsafe { (self.functions.module_unload)(module.0) })
    }

    pub fn launch(&self, function: Function, shape: Shape, stream: Stream) -> Result<()> {
        let [x, y, z] = shape.grid;
        let none = std::ptr::null_mut();
        // SAFETY: handles from this driver; the made-up kernels take no parameters.
        let code = unsafe {
            (self.functions.launch)(function.0, x, y, z, shape.block, 1, 1, shape.shared_bytes, stream.0, none, none)
        };
        check("cuLaunchKernel", code)
    }

    /// `from` must stay alive until the stream is synchronized; the fake driver does not read it.
    pub fn copy_to_device(&self, to: u64, from: &'static [u8], bytes: usize, stream: Stream) -> Result<()> {
        let bytes = bytes.min(from.len());
        // SAFETY: the source is a static of at least `bytes` bytes; `to` came from this driver.
        let code = unsafe { (self.functions.copy_to_device)(to, from.as_ptr().cast(), bytes, stream.0) };
        check("cuMemcpyHtoDAsync_v2", code)
    }

    /// Copies one f32 to a place that nobody reads.
    pub fn copy_scalar_to_host(&self, from: u64, stream: Stream) -> Result<()> {
        static LOSS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        // SAFETY: the target is a static of 4 bytes that may be written at any time, being atomic.
        let code = unsafe { (self.functions.copy_to_host)(LOSS.as_ptr().cast(), from, 4, stream.0) };
        check("cuMemcpyDtoHAsync_v2", code)
    }

    pub fn copy_on_device(&self, to: u64, from: u64, bytes: usize, stream: Stream) -> Result<()> {
        // SAFETY: both addresses came from this driver.
        check("cuMemcpyDtoDAsync_v2", unsafe { (self.functions.copy_on_device)(to, from, bytes, stream.0) })
    }

    pub fn clear(&self, at: u64, bytes: usize, stream: Stream) -> Result<()> {
        // SAFETY: the address came from this driver.
        check("cuMemsetD8Async", unsafe { (self.functions.memset)(at, 0, bytes, stream.0) })
    }
}

fn check(call: &'static str, code: u32) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(JobError::Driver { call, code }) }
}

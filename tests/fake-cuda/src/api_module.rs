//! Modules. The driver lock is held through a load, CUPTI's callback included: that is the point of this library.

use std::ffi::{CStr, c_char, c_void};
use std::sync::{Arc, OnceLock};

use crate::api_context::{Context, current};
use crate::api_device::give;
use crate::driver_lock::{Guard, lock};
use crate::elf;
use crate::hook_abi::{ResourceEvent, resource};
use crate::hooks::{self, Api};
use crate::result::{CuResult, INVALID_HANDLE, INVALID_IMAGE, INVALID_VALUE, NOT_FOUND, SUCCESS};
use crate::state::{Function, Module, State};

/// Whether `cuModuleLoadData` loads at once.
fn eager() -> bool {
    static EAGER: OnceLock<bool> = OnceLock::new();
    *EAGER.get_or_init(|| std::env::var("CUDA_MODULE_LOADING").is_ok_and(|v| v.eq_ignore_ascii_case("EAGER")))
}

/// # Safety
/// `module` may be written, or is null. `image` is null or points at 64 readable bytes and, if they are an ELF header,
/// at all that the header and the section table name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(module: *mut *mut c_void, image: *const c_void) -> CuResult {
    Api::new(19, c"cuModuleLoadData").run(|_| {
        let context = match current() {
            Ok(context) => context,
            Err(error) => return error,
        };
        if image.is_null() || module.is_null() {
            return INVALID_VALUE;
        }
        // SAFETY: by contract.
        let Some(bytes) = (unsafe { image_bytes(image.cast()) }) else { return INVALID_IMAGE };
        let Some(infos) = elf::functions(bytes) else { return INVALID_IMAGE };
        let image: Arc<[u8]> = bytes.into();
        let mut state = lock();
        let id = state.next_module_id();
        let handle = state.modules.insert(Module { id, context, image, infos, functions: Vec::new(), loaded: false });
        if eager() {
            load(&mut state, handle);
        }
        drop(state);
        // SAFETY: by contract.
        unsafe { give(module, std::ptr::without_provenance_mut(handle)) }
    })
}

/// Whether a launch of this function would load its module.
pub fn must_load(state: &State, function: usize) -> bool {
    let module = state.functions.get(function).and_then(|function| state.modules.get(function.module));
    module.is_some_and(|module| !module.loaded)
}

/// Loads the module of a function, as [`load`].
pub fn load_of(state: &mut Guard, function: usize) -> Option<()> {
    let module = state.functions.get(function)?.module;
    load(state, module)
}

/// Loads a registered module, if it is not loaded yet, under the caller's hold of the driver lock.
fn load(state: &mut Guard, handle: usize) -> Option<()> {
    let module = state.modules.get_mut(handle)?;
    if module.loaded {
        return Some(());
    }
    module.loaded = true;
    let (id, context, image) = (module.id, module.context, Arc::clone(&module.image));
    let cubin = state.load_area.show(&image);
    hooks::resource_event(&ResourceEvent {
        cbid: resource::MODULE_LOADED,
        context: context.handle(),
        stream: std::ptr::null_mut(),
        module_id: id,
        cubin,
        cubin_size: image.len(),
    });
    state.load_area.spoil(image.len());
    Some(())
}

/// # Safety
/// `function` may be written, or is null; `name` is a NUL-terminated string, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(
    function: *mut *mut c_void,
    module: *mut c_void,
    name: *const c_char,
) -> CuResult {
    if name.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null, so by contract a NUL-terminated string.
    let Ok(name) = unsafe { CStr::from_ptr(name) }.to_str() else { return NOT_FOUND };
    match find_function(&mut lock(), module.addr(), name) {
        // SAFETY: by contract.
        Ok(handle) => unsafe { give(function, std::ptr::without_provenance_mut(handle)) },
        Err(error) => error,
    }
}

fn find_function(state: &mut State, module_handle: usize, name: &str) -> Result<usize, CuResult> {
    let module = state.modules.get(module_handle).ok_or(INVALID_HANDLE)?;
    let info = module.infos.iter().find(|info| info.name == name).ok_or(NOT_FOUND)?;
    let known = module
        .functions
        .iter()
        .copied()
        .find(|&f| state.functions.get(f).is_some_and(|function| function.name.to_bytes() == name.as_bytes()));
    if let Some(known) = known {
        return Ok(known);
    }
    let function = Function {
        module: module_handle,
        name: state.names.intern(name),
        duration_ns: info.duration_ns,
        registers: info.registers,
        static_shared_bytes: info.static_shared_bytes,
        local_bytes: info.local_bytes,
    };
    let handle = state.functions.insert(function);
    state.modules.get_mut(module_handle).ok_or(INVALID_HANDLE)?.functions.push(handle);
    Ok(handle)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(module: *mut c_void) -> CuResult {
    Api::new(22, c"cuModuleUnload").run(|_| unload(&mut lock(), module.addr()).map_or(INVALID_HANDLE, |()| SUCCESS))
}

/// Unloads all modules of a context that goes.
pub fn unload_all(state: &mut Guard, context: Context) {
    let of_context = state.modules.iter().filter(|(_, module)| module.context == context);
    let handles: Vec<_> = of_context.map(|(handle, _)| handle).collect();
    for handle in handles {
        unload(state, handle);
    }
}

/// Under the caller's hold of the driver lock, CUPTI's callback included.
fn unload(state: &mut Guard, handle: usize) -> Option<()> {
    let gone = state.modules.remove(handle)?;
    for function in &gone.functions {
        state.functions.remove(*function);
    }
    if gone.loaded {
        let cubin = state.load_area.show(&gone.image);
        hooks::resource_event(&ResourceEvent {
            cbid: resource::MODULE_UNLOAD_STARTING,
            context: gone.context.handle(),
            stream: std::ptr::null_mut(),
            module_id: gone.id,
            cubin,
            cubin_size: gone.image.len(),
        });
        state.load_area.spoil(gone.image.len());
    }
    Some(())
}

/// # Safety
/// As for [`cuModuleLoadData`]'s `image`; the bytes live and stay unchanged through the caller's call.
unsafe fn image_bytes<'a>(image: *const u8) -> Option<&'a [u8]> {
    // SAFETY: by contract 64 bytes are readable; an array of bytes has no alignment.
    let header = unsafe { &*image.cast::<[u8; 64]>() };
    let table_end = elf::table_end(header)?;
    // SAFETY: the header is a CUDA ELF header, so by contract all up to the end of the table that it names is readable.
    let part = unsafe { std::slice::from_raw_parts(image, table_end) };
    let size = elf::image_size(part)?;
    // SAFETY: by contract all that the section table names is readable.
    Some(unsafe { std::slice::from_raw_parts(image, size) })
}

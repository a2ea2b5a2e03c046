//! Linker settings of the injected library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // CUPTI keeps pointers to our callbacks and the timer thread runs our code: the library is never unloaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libgputap_shim.so");
}

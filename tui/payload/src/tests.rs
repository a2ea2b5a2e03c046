use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::thread;

use object::elf::{DF_1_NODELETE, DT_FLAGS_1};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol};

use super::*;

#[test]
fn installs_the_carried_bytes() {
    let base = tempfile::tempdir().unwrap();
    let installed = install_into(&base.path().join("gputap")).unwrap();
    assert_eq!(fs::read(installed.shim()).unwrap(), SHIM);
    assert_eq!(fs::read(installed.fake_cuda()).unwrap(), FAKE_CUDA);
    assert_eq!(fs::read(installed.fake_cupti()).unwrap(), FAKE_CUPTI);
    assert_eq!(mode(installed.folder()), 0o700);
    assert_ne!(installed.shim().parent(), installed.fake_cuda().parent(), "the fakes never shadow real libraries");
}

#[test]
fn replaces_a_file_that_differs() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().join("gputap");
    let shim = install_into(&base).unwrap().shim();
    let mut wrong = SHIM.to_vec();
    wrong[SHIM.len() / 2] ^= 1;
    for content in [&wrong[..], b"", &SHIM[..SHIM.len() - 1]] {
        fs::remove_file(&shim).unwrap();
        fs::write(&shim, content).unwrap();
        install_into(&base).unwrap();
        assert_eq!(fs::read(&shim).unwrap(), SHIM);
    }
}

#[test]
fn an_unchanged_file_is_left_alone() {
    let base = tempfile::tempdir().unwrap();
    let shim = install_into(base.path()).unwrap().shim();
    let before = fs::metadata(&shim).unwrap().modified().unwrap();
    install_into(base.path()).unwrap();
    assert_eq!(fs::metadata(&shim).unwrap().modified().unwrap(), before);
}

#[test]
fn a_folder_open_to_others_is_closed() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().join("gputap");
    fs::create_dir(&base).unwrap();
    fs::set_permissions(&base, Permissions::from_mode(0o777)).unwrap();
    install_into(&base).unwrap();
    assert_eq!(mode(&base), 0o700);
}

#[test]
fn a_link_in_place_of_the_folder_is_refused_and_the_next_one_taken() {
    let base = tempfile::tempdir().unwrap();
    let link = base.path().join("link");
    let elsewhere = base.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &link).unwrap();
    assert!(matches!(install_into(&link), Err(Error::NotAFolder { .. })));
    let good = base.path().join("good");
    let installed = install_into_first_of(&[link, good.clone()]).unwrap();
    assert!(installed.folder().starts_with(good));
}

#[test]
fn no_usable_folder_names_each_and_what_to_do() {
    let base = tempfile::tempdir().unwrap();
    let file = base.path().join("file");
    fs::write(&file, "").unwrap();
    let error = install_into_first_of(&[file.clone(), file.join("below")]).unwrap_err().to_string();
    assert_eq!(error.matches(&file.display().to_string()).count(), 2, "{error}");
    assert!(error.contains("XDG_CACHE_HOME"), "{error}");
}

#[test]
fn starts_at_the_same_moment_leave_whole_files() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().join("gputap");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let installed = install_into(&base).unwrap();
                assert_eq!(fs::read(installed.shim()).unwrap(), SHIM);
            });
        }
    });
    let folder = install_into(&base).unwrap().folder().to_owned();
    let mut left: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["fakes", SHIM_FILE], "no temporary file stays");
}

/// What the driver and NVTX look up; any other name could meet one of the application's.
#[test]
fn the_shim_exports_what_the_driver_calls_and_little_else() {
    let bytes = aligned_shim();
    let shim: ElfFile64 = ElfFile64::parse(&bytes[..]).unwrap();
    let defined = shim.dynamic_symbols().filter(|symbol| symbol.is_global() && !symbol.is_undefined());
    let exported: Vec<_> = defined.map(|symbol| symbol.name().unwrap()).collect();
    assert!(exported.contains(&"InitializeInjection"), "{exported:?}");
    assert!(exported.len() <= 4, "{exported:?}");
}

/// CUPTI keeps pointers to its callbacks and its timer thread runs its code, whoever calls dlclose.
#[test]
fn the_shim_is_never_unloaded() {
    let bytes = aligned_shim();
    let shim: ElfFile64 = ElfFile64::parse(&bytes[..]).unwrap();
    let dynamic = shim.elf_dynamic_table().unwrap();
    let flags = dynamic.iter().find(|entry| entry.tag == DT_FLAGS_1).expect("FLAGS_1");
    assert_ne!(flags.val & DF_1_NODELETE.0, 0, "{flags:?}");
}

/// As an allocation is and bytes inside a program need not be; `object` refuses the latter.
fn aligned_shim() -> Vec<u8> {
    SHIM.to_vec()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

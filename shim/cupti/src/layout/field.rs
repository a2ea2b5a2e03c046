//! One field of a record: its offset and, as a type, its width.

use std::ffi::{c_char, c_void};
use std::marker::PhantomData;

/// Where a `T` lies in a record, counted from the record's first byte.
#[derive(Debug, PartialEq, Eq)]
pub struct Field<T> {
    offset_bytes: usize,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Field<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Field<T> {}

impl<T> Field<T> {
    pub const fn at(offset_bytes: usize) -> Self {
        Self { offset_bytes, value: PhantomData }
    }

    pub const fn offset_bytes(self) -> usize {
        self.offset_bytes
    }

    /// The first byte after the field. Saturates, so that no offset can seem to end before it begins.
    pub const fn end_bytes(self) -> usize {
        self.offset_bytes.saturating_add(size_of::<T>())
    }
}

impl<T: Plain> Field<T> {
    /// # Safety
    /// The `end_bytes` bytes from `record` on are readable and belong to one allocation.
    pub(super) unsafe fn read(self, record: *const u8) -> T {
        // SAFETY: the caller promises that the bytes up to the field's end are readable and of one allocation, which is
        // what `add` and the read need; `read_unaligned` asks for no alignment; `Plain` makes any bytes a valid `T`.
        unsafe { record.add(self.offset_bytes).cast::<T>().read_unaligned() }
    }
}

/// Types of which every bit pattern is a value.
///
/// # Safety
/// Any initialised bytes of the type's size must be a valid value of it.
pub unsafe trait Plain: Copy {}

// SAFETY: an integer without niches.
unsafe impl Plain for u8 {}
// SAFETY: an integer without niches.
unsafe impl Plain for u16 {}
// SAFETY: an integer without niches.
unsafe impl Plain for u32 {}
// SAFETY: an integer without niches.
unsafe impl Plain for i32 {}
// SAFETY: an integer without niches.
unsafe impl Plain for u64 {}
// SAFETY: a thin raw pointer may hold any address; following it is its user's proof to make.
unsafe impl Plain for *const c_char {}
// SAFETY: a thin raw pointer may hold any address; following it is its user's proof to make.
unsafe impl Plain for *mut c_void {}

/// Declares a record, its table and its reader from one list of fields, so that none can be paired with another's
/// offset. Fields under `later` are missing in some versions: `None` there, which is not zero.
macro_rules! record_layout {
    (
        $(#[$layout_doc:meta])* layout $Layout:ident;
        $(#[$record_doc:meta])* record $Record:ident;
        always { $($(#[$doc:meta])* $field:ident: $Type:ty,)* }
        later { $($(#[$later_doc:meta])* $later:ident: $Later:ty,)* }
    ) => {
        $(#[$layout_doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Layout {
            /// NVIDIA's name of the struct.
            pub structure: &'static str,
            pub size_bytes: usize,
            $(pub $field: $crate::layout::Field<$Type>,)*
            $(pub $later: Option<$crate::layout::Field<$Later>>,)*
        }

        $(#[$record_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $Record {
            $($(#[$doc])* pub $field: $Type,)*
            $($(#[$later_doc])* pub $later: Option<$Later>,)*
        }

        impl $Layout {
            /// Whether every field lies inside the record. True of each table here, at compile time.
            pub const fn fits(&self) -> bool {
                true $(&& self.$field.end_bytes() <= self.size_bytes)*
                    $(&& match self.$later {
                        Some(field) => field.end_bytes() <= self.size_bytes,
                        None => true,
                    })*
            }

            /// Decodes the record at `record`, after which the buffer holds `available_bytes` bytes, its own included.
            /// `None` where that is less than the record needs: it was cut off, or this CUPTI writes shorter ones.
            ///
            /// # Safety
            /// The `available_bytes` bytes from `record` on are readable, initialised, of one allocation, and not
            /// written meanwhile; and the table [`fits`](Self::fits).
            pub unsafe fn read(&self, record: *const u8, available_bytes: usize) -> Option<$Record> {
                if available_bytes < self.size_bytes {
                    return None;
                }
                // SAFETY: every field ends within `size_bytes` (the table fits), which the check above puts within the
                // bytes that the caller promises.
                unsafe {
                    Some($Record {
                        $($field: self.$field.read(record),)*
                        $($later: match self.$later {
                            Some(field) => Some(field.read(record)),
                            None => None,
                        },)*
                    })
                }
            }
        }
    };
}

pub(super) use record_layout;

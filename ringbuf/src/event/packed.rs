//! Structs as 64-bit words: fields lie one after the other, little-endian, without gaps.

/// A field that lies in so many bytes. Any bytes are a value.
pub(super) trait Packed: Copy {
    const BYTES: usize;
    fn put(self, to: &mut [u8]);
    fn get(from: &[u8]) -> Self;

    /// Of how many numbers it consists.
    const NUMBERS: usize;
    fn put_numbers(self, to: &mut [u64]);
    /// Of a number too large for its type the low bits count.
    fn of_numbers(from: &[u64]) -> Self;
}

macro_rules! packed_integers {
    ($($Type:ty)*) => {$(
        impl Packed for $Type {
            const BYTES: usize = size_of::<$Type>();

            #[inline(always)]
            fn put(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_le_bytes());
            }

            #[inline(always)]
            fn get(from: &[u8]) -> Self {
                let mut bytes = [0; size_of::<$Type>()];
                bytes.copy_from_slice(from);
                <$Type>::from_le_bytes(bytes)
            }

            const NUMBERS: usize = 1;

            #[inline(always)]
            fn put_numbers(self, to: &mut [u64]) {
                to[0] = u64::from(self);
            }

            #[inline(always)]
            fn of_numbers(from: &[u64]) -> Self {
                from[0] as $Type
            }
        }
    )*};
}

packed_integers! { u8 u16 u32 u64 }

impl<T: Packed + Default, const N: usize> Packed for [T; N] {
    const BYTES: usize = N * T::BYTES;

    #[inline(always)]
    fn put(self, to: &mut [u8]) {
        self.into_iter().zip(to.chunks_exact_mut(T::BYTES)).for_each(|(one, to)| one.put(to));
    }

    #[inline(always)]
    fn get(from: &[u8]) -> Self {
        std::array::from_fn(|i| T::get(&from[i * T::BYTES..(i + 1) * T::BYTES]))
    }

    const NUMBERS: usize = N * T::NUMBERS;

    #[inline(always)]
    fn put_numbers(self, to: &mut [u64]) {
        self.into_iter().zip(to.chunks_exact_mut(T::NUMBERS)).for_each(|(one, to)| one.put_numbers(to));
    }

    #[inline(always)]
    fn of_numbers(from: &[u64]) -> Self {
        std::array::from_fn(|i| T::of_numbers(&from[i * T::NUMBERS..(i + 1) * T::NUMBERS]))
    }
}

/// Declares events: a struct each, its words, and both directions, from one list of fields.
macro_rules! events {
    ($($(#[$event_doc:meta])* $Event:ident { $($(#[$doc:meta])* $field:ident: $Type:ty,)* })*) => {$(
        $(#[$event_doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $Event { $($(#[$doc])* pub $field: $Type,)* }

        impl $Event {
            const BYTES: usize = 0 $(+ <$Type as $crate::event::packed::Packed>::BYTES)*;
            /// Of the payload.
            pub const WORDS: usize = Self::BYTES.div_ceil(8);

            /// How many numbers the fields are; an array is as many as it is long.
            pub const NUMBERS: usize = 0 $(+ <$Type as $crate::event::packed::Packed>::NUMBERS)*;
            /// The fields' names and how many numbers each is, in order.
            pub const FIELDS: &[(&str, usize)] =
                &[$((stringify!($field), <$Type as $crate::event::packed::Packed>::NUMBERS),)*];

            /// The fields in order, as numbers.
            #[inline]
            pub fn numbers(&self) -> [u64; Self::NUMBERS] {
                use $crate::event::packed::Packed;
                let mut numbers = [0; Self::NUMBERS];
                let mut at = 0;
                $(
                    self.$field.put_numbers(&mut numbers[at..at + <$Type>::NUMBERS]);
                    at += <$Type>::NUMBERS;
                )*
                debug_assert_eq!(at, Self::NUMBERS);
                numbers
            }

            /// The reverse of [`Self::numbers`]; of a number too large for its field the low bits count.
            #[inline]
            pub fn of_numbers(numbers: &[u64; Self::NUMBERS]) -> Self {
                use $crate::event::packed::Packed;
                let mut at = 0;
                let mut next = |len: usize| {
                    at += len;
                    at - len..at
                };
                $Event { $($field: <$Type>::of_numbers(&numbers[next(<$Type>::NUMBERS)]),)* }
            }

            #[inline]
            pub fn encode(&self) -> [u64; Self::WORDS] {
                use $crate::event::packed::Packed;
                let mut bytes = [0; Self::WORDS * 8];
                let mut at = 0;
                $(
                    self.$field.put(&mut bytes[at..at + <$Type>::BYTES]);
                    at += <$Type>::BYTES;
                )*
                debug_assert_eq!(at, Self::BYTES);
                let mut words = [0; Self::WORDS];
                for (word, eight) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
                    *word = u64::from_le_bytes(*eight);
                }
                words
            }

            #[inline]
            pub(super) fn decode(words: &[u64; Self::WORDS]) -> Self {
                use $crate::event::packed::Packed;
                let mut bytes = [0; Self::WORDS * 8];
                for (eight, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                    *eight = word.to_le_bytes();
                }
                let mut at = 0;
                let mut next = |len: usize| {
                    at += len;
                    at - len..at
                };
                $Event { $($field: <$Type>::get(&bytes[next(<$Type>::BYTES)]),)* }
            }
        }
    )*};
}

pub(super) use events;

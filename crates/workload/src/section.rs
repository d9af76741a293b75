//! Declares a section of a workload file: each key is one item.
//!
//! An item is the field, its help text, its type, its default in Rust and in YAML, and the method of
//! [`Sections`](crate::read::Sections) that reads it. The struct, its `Default`, the rows of the
//! schema and the code that reads the file follow from it, so they cannot drift apart.

/// Declares a section. `idle` gives the reason why a key has no effect; `then` adds the rows of keys
/// without a field, which follow the field on the reference page.
macro_rules! section {
    (@path $section:literal, $field:ident) => { concat!($section, ".", stringify!($field)) };
    (@path $section:literal, $field:ident, $key:literal) => { concat!($section, ".", $key) };

    (@rows $path:expr, $help:expr, $type:ty, section) => { <$type>::rows() };
    (
        @rows $path:expr, $help:expr, $type:ty,
        $rule:ident($($arg:expr),*) $default:literal $($reason:expr)?
    ) => {
        [$crate::schema::Key {
            path: $path,
            kind: section!(@kind $rule, $type),
            default: $default,
            help: $help,
            effect: section!(@effect $($reason)?),
        }]
    };

    (@effect) => { $crate::schema::Effect::Used };
    (@effect $reason:expr) => { $crate::schema::Effect::NoEffect($reason) };

    (@kind bool, $type:ty) => { $crate::schema::Kind::Bool };
    (@kind optional_bool, $type:ty) => { $crate::schema::Kind::Bool };
    (@kind text, $type:ty) => { $crate::schema::Kind::Text };
    (@kind optional_text, $type:ty) => { $crate::schema::Kind::Text };
    (@kind folder, $type:ty) => { $crate::schema::Kind::Text };
    (@kind keyword, $type:ty) => { $crate::schema::choice::<$type>() };
    (@kind storage_type, $type:ty) => { $crate::schema::STORAGE };
    (@kind element_type, $type:ty) => { $crate::schema::ELEMENT };
    (@kind number, $type:ty) => { $crate::schema::Kind::Number };
    (@kind bounded, $type:ty) => { $crate::schema::Kind::Number };
    (@kind percent, $type:ty) => { $crate::schema::Kind::Number };
    (@kind wait_seconds, $type:ty) => { $crate::schema::Kind::Number };
    (@kind budget, $type:ty) => { $crate::schema::Kind::Number };
    (@kind whole_list, $type:ty) => { $crate::schema::Kind::WholeList };
    (@kind text_list, $type:ty) => { $crate::schema::Kind::TextList };
    (@kind time, $type:ty) => { $crate::schema::Kind::Time };
    (@kind storage_options, $type:ty) => { $crate::schema::Kind::Map };
    (@kind ksm, $type:ty) => { $crate::schema::Kind::Map };
    (@kind $whole:ident, $type:ty) => { $crate::schema::Kind::Whole };

    (@read $file:ident, $warnings:ident, $path:expr, $slot:expr, section) => {
        $slot.read($file, $warnings)?
    };
    (@read $file:ident, $warnings:ident, $path:expr, $slot:expr, time()) => {
        $file.time($path, &mut $slot, $warnings)?
    };
    (
        @read $file:ident, $warnings:ident, $path:expr, $slot:expr, $rule:ident($($arg:expr),*)
    ) => {
        $file.$rule($path, $($arg,)* &mut $slot)?
    };

    (
        $(#[$meta:meta])*
        pub struct $name:ident in $section:literal {
            $(
                $(#[doc = $help:literal])+
                $field:ident $(($key:literal))?: $type:ty = $value:expr,
                    $rule:ident $(($($arg:expr),*) $default:literal)?
                    $(, idle $reason:expr)? $(, then $more:expr)?;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[doc = $help])+ pub $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $value,)+ }
            }
        }

        impl $name {
            /// The keys of the section, in the order of the reference page.
            pub(crate) fn rows() -> Vec<$crate::schema::Key> {
                let mut rows = Vec::new();
                $(
                    rows.extend(section!(
                        @rows section!(@path $section, $field $(, $key)?),
                        concat!($($help),+).trim_start(), $type,
                        $rule $(($($arg),*) $default)? $($reason)?
                    ));
                    $(rows.extend($more);)?
                )+
                rows
            }

            /// Reads the keys that the file sets.
            #[allow(
                unused_variables,
                clippy::ptr_arg,
                reason = "only the sections that read times add warnings"
            )]
            pub(crate) fn read(
                &mut self,
                file: &$crate::read::Sections,
                warnings: &mut Vec<$crate::warning::Warning>,
            ) -> Result<(), $crate::error::WorkloadError> {
                $(section!(
                    @read file, warnings, section!(@path $section, $field $(, $key)?), self.$field,
                    $rule $(($($arg),*))?
                );)+
                Ok(())
            }
        }
    };
}

pub(crate) use section;

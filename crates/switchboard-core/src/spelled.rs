//! Defines enums whose variants have stable names for programs, in one table each.

macro_rules! spelled_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$of_variant:meta])* $variant:ident = $spelling:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$of_variant])* $variant,)+
        }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The stable name of the variant for programs.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $spelling,)+
                }
            }
        }
    };
}

pub(crate) use spelled_enum;

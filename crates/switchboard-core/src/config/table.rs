//! The struct that is made from a table, and how it is read and merged. Server fields and settings
//! share this code.

/// A macro with one row per field: field name in Rust, type, key in the file, files in which it is
/// allowed, reader function.
macro_rules! entry_struct {
    (
        $(#[$meta:meta])*
        $name:ident {
            $($(#[$doc:meta])* $field:ident: $kind:ty = $key:literal, $allowed_in:ident, $read:ident;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: Option<$kind>,)*
            /// The origin of each field that is set, by its key.
            pub origins: std::collections::BTreeMap<&'static str, $crate::config::layers::ConfigOrigin>,
        }

        impl $name {
            pub const KEYS: &'static [&'static str] = &[$($key),*];

            /// Reads the field `name` from a member; `None` if there is no such field.
            pub(super) fn read_field(
                &mut self,
                reader: &mut $crate::config::reader::ConfigReader<'_>,
                name: &str,
                member: &$crate::config::reader::Member<'_>,
            ) -> Option<$crate::config::reader::Read<()>> {
                match name {
                    $($key => {
                        match $read(reader, member.input()) {
                            Ok(read) => self.$field = Some(read),
                            Err(reported) => return Some(Err(reported)),
                        }
                        self.origins.insert($key, reader.origin(member.offset));
                    })*
                    _ => return None,
                }
                Some(Ok(()))
            }

            /// Whether the key is allowed only in user files, whatever its value.
            pub(super) fn is_for_user_files(name: &str) -> bool {
                match name {
                    $($key => AllowedIn::$allowed_in == AllowedIn::UserFiles,)*
                    unknown => $crate::config::parse::claims_trust(unknown),
                }
            }

            /// The JSON Schema of each field, by key.
            pub(super) fn schema() -> serde_json::Map<String, serde_json::Value> {
                serde_json::Map::from_iter([
                    $(($key.to_owned(), $crate::config::schema::row_schema!($read, $kind))),*
                ])
            }

            fn copy_from(&mut self, upper: &Self) {
                $(if upper.$field.is_some() {
                    self.$field.clone_from(&upper.$field);
                })*
                self.origins.extend(upper.origins.iter().map(|(key, at)| (*key, at.clone())));
            }
        }
    };
}
pub(super) use entry_struct;

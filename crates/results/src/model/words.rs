//! Enums that are words in files.

/// Declares an enum with the name of each variant, which serde reads and writes.
macro_rules! words {
    (
        $(#[$about:meta])*
        pub enum $Name:ident {
            $($(#[$meaning:meta])* $Variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $Name { $($(#[$meaning])* #[serde(rename = $word)] $Variant),+ }

        impl $Name {
            pub const ALL: [$Name; [$($word),+].len()] = [$($Name::$Variant),+];

            pub fn name(self) -> &'static str {
                match self { $($Name::$Variant => $word),+ }
            }
        }
    };
}

pub(crate) use words;

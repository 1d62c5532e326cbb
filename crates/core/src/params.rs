//! Parameters that describe themselves.
//!
//! [`params!`](crate::params!) declares a mechanism's `Params` struct once: the field, its doc
//! comment (meaning, unit, source) and its default (the paper's value). From that one place come
//! `Default`, the scenario keys, `millpond explain`, the JSON schema and the reference in the book.
//! Field names are `snake_case` in Rust and kebab-case in a scenario.
//!
//! Invariant: what is not declared here cannot be set, and what is declared here is documented
//! everywhere.

use crate::units::{Bytes, Rate, Time};

/// The form that a key's value takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// `true` or `false`.
    Bool,
    /// A whole number from 0.
    Int,
    /// A decimal number.
    Float,
    /// A time such as `"10ms"`.
    Time,
    /// A size such as `"300KB"`, or a whole number of bytes.
    Bytes,
    /// A rate such as `"10Gbps"`.
    Rate,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Free text: a name or a path.
    Text,
    /// Several names: an array of texts, or one text with commas.
    List,
}

/// A value on its way from a scenario into a parameter, or back.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number without unit.
    Int(u64),
    /// A number without unit.
    Float(f64),
    /// A duration.
    Time(Time),
    /// An amount of data.
    Bytes(Bytes),
    /// A rate of data.
    Rate(Rate),
    /// A word, such as the name of a choice.
    Text(String),
    /// Words, in order.
    List(Vec<String>),
    /// An amount each of some tiers or rates, by the tier's name or the rate.
    Tiers(Vec<(String, Value)>),
    /// `"off"`, `"none"` or `"unlimited"`: an optional parameter without a value.
    Off,
}

/// One scenario key as its declaration has it.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The field's name, with underscores; see [`Key::name`].
    pub field: &'static str,
    /// The doc comment: meaning, unit, source.
    pub doc: &'static [&'static str],
    /// The form of its value.
    pub form: Form,
    /// Whether `"off"` is a value.
    pub optional: bool,
    /// Whether `"auto"` is a value: the mechanism's own rule.
    pub auto: bool,
    /// Whether a table of amounts by tier is a value.
    pub tiered: bool,
    /// Whether that table can also go by the rate of a port's link.
    pub rated: bool,
    /// The least and the largest value, both included, in the smallest unit (picoseconds, bytes,
    /// bits a second).
    pub range: Option<(f64, f64)>,
}

impl Key {
    /// The name in a scenario: kebab-case.
    pub fn name(&self) -> String {
        self.field.replace('_', "-")
    }
    /// The doc comment as one text.
    pub fn text(&self) -> String {
        self.doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_string()
    }
    /// The range in words: "1 to 64", "1ps or more".
    pub fn range_text(&self) -> Option<String> {
        let (least, most) = self.range?;
        let text = |x: f64| match self.form {
            Form::Time => Time::from_ps(x as u64).to_string(),
            Form::Bytes => Bytes(x as u64).to_string(),
            Form::Rate => Rate(x as u64).to_string(),
            _ => x.to_string(),
        };
        Some(if most == f64::INFINITY {
            format!("{} or more", text(least))
        } else {
            format!("{} to {}", text(least), text(most))
        })
    }
    /// Whether the value (each of them, by tier) is in the range.
    fn check_range(&self, value: &Value) -> Result<(), ValueError> {
        let amount = match value {
            Value::Int(i) => *i as f64,
            Value::Float(x) => *x,
            Value::Time(time) => time.as_ps() as f64,
            Value::Bytes(bytes) => bytes.get() as f64,
            Value::Rate(rate) => rate.bps() as f64,
            Value::Tiers(tiers) => {
                return tiers.iter().try_for_each(|(_, value)| self.check_range(value));
            }
            _ => return Ok(()),
        };
        match (self.range, self.range_text()) {
            (Some((least, most)), Some(text)) if !(least..=most).contains(&amount) => {
                wrong(&text, value)
            }
            _ => Ok(()),
        }
    }
}

/// A field's new value, if it is of the field's form and in its key's range.
///
/// # Errors
/// If the value has another form than the field, or lies outside of the key's range.
#[doc(hidden)]
pub fn read<F: Field>(key: &Key, value: &Value) -> Result<F, ValueError> {
    let field = F::from_value(value)?;
    key.check_range(&field.to_value())?;
    Ok(field)
}

/// A value of the wrong form for its key; the message names what would do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(pub String);

/// A type that a parameter can have.
#[warn(missing_docs)]
pub trait Field: Sized {
    /// Its form in a scenario.
    const FORM: Form;
    /// Whether `"off"` is one of its values.
    const OPTIONAL: bool = false;
    /// Whether `"auto"` is one.
    const AUTO: bool = false;
    /// Whether a table by tier is one.
    const TIERED: bool = false;
    /// Whether that table can name rates of links as well.
    const RATED: bool = false;
    /// The value as a scenario would write it.
    fn to_value(&self) -> Value;
    /// Returns the value of this type that a scenario's value stands for.
    ///
    /// # Errors
    /// A value of another form, out of range, or not one of the words of a choice.
    fn from_value(value: &Value) -> Result<Self, ValueError>;
}

/// A struct made by [`params!`](crate::params!): the generic view of it, by position of the key in
/// [`Params::keys`].
#[warn(missing_docs)]
pub trait Params {
    /// The keys that can be set.
    fn keys(&self) -> &'static [Key];
    /// The present value of key `index`.
    fn get(&self, index: usize) -> Value;
    /// Sets key `index`.
    ///
    /// # Errors
    /// The value is of another form than the key, or out of the key's range; the key keeps its
    /// value.
    fn set(&mut self, index: usize, value: &Value) -> Result<(), ValueError>;
}

fn wrong<T>(what: &str, got: &Value) -> Result<T, ValueError> {
    let got = match got {
        Value::Bool(b) => format!("{b}"),
        Value::Int(i) => format!("{i}"),
        Value::Float(x) => format!("{x}"),
        Value::Time(t) => format!("{t}"),
        Value::Bytes(b) => format!("{b}"),
        Value::Rate(r) => format!("{r}"),
        Value::Text(t) => format!("{t:?}"),
        Value::List(list) => format!("{list:?}"),
        Value::Tiers(_) => "a table by tier".to_string(),
        Value::Off => "\"off\"".to_string(),
    };
    Err(ValueError(format!("expected {what}, found {got}")))
}

/// A size without a unit.
fn whole_bytes(count: u64) -> Result<Bytes, ValueError> {
    let bytes = Bytes(count);
    if bytes > Bytes::LARGEST {
        return Err(ValueError(format!(
            "{count} bytes are too many; {} are the most",
            Bytes::LARGEST.get()
        )));
    }
    Ok(bytes)
}

macro_rules! field {
    ($type:ty, $form:ident, $what:literal, $($pattern:pat => $value:expr),+) => {
        impl Field for $type {
            const FORM: Form = Form::$form;
            fn to_value(&self) -> Value { Value::$form(self.clone().into()) }
            fn from_value(value: &Value) -> Result<Self, ValueError> {
                match value { $($pattern => $value,)+ other => wrong($what, other) }
            }
        }
    };
}
field!(bool, Bool, "true or false", Value::Bool(b) => Ok(*b));
field!(u64, Int, "a whole number", Value::Int(i) => Ok(*i));
field!(
    u32, Int, "a whole number",
    Value::Int(i) => u32::try_from(*i).map_err(|_| ValueError(format!("{i} is too large")))
);
field!(f64, Float, "a number", Value::Float(x) => Ok(*x), Value::Int(i) => Ok(*i as f64));
field!(Time, Time, "a time such as \"10ms\"", Value::Time(t) => Ok(*t));
field!(
    Bytes, Bytes, "a size such as \"300KB\"",
    Value::Bytes(b) => Ok(*b), Value::Int(i) => whole_bytes(*i)
);
field!(Rate, Rate, "a rate such as \"10Gbps\"", Value::Rate(r) => Ok(*r));
field!(String, Text, "a text", Value::Text(t) => Ok(t.clone()));

impl Field for Vec<String> {
    const FORM: Form = Form::List;
    fn to_value(&self) -> Value {
        Value::List(self.clone())
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        match value {
            Value::List(list) => Ok(list.clone()),
            // A list that `--set` writes without brackets.
            Value::Text(text) => Ok(text
                .split(',')
                .map(|t| t.trim().to_string())
                .filter(|t| !t.is_empty())
                .collect()),
            other => wrong("a list of texts", other),
        }
    }
}

impl<T: Field> Field for Option<T> {
    const FORM: Form = T::FORM;
    const OPTIONAL: bool = true;
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Off, T::to_value)
    }
    fn from_value(value: &Value) -> Result<Self, ValueError> {
        match value {
            Value::Off => Ok(None),
            other => T::from_value(other).map(Some),
        }
    }
}

/// Declares an enum of things that have names: the variants, `ALL` of them, and `name`.
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $Enum:ident { $($(#[$doc:meta])* $Variant:ident = $name:literal),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $Enum { $($(#[$doc])* $Variant),+ }

        impl $Enum {
            /// All of them, in the order of reports.
            pub const ALL: [$Enum; [$($name),+].len()] = [$($Enum::$Variant),+];
            /// The name in documents, messages and results.
            pub const fn name(self) -> &'static str {
                match self { $($Enum::$Variant => $name),+ }
            }
        }
    };
}

/// Declares an enum of words as a parameter type: `choice! { /// doc \n pub enum At { Enqueue =
/// "enqueue", … } }`.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vmeta])* $variant),+ }
        impl $crate::params::Field for $name {
            const FORM: $crate::params::Form = $crate::params::Form::Choice(&[$($word),+]);
            fn to_value(&self) -> $crate::params::Value {
                let word = match self { $($name::$variant => $word),+ };
                $crate::params::Value::Text(word.to_string())
            }
            fn from_value(
                value: &$crate::params::Value,
            ) -> Result<Self, $crate::params::ValueError> {
                let word = match value {
                    $crate::params::Value::Text(word) => word.as_str(),
                    $crate::params::Value::Off => "off",
                    _ => "",
                };
                match word {
                    $($word => Ok($name::$variant),)+
                    _ => {
                        let words = [$($word),+].join(", ");
                        Err($crate::params::ValueError(format!("expected one of {words}")))
                    }
                }
            }
        }
    };
}

/// Declares a parameter struct: `params! { /// doc \n pub struct EcnParams { /// meaning, unit,
/// source \n pub at: At = At::Enqueue, … } }`. `#[within(1..=64)]` or `#[within(1..)]` after a
/// field's doc comment lists the values that it takes, in the smallest unit.
#[macro_export]
macro_rules! params {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])*
                $(#[within($($range:tt)+)])?
                pub $field:ident : $type:ty = $default:expr
            ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $($(#[doc = $doc])* pub $field: $type),* }
        impl Default for $name {
            fn default() -> Self { $name { $($field: $default),* } }
        }
        impl $name {
            /// The keys that a scenario can set here.
            pub const KEYS: &'static [$crate::params::Key] = &[$($crate::params::Key {
                field: stringify!($field),
                doc: &[$($doc),*],
                form: <$type as $crate::params::Field>::FORM,
                optional: <$type as $crate::params::Field>::OPTIONAL,
                auto: <$type as $crate::params::Field>::AUTO,
                tiered: <$type as $crate::params::Field>::TIERED,
                rated: <$type as $crate::params::Field>::RATED,
                range: $crate::params!(@range $($($range)+)?),
            }),*];
        }
        #[allow(unused_variables, unused_mut, unused_assignments)]
        impl $crate::params::Params for $name {
            fn keys(&self) -> &'static [$crate::params::Key] { Self::KEYS }
            fn get(&self, index: usize) -> $crate::params::Value {
                let mut i = 0;
                $(if i == index { return $crate::params::Field::to_value(&self.$field); } i += 1;)*
                unreachable!("key {index} of {}", stringify!($name))
            }
            fn set(
                &mut self,
                index: usize,
                value: &$crate::params::Value,
            ) -> Result<(), $crate::params::ValueError> {
                let mut i = 0;
                $(
                    if i == index {
                        self.$field = $crate::params::read(&Self::KEYS[i], value)?;
                        return Ok(());
                    }
                    i += 1;
                )*
                unreachable!("key {index} of {}", stringify!($name))
            }
        }
    };
    (@range) => { None };
    (@range $least:literal ..= $most:literal) => { Some(($least as f64, $most as f64)) };
    (@range $least:literal ..) => { Some(($least as f64, f64::INFINITY)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    choice! { /// Where.
    pub enum At { /// In.
        Enqueue = "enqueue", /// Out.
        Dequeue = "dequeue" } }
    params! {
        /// A test.
        pub struct Demo {
            /// Packets that
            /// may wait.
            pub threshold_packets: Option<u32> = Some(65),
            /// Where.
            pub at: At = At::Enqueue,
            /// A share.
            #[within(0..=1)]
            pub share: f64 = 0.5,
            /// How often.
            #[within(1..)]
            pub period: Option<Time> = None,
        }
    }

    #[test]
    fn what_is_outside_of_its_range_is_refused() {
        let mut d = Demo::default();
        for (share, is_right) in
            [(0.0, true), (1.0, true), (1.1, false), (-0.1, false), (f64::NAN, false)]
        {
            assert_eq!(d.set(2, &Value::Float(share)).is_ok(), is_right, "{share}");
        }
        assert_eq!(d.set(2, &Value::Int(7)).unwrap_err().0, "expected 0 to 1, found 7");
        assert_eq!(
            d.set(3, &Value::Time(Time::ZERO)).unwrap_err().0,
            "expected 1ps or more, found 0us"
        );
        assert!(d.set(3, &Value::Time(Time::from_ps(1))).is_ok() && d.set(3, &Value::Off).is_ok());
        assert_eq!(Demo::KEYS[0].range_text(), None);
        assert!(Bytes::from_value(&Value::Int(Bytes::LARGEST.get())).is_ok());
        assert!(Bytes::from_value(&Value::Int(u64::MAX)).unwrap_err().0.contains("too many"));
    }

    #[test]
    fn keys_come_from_the_declaration() {
        let mut d = Demo::default();
        assert_eq!(Demo::KEYS[0].name(), "threshold-packets");
        assert_eq!(Demo::KEYS[0].text(), "Packets that may wait.");
        assert_eq!(d.get(0), Value::Int(65));
        d.set(0, &Value::Off).unwrap();
        assert_eq!(d.threshold_packets, None);
        d.set(1, &Value::Text("dequeue".into())).unwrap();
        assert_eq!(d.at, At::Dequeue);
        assert!(
            d.set(1, &Value::Text("sideways".into())).unwrap_err().0.contains("enqueue, dequeue")
        );
        assert!(d.set(0, &Value::Bool(true)).unwrap_err().0.contains("whole number"));
    }
}

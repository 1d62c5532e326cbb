//! The messages of a trace, by the field numbers of Chakra's `et_def.proto`.
//!
//! A file has a [`Metadata`] and then [`Node`]s, each behind its length. Fields that nothing here
//! reads are left out: a reader skips them.
//!
//! Invariant: a number that has no name in the schema is kept as it is.

/// `GlobalMetadata`: a file's first message.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Metadata {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(message, repeated, tag = "2")]
    pub attributes: Vec<Attribute>,
}

/// `Node`: an operation of a rank.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Node {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    /// Its type: see [`kind`].
    #[prost(int32, tag = "3")]
    pub kind: i32,
    /// Nodes that must have ended.
    #[prost(uint64, repeated, tag = "4")]
    pub control: Vec<u64>,
    /// Nodes that must have ended, whose results it takes.
    #[prost(uint64, repeated, tag = "5")]
    pub data: Vec<u64>,
    /// When it began where the trace was taken.
    #[prost(uint64, tag = "6")]
    pub start_us: u64,
    #[prost(uint64, tag = "7")]
    pub duration_us: u64,
    #[prost(message, optional, tag = "8")]
    pub inputs: Option<Values>,
    #[prost(message, optional, tag = "9")]
    pub outputs: Option<Values>,
    #[prost(message, repeated, tag = "10")]
    pub attributes: Vec<Attribute>,
}

/// `NodeType`.
pub mod kind {
    pub const METADATA: i32 = 1;
    pub const LOAD: i32 = 2;
    pub const STORE: i32 = 3;
    pub const COMPUTE: i32 = 4;
    pub const SEND: i32 = 5;
    pub const RECEIVE: i32 = 6;
    pub const COLLECTIVE: i32 = 7;
}

/// `IOInfo`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Values {
    #[prost(string, tag = "1")]
    pub values: String,
}

/// `AttributeProto`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its value; `None`: it has one that no attribute here is read as.
    #[prost(oneof = "Value", tags = "3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
    pub value: Option<Value>,
}

#[derive(Clone, PartialEq, ::prost::Oneof)]
pub enum Value {
    /// `double_val`.
    #[prost(double, tag = "3")]
    Double(f64),
    /// `float_val`.
    #[prost(float, tag = "5")]
    Float(f32),
    /// `int32_val`.
    #[prost(int32, tag = "7")]
    Int32(i32),
    /// `int64_val`.
    #[prost(int64, tag = "9")]
    Int64(i64),
    /// `uint32_val`.
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    /// `uint64_val`.
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    /// `sint32_val`.
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    /// `sint64_val`.
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    /// `fixed32_val`.
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    /// `fixed64_val`.
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    /// `sfixed32_val`.
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    /// `sfixed64_val`.
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    /// `bool_val`.
    #[prost(bool, tag = "27")]
    Bool(bool),
    /// `bool_list`.
    #[prost(message, tag = "28")]
    Bools(Bools),
    /// `string_val`.
    #[prost(string, tag = "29")]
    Text(String),
}

/// `BoolList`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Bools {
    #[prost(bool, repeated, tag = "1")]
    pub values: Vec<bool>,
}

impl Attribute {
    pub fn new(name: &str, value: Value) -> Attribute {
        Attribute { name: name.into(), value: Some(value) }
    }
}

impl Value {
    pub fn integer(&self) -> Option<i128> {
        Some(match self {
            Value::Int32(n) | Value::Sint32(n) | Value::Sfixed32(n) => (*n).into(),
            Value::Int64(n) | Value::Sint64(n) | Value::Sfixed64(n) => (*n).into(),
            Value::Uint32(n) | Value::Fixed32(n) => (*n).into(),
            Value::Uint64(n) | Value::Fixed64(n) => (*n).into(),
            _ => return None,
        })
    }
}

impl Node {
    /// The value of an attribute, if the node has it; of several the last, as protobuf has it.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().rev().find(|attribute| attribute.name == name)
    }
}

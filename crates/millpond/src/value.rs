//! A value with the keys of a scenario, as TOML.

use crate::Error;
use serde_json::Value;
use std::fmt::Write as _;

/// The text of an object: a key a line.
pub(crate) fn toml_of(name: &str, value: &Value) -> Result<String, Error> {
    let Value::Object(object) = value else {
        return Err(Error::Usage(format!(
            "{name}: a scenario is an object with keys such as \"topology\""
        )));
    };
    let mut text = String::new();
    for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        write_text(&mut text, key);
        text += " = ";
        write_value(&mut text, value);
        text.push('\n');
    }
    Ok(text)
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::Bool(is_true) => _ = write!(out, "{is_true}"),
        Value::Number(number) => _ = write!(out, "{number}"),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for item in items.iter().filter(|item| !item.is_null()) {
                write_value(out, item);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(object) => {
            let members = object.iter().filter(|(_, value)| !value.is_null());
            for (at, (key, value)) in members.enumerate() {
                out.push_str(if at == 0 { "{ " } else { ", " });
                write_text(out, key);
                out.push_str(" = ");
                write_value(out, value);
            }
            out.push_str(if object.values().all(Value::is_null) { "{}" } else { " }" });
        }
    }
}

/// A basic string, which is also a quoted key.
fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => _ = write!(out, "\\u{:04X}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_become_inline_tables_and_nulls_are_left_out() {
        let value = json!({
            "a": { "b": null, "c": [1, { "d": 0.5 }, {}] }, "e\"\n": "\\x", "f": null, "g": true,
        });
        let text = toml_of("x", &value).unwrap();
        assert_eq!(
            text,
            "\"a\" = { \"c\" = [1,{ \"d\" = 0.5 },{},] }\n\"e\\\"\\u000A\" = \"\\\\x\"\n\"g\" = \
             true\n"
        );
        assert!(
            toml_of("x", &json!([]))
                .unwrap_err()
                .to_string()
                .starts_with("x: a scenario is an object")
        );
    }
}

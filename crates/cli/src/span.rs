//! Seconds as a rough span.

pub fn span(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => "about a second or less".to_string(),
        s if s < 90.0 => format!("about {s:.0} s"),
        s if s < 5_400.0 => format!("about {:.0} min", s / 60.0),
        s => format!("about {:.1} h", s / 3_600.0),
    }
}

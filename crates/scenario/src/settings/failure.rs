//! `[[failure]]`: its keys.

use millpond_core::{Time, choice, params};

choice! {
    /// Which packets a lossy link may lose.
    pub enum Losable {
        /// All alike.
        All = "all",
        /// Those that a color-aware switch may drop early: TLT's unimportant packets.
        Unimportant = "unimportant",
    }
}

params! {
    /// One `[[failure]]`: a link, or all links of a switch, down for a while, or losing packets. A
    /// packet is lost if its link is down at any time between the start of its transmission and
    /// its arrival.
    pub struct FailureParams {
        /// The two ends, as in ["leaf0", "spine1"] or ["host3", "leaf0"]: all links between them
        /// fail, or the one that `number` chooses. Or the name that a topology's list gives a link,
        /// as in "uplink3": that link alone fails.
        pub link: Vec<String> = Vec::new(),
        /// Which one of several parallel links fails: its place among the links between the two
        /// ends, from 0, in the order of the topology's list and of the ports. Off means all.
        pub number: Option<u32> = None,
        /// Instead of `link`, a switch, as in "spine1": all its links fail.
        pub switch: Option<String> = None,
        /// When it goes down.
        pub at: Time = Time::ZERO,
        /// When it is up again; off means never.
        pub until: Option<Time> = None,
        /// How long the switches at both ends take to notice, each time. From then on they choose
        /// no port whose link is down where a route has another. A link that is only lossy is not
        /// noticed.
        pub detect: Time = Time::ZERO,
        /// From the failure, and again from the repair, until the routes of the whole network are
        /// those of the links that are up; "never": switches further away learn nothing. Source:
        /// ours, the fast end of what is reported of fabrics. By RFC 7938, section 7 a link's ends
        /// often see it within milliseconds and a BGP fabric follows in less than a second; tuned
        /// ones take tens of milliseconds.
        pub converge: Option<Time> = Some(Time::from_ms(1)),
        /// Share of the packets that are lost; below 1 each by chance, for itself.
        #[within(0..=1)]
        pub loss: f64 = 1.0,
        /// Which packets may be lost: all, or the unimportant ones.
        pub losable: Losable = Losable::All,
    }
}

impl FailureParams {
    /// The failing link or switch: "leaf0 to spine1", or "spine1".
    pub(crate) fn site(&self) -> String {
        self.switch.clone().unwrap_or_else(|| self.link.join(" to "))
    }
}

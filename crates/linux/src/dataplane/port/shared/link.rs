//! Other ports' holdings of an application: frames whose buffers are its own, and pauses of its
//! flows.
//!
//! Both end by being dropped, so whatever becomes of the port that has them (its application exits,
//! its queues are cleared, it is taken out of the switch), the buffer comes back and the flow goes
//! on. The application's port looks at what has ended when its turn comes.
//!
//! Invariant: a buffer comes back when its last frame has left the switch; a flow is paused as long
//! as somebody has a pause of it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Of one application, for as long as it is attached.
#[derive(Debug)]
pub struct Link {
    /// Which: no two have the same in a process.
    attachment: u32,
    news: Mutex<News>,
}

#[derive(Debug, Default)]
struct News {
    finished: Vec<u32>,
    pauses: Vec<u32>,
    /// Flows that are paused and were not, or the other way.
    changed: Vec<u32>,
}

#[derive(Clone, Debug)]
pub struct Origin {
    pub link: Arc<Link>,
    pub flow: u32,
    pub buffer: u32,
}

/// The party that can be notified that a frame waits.
#[derive(Clone, Copy, Debug, Default)]
pub enum Sender<'a> {
    #[default]
    Elsewhere,
    /// The application whose flow it is of, if that one alone has it.
    Application(&'a Origin),
    Peer(u16),
    /// Whoever is behind this port, which is no application's.
    Port(u16),
}

impl<'a> Sender<'a> {
    pub fn origin(self) -> Option<&'a Origin> {
        match self {
            Sender::Application(origin) => Some(origin),
            _ => None,
        }
    }
    pub fn port(self) -> Option<u16> {
        match self {
            Sender::Port(port) => Some(port),
            _ => None,
        }
    }
}

/// A frame that waits has its buffer.
#[derive(Debug)]
pub struct Ticket {
    link: Arc<Link>,
    buffer: u32,
}

/// A flow that may not send.
#[derive(Debug)]
pub struct Pause {
    link: Arc<Link>,
    flow: u32,
}

impl Link {
    /// Of an application with so many flows.
    pub fn new(flows: u32) -> Arc<Link> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let news = News { pauses: vec![0; flows as usize], ..News::default() };
        Arc::new(Link { attachment: NEXT.fetch_add(1, Ordering::Relaxed), news: Mutex::new(news) })
    }
    pub fn attachment(&self) -> u32 {
        self.attachment
    }
    fn with<T>(&self, what: impl FnOnce(&mut News) -> T) -> T {
        what(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }
    /// Whether [`Link::take`] has something.
    pub fn has_news(&self) -> bool {
        self.with(|news| !news.finished.is_empty() || !news.changed.is_empty())
    }
    /// The news: the buffers that are finished, and flows that are paused from now on, or are no
    /// more.
    pub fn take(&self) -> (Vec<u32>, Vec<(u32, bool)>) {
        self.with(|news| {
            let changed = std::mem::take(&mut news.changed);
            let is_paused = |flow| (flow, news.pauses[flow as usize] > 0);
            let changed = changed.into_iter().map(is_paused).collect();
            (std::mem::take(&mut news.finished), changed)
        })
    }
}

impl Ticket {
    pub fn of(origin: &Origin) -> Ticket {
        Ticket { link: origin.link.clone(), buffer: origin.buffer }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.link.with(|news| news.finished.push(self.buffer));
    }
}

impl Pause {
    /// Of a flow that the application has.
    pub fn of(link: Arc<Link>, flow: u32) -> Pause {
        link.with(|news| {
            news.pauses[flow as usize] += 1;
            if news.pauses[flow as usize] == 1 {
                news.changed.push(flow);
            }
        });
        Pause { link, flow }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.link.with(|news| {
            news.pauses[self.flow as usize] -= 1;
            if news.pauses[self.flow as usize] == 0 {
                news.changed.push(self.flow);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_paused_as_long_as_somebody_pauses_it() {
        let link = Link::new(2);
        let first = Pause::of(link.clone(), 1);
        let second = Pause::of(link.clone(), 1);
        assert_eq!(link.take().1, [(1, true)]);
        drop(first);
        assert!(!link.has_news());
        drop(second);
        assert_eq!((link.take().1, link.has_news()), (vec![(1, false)], false));
        let origin = Origin { link: link.clone(), flow: 0, buffer: 7 };
        drop(Ticket::of(&origin));
        assert_eq!(link.take().0, [7]);
    }
}

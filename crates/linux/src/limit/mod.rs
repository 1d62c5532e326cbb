//! `millpond limit`: holds cgroups to their bandwidth without queueing.
//!
//! | file | what it does |
//! |---|---|
//! | `config` | the file that a user writes, and its errors |
//! | `keys` | its keys |
//! | `cgroup` | finds cgroups: by path, unit, container, process |
//! | `check` | whether files can be applied, without a host |
//! | `circles` | scopes that go in circles |
//! | `engine` | asks Docker or Podman which container a name means |
//! | `layout` | what the maps hold, the twin of `bpf/layout.h` |
//! | `link` | a program's attachment to a cgroup |
//! | `folder` | the folder under bpffs where all state is pinned: its lock, owner and mode |
//! | `store` | what is pinned there |
//! | `plan` | which scopes a packet of which cgroup is charged to |
//! | `apply` | makes a plan take effect, all at once |
//! | `install` | its steps: loading, attaching, writing, detaching |
//! | `mount` | the bpf file system: mounted and unmounted |
//! | `numbers` | the numbers of scopes, which their queues and statistics go by |
//! | `exclusive` | whose programs keep ours from a cgroup |
//! | `departure` | whether the interfaces of a cgroup keep departure times |
//! | `capability` | what this process may do |
//! | `show` | what is installed, and its statistics |
//! | `congestion` | millpond's own DCTCP |
//! | `hints` | why a limit carries less or more than its user expects
//! | `foreign` | sockets that were made in another cgroup than their process is in |
//! | `pods` | reads the limits of a Kubernetes node's pods from their annotations |
//! | `pace` | lets what connections are paced at, and may receive, follow the limits |
//! | `sockets` | runs iterators over TCP sockets in network namespaces |
//! | `kick` | restarts limited connections that would wait for a timer |
//! | `notify` | notifies senders on other hosts, and heeds their notices |
//! | `message` | a notice, as bytes |
//! | `serve` | metrics, the kick, notifications, and limits on cgroups that were made anew |
//! | `watch` | reports when cgroups were made or removed |
//! | `doctor` | what the kernel offers, and what a lack costs |
//!
//! Follows NRM (Brakmo, Starovoitov: BPF Host Network Resource Management, Linux Plumbers
//! Conference 2018). The programs are in `bpf/`, the decision in `millpond_core::limit`.
//!
//! Invariant: at any instant the installed limits are those of one finished `apply`, whatever was
//! killed, and when; and whatever fails, traffic passes.

pub mod apply;
pub mod capability;
pub mod cgroup;
pub mod check;
mod circles;
pub mod config;
pub mod congestion;
mod departure;
pub mod doctor;
mod engine;
mod error;
mod exclusive;
pub mod folder;
pub mod foreign;
mod hints;
mod install;
mod keys;
pub mod kick;
pub mod layout;
mod link;
pub mod message;
mod mount;
pub mod notify;
pub mod numbers;
mod object;
mod pace;
pub mod plan;
pub mod pods;
pub mod serve;
pub mod show;
mod sockets;
pub mod store;
mod watch;

pub use error::Error;

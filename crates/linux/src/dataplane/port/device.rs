//! A network interface, by the ioctls of its own namespace.
//!
//! Invariant: whatever namespace the caller is in, what is asked and set is the interface's.

use super::Error;
use crate::dataplane::frame::Mac;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::AsRawFd;

/// An interface by its name, and a socket of its namespace to ask through.
#[derive(Debug)]
pub struct Device {
    name: String,
    socket: OwnedFd,
}

/// How an interface was found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is there, under its name.
    Same,
    Renamed,
    /// It is not in its namespace.
    Gone,
}

/// `name` as a request to the kernel.
pub(super) fn request(name: &str) -> Result<libc::ifreq, Error> {
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains(['/', ' ', '\0', ':']) {
        let reason = format!(
            "the name of an interface has 1 to {} bytes, no slash, colon or space",
            libc::IFNAMSIZ - 1
        );
        return Err(Error::Kernel { what: format!("interface \"{name}\""), reason });
    }
    // SAFETY: ifreq is plain data, for which zeros are a value.
    #[allow(unsafe_code)]
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as libc::c_char);
    Ok(request)
}

/// Asks the kernel with a request that it may write to. By libc: of these requests rustix has no
/// more than the index.
pub(super) fn ioctl(
    fd: &impl AsRawFd,
    number: libc::c_ulong,
    request: &mut libc::ifreq,
) -> io::Result<()> {
    // SAFETY: every number used with this takes a pointer to an ifreq, which outlives the call.
    #[allow(unsafe_code)]
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), number as _, request as *mut libc::ifreq) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Device {
    /// Returns a handle for an interface of the calling thread's namespace, which may be missing
    /// yet.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the name is none that an interface can have, or no socket can be
    /// opened.
    pub fn new(name: &str) -> Result<Device, Error> {
        request(name)?;
        let socket =
            socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
                .map_err(|e| Error::kernel("a socket to ask about interfaces", e))?;
        Ok(Device { name: name.into(), socket })
    }
    /// Returns the interface with this index, or `None` if there is none.
    ///
    /// # Errors
    /// As [`Device::new`].
    pub fn of_index(index: i32) -> Result<Option<Device>, Error> {
        let mut device = Device::new("lo")?;
        Ok((device.follow(index) != Presence::Gone).then_some(device))
    }
    /// Returns the name of the interface with this index in the device's namespace, or `None` if
    /// there is none.
    pub fn name_of(&self, index: i32) -> Option<String> {
        let mut request = request("lo").ok()?;
        request.ifr_ifru.ifru_ifindex = index;
        ioctl(&self.socket, libc::SIOCGIFNAME, &mut request).ok()?;
        let bytes = request.ifr_name.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0);
        Some(String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned())
    }
    /// Looks for the interface with this index, and takes its name.
    pub fn follow(&mut self, index: i32) -> Presence {
        match self.name_of(index) {
            None => Presence::Gone,
            Some(name) if name == self.name => Presence::Same,
            Some(name) => {
                self.name = name;
                Presence::Renamed
            }
        }
    }
    pub fn name(&self) -> &str {
        &self.name
    }
    fn ask(&self, number: libc::c_ulong) -> io::Result<libc::ifreq> {
        let mut request = request(&self.name).map_err(io::Error::other)?;
        ioctl(&self.socket, number, &mut request)?;
        Ok(request)
    }
    /// Returns the MTU: the most bytes of IP in a frame.
    ///
    /// # Errors
    /// The kernel's reason, such as a missing interface.
    pub fn mtu(&self) -> io::Result<usize> {
        let request = self.ask(libc::SIOCGIFMTU)?;
        // SAFETY: the kernel has written this field of the union.
        #[allow(unsafe_code)]
        Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as usize)
    }
    /// Returns the interface's index.
    ///
    /// # Errors
    /// The kernel's reason, such as a missing interface.
    pub fn index(&self) -> io::Result<i32> {
        let request = self.ask(libc::SIOCGIFINDEX)?;
        // SAFETY: the kernel has written this field of the union.
        #[allow(unsafe_code)]
        Ok(unsafe { request.ifr_ifru.ifru_ifindex })
    }
    /// Returns whether the interface is up.
    ///
    /// # Errors
    /// The kernel's reason, such as a missing interface.
    pub fn is_up(&self) -> io::Result<bool> {
        let request = self.ask(libc::SIOCGIFFLAGS)?;
        // SAFETY: the kernel has written this field of the union.
        #[allow(unsafe_code)]
        Ok(i32::from(unsafe { request.ifr_ifru.ifru_flags }) & libc::IFF_UP != 0)
    }
    /// Returns whether the interface is up and has its carrier.
    ///
    /// # Errors
    /// The kernel's reason, such as a missing interface.
    pub fn has_carrier(&self) -> io::Result<bool> {
        let request = self.ask(libc::SIOCGIFFLAGS)?;
        let both = libc::IFF_UP | libc::IFF_RUNNING;
        // SAFETY: the kernel has written this field of the union.
        #[allow(unsafe_code)]
        Ok(i32::from(unsafe { request.ifr_ifru.ifru_flags }) & both == both)
    }
    /// Returns the interface's hardware address.
    ///
    /// # Errors
    /// The kernel's reason, such as a missing interface.
    pub fn mac(&self) -> io::Result<Mac> {
        let request = self.ask(libc::SIOCGIFHWADDR)?;
        // SAFETY: the kernel has written this field of the union.
        #[allow(unsafe_code)]
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        Ok(Mac(std::array::from_fn(|i| address.sa_data[i] as u8)))
    }
    /// Changes the interface's hardware address.
    ///
    /// # Errors
    /// [`Error::Kernel`] with the kernel's reason.
    pub fn set_mac(&self, mac: Mac) -> Result<(), Error> {
        let mut request = request(&self.name)?;
        // SAFETY: sockaddr is plain data, for which zeros are a value.
        #[allow(unsafe_code)]
        let mut address: libc::sockaddr = unsafe { std::mem::zeroed() };
        address.sa_family = libc::ARPHRD_ETHER;
        address.sa_data.iter_mut().zip(mac.0).for_each(|(to, from)| *to = from as libc::c_char);
        request.ifr_ifru.ifru_hwaddr = address;
        let done = ioctl(&self.socket, libc::SIOCSIFHWADDR, &mut request);
        done.map_err(|e| Error::kernel(format!("giving {} the address {mac}", self.name), e))
    }
    /// Sets the interface up.
    ///
    /// # Errors
    /// [`Error::Kernel`] with the kernel's reason.
    pub fn up(&self) -> Result<(), Error> {
        let what = || format!("taking {} up", self.name);
        let mut request = self.ask(libc::SIOCGIFFLAGS).map_err(|e| Error::kernel(what(), e))?;
        // SAFETY: the kernel has written this field of the union, and reads it.
        #[allow(unsafe_code)]
        unsafe {
            request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        }
        ioctl(&self.socket, libc::SIOCSIFFLAGS, &mut request).map_err(|e| Error::kernel(what(), e))
    }
    /// Changes the MTU: the most bytes of IP in a frame.
    ///
    /// # Errors
    /// [`Error::Kernel`] with the kernel's reason.
    pub fn set_mtu(&self, mtu: usize) -> Result<(), Error> {
        let what = || format!("setting the MTU of {} to {mtu}", self.name);
        let mut request = request(&self.name)?;
        request.ifr_ifru.ifru_mtu = mtu as libc::c_int;
        ioctl(&self.socket, libc::SIOCSIFMTU, &mut request).map_err(|e| Error::kernel(what(), e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_tells_of_itself_and_odd_names_are_refused() {
        let lo = Device::new("lo").unwrap();
        assert!(lo.mtu().unwrap() >= 1280 && lo.index().unwrap() > 0);
        assert!(Device::new("no-such-device").unwrap().mtu().is_err());
        let by_index = Device::of_index(lo.index().unwrap()).unwrap().unwrap();
        assert_eq!((by_index.name(), Device::of_index(i32::MAX).unwrap().is_none()), ("lo", true));
        for name in ["", "a-name-of-16-byte", "a/b", "a b"] {
            assert!(Device::new(name).is_err(), "{name:?}");
        }
    }
}

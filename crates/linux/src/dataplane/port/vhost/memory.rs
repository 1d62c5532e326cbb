//! A guest's memory, as its front end has described it.
//!
//! Invariant: every access is within a region that is mapped. Of a user who could not end the
//! switch anyway a region's file must be sealed against shrinking, since a page that has gone from
//! a file ends who touches it.

use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vhost::vhost_user::message::VhostUserMemoryRegion;
use vm_memory::{
    Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryRegion, GuestRegionCollection,
    GuestRegionMmap, MemoryRegionAddress, MmapRegion,
};

/// Regions of a guest at most.
const REGIONS_MAX: usize = 64;

#[derive(Debug)]
pub struct Memory {
    regions: GuestRegionCollection<GuestRegionMmap>,
    /// By region: where it begins and ends for the front end, and for the guest.
    places: Vec<(u64, u64, u64)>,
}

/// A part of it that lies in one region.
#[derive(Debug)]
pub struct Area {
    region: Arc<GuestRegionMmap>,
    start: u64,
    length: u64,
}

fn map(
    region: &VhostUserMemoryRegion,
    file: File,
    is_trusted: bool,
) -> Result<GuestRegionMmap, String> {
    let (offset, size) = (region.mmap_offset, region.memory_size);
    let end = offset.checked_add(size).ok_or("a region beyond all addresses")?;
    let length = fstat(&file).map_err(|e| format!("a region's file: {e}"))?.st_size;
    if u64::try_from(length).is_ok_and(|length| length < end) {
        return Err(format!("a region ends at {end} of a file of {length} bytes"));
    }
    if !is_trusted && !fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK)) {
        return Err("memory of another user that is not sealed against shrinking".into());
    }
    let size = usize::try_from(size).map_err(|_| "a region beyond all addresses")?;
    let mapped = MmapRegion::from_file(FileOffset::new(file, offset), size);
    let mapped = mapped.map_err(|e| format!("mapping a region of {size} bytes: {e}"))?;
    GuestRegionMmap::new(mapped, GuestAddress(region.guest_phys_addr))
        .ok_or("a region beyond all addresses".into())
}

impl Memory {
    /// Maps what the front end has sent.
    ///
    /// # Errors
    /// A sentence with what is wrong with a region, or why it cannot be mapped.
    pub fn map(
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        is_trusted: bool,
    ) -> Result<Memory, String> {
        if regions.len() != files.len() || regions.len() > REGIONS_MAX {
            return Err(format!("{} regions of memory with {} files", regions.len(), files.len()));
        }
        let place = |region: &VhostUserMemoryRegion| {
            let (start, guest) = (region.user_addr, region.guest_phys_addr);
            (start, start.saturating_add(region.memory_size), guest)
        };
        let places = regions.iter().map(place).collect();
        let mapped = regions.iter().zip(files).map(|(region, file)| map(region, file, is_trusted));
        let mut mapped = mapped.collect::<Result<Vec<_>, _>>()?;
        mapped.sort_by_key(|region| region.start_addr());
        let regions = GuestRegionCollection::from_regions(mapped)
            .map_err(|e| format!("regions of memory: {e}"))?;
        Ok(Memory { regions, places })
    }

    /// Memory of this process, for tests.
    #[cfg(test)]
    pub fn anonymous(ranges: &[(u64, usize)]) -> Memory {
        let region = |(at, size): &(u64, usize)| {
            GuestRegionMmap::from_range(GuestAddress(*at), *size, None).unwrap()
        };
        let places = ranges.iter().map(|(at, size)| (*at, *at + *size as u64, *at)).collect();
        Memory {
            regions: GuestRegionCollection::from_regions(ranges.iter().map(region).collect())
                .unwrap(),
            places,
        }
    }

    /// Where the guest has what the front end has at `address`.
    pub fn guest_address(&self, address: u64) -> Option<u64> {
        let (start, _, guest) =
            self.places.iter().find(|(start, end, _)| (*start..*end).contains(&address))?;
        Some(guest + (address - start))
    }

    /// A part that lies in one region.
    pub fn area(&self, at: u64, length: u64) -> Option<Area> {
        let region = self.regions.find_region(GuestAddress(at))?;
        let start = at - region.start_addr().0;
        if start.checked_add(length)? > region.len() {
            return None;
        }
        let region = Arc::new(GuestRegionMmap::with_arc(region.get_mmap(), region.start_addr())?);
        Some(Area { region, start, length })
    }

    #[inline]
    pub fn read(&self, at: GuestAddress, into: &mut [u8]) -> Option<()> {
        if let Some(region) = self.regions.find_region(at)
            && region.read_slice(into, MemoryRegionAddress(at.0 - region.start_addr().0)).is_ok()
        {
            return Some(());
        }
        // It may lie across the border of two regions.
        self.regions.read_slice(into, at).ok()
    }
    #[inline]
    pub fn write(&self, at: GuestAddress, bytes: &[u8]) -> Option<()> {
        if let Some(region) = self.regions.find_region(at)
            && region.write_slice(bytes, MemoryRegionAddress(at.0 - region.start_addr().0)).is_ok()
        {
            return Some(());
        }
        self.regions.write_slice(bytes, at).ok()
    }
}

impl Area {
    #[inline]
    fn place(&self, at: u64, length: u64) -> Option<MemoryRegionAddress> {
        (at + length <= self.length).then_some(MemoryRegionAddress(self.start + at))
    }
    #[inline]
    pub fn load(&self, at: u64, order: Ordering) -> Option<u16> {
        self.region.load::<u16>(self.place(at, 2)?, order).ok().map(u16::from_le)
    }
    #[inline]
    pub fn store(&self, at: u64, value: u16, order: Ordering) -> Option<()> {
        self.region.store(value.to_le(), self.place(at, 2)?, order).ok()
    }
    #[inline]
    pub fn read(&self, at: u64, into: &mut [u8]) -> Option<()> {
        self.region.read_slice(into, self.place(at, into.len() as u64)?).ok()
    }
    #[inline]
    pub fn write(&self, at: u64, bytes: &[u8]) -> Option<()> {
        self.region.write_slice(bytes, self.place(at, bytes.len() as u64)?).ok()
    }
}

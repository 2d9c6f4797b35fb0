//! Bytes that lie in several places, archived as one list without being put together first. It may not know what they mean.

use rkyv::rancor::Fallible;
use rkyv::ser::{Writer, WriterExt};
use rkyv::vec::{ArchivedVec, VecResolver};
use rkyv::with::{ArchiveWith, SerializeWith};
use rkyv::{Place, Portable};

use crate::arena::FrozenBytes;

/// Bytes in several places.
pub(crate) trait InPlaces {
    /// How many in all.
    fn bytes(&self) -> usize;

    /// Gives them out, one place after another.
    fn each<E>(&self, take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E>;
}

impl InPlaces for FrozenBytes {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn each<E>(&self, take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.parts().try_for_each(take)
    }
}

/// How they are archived: as a list of bytes.
pub(crate) struct Joined;

impl<F: InPlaces> ArchiveWith<F> for Joined
where
    ArchivedVec<u8>: Portable,
{
    type Archived = ArchivedVec<u8>;
    type Resolver = VecResolver;

    fn resolve_with(field: &F, resolver: VecResolver, out: Place<ArchivedVec<u8>>) {
        ArchivedVec::resolve_from_len(field.bytes(), resolver, out);
    }
}

impl<F: InPlaces, S: Fallible + Writer + ?Sized> SerializeWith<F, S> for Joined {
    fn serialize_with(field: &F, serializer: &mut S) -> Result<VecResolver, S::Error> {
        // Words in it are words of the archive: what packs those finds them.
        let start = serializer.align(size_of::<u64>())?;
        field.each(|bytes| serializer.write(bytes))?;
        Ok(VecResolver::from_pos(start))
    }
}

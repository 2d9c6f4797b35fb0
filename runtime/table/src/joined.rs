//! Bytes that lie in several places, archived as one list without being put together first. It may not know what they mean.

use rkyv::rancor::Fallible;
use rkyv::ser::{Positional, Writer};
use rkyv::vec::{ArchivedVec, VecResolver};
use rkyv::with::{ArchiveWith, SerializeWith};
use rkyv::{Place, Portable};

use crate::arena::FrozenBytes;
use crate::pages::FrozenPage;

/// Bytes in several places.
pub(crate) trait InPlaces {
    /// They, one place after another.
    fn places(&self) -> impl Iterator<Item = &[u8]>;
}

impl InPlaces for FrozenBytes {
    fn places(&self) -> impl Iterator<Item = &[u8]> {
        self.parts()
    }
}

impl InPlaces for Vec<FrozenPage> {
    fn places(&self) -> impl Iterator<Item = &[u8]> {
        self.iter().map(FrozenPage::bytes)
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
        ArchivedVec::resolve_from_len(field.places().map(<[u8]>::len).sum(), resolver, out);
    }
}

impl<F: InPlaces, S: Fallible + Writer + ?Sized> SerializeWith<F, S> for Joined {
    fn serialize_with(field: &F, serializer: &mut S) -> Result<VecResolver, S::Error> {
        let start = serializer.pos();
        field.places().try_for_each(|bytes| serializer.write(bytes))?;
        Ok(VecResolver::from_pos(start))
    }
}

//! The correspondence between declared types and Arrow arrays, and single values in and out of arrays.

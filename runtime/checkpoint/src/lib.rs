//! Checkpoints as they lie on a storage: manifests, parts, spools, locks, retention.

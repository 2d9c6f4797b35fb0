//! Mistakes that could have been made in the protocol of checkpoints, each planted where it would have been made: the simulation must find
//! every one of them. This is the one table of them.

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// A planted fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Planted {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Planted {
            /// All of them.
            pub const ALL: &[Planted] = &[$(Planted::$variant,)+];

            /// Its name, as `DFC_PLANTED` gives it to the program under test.
            pub fn name(self) -> &'static str {
                match self {
                    $(Planted::$variant => $name,)+
                }
            }
        }
    };
}

faults! {
    /// A task sends its barrier before rows that it still holds for the same output.
    BarrierBeforeBufferedRows = "barrier-before-buffered-rows",
    /// A row that stands behind a barrier in an exchange is read before it: it counts to the checkpoint, its source's position doesn't.
    RowOvertakesBarrier = "row-overtakes-barrier",
    /// An exchange takes rows of a writer that has given its barrier while others haven't.
    ExchangeNotAligned = "exchange-not-aligned",
    /// The same before a sink.
    SinkNotAligned = "sink-not-aligned",
    /// A writer that has ended is waited for at a barrier for ever.
    EndedInputBlocks = "ended-input-blocks",
    /// What stands before a stage that hasn't started is no part of the checkpoint.
    WaitingRowsForgotten = "waiting-rows-forgotten",
    /// What an ended task leaves for ever, its rows of a join table, is no part of later checkpoints.
    EndedStateForgotten = "ended-state-forgotten",
    /// A page of groups that a checkpoint shares is written to without being copied.
    PageNotCopied = "page-not-copied",
    /// Only the newest of the parts that build on one another is kept in the manifest.
    ChainBroken = "chain-broken",
    /// The state of a checkpoint that was given up isn't stored with the next one.
    AbandonedStateDropped = "abandoned-state-dropped",
    /// The rows of a checkpoint that was given up aren't part of the next one.
    AbandonedRowsDropped = "abandoned-rows-dropped",
    /// A run whose manifest may be there, since only the answer was lost, is taken for one without a checkpoint when it fails.
    LostAnswerForgotten = "lost-answer-forgotten",
    /// Rows are applied to the target before the manifest makes their checkpoint exist.
    ApplyBeforeManifest = "apply-before-manifest",
    /// After a restart the epochs that the target doesn't have yet aren't applied.
    ApplySkipped = "apply-skipped",
    /// An answer that says that nothing was applied is taken for success.
    FailedApplyBelieved = "failed-apply-believed",
    /// A target applies an epoch without looking into its ledger whether it has it.
    AppliedTwice = "applied-twice",
    /// Every task takes what has no owner out of the restored state.
    StateDealtTwice = "state-dealt-twice",
    /// A task takes no more than the first share of the restored state.
    StateLost = "state-lost",
    /// A source that goes on isn't told of a split that hasn't been read to its end.
    SplitLost = "split-lost",
    /// A source that goes on is told of such a split twice.
    SplitDealtTwice = "split-dealt-twice",
    /// Batches are numbered from 0 again after a restart.
    OrdinalsFromZero = "ordinals-from-zero",
    /// The number of rejected rows isn't taken over from the checkpoint.
    RejectCountForgotten = "reject-count-forgotten",
    /// A row that is rejected behind a barrier goes to the checkpoint before it.
    RejectsNotStaged = "rejects-not-staged",
    /// A source gives a batch between the position that it notes for a barrier and the barrier.
    BarrierTooLate = "barrier-too-late",
    /// A file of a checkpoint gets its name before its bytes are durable.
    BytesNotSynced = "bytes-not-synced",
    /// The names in a folder of checkpoints are never made durable.
    FolderNotSynced = "folder-not-synced",
    /// A manifest takes the place of another one of the same number.
    ManifestOverwritten = "manifest-overwritten",
    /// Retention takes rows out of the checkpoints that a target hasn't been given yet.
    UnappliedRemoved = "unapplied-removed",
    /// Retention removes parts that the newest checkpoint names.
    NamedPartRemoved = "named-part-removed",
}

/// Whether this fault is planted here: in the simulated run to which the thread belongs, or in the whole program by `DFC_PLANTED`.
#[cfg(feature = "on")]
pub fn planted(fault: Planted) -> bool {
    use std::sync::OnceLock;
    static ANYWHERE: OnceLock<Option<String>> = OnceLock::new();
    match crate::turns::planted_here() {
        Some(here) => here == Some(fault),
        None => ANYWHERE.get_or_init(|| std::env::var("DFC_PLANTED").ok()).as_deref() == Some(fault.name()),
    }
}

/// Never, without the feature `on`.
#[cfg(not(feature = "on"))]
#[inline(always)]
pub fn planted(_fault: Planted) -> bool {
    false
}

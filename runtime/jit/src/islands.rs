//! What compiled code refers to by number: text constants, lists of constants, patterns, and islands, the expressions inside a
//! compiled program that run elsewhere: native functions, and what `dfc-eval` does for it.

use std::collections::HashSet;

use dfc_eval::{EvalError, Row};
use dfc_ir::{DataType, Expr, Value};
use dfc_stdlib::natives::{CallTypes, Native, Pattern};

use crate::context::{Context, Slot, TextRef};

/// The constants and islands of one compiled program.
#[derive(Default)]
pub(crate) struct Pool {
    /// Addresses into `owned`.
    pub(crate) texts: Vec<TextRef>,
    owned: Vec<Box<[u8]>>,
    /// For `in`.
    pub(crate) lists: Vec<Constants>,
    /// Constant patterns.
    pub(crate) patterns: Vec<Pattern>,
    /// The islands.
    pub(crate) islands: Vec<Island>,
    /// Types of a fused aggregate's keys.
    pub(crate) keys: Vec<DataType>,
}

// SAFETY: the addresses in `texts` point into `owned`, which is never changed once the program is compiled.
unsafe impl Send for Pool {}
// SAFETY: as above; everything else in it is shared data that may be used by several threads.
unsafe impl Sync for Pool {}

/// The constants of an `in`.
pub(crate) enum Constants {
    /// Sorted.
    Numbers(Vec<i128>),
    /// Texts or bytes.
    Texts(HashSet<Box<[u8]>>),
}

/// An expression that runs outside of compiled code.
pub(crate) enum Island {
    /// A native function over slots.
    Native { native: &'static Native, args: Vec<DataType>, result: DataType },
    /// An expression by `dfc-eval`; `sources[k]` says where its column k comes from.
    Eval { expr: Expr, sources: Vec<Source> },
}

/// Where an island's operand is.
pub(crate) enum Source {
    /// Slot number k, of this type.
    Slot(usize, DataType),
    /// A column of the batch.
    Batch(usize, DataType),
    /// Not read by the island.
    Unused,
}

impl Pool {
    /// The number of a text constant.
    pub(crate) fn text(&mut self, bytes: &[u8]) -> usize {
        if let Some(index) = self.owned.iter().position(|known| &**known == bytes) {
            return index;
        }
        let owned: Box<[u8]> = bytes.into();
        self.texts.push(TextRef { ptr: owned.as_ptr(), len: owned.len() as u64 });
        self.owned.push(owned);
        self.texts.len() - 1
    }
}

impl Island {
    /// Runs it on the row.
    ///
    /// # Safety
    /// `slots` holds what the island's sources say, text that lives until the end of the row; `context.batch` is the batch being
    /// passed and `row` a row of it.
    pub(crate) unsafe fn run(&self, context: &mut Context, slots: *mut Slot, row: usize) -> Result<(), EvalError> {
        let value = match self {
            Island::Native { native, args, result } => {
                let values: Vec<Value<'_>> = args
                    .iter()
                    .enumerate()
                    // SAFETY: one slot for each argument, by the caller's promise.
                    .map(|(k, ty)| unsafe { (*slots.add(k)).read(&ty.ty) })
                    .collect();
                (native.call)(&values, &CallTypes { args, result }).map_err(|refused| EvalError {
                    code: refused.code,
                    message: refused.message,
                    value: None,
                    site: Default::default(),
                })?
            }
            Island::Eval { expr, sources } => {
                let operands = Operands { sources, slots, batch: context.batch, row };
                let value = dfc_eval::eval(expr, &operands, &context.env)?;
                // SAFETY: slot 0 is always there. The value may borrow from slots' texts and the batch, not from the slots.
                unsafe { *slots = Slot::write(&value, context) };
                return Ok(());
            }
        };
        // SAFETY: slot 0 is always there.
        unsafe { *slots = Slot::write(&value, context) };
        Ok(())
    }
}

/// An island's operands as a row.
struct Operands<'i> {
    sources: &'i [Source],
    slots: *const Slot,
    batch: *const dfc_batch::Batch,
    row: usize,
}

impl Row for Operands<'_> {
    fn get(&self, column: usize) -> Value<'_> {
        match &self.sources[column] {
            // SAFETY: `Island::run`'s caller promises a slot of this type.
            Source::Slot(k, ty) => unsafe { (*self.slots.add(*k)).read(&ty.ty) },
            Source::Batch(index, ty) => {
                // SAFETY: the batch outlives the pass over it.
                let batch = unsafe { &*self.batch };
                dfc_batch::value_at(&batch.columns[*index], &ty.ty, self.row)
            }
            Source::Unused => Value::Null,
        }
    }
}

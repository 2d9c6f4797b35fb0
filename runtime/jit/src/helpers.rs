//! What compiled code calls: one table of all helpers, with name, signature and address. The bodies are in this folder, by subject.
//!
//! A helper never panics and never unwinds: compiled frames can't be unwound through. What might panic (a native function) runs under
//! `catch_unwind`. Helpers may not know how expressions are lowered.

pub(crate) mod decimal;
mod group;
mod islands;
mod output;
mod text;

use cranelift_codegen::ir::{AbiParam, Type, types::F64, types::I64};
use cranelift_module::{FuncId, Linkage, Module};

/// A function that compiled code can call.
pub(crate) struct Helper {
    /// Its symbol.
    pub(crate) name: &'static str,
    params: &'static [Type],
    returns: Option<Type>,
    address: Address,
}

/// The address of a helper's code.
struct Address(*const u8);

// SAFETY: the address of a function may be used from any thread.
unsafe impl Sync for Address {}

impl Helper {
    /// Makes it known to a module.
    pub(crate) fn declare(&self, module: &mut dyn Module) -> FuncId {
        let mut signature = module.make_signature();
        signature.params.extend(self.params.iter().map(|ty| AbiParam::new(*ty)));
        signature.returns.extend(self.returns.map(AbiParam::new));
        match module.declare_function(self.name, Linkage::Import, &signature) {
            Ok(id) => id,
            // Only a second declaration with another signature is refused, and there is one table.
            Err(refused) => unreachable!("{}: {refused}", self.name),
        }
    }
}

macro_rules! helpers {
    ($($constant:ident = $path:path, fn($($arg:tt),*) $(-> $result:tt)?;)*) => {
        $(
            pub(crate) static $constant: Helper = Helper {
                name: stringify!($constant),
                params: &[$(helpers!(@type $arg)),*],
                returns: helpers!(@option $($result)?),
                address: Address({
                    // The compiler checks the table against the bodies.
                    let body: unsafe extern "C" fn($(helpers!(@rust $arg)),*) $(-> helpers!(@rust $result))? = $path;
                    body as *const u8
                }),
            };
        )*
        /// Every helper.
        static ALL: &[&Helper] = &[$(&$constant),*];
    };
    (@type f64) => { F64 };
    (@type $other:tt) => { I64 };
    (@option) => { None };
    (@option $result:tt) => { Some(helpers!(@type $result)) };
    (@rust int) => { i64 };
    (@rust word) => { u64 };
    (@rust f64) => { f64 };
    (@rust text) => { *const u8 };
    (@rust context) => { *mut crate::context::Context };
    (@rust slots) => { *mut crate::context::Slot };
    (@rust table) => { *mut dfc_table::GroupTable };
    (@rust state) => { *mut u8 };
    (@rust wides) => { *mut i128 };
    (@rust out) => { *mut crate::context::TextRef };
    (@rust views) => { *mut u128 };
}

helpers! {
    // Texts: address and length of each.
    SAME_BYTES = text::same_bytes, fn(text, text, word) -> word;
    TEXT_COMPARE = text::compare, fn(text, word, text, word) -> int;
    TEXT_LENGTH = text::length, fn(text, word) -> int;
    TEXT_STARTS = text::starts_with, fn(text, word, text, word) -> word;
    TEXT_ENDS = text::ends_with, fn(text, word, text, word) -> word;
    TEXT_CONTAINS = text::contains, fn(text, word, text, word) -> word;
    TEXT_CONCAT = text::concat, fn(context, out, word) -> word;
    TEXT_CASE = text::case, fn(context, out, text, word, word) -> word;
    TEXT_FITS = text::fits, fn(context, word, text, word) -> word;
    IN_TEXTS = text::in_texts, fn(context, word, text, word) -> word;
    INT_TEXT = text::int_text, fn(context, out, int, word);
    DECIMAL_TEXT = text::decimal_text, fn(context, out, word, word, word);
    DATE_TEXT = text::date_text, fn(context, out, int);
    // Numbers.
    IN_NUMBERS = decimal::in_numbers, fn(context, word, word, word) -> word;
    DECIMAL = decimal::operate, fn(wides, word) -> word;
    SCALE_DOWN = decimal::scale_down, fn(wides, word, word, word);
    FLOAT_REM = decimal::float_rem, fn(f64, f64) -> f64;
    FLOAT_ROUND = decimal::float_round, fn(f64) -> f64;
    DATE_PART = decimal::date_part, fn(int, word) -> int;
    // Whatever else.
    ISLAND = islands::run, fn(context, word, slots, word) -> word;
    GROUP = group::find, fn(context, table, slots) -> state;
    GROUP_OF_WORD = group::find_word, fn(table, word) -> state;
    CARRY = group::carry, fn(table, state, word, int);
    SUM_OVERFLOW = group::sum_overflow, fn(context, word, word);
    TEXT_OUT = output::text, fn(context, word, text, word, views);
}

/// Name and address of every helper, for the linker.
pub(crate) fn symbols() -> impl Iterator<Item = (&'static str, *const u8)> {
    ALL.iter().map(|helper| (helper.name, helper.address.0))
}

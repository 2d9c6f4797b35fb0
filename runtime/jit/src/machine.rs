//! From a cranelift function to executable memory. It may not know what the function does.

use std::sync::Mutex;

use cranelift_codegen::ir::{AbiParam, Function, types::I64};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, ModuleError, default_libcall_names};

use crate::context::Context;
use crate::helpers;

/// The signature of compiled code: the context of the call, and the number of rows.
///
/// # Safety
/// Of a call: the context's addresses must fit what the code was compiled for, and hold so many rows.
pub(crate) type Entry = unsafe extern "C" fn(*mut Context, u64);

/// Executable code, freed when dropped.
pub(crate) struct Code {
    entry: Entry,
    /// Bytes of machine code.
    pub(crate) bytes: usize,
    /// Owns the memory. Never used again but to free it; the lock makes it shareable.
    module: Mutex<Option<JITModule>>,
}

impl Code {
    /// Runs it.
    ///
    /// # Safety
    /// See [`Entry`].
    pub(crate) unsafe fn run(&self, context: &mut Context, rows: usize) {
        // SAFETY: promised by the caller; the code lives as long as `self`.
        unsafe { (self.entry)(context, rows as u64) }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let module = self.module.get_mut().map_or(None, Option::take);
        if let Some(module) = module {
            // SAFETY: the entry point is private and nobody can be running it: that would borrow `self`.
            unsafe { module.free_memory() };
        }
    }
}

/// Functions of more instructions than this are large. (A derivation of an integer takes about ten.)
const LARGE: usize = 4_000;

/// How machine registers are given to a function's values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Registers {
    /// For the best code, in a time that grows faster than a function does: with a thousand derived fields more than ten seconds.
    BestCode,
    /// In one pass over a large function.
    OnePass,
}

impl Registers {
    /// What suits a function.
    pub(crate) fn fit_for(function: &Function) -> Registers {
        if function.dfg.num_insts() > LARGE { Registers::OnePass } else { Registers::BestCode }
    }
}

/// A place to compile one function in, for this machine's processor.
pub(crate) fn module(registers: Registers) -> Result<JITModule, String> {
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) { "true" } else { "false" };
    let algorithm = match registers {
        Registers::BestCode => "backtracking",
        Registers::OnePass => "single_pass",
    };
    for (name, value) in [
        ("opt_level", "speed"),
        ("regalloc_algorithm", algorithm),
        ("enable_verifier", verify),
        // Helpers may lie farther away than a short call reaches.
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
    ] {
        flags.set(name, value).map_err(|error| error.to_string())?;
    }
    let isa = cranelift_native::builder()?.finish(settings::Flags::new(flags)).map_err(|error| error.to_string())?;
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    builder.symbols(helpers::symbols());
    Ok(JITModule::new(builder))
}

/// An empty function with the signature of [`Entry`].
pub(crate) fn empty_function(module: &JITModule) -> Function {
    let mut function = Function::new();
    function.signature = module.make_signature();
    function.signature.params.extend([AbiParam::new(I64), AbiParam::new(I64)]);
    function
}

/// Compiles a function that was built with [`empty_function`].
pub(crate) fn compile(mut module: JITModule, function: Function) -> Result<Code, String> {
    let text = |error: ModuleError| format!("{error:?}");
    let finish = |module: &mut JITModule| -> Result<(Entry, usize), String> {
        let mut context = module.make_context();
        context.func = function;
        let id = module.declare_function("program", Linkage::Export, &context.func.signature).map_err(text)?;
        module.define_function(id, &mut context).map_err(text)?;
        let bytes = context.compiled_code().map_or(0, |code| code.code_buffer().len());
        module.finalize_definitions().map_err(text)?;
        let address = module.get_finalized_function(id);
        // SAFETY: the function was compiled with the signature of `Entry`.
        Ok((unsafe { std::mem::transmute::<*const u8, Entry>(address) }, bytes))
    };
    match finish(&mut module) {
        Ok((entry, bytes)) => Ok(Code { entry, bytes, module: Mutex::new(Some(module)) }),
        Err(text) => {
            // SAFETY: nothing of it was handed out.
            unsafe { module.free_memory() };
            Err(text)
        }
    }
}

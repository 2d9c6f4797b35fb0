//! What all file connectors share: finding files, opening them through decompression and decoding, and writing them
//! so that nothing is visible before it is whole. It may not know what the files contain.

mod ahead;
mod checked;
mod compressor;
mod folder;
mod growing;
mod input;
mod output;
mod partition;
mod paths;
mod place;
mod position;
mod spool;
mod waiting;

#[cfg(test)]
mod tests;

use dfc_ir::Schema;

use crate::options::OptionReader;
use crate::{ConnectError, SinkEpochs};

pub(crate) use checked::{Checked, holds};
pub(crate) use folder::{FolderOptions, FolderSink};
pub(crate) use growing::{Begin, Growing, remove, where_they_were};
pub(crate) use input::{Compression, Encoding, Input, encode, open_input, open_plain};
pub(crate) use output::{Mode, Output, OutputOptions};
pub(crate) use partition::Partitions;
pub use paths::passing;
pub(crate) use paths::{InputFile, distance, expand, glob_folder, input_file, io_error};
pub(crate) use place::{Claim, Place, exists, folder_of, hidden_beside, publish, unfinished_beside};
pub(crate) use position::{FilePosition, Identity, Tail, bad_position, other_file};
pub(crate) use spool::{MakePart, Part, PartWriter, Spool, names_of, text_parts};

/// The values of a `compression` parameter.
pub(crate) const COMPRESSIONS: [(&str, Compression); 4] = [
    ("auto", Compression::Auto),
    ("none", Compression::None),
    ("gzip", Compression::Gzip),
    ("zstd", Compression::Zstd),
];

/// The values of an `encoding` parameter.
pub(crate) const ENCODINGS: [(&str, Encoding); 3] =
    [("utf8", Encoding::Utf8), ("gbk", Encoding::Gbk), ("latin1", Encoding::Latin1)];

/// The values of a `mode` parameter.
pub(crate) const MODES: [(&str, Mode); 3] =
    [("overwrite", Mode::Overwrite), ("append", Mode::Append), ("fail", Mode::Fail)];

/// Bytes of a folder's part where nothing is said.
pub(crate) const ROLL: u64 = 128_000_000;

/// Refuses what is said about folders only.
///
/// # Errors
/// `by` or `roll` was given for a single file.
pub(crate) fn refuse_folder_options(options: &OptionReader, path: &str) -> Result<(), ConnectError> {
    let given = match (options.names("by")?.unwrap_or_default().is_empty(), options.count("roll")?) {
        (false, _) => "by",
        (_, Some(_)) => "roll",
        _ => return Ok(()),
    };
    Err(ConnectError::new("R0202", format!("`{given}` is for folders of parts, and `{path}` is a file"))
        .help(format!("end the path with `/` for a folder: `{path}/`")))
}

/// A text sink's folder of parts: what its arguments say, and the schema that stays in the files.
///
/// # Errors
/// Arguments that don't fit the schema.
pub(crate) fn text_folder(
    options: &OptionReader,
    output: &OutputOptions,
    suffix: &str,
    schema: &Schema,
) -> Result<(FolderOptions, Option<Partitions>, Schema), ConnectError> {
    let by = options.names("by")?.unwrap_or_default();
    let (by, rest) = match by.is_empty() {
        true => (None, schema.clone()),
        false => Partitions::new(&by, schema).map(|(by, rest)| (Some(by), rest))?,
    };
    let compressed = match output.compression {
        Compression::Gzip => ".gz",
        Compression::Zstd => ".zst",
        Compression::None | Compression::Auto => "",
    };
    let folder = FolderOptions {
        path: output.path.clone(),
        mode: output.mode,
        roll: options.count("roll")?.unwrap_or(ROLL),
        extension: format!("{suffix}{compressed}"),
        partitioned: by.is_some(),
    };
    Ok((folder, by, rest))
}

/// A file, or the standard output.
pub(crate) enum FileOutput {
    /// Written in one go.
    Plain(Output),
    /// Written in epochs.
    Growing(Box<Growing>),
}

/// Opens an output, in epochs where the job takes checkpoints and it is a file.
///
/// # Errors
/// When it can't be written, or exists and may not.
pub(crate) fn open_output(
    options: &OutputOptions,
    epochs: Option<&SinkEpochs>,
    begin: Begin,
) -> Result<FileOutput, ConnectError> {
    match (Place::find(&options.path)?, epochs) {
        (Place::File { target, claim, .. }, Some(epochs)) => {
            Ok(FileOutput::Growing(Box::new(Growing::open(options, (target, claim), epochs, begin)?)))
        }
        (place, _) => {
            let mut output = Output::open_at(place, options)?;
            output.put(&begin(output.continues())?)?;
            Ok(FileOutput::Plain(output))
        }
    }
}

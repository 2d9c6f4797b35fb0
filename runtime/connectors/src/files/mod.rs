//! What all file connectors share: finding files, opening them through decompression and decoding, and writing them
//! so that nothing is visible before it is whole. It may not know what the files contain.

mod checked;
mod compressor;
mod growing;
mod input;
mod output;
mod paths;
mod place;
mod position;
mod waiting;

#[cfg(test)]
mod tests;

use crate::{ConnectError, SinkEpochs};

pub(crate) use growing::{Begin, Growing};
pub(crate) use input::{Compression, Encoding, Input, encode, open_input, open_middle};
pub(crate) use output::{Mode, Output, OutputOptions};
pub(crate) use paths::{InputFile, distance, expand, input_file, io_error};
pub(crate) use position::{FilePosition, Identity, Tail, bad_position, other_file};

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
    match (place::Place::find(&options.path)?, epochs) {
        (place::Place::File { target, claim, .. }, Some(epochs)) => {
            Ok(FileOutput::Growing(Box::new(Growing::open(options, (target, claim), epochs, begin)?)))
        }
        (place, _) => {
            let mut output = Output::open_at(place, options)?;
            output.put(&begin(output.continues())?)?;
            Ok(FileOutput::Plain(output))
        }
    }
}

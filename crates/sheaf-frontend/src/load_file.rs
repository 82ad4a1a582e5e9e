//! LOAD_FILE(path): the bytes of a file of the server, NULL where the session may not have them.
//!
//! What it may have is the session's to say: it hands over what reads. A read holds no worker thread.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, BinaryBuilder};
use arrow::datatypes::DataType;
use datafusion_common::{Result, exec_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use sheaf_exec::blocking::blocking;
use sheaf_exec::functions::EvaluationError;
use sheaf_exec::functions::conversion::to_text;
use sheaf_exec::functions::limits::{ResultLimits, ask_for};

const LOAD_FILE: &str = "load_file";

/// What a file is to the session that reads it.
pub enum LoadedFile {
    Bytes(Vec<u8>),
    /// Longer than the greatest value, which is given.
    TooLong(usize),
    /// It is not there, or not for the session.
    Unreadable,
}

/// Reads a file of this path, for one session.
pub type FileReader = Arc<dyn Fn(&str) -> LoadedFile + Send + Sync>;

/// The function that reads files this way.
pub(crate) fn load_file_function(reader: FileReader) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(LoadFile {
        reader,
        signature: Signature::any(1, Volatility::Volatile),
    }))
}

struct LoadFile {
    reader: FileReader,
    signature: Signature,
}

impl fmt::Debug for LoadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(LOAD_FILE)
    }
}

/// There is one session in a plan.
impl PartialEq for LoadFile {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for LoadFile {}

impl Hash for LoadFile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        LOAD_FILE.hash(state);
    }
}

impl ScalarUDFImpl for LoadFile {
    fn name(&self) -> &str {
        LOAD_FILE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (Some(value), Some(field)) = (arguments.args.first(), arguments.arg_fields.first())
        else {
            return exec_err!("LOAD_FILE without a path");
        };
        let paths = to_text(&value.to_array(arguments.number_rows)?, field)?;
        let limits = arguments.config_options.extensions.get::<ResultLimits>();
        let mut builder = BinaryBuilder::with_capacity(paths.len(), 0);
        let mut made_bytes = 0;
        for path in &paths {
            if let Some(limits) = limits {
                limits.check()?;
            }
            match path.map(|path| blocking(|| (self.reader)(path))) {
                Some(LoadedFile::Bytes(bytes)) => {
                    made_bytes += bytes.len();
                    if let Some(limits) = limits {
                        limits.check_batch(LOAD_FILE, made_bytes)?;
                    }
                    // It is copied, beside those before it.
                    ask_for(made_bytes)?;
                    builder.append_value(bytes);
                }
                Some(LoadedFile::TooLong(most)) => {
                    if let Some(limits) = limits {
                        limits.warn(EvaluationError::result_too_large(LOAD_FILE, most));
                    }
                    builder.append_null();
                }
                Some(LoadedFile::Unreadable) | None => builder.append_null(),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(builder.finish())))
    }
}

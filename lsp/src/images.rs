//! `ptx-lsp images`: the PTX and machine code in a cubin, a fatbin or a program, as documents for an editor.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::machine;
use crate::terminal;
use clap::Args;
use gpu_files::image::{self, ImageKind};
use serde_json::{Value, json};

#[derive(Args, Debug)]
pub struct Arguments {
    /// A cubin, a fatbin, or a program or library that holds some.
    file: PathBuf,
}

/// Prints a JSON array with an object for each image: `{"name": "sm_90.ptx", "language": "ptx", "text": "…"}`, or
/// `"ptx-sass"` for machine code. An image that cannot be read has an `"error"` and no text. `failed` is the exit
/// status where there is none.
pub fn main(arguments: &Arguments, failed: u8) -> ExitCode {
    match documents(&arguments.file) {
        Ok(all) => terminal::print_and_exit("ptx-lsp images", &format!("{}\n", Value::from(all)), failed),
        Err(message) => {
            terminal::say(format_args!("ptx-lsp images: {}: {message}", arguments.file.display()));
            ExitCode::from(failed)
        }
    }
}

fn documents(path: &Path) -> Result<Vec<Value>, String> {
    let bytes = machine::tool::read(path)?;
    let images = image::images(&bytes).map_err(|error| error.to_string())?;
    let mut room = image::UNPACK_LIMIT;
    let mut documents = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for image in &images {
        let (extension, language) = match image.kind {
            ImageKind::Ptx => ("ptx", "ptx"),
            ImageKind::Cubin => ("sass", "ptx-sass"),
            ImageKind::Other(_) => continue,
        };
        let text = image.content(&mut room).map_err(|error| error.to_string()).and_then(|content| {
            Ok(match image.kind {
                // The text may end with a zero byte, as C strings do.
                ImageKind::Ptx => {
                    (image.sm, String::from_utf8_lossy(&content).trim_end_matches('\0').to_owned())
                }
                _ => machine::tool::listing_of(&content)?,
            })
        });
        let sm = text.as_ref().map_or(image.sm, |(sm, _)| *sm);
        let stem = format!("sm_{sm}");
        let equal = names.iter().filter(|name| **name == format!("{stem}.{extension}")).count();
        names.push(format!("{stem}.{extension}"));
        let name = match equal {
            0 => format!("{stem}.{extension}"),
            more => format!("{stem}-{}.{extension}", more + 1),
        };
        documents.push(match text {
            Ok((_, text)) => json!({ "name": name, "language": language, "text": text }),
            Err(error) => json!({ "name": name, "language": language, "error": error }),
        });
    }
    match documents.is_empty() {
        true => Err("the file contains neither PTX nor machine code".to_owned()),
        false => Ok(documents),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx_analysis::{Database, LinkOptions};

    #[test]
    fn a_cubin_is_machine_code() {
        let folder = tempfile::tempdir().expect("a folder");
        let (ptx, cubin) = (folder.path().join("k.ptx"), folder.path().join("k.cubin"));
        let text = ".version 8.0\n.target sm_90\n.entry k() { bar.sync 0; ret; }\n";
        std::fs::write(&ptx, text).expect("a file");
        let db = Database::default();
        let linked =
            ptx_analysis::link(&db, db.add_file(text), &LinkOptions::default()).expect("it compiles");
        std::fs::write(&cubin, &linked.cubin).expect("a file");
        let all = documents(&cubin).expect("documents");
        assert_eq!(all.len(), 1);
        assert_eq!((&all[0]["name"], &all[0]["language"]), (&json!("sm_90.sass"), &json!("ptx-sass")));
        assert!(all[0]["text"].as_str().is_some_and(|text| text.contains(".text.k") && text.contains("BAR")));
        assert!(documents(&ptx).is_err());
    }

    /// A container with two texts for the same generation. One of them ends with a zero byte, as C strings do.
    #[test]
    fn texts_of_a_fatbin_are_documents() {
        let text = ".version 8.0\n.target sm_90\n.entry k() { ret; }\n";
        let image = |content: &[u8]| {
            let mut image = vec![0; 64];
            (image[0], image[4], image[8], image[28]) = (1, 64, content.len() as u8, 90);
            image.extend(content);
            image
        };
        let images = [image(text.as_bytes()), image(&[text.as_bytes(), b"\0"].concat())].concat();
        let mut fatbin = b"\x50\xed\x55\xba\x01\x00\x10\x00".to_vec();
        fatbin.extend((images.len() as u64).to_le_bytes());
        fatbin.extend(images);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("k.fatbin");
        std::fs::write(&path, &fatbin).expect("a file");
        let document = |name: &str| json!({ "name": name, "language": "ptx", "text": text });
        assert_eq!(documents(&path), Ok(vec![document("sm_90.ptx"), document("sm_90-2.ptx")]));
    }
}

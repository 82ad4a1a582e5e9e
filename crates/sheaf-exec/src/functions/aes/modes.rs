//! AES in the modes of `block_encryption_mode`: how blocks of 16 bytes are chained to a string of any length.
//!
//! ```text
//!   ecb     c = E(p)                                   each block alone
//!   cbc     c = E(p ^ previous c)                      the first: the initialization vector
//!   cfb     c = p ^ E(register)                        the last 16 bytes of vector and ciphertext are the register;
//!                                                      a turn makes 1 bit, 8 or 128 of them
//!   ofb     c = p ^ E(E(... E(vector)))
//! ```
//!
//! The first two are padded to whole blocks (PKCS #7). The modes are those of NIST SP 800-38A. A key of any length is
//! folded into the key of the cipher, as MySQL does: its bytes are XORed over each other.

use aes::cipher::consts::U16;
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt, BlockEncrypt, BlockSizeUser, KeyInit};
use aes::{Aes128, Aes192, Aes256};

use super::derived_key::DerivedKey;

/// Of a block, and of an initialization vector.
pub(super) const BLOCK_BYTES: usize = 16;

pub(super) type Block = [u8; BLOCK_BYTES];

/// A value of `block_encryption_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    key_bytes: usize,
    chaining: Chaining,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chaining {
    Ecb,
    Cbc,
    Cfb1,
    Cfb8,
    Cfb128,
    Ofb,
}

impl Mode {
    /// `None`: no such mode.
    pub(super) fn of_name(name: &str) -> Option<Mode> {
        let (bits, chaining) = name.strip_prefix("aes-")?.split_once('-')?;
        Some(Mode {
            key_bytes: match bits {
                "128" => 16,
                "192" => 24,
                "256" => 32,
                _ => return None,
            },
            chaining: match chaining {
                "ecb" => Chaining::Ecb,
                "cbc" => Chaining::Cbc,
                "cfb1" => Chaining::Cfb1,
                "cfb8" => Chaining::Cfb8,
                "cfb128" => Chaining::Cfb128,
                "ofb" => Chaining::Ofb,
                _ => return None,
            },
        })
    }

    pub(super) fn takes_vector(self) -> bool {
        self.chaining != Chaining::Ecb
    }

    fn is_padded(self) -> bool {
        matches!(self.chaining, Chaining::Ecb | Chaining::Cbc)
    }
}

/// What is done to blocks with one key.
trait Blocks {
    fn encrypt(&self, block: &mut Block);
    fn decrypt(&self, block: &mut Block);
}

impl<C: BlockEncrypt + BlockDecrypt + BlockSizeUser<BlockSize = U16>> Blocks for C {
    fn encrypt(&self, block: &mut Block) {
        self.encrypt_block(GenericArray::from_mut_slice(block));
    }

    fn decrypt(&self, block: &mut Block) {
        self.decrypt_block(GenericArray::from_mut_slice(block));
    }
}

/// One string on its way through the cipher, piece by piece.
pub(super) struct Stream {
    cipher: Box<dyn Blocks>,
    mode: Mode,
    /// The previous block of ciphertext (CBC), or what is encrypted next (CFB, OFB).
    register: Block,
}

impl Stream {
    /// A mode without a vector ignores it.
    pub(super) fn new(mode: Mode, key: &[u8], vector: Block) -> Stream {
        let mut folded = [0; 32];
        let folded = &mut folded[..mode.key_bytes];
        for part in key.chunks(mode.key_bytes) {
            folded
                .iter_mut()
                .zip(part)
                .for_each(|(folded, byte)| *folded ^= byte);
        }
        Self::of_key(mode, folded, vector)
    }

    /// Of a key that is derived for the cipher: as much of it is taken as there is room for.
    pub(super) fn with_derived_key(mode: Mode, key: &DerivedKey, vector: Block) -> Stream {
        Self::of_key(mode, &key[..mode.key_bytes], vector)
    }

    fn of_key(mode: Mode, key: &[u8], vector: Block) -> Stream {
        let cipher: Box<dyn Blocks> = match mode.key_bytes {
            16 => Box::new(Aes128::new(GenericArray::from_slice(key))),
            24 => Box::new(Aes192::new(GenericArray::from_slice(key))),
            _ => Box::new(Aes256::new(GenericArray::from_slice(key))),
        };
        Stream {
            cipher,
            mode,
            register: vector,
        }
    }

    /// Appends a string, encrypted. Pieces are whole blocks, but for the last one.
    pub(super) fn encrypt<'p>(
        &mut self,
        pieces: impl Iterator<Item = &'p [u8]>,
        out: &mut Vec<u8>,
    ) {
        let mut rest: &[u8] = &[];
        for piece in pieces {
            let (blocks, behind) = piece.as_chunks::<BLOCK_BYTES>();
            blocks
                .iter()
                .for_each(|block| self.encrypt_block(block, out));
            rest = behind;
        }
        if self.mode.is_padded() {
            let padding = BLOCK_BYTES - rest.len();
            let mut last = [padding as u8; BLOCK_BYTES];
            last[..rest.len()].copy_from_slice(rest);
            self.encrypt_block(&last, out);
        } else {
            self.chain(rest, out, false);
        }
    }

    /// Appends a string, decrypted. `None`: it was not encrypted like this.
    pub(super) fn decrypt<'p>(
        &mut self,
        pieces: impl Iterator<Item = &'p [u8]>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let mut rest: &[u8] = &[];
        for piece in pieces {
            let (blocks, behind) = piece.as_chunks::<BLOCK_BYTES>();
            blocks
                .iter()
                .for_each(|block| self.decrypt_block(block, out));
            rest = behind;
        }
        if !self.mode.is_padded() {
            self.chain(rest, out, true);
            return Some(());
        }
        let padding = usize::from(*out.last()?);
        let kept = out.len().checked_sub(padding)?;
        let is_padding = (1..=BLOCK_BYTES).contains(&padding)
            && out[kept..].iter().all(|byte| usize::from(*byte) == padding);
        (rest.is_empty() && is_padding).then(|| out.truncate(kept))
    }

    fn encrypt_block(&mut self, plain: &Block, out: &mut Vec<u8>) {
        if !self.mode.is_padded() {
            return self.chain(plain, out, false);
        }
        let mut block = *plain;
        if self.mode.chaining == Chaining::Cbc {
            xor(&mut block, &self.register);
        }
        self.cipher.encrypt(&mut block);
        self.register = block;
        out.extend(block);
    }

    fn decrypt_block(&mut self, encrypted: &Block, out: &mut Vec<u8>) {
        if !self.mode.is_padded() {
            return self.chain(encrypted, out, true);
        }
        let mut block = *encrypted;
        self.cipher.decrypt(&mut block);
        if self.mode.chaining == Chaining::Cbc {
            xor(&mut block, &self.register);
        }
        self.register = *encrypted;
        out.extend(block);
    }

    /// A block, or what is left behind the last one, in a mode that makes a stream of the cipher.
    fn chain(&mut self, bytes: &[u8], out: &mut Vec<u8>, decrypts: bool) {
        match self.mode.chaining {
            Chaining::Cfb1 => {
                for byte in bytes {
                    let mut made = 0;
                    for at in (0..u8::BITS).rev() {
                        let bit = byte >> at & 1;
                        let other = bit ^ self.encrypted_register()[0] >> 7;
                        let encrypted = if decrypts { bit } else { other };
                        let shifted = u128::from_be_bytes(self.register) << 1;
                        self.register = (shifted | u128::from(encrypted)).to_be_bytes();
                        made |= other << at;
                    }
                    out.push(made);
                }
            }
            Chaining::Cfb8 => {
                for byte in bytes {
                    let other = byte ^ self.encrypted_register()[0];
                    self.register.rotate_left(1);
                    self.register[BLOCK_BYTES - 1] = if decrypts { *byte } else { other };
                    out.push(other);
                }
            }
            Chaining::Cfb128 | Chaining::Ofb => {
                let key_stream = self.encrypted_register();
                self.register = key_stream;
                for ((byte, key), register) in bytes.iter().zip(key_stream).zip(&mut self.register)
                {
                    let other = byte ^ key;
                    if self.mode.chaining == Chaining::Cfb128 {
                        *register = if decrypts { *byte } else { other };
                    }
                    out.push(other);
                }
            }
            Chaining::Ecb | Chaining::Cbc => {}
        }
    }

    fn encrypted_register(&self) -> Block {
        let mut block = self.register;
        self.cipher.encrypt(&mut block);
        block
    }
}

fn xor(block: &mut Block, with: &Block) {
    block
        .iter_mut()
        .zip(with)
        .for_each(|(byte, with)| *byte ^= with);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encrypted(mode: &str, key: &str, plain: &[u8]) -> String {
        let mode = Mode::of_name(mode).unwrap();
        let mut out = Vec::new();
        let stream = || Stream::new(mode, key.as_bytes(), *b"0123456789abcdef");
        stream().encrypt(plain.chunks(32), &mut out);
        let mut decrypted = Vec::new();
        stream().decrypt(out.chunks(32), &mut decrypted).unwrap();
        assert_eq!(decrypted, plain);
        out.iter().map(|byte| format!("{byte:02X}")).collect()
    }

    /// The expected strings are MySQL's.
    #[test]
    fn modes_are_those_of_mysql() {
        let plain = b"abcdefghijklmnopqrst";
        for (mode, expected) in [
            (
                "aes-128-cbc",
                "8292C251387F43410BDF728C41FBEDB00068A83B431F76C2F4DC39CD74D541DC",
            ),
            ("aes-128-cfb1", "D17AFB8FD2C06C58CB893B017B7D79966DD4D6C1"),
            ("aes-192-cfb1", "D2006BC5746BC067D6DCE9CC22BE9C9AE9571606"),
            ("aes-128-cfb8", "C4F6B1F275B657E328878F8FC4E9D9FA28272745"),
            ("aes-192-cfb8", "BD4317A9EEF3A63C827D70174F2E3B3435AC7704"),
            ("aes-128-cfb128", "C4B4B2B8B516E6FF38D45AD8126A73B9A1804A25"),
            ("aes-128-ofb", "C4B4B2B8B516E6FF38D45AD8126A73B9E8EF6602"),
            ("aes-256-ofb", "25C92D64BC7037AF09B9D21FDF189BDDC622063B"),
        ] {
            assert_eq!(encrypted(mode, "k", plain), expected, "{mode}");
        }
        assert_eq!(
            encrypted("aes-128-ecb", "k", b""),
            "932F1B1E9189536B938A6B67666D4031"
        );
    }

    #[test]
    fn keys_are_folded() {
        assert_eq!(
            encrypted("aes-128-ecb", "0123456789abcdefghij", b"abcdefghijklmnop"),
            "5BA9BD3A7301F7D8BEBA1143B1494347DF8DD6FC9586E0F83D811330151E3367"
        );
        assert_eq!(
            encrypted("aes-128-ecb", "", b"abc"),
            "976A995F94CF4C1E24B6E2FB067E7A69"
        );
    }

    #[test]
    fn pieces_are_one_string() {
        let plain = b"abcdefghijklmnopqrstuvwxyz".repeat(5);
        for bits in [128, 192, 256] {
            for chaining in ["ecb", "cbc", "cfb1", "cfb8", "cfb128", "ofb"] {
                for length in [0, 1, 15, 16, 17, 31, 32, 33, 64, 130] {
                    encrypted(&format!("aes-{bits}-{chaining}"), "key", &plain[..length]);
                }
            }
        }
    }

    #[test]
    fn what_is_no_ciphertext_is_not_decrypted() {
        let mode = Mode::of_name("aes-128-ecb").unwrap();
        for bytes in [&b""[..], b"abc", &[0; 16], &[7; 33]] {
            let mut stream = Stream::new(mode, b"k", [0; BLOCK_BYTES]);
            assert_eq!(stream.decrypt([bytes].into_iter(), &mut Vec::new()), None);
        }
        for name in ["", "aes-128", "aes-512-ecb", "aes-128-xts", "des-128-ecb"] {
            assert_eq!(Mode::of_name(name), None, "{name}");
        }
    }
}

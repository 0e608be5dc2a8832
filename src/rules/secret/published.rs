//! Published keys: keys of emulators, and the examples of vendors' manuals.
//!
//! Only the whole value is exempt, in any context, and not the text around it. The values are
//! stored as digests, so that the sources contain no text with the form of a key. Sources: the
//! manuals of Azurite and of the Cosmos DB emulator (their account keys), Stripe (test keys),
//! Hardhat and Anvil (the accounts of their mnemonic), Telegram (bot tokens), Kubernetes (bootstrap
//! tokens, Secret and encryption configuration), AWS (access keys, session tokens) and Apollo (token
//! of its OpenAPI manual). The digests of the empty text by MD5, SHA-1 and SHA-256 are no secrets
//! either.

use sha2::Digest as _;

/// The first eight bytes of the SHA-256 of each value, in order. The value is taken without a
/// leading `0x` and without padding; 64 hexadecimal digits are taken in lower case.
const DIGESTS: &[u64] = &[
    0x0411_4db7_7271_6ac0,
    0x07e2_3ede_2756_aa3f,
    0x0aed_ba9d_586f_34f9,
    0x0b5d_d075_ccdd_03c4,
    0x13fe_7a38_a57c_4605,
    0x1a5d_44a2_dca1_9669,
    0x28d2_96be_3bf5_25f0,
    0x28e5_43d3_753f_c9d1,
    0x2caf_c097_0149_a84f,
    0x3002_888f_967a_7086,
    0x38e6_9fdd_19ae_feb4,
    0x4d3e_46ee_c824_4d1d,
    0x6403_4b44_c579_b335,
    0x691f_2163_b311_7b4d,
    0x731f_a294_d036_e54f,
    0x7831_4b11_be2e_5815,
    0x7a25_9e31_1eb5_7eb3,
    0x7e8d_e44e_a9ec_f6d5,
    0x8335_c553_3482_1eef,
    0x85cf_2543_739f_e8f3,
    0x89ae_711a_d8c5_5994,
    0x967f_2158_6cdf_1248,
    0x9766_3138_e666_9921,
    0x9baf_b26f_86be_42b0,
    0xa4b8_b245_ab28_bc4f,
    0xa7b5_80d7_11ef_2807,
    0xab7a_81ff_7b83_800e,
    0xb26a_b652_9d20_ebeb,
    0xbc1a_5096_6c9e_6486,
    0xc10a_36cc_6146_70d3,
    0xc6ea_27c5_34f9_93d3,
    0xcb20_d34a_7add_a2f5,
    0xcd37_2fb8_5148_700f,
    0xd9f5_032d_168b_d639,
    0xe21b_597b_a6b9_cafa,
    0xe8a0_614b_6747_a06f,
    0xeaa6_a919_0faf_5587,
    0xed96_7197_261c_16a9,
    0xf070_994a_8599_4785,
    0xf215_faf9_d88b_7f0a,
    0xf2d6_ca16_5150_33e5,
];
/// Lengths of the values in the list.
const LENGTHS: std::ops::RangeInclusive<usize> = 10..=400;

/// Returns true if a value is a published key.
pub(crate) fn is_published(secret: &[u8]) -> bool {
    let secret = secret.strip_prefix(b"0x").unwrap_or(secret);
    let padding = secret.iter().rev().take_while(|b| **b == b'=').count();
    let secret = &secret[..secret.len() - padding];
    if !LENGTHS.contains(&secret.len()) {
        return false;
    }
    let digits = secret.len() == 64 && secret.iter().all(u8::is_ascii_hexdigit);
    let digest = if digits {
        sha2::Sha256::digest(secret.to_ascii_lowercase())
    } else {
        sha2::Sha256::digest(secret)
    };
    let first = digest
        .iter()
        .take(8)
        .fold(0, |n: u64, b| n << 8 | u64::from(*b));
    DIGESTS.binary_search(&first).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_value_is_exempt() {
        // The key is joined here, so that the sources do not contain it.
        let known = ["AKIA", "IOSFODNN7", "EXAMPLE"].concat();
        assert!(is_published(known.as_bytes()));
        assert!(!is_published(format!("{known}A").as_bytes()));
        assert!(!is_published(format!("A{known}").as_bytes()));
        assert!(!is_published(known.to_lowercase().as_bytes()));
        let account = [
            "ac0974bec39a17e36ba4a6b4d238ff94",
            "4bacb478cbed5efcae784d7bf4f2ff80",
        ]
        .concat();
        for spelling in [
            account.clone(),
            account.to_uppercase(),
            format!("0x{account}"),
        ] {
            assert!(is_published(spelling.as_bytes()), "{spelling}");
        }
        assert!(!is_published([&account[..63], "1"].concat().as_bytes()));
        assert!(DIGESTS.is_sorted());
    }
}

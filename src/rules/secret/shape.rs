//! Measures of whether text seems generated, without a dictionary.

/// Returns the Shannon entropy of the bytes, in bits for each byte.
pub(crate) fn entropy(text: &[u8]) -> f32 {
    let mut counts = [0u32; 256];
    for b in text {
        counts[usize::from(*b)] += 1;
    }
    let n = text.len() as f32;
    let mut sum = 0.0;
    // In a short text, most bytes occur once or not at all.
    for b in text {
        let count = std::mem::take(&mut counts[usize::from(*b)]) as f32;
        if count > 1.0 {
            sum += count * count.log2();
        }
    }
    if text.is_empty() {
        0.0
    } else {
        n.log2() - sum / n
    }
}

/// Returns true if text could be a generated key: spread over its alphabet, no runs, no sequences,
/// no words.
pub(crate) fn is_random(text: &str) -> bool {
    let bytes = text.as_bytes();
    let n = bytes.len();
    if n < 8 || super::placeholder::is_placeholder(text) {
        return false;
    }
    // A generator gives about 10 different characters in 16 hexadecimal digits, and about 27 in 36
    // letters and digits.
    let hex = bytes.iter().all(u8::is_ascii_hexdigit);
    let wanted = match n {
        ..16 => 2.5,
        24.. if hex => 2.8,
        16..24 => 2.9,
        _ => 3.1,
    };
    entropy(bytes) >= wanted
        && longest_run(bytes) < 5
        && longest_sequence(bytes) < 6
        && period(bytes).is_none()
}

/// Returns true if text consists of at least three words between hyphens or underscores, of which
/// one names a secret and one says that it is for tests: `shop-e2e-jwt-secret-key-2024`. One of them
/// can be a number of up to four digits, such as a year.
pub(crate) fn is_label_of_tests(text: &str) -> bool {
    const SECRETS: [&str; 6] = ["secret", "key", "password", "passwd", "token", "pass"];
    const TESTS: [&str; 8] = [
        "test", "tests", "testing", "e2e", "dev", "local", "ci", "demo",
    ];
    let words: Vec<&str> = text.split(['-', '_']).collect();
    let is_number =
        |word: &str| (1..=4).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit());
    let is_word = |word: &str| word.bytes().all(|b| b.is_ascii_lowercase());
    let is_known = |word: &&str| !word.is_empty() && (is_word(word) || TESTS.contains(word));
    let (numbers, others): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| is_number(word));
    words.len() >= 3
        && numbers.len() <= 1
        && others.iter().all(is_known)
        && words.iter().any(|word| SECRETS.contains(word))
        && words.iter().any(|word| TESTS.contains(word))
}

/// Returns true if text has a letter and a digit.
pub(super) fn has_letters_and_digits(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit()) && text.bytes().any(|b| b.is_ascii_alphabetic())
}

/// Returns true if text is a UUID: 8-4-4-4-12 hexadecimal digits.
pub(crate) fn is_uuid(text: &str) -> bool {
    let b = text.as_bytes();
    b.len() == 36
        && b.iter().enumerate().all(|(i, c)| match i {
            8 | 13 | 18 | 23 => *c == b'-',
            _ => c.is_ascii_hexdigit(),
        })
}

/// Returns the length of the longest run of one byte.
pub(crate) fn longest_run(bytes: &[u8]) -> usize {
    longest(bytes, |a, b| a == b)
}

/// Returns the length of the longest run of bytes that go up or down by one: `abcdef`, `987654`.
pub(crate) fn longest_sequence(bytes: &[u8]) -> usize {
    let up = longest(bytes, |a, b| {
        a.checked_add(1) == Some(b) || (a, b) == (b'9', b'0')
    });
    let down = longest(bytes, |a, b| {
        b.checked_add(1) == Some(a) || (a, b) == (b'0', b'9')
    });
    up.max(down)
}

fn longest(bytes: &[u8], follows: impl Fn(u8, u8) -> bool) -> usize {
    let (mut best, mut now) = (usize::from(!bytes.is_empty()), 1);
    for pair in bytes.windows(2) {
        now = if follows(pair[0], pair[1]) {
            now + 1
        } else {
            1
        };
        best = best.max(now);
    }
    best
}

/// Returns the period of up to eight bytes that repeats at least three times in the whole text.
pub(crate) fn period(bytes: &[u8]) -> Option<usize> {
    (1..=8).find(|p| bytes.len() >= p * 3 && bytes.iter().zip(&bytes[*p..]).all(|(a, b)| a == b))
}

/// The pairs of letters that make up 94 % of written English and of identifiers: bit `b` of row
/// `a`.
const PAIRS: [&str; 26] = [
    "bcdgiklmnprstuvy",
    "aeilorsu",
    "acehiklorstu",
    "adeiorsu",
    "abcdefgilmnpqrstvwx",
    "aefiloru",
    "aehinorsu",
    "aeiort",
    "abcdefglmnoprstvxz",
    "aou",
    "eis",
    "adeilostuy",
    "abeimopsu",
    "acdefgiknostuv",
    "bcdfgiklmnoprstuvw",
    "aehiloprstu",
    "u",
    "acdefgikmnorstuy",
    "acehilmopstuy",
    "acehilorstuy",
    "abcegilmnprst",
    "aei",
    "aehinor",
    "ept",
    "ps",
    "e",
];

/// Returns the share of the text's letters and digits that belong to words: runs of at least three
/// letters of one case (an initial capital is allowed) whose pairs are those of written language.
pub(crate) fn wordiness(text: &str) -> f32 {
    let bytes = text.as_bytes();
    let total = bytes.iter().filter(|b| b.is_ascii_alphanumeric()).count();
    if total == 0 {
        return 0.0;
    }
    let mut inside = 0;
    let mut start = 0;
    while start < bytes.len() {
        if !bytes[start].is_ascii_alphabetic() {
            start += 1;
            continue;
        }
        let upper = bytes[start].is_ascii_uppercase()
            && bytes.get(start + 1).is_some_and(u8::is_ascii_uppercase);
        let rest = bytes[start + 1..].iter();
        let same = rest.take_while(|b| {
            if upper {
                b.is_ascii_uppercase()
            } else {
                b.is_ascii_lowercase()
            }
        });
        let end = start + 1 + same.count();
        let word = &bytes[start..end];
        if word.len() >= 3 && is_word(word) {
            inside += word.len();
        }
        start = end;
    }
    inside as f32 / total as f32
}

fn is_word(letters: &[u8]) -> bool {
    let pairs = letters.len() - 1;
    let known = letters
        .windows(2)
        .filter(|p| {
            let row = PAIRS[usize::from(p[0].to_ascii_lowercase() - b'a')];
            row.as_bytes().contains(&p[1].to_ascii_lowercase())
        })
        .count();
    let wanted = if letters.len() < 5 { 0.99 } else { 0.59 };
    known as f32 / pairs as f32 >= wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_words_from_noise() {
        for words in [
            "mySecretPassword",
            "access_token",
            "confirm-password",
            "KUBERNETES_TOKEN",
            "authorizationHeader",
        ] {
            assert!(wordiness(words) > 0.7, "{words} {}", wordiness(words));
        }
        for noise in [
            "hQw8mZkR2tPlqB9x",
            "9f86d081884c7d659a2feaa0c55ad015",
            "Xk7vQ2mWp9Lr4TzN",
            "zqxjkvbwpfmghtkd",
        ] {
            assert!(wordiness(noise) < 0.5, "{noise} {}", wordiness(noise));
        }
    }

    #[test]
    fn knows_what_no_generator_makes() {
        for typed in [
            "aaaaaaaaaaaaaaaaaaaa",
            "abcdefghijklmnop",
            "1234567890123456",
            "abc1abc1abc1abc1",
            "0123456789abcdef",
        ] {
            assert!(!is_random(typed), "{typed}");
        }
        for made in ["hQw8mZkR2tPlqB9x", "9f86d081884c7d659a2feaa0c55ad015"] {
            assert!(is_random(made), "{made}");
        }
    }

    #[test]
    fn a_label_of_tests_consists_of_words() {
        for (text, expected) in [
            ("shop-e2e-jwt-secret-key-2024", true),
            ("local_dev_password", true),
            ("ci-pass-7Qz4-88vd-W1m3-kP0z-9xTb", false),
            ("prod-ci-key-9x2f-k3q8-77ab-p0z1", false),
            ("test-key-1234-5678-9012", false),
            ("dev-key-", false),
            ("test-key", false),
        ] {
            assert_eq!(is_label_of_tests(text), expected, "{text}");
        }
    }

    #[test]
    fn knows_uuids() {
        assert!(is_uuid("123e4567-e89b-12d3-a456-426614174000"));
        assert!(!is_uuid("123e4567-e89b-12d3-a456-42661417400g"));
        assert!(!is_uuid("123e4567e89b12d3a456426614174000"));
    }

    #[test]
    fn measures_entropy() {
        assert!(entropy(b"aaaa") < 0.01);
        assert!((entropy(b"abcd") - 2.0).abs() < 0.01);
    }
}

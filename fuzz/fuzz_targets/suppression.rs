#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| claude_reviewer_fuzz::check::suppression_comment(data).unwrap());

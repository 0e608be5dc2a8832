#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| claude_reviewer_fuzz::check::shared_entry(data).unwrap());

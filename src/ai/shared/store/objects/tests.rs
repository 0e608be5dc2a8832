//! Stores by the addresses of their servers.

use super::*;
use std::path::PathBuf;

/// Reads an environment of pairs.
fn env(vars: &[(&str, &str)]) -> Env {
    Env::from_pairs(PathBuf::new(), vars.iter().copied())
}

/// Opens a store with variables; returns why it cannot be used.
fn refused(scheme: &str, vars: &[(&str, &str)]) -> Option<StoreFailure> {
    ObjectStore::new(scheme, "reviews/shared", &env(vars)).err()
}

#[test]
fn net_19_every_object_store_refuses_a_plain_address_of_another_machine() {
    let key = "AccountName=reviews1;AccountKey=aGVsbG8=";
    let at = |host: &str| format!("{key};BlobEndpoint=http://{host}/reviews1");
    for (scheme, variable) in [
        ("s3", "AWS_ENDPOINT_URL_S3"),
        ("s3", "AWS_ENDPOINT_URL"),
        ("gs", EMULATOR),
    ] {
        assert_eq!(refused(scheme, &[(variable, "http://127.0.0.1:9")]), None);
        let why = refused(scheme, &[(variable, "http://10.0.0.1:9")]).unwrap();
        assert!(why.starts_with(variable) && why.contains("https"), "{why}");
    }
    let variable = "AZURE_STORAGE_CONNECTION_STRING";
    assert_eq!(refused("azblob", &[(variable, &at("127.0.0.1:9"))]), None);
    let why = refused("azblob", &[(variable, &at("10.0.0.1:9"))]).unwrap();
    assert!(why.starts_with(variable) && why.contains("https"), "{why}");
}

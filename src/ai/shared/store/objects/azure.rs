//! Settings of Azure Blob Storage, in the variables of Azure's own tools.
//!
//! `AZURE_STORAGE_CONNECTION_STRING` names the account, its credentials and another address than
//! that of the public cloud. The variables of the account and of its credentials are then ignored,
//! as other tools do.
//! <https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string>

use super::StoreFailure;
use super::endpoint::endpoint;
use crate::env::Env;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opendal::{Error, services};
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::BTreeMap;

const ACCOUNT: &str = "AZURE_STORAGE_ACCOUNT";
const KEY: &str = "AZURE_STORAGE_KEY";
const SAS: &str = "AZURE_STORAGE_SAS_TOKEN";
const CONNECTION: &str = "AZURE_STORAGE_CONNECTION_STRING";
/// End of the host names of the public cloud.
const SUFFIX: &str = "core.windows.net";
/// Bytes of a connection string, at most.
const MAX_CONNECTION: usize = 8192;

/// A storage account.
#[derive(Debug)]
pub(super) enum AzureAccount {
    /// The account of an emulator on this machine, at its default address with its public key.
    Emulator,
    Account {
        endpoint: String,
        /// Its name, if the credentials need it.
        name: Option<String>,
        credential: AzureCredential,
    },
}

/// The way in which requests are authorized.
#[derive(Debug)]
pub(super) enum AzureCredential {
    Key(SecretString),
    /// A shared access signature.
    Sas(SecretString),
    /// A managed or workload identity of the machine.
    Identity,
}

impl AzureAccount {
    /// Reads the variables of an account.
    ///
    /// # Errors
    ///
    /// A reason that names the variable, without its value.
    pub(super) fn of(env: &Env) -> Result<Self, StoreFailure> {
        if let Some(text) = env.var(CONNECTION) {
            return Self::of_connection_string(text).map_err(|why| format!("{CONNECTION} {why}"));
        }
        let Some(name) = env.var(ACCOUNT) else {
            return Err(format!("{ACCOUNT} or {CONNECTION} must be set"));
        };
        if !is_account(name) {
            return Err(format!("{ACCOUNT} is not the name of a storage account"));
        }
        let credential = match (env.var(SAS), env.var(KEY)) {
            (Some(token), _) => sas(token).map_err(|why| format!("{SAS} {why}"))?,
            (None, Some(key)) => shared_key(key).map_err(|why| format!("{KEY} {why}"))?,
            (None, None) => AzureCredential::Identity,
        };
        Ok(Self::Account {
            endpoint: format!("https://{name}.blob.{SUFFIX}"),
            name: Some(name.to_owned()),
            credential,
        })
    }

    /// Reads a connection string: fields `NAME=VALUE`, separated by semicolons. Fields of other
    /// services are ignored.
    fn of_connection_string(text: &str) -> Result<Self, StoreFailure> {
        let fields = fields(text.trim())?;
        let field = |name: &str| fields.get(&name.to_ascii_lowercase()).copied();
        if let Some(value) = field("UseDevelopmentStorage") {
            return match value.eq_ignore_ascii_case("true") && fields.len() == 1 {
                true => Ok(Self::Emulator),
                false => Err("combines UseDevelopmentStorage with other settings: \
                     name the address of the emulator as BlobEndpoint instead"
                    .to_owned()),
            };
        }
        let name = field("AccountName");
        if name.is_some_and(|name| !is_account(name)) {
            return Err("has an invalid AccountName".to_owned());
        }
        let credential = match (field("SharedAccessSignature"), field("AccountKey")) {
            (Some(token), _) => {
                sas(token).map_err(|why| format!("has a SharedAccessSignature that {why}"))?
            }
            (None, Some(_)) if name.is_none() => return Err("has no AccountName".to_owned()),
            (None, Some(key)) => {
                shared_key(key).map_err(|why| format!("has an AccountKey that {why}"))?
            }
            (None, None) => return Err("has no AccountKey or SharedAccessSignature".to_owned()),
        };
        let protocol = field("DefaultEndpointsProtocol").unwrap_or("https");
        let address = match (field("BlobEndpoint"), name) {
            (Some(address), _) => address.to_owned(),
            (None, Some(name)) => {
                let suffix = field("EndpointSuffix").unwrap_or(SUFFIX);
                format!("{protocol}://{name}.blob.{suffix}")
            }
            (None, None) => return Err("has no BlobEndpoint or AccountName".to_owned()),
        };
        Ok(Self::Account {
            endpoint: endpoint("has an endpoint that", &address, protocol)?,
            name: name.map(str::to_owned),
            credential,
        })
    }

    /// Builds the settings of the client.
    pub(super) fn builder(&self) -> Result<services::Azblob, Error> {
        let Self::Account {
            endpoint,
            name,
            credential,
        } = self
        else {
            return services::Azblob::from_connection_string("UseDevelopmentStorage=true");
        };
        let builder = services::Azblob::default()
            .endpoint(endpoint)
            .account_name(name.as_deref().unwrap_or_default());
        Ok(match credential {
            AzureCredential::Key(key) => builder.account_key(key.expose_secret()),
            AzureCredential::Sas(token) => builder.sas_token(token.expose_secret()),
            AzureCredential::Identity => builder,
        })
    }
}

/// Splits a connection string into its fields, by their names in lower case.
fn fields(text: &str) -> Result<BTreeMap<String, &str>, StoreFailure> {
    if text.len() > MAX_CONNECTION || text.chars().any(|c| c.is_control()) {
        return Err("has invalid characters or is too long".to_owned());
    }
    let mut fields = BTreeMap::new();
    for field in text.split(';').map(str::trim).filter(|f| !f.is_empty()) {
        let Some((name, value)) = field.split_once('=') else {
            return Err("has a field without =".to_owned());
        };
        if value.is_empty() {
            continue;
        }
        if fields
            .insert(name.trim().to_ascii_lowercase(), value.trim())
            .is_some()
        {
            return Err("has a field twice".to_owned());
        }
    }
    Ok(fields)
}

/// Returns true for the name of a storage account: 3 to 24 lower-case letters and digits.
fn is_account(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (3..=24).contains(&name.len()) && name.bytes().all(is_plain)
}

/// Validates the key of an account.
fn shared_key(key: &str) -> Result<AzureCredential, StoreFailure> {
    match STANDARD.decode(key).is_ok_and(|key| !key.is_empty()) {
        true => Ok(AzureCredential::Key(SecretString::from(key.to_owned()))),
        false => Err("is not base64".to_owned()),
    }
}

/// Validates a shared access signature: a query, with or without its question mark.
fn sas(token: &str) -> Result<AzureCredential, StoreFailure> {
    let token = token.trim_start_matches('?');
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || !c.is_ascii() || c == '#';
    let is_signed = token.split('&').any(|part| part.starts_with("sig="));
    match is_signed && !token.chars().any(is_odd) {
        true => Ok(AzureCredential::Sas(SecretString::from(token.to_owned()))),
        false => Err("is not a shared access signature".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Key of the tests.
    const CANARY: &str = "aHVudGVyMi1jYW5hcnk=";

    /// Reads an account of variables: its address, its name and its credential.
    fn account(vars: &[(&str, &str)]) -> Result<(String, String, String), StoreFailure> {
        let env = Env::from_pairs(PathBuf::new(), vars.iter().copied());
        let account = AzureAccount::of(&env)?;
        // The client accepts every account that the parser accepts.
        let builder = account.builder().map_err(|e| e.to_string())?;
        opendal::Operator::new(builder.container("reviews")).map_err(|e| e.to_string())?;
        Ok(match account {
            AzureAccount::Emulator => ("emulator".to_owned(), String::new(), String::new()),
            AzureAccount::Account {
                endpoint,
                name,
                credential,
            } => {
                let credential = match credential {
                    AzureCredential::Key(key) => format!("key {}", key.expose_secret()),
                    AzureCredential::Sas(token) => format!("sas {}", token.expose_secret()),
                    AzureCredential::Identity => "identity".to_owned(),
                };
                (endpoint, name.unwrap_or_default(), credential)
            }
        })
    }

    /// Reads a connection string.
    fn connected(text: &str) -> Result<(String, String, String), StoreFailure> {
        account(&[(CONNECTION, text)])
    }

    /// Returns an account as `account` does.
    fn of(endpoint: &str, name: &str, credential: &str) -> (String, String, String) {
        (endpoint.to_owned(), name.to_owned(), credential.to_owned())
    }

    #[test]
    fn an_account_is_named_by_the_variables_of_azure() {
        let public = "https://reviews1.blob.core.windows.net";
        let named = (ACCOUNT, "reviews1");
        let key = format!("key {CANARY}");
        assert_eq!(account(&[named]), Ok(of(public, "reviews1", "identity")));
        assert_eq!(
            account(&[named, (KEY, CANARY)]),
            Ok(of(public, "reviews1", &key))
        );
        // A signature grants less than the key.
        let all = [named, (KEY, CANARY), (SAS, "?sv=1&sig=x%3D")];
        assert_eq!(
            account(&all),
            Ok(of(public, "reviews1", "sas sv=1&sig=x%3D"))
        );
        for bad in [
            &[][..],
            &[(KEY, CANARY)],
            &[(ACCOUNT, "Reviews1")],
            &[(ACCOUNT, "r.example.com/")],
            &[named, (KEY, "canary!")],
            &[named, (SAS, "sv=1 &sig=canary")],
            &[named, (SAS, "canary")],
        ] {
            let why = account(bad).unwrap_err();
            assert!(
                why.contains("AZURE_STORAGE_") && !why.contains("canary"),
                "{why}"
            );
        }
    }

    #[test]
    fn a_connection_string_names_everything() {
        let key = format!("key {CANARY}");
        let ours = format!("AccountName=reviews1;AccountKey={CANARY}");
        for (text, read) in [
            (
                format!(
                    "DefaultEndpointsProtocol=https;{ours};EndpointSuffix=core.chinacloudapi.cn"
                ),
                of(
                    "https://reviews1.blob.core.chinacloudapi.cn",
                    "reviews1",
                    &key,
                ),
            ),
            (
                ours.clone(),
                of("https://reviews1.blob.core.windows.net", "reviews1", &key),
            ),
            (
                format!(
                    "{ours}; blobendpoint=http://127.0.0.1:10000/reviews1/;QueueEndpoint=http://h/;"
                ),
                of("http://127.0.0.1:10000/reviews1", "reviews1", &key),
            ),
            (
                "BlobEndpoint=https://cdn.example.com;SharedAccessSignature=sv=1&sig=x%3D"
                    .to_owned(),
                of("https://cdn.example.com", "", "sas sv=1&sig=x%3D"),
            ),
            (
                "UseDevelopmentStorage=true".to_owned(),
                of("emulator", "", ""),
            ),
        ] {
            assert_eq!(connected(&text), Ok(read), "{text}");
        }
        // The other variables are ignored, also if they are invalid.
        let vars = [(CONNECTION, ours.as_str()), (ACCOUNT, "Other"), (SAS, "x")];
        assert_eq!(account(&vars).map(|read| read.2), Ok(key));
    }

    #[test]
    fn an_invalid_connection_string_has_a_reason_without_its_key() {
        for (text, reason) in [
            (format!("AccountKey={CANARY}"), "has no AccountName"),
            ("AccountName=reviews1".to_owned(), "has no AccountKey or"),
            (
                format!("AccountName=;AccountKey={CANARY}"),
                "has no AccountName",
            ),
            (
                format!("AccountName=R;AccountKey={CANARY}"),
                "invalid AccountName",
            ),
            (
                format!("AccountName=reviews1;{CANARY}"),
                "has no AccountKey or",
            ),
            ("AccountName=reviews1;canary".to_owned(), "field without ="),
            (
                "AccountName=reviews1;AccountKey=canary!".to_owned(),
                "is not base64",
            ),
            (
                format!("AccountName=reviews1;AccountKey={CANARY};accountkey={CANARY}"),
                "a field twice",
            ),
            (
                "SharedAccessSignature=sv=1&sig=canary".to_owned(),
                "has no BlobEndpoint",
            ),
            (
                "UseDevelopmentStorage=false".to_owned(),
                "UseDevelopmentStorage",
            ),
            (
                "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://h".to_owned(),
                "BlobEndpoint instead",
            ),
            (
                format!("DefaultEndpointsProtocol=ftp;AccountName=reviews1;AccountKey={CANARY}"),
                "must be an https URL",
            ),
            (
                format!("AccountName=reviews1;AccountKey={CANARY};EndpointSuffix=h?x="),
                "a query",
            ),
            ("AccountName=a\nb".to_owned(), "invalid characters"),
        ] {
            let why = connected(&text).unwrap_err();
            assert!(
                why.starts_with(CONNECTION) && why.contains(reason),
                "{text}: {why}"
            );
            assert!(!why.contains("canary") && !why.contains(CANARY), "{why}");
        }
    }

    #[test]
    fn net_19_a_plain_connection_string_is_for_this_machine_only() {
        let ours = format!("AccountName=reviews1;AccountKey={CANARY}");
        for there in [
            format!("DefaultEndpointsProtocol=http;{ours}"),
            format!("{ours};BlobEndpoint=http://10.0.0.1:10000/reviews1"),
            format!("DefaultEndpointsProtocol=http;{ours};BlobEndpoint=azurite:10000/reviews1"),
        ] {
            let why = connected(&there).unwrap_err();
            assert!(why.contains("for this machine only"), "{there}: {why}");
        }
    }

    #[test]
    fn a_credential_is_not_printed() {
        let text = format!("AccountName=reviews1;AccountKey={CANARY}");
        let account = AzureAccount::of_connection_string(&text).unwrap();
        assert!(!format!("{account:?}").contains(CANARY));
    }
}

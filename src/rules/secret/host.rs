//! Hosts in addresses on which a password grants no access from outside.

/// Usual names of services in a set of containers.
#[rustfmt::skip]
const SERVICES: &[&str] = &[
    "db", "database", "postgres", "postgresql", "pg", "pgsql", "pgbouncer", "mysql", "mariadb", "mssql",
    "sqlserver", "oracle", "mongo", "mongodb", "redis", "valkey", "memcached", "cassandra", "couchdb", "couchbase",
    "influxdb", "neo4j", "elasticsearch", "elastic", "opensearch", "clickhouse", "cockroachdb", "timescaledb",
    "rabbitmq", "rabbit", "amqp", "activemq", "kafka", "nats", "mqtt", "mosquitto", "minio", "vault", "consul",
    "etcd", "ldap", "openldap", "keycloak", "mail", "mailhog", "mailpit", "smtp", "ftp", "sftp", "proxy", "squid",
    "nginx", "traefik", "registry", "app", "api", "web", "backend", "frontend", "worker", "server", "client",
    "service", "svc", "broker", "queue", "cache", "sql", "node", "container", "docker", "compose", "local", "dev",
    "test", "tests", "master", "primary", "replica", "slave", "source", "target", "main", "internal", "grafana",
    "gitea", "gitlab", "jenkins", "airflow", "superset",
];
/// Placeholders for any host.
#[rustfmt::skip]
const MADE_UP: &[&str] = &[
    "host", "hostname", "server", "servername", "domain", "domainname", "foo", "bar", "baz", "test", "site",
    "website", "address", "addr", "company", "org", "url", "some", "somewhere", "somehost", "a", "b", "c", "x",
    "y", "h", "localhost", "proxy", "remote", "remotehost", "ip",
];

/// Returns true if a host is reserved for documentation: `example.com`, and names in it.
///
/// <https://www.rfc-editor.org/rfc/rfc6761#section-6.5>
pub(super) fn is_documented(host: &str) -> bool {
    let mut labels = host.trim_end_matches('.').rsplit('.');
    let (last, domain) = (labels.next(), labels.next());
    domain.is_none() && last == Some("example") || domain == Some("example")
}

/// Returns true if a host is the machine itself, another service in a set of containers, or a
/// placeholder for any host. The whole name must match, not only its start.
pub(super) fn is_local(host: &str) -> bool {
    const LOOPBACK: &[&str] = &[
        "localhost",
        "localhost.localdomain",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "host.docker.internal",
        "gateway.docker.internal",
        "kubernetes.docker.internal",
        "docker.for.mac.localhost",
        "docker.for.mac.host.internal",
        "host.containers.internal",
        "host.minikube.internal",
    ];
    let host = host.trim_end_matches('.');
    if LOOPBACK.contains(&host) || is_loopback_address(host) {
        return true;
    }
    match host.rsplit_once('.') {
        Some((_, "test" | "invalid" | "localhost")) => true,
        Some((name, "local")) => is_service(name),
        Some((name, _)) => MADE_UP.contains(&without_owner(name)),
        None => is_service(host),
    }
}

/// Returns true for `127.0.0.1`, `127.1`.
fn is_loopback_address(host: &str) -> bool {
    host.strip_prefix("127.")
        .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

/// Returns true if every word of a name is usual for services in sets of containers: `db`,
/// `my-postgres`, `redis-master-0`.
fn is_service(host: &str) -> bool {
    host.split(['-', '_']).all(|word| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let word = without_owner(word);
        word.is_empty() || SERVICES.contains(&word) || MADE_UP.contains(&word)
    })
}

/// Removes `my` and `your` from a name, with the character that joins them to it.
fn without_owner(name: &str) -> &str {
    let rest = name
        .strip_prefix("my")
        .or_else(|| name.strip_prefix("your"));
    match rest {
        // `mysql` is itself the name of a service.
        Some(rest) if !SERVICES.contains(&name) => rest.trim_start_matches(['-', '_', '.']),
        _ => name,
    }
}

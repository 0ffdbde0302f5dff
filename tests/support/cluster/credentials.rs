//! Who may speak to the cluster: a CA, the API server's certificate, and the static tokens.

use crate::support::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The tokens file is read once, when the API server starts: users are made beforehand and handed out.
const POOL: u32 = 512;

/// Somebody with a token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct User {
    /// As the API server knows it, and as it stands in the audit log.
    pub name: String,
    pub token: String,
}

impl User {
    pub fn new(name: impl Into<String>, token: impl Into<String>) -> Self {
        Self { name: name.into(), token: token.into() }
    }

    /// One of the fixed users; they are in `system:masters`, so what they write is not in the audit log.
    fn fixed(name: &str) -> Self {
        Self::new(name, format!("{name}-token").replace(':', "-"))
    }
}

/// The test itself: may do everything.
pub fn admin() -> User {
    User::fixed("admin")
}

/// `parts`: kube-controller-manager, kwok, kubelet.
pub fn part(name: &str) -> User {
    User::fixed(&format!("system:{name}"))
}

/// The files below one folder and the pool of users.
pub struct Credentials {
    folder: PathBuf,
    ca: Ca,
    handed_out: AtomicU32,
}

struct Ca {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Credentials {
    pub fn create(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let ca = Ca::new()?;
        let (certificate, key) = ca.server_certificate()?;
        fs::write(folder.join("ca.crt"), &ca.certificate)?;
        fs::write(folder.join("server.crt"), certificate)?;
        fs::write(folder.join("server.key"), key)?;
        let service_accounts = KeyPair::generate()?;
        fs::write(folder.join("sa.key"), service_accounts.serialize_pem())?;
        fs::write(folder.join("sa.pub"), service_accounts.public_key_pem())?;
        fs::write(folder.join("tokens.csv"), tokens())?;
        fs::write(folder.join("audit-policy.yaml"), include_str!("audit-policy.yaml"))?;
        fs::write(folder.join("kwok.yaml"), include_str!("kwok.yaml"))?;
        Ok(Self { folder: folder.to_owned(), ca, handed_out: AtomicU32::new(0) })
    }

    pub fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// A user that nobody else was given, with no rights yet.
    pub fn next_user(&self) -> User {
        let number = self.handed_out.fetch_add(1, Ordering::Relaxed);
        assert!(number < POOL, "all {POOL} users of this cluster are handed out");
        User::fixed(&format!("user-{number}"))
    }

    pub fn ca(&self) -> &str {
        &self.ca.certificate
    }

    /// A certificate and key for a server of the test's own on 127.0.0.1, such as an admission webhook.
    pub fn server_certificate(&self) -> Result<(String, String)> {
        self.ca.server_certificate()
    }

    pub fn write_kubeconfig(&self, user: &User, server: &str) -> Result<PathBuf> {
        let cluster = if server.starts_with("https:") {
            json!({ "server": server, "certificate-authority": self.file("ca.crt") })
        } else {
            json!({ "server": server })
        };
        let port = server.rsplit(':').next().unwrap_or_default();
        let path = self.folder.join(format!("{}-{port}.kubeconfig", user.name.replace(':', "-")));
        // Written beside its place and moved there: another test may be reading the same file.
        let unfinished = path.with_extension(crate::support::objects::unique("unfinished"));
        fs::write(&unfinished, kubeconfig(&cluster, user).to_string())?;
        fs::rename(&unfinished, &path)?;
        Ok(path)
    }
}

/// JSON is YAML, and every client reads it.
fn kubeconfig(cluster: &Value, user: &User) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "test", "cluster": cluster }],
        "users": [{ "name": user.name, "user": { "token": user.token } }],
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": user.name, "namespace": "default" } }],
        "current-context": "test",
    })
}

fn tokens() -> String {
    let mut file = String::new();
    let mut add = |user: &User, group: &str| {
        let User { name, token } = user;
        let _ = writeln!(file, "{token},{name},{name},{group}");
    };
    add(&admin(), "system:masters");
    for name in ["kube-controller-manager", "kwok", "kubelet"] {
        add(&part(name), "system:masters");
    }
    add(&part("kube-scheduler"), "");
    for number in 0..POOL {
        add(&User::fixed(&format!("user-{number}")), "");
    }
    file
}

impl Ca {
    fn new() -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, "uptake-test-ca");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = parameters.self_signed(&key)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(parameters, key) })
    }

    fn server_certificate(&self) -> Result<(String, String)> {
        let key = KeyPair::generate()?;
        let names = ["127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc"].map(String::from);
        let mut parameters = CertificateParams::new(names)?;
        parameters.distinguished_name.push(DnType::CommonName, "uptake-test");
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        Ok((parameters.signed_by(&key, &self.issuer)?.pem(), key.serialize_pem()))
    }
}

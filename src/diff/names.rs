//! The kind of content that a file name implies: text that programs read, data, or neither.
//!
//! The rules for content depend on it, because the name decides which program reads the file. A
//! compiler, an interpreter or a parser of settings reads a file of its own format, whatever bytes
//! it starts with.

/// The kind of content that a name implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::diff) enum NameKind {
    /// A programming language or a configuration format: always text.
    Text,
    /// A format that is not text: pictures, archives, fonts, databases, model weights.
    Data,
    /// Text for people: a few bytes of text among others are shown and scanned, and undecodable
    /// parts are ignored.
    Prose,
    /// No extension, a dotfile, or an extension that is not in the tables.
    Unknown,
}

impl NameKind {
    /// Returns the kind of a path, by its last component.
    pub(in crate::diff) fn of(path: &[u8]) -> Self {
        let name = memchr::memrchr(b'/', path).map_or(path, |i| &path[i + 1..]);
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        // Templates and examples have a suffix after the extension that determines the format.
        let bare = SUFFIXES
            .iter()
            .find_map(|s| name.strip_suffix(s))
            .unwrap_or(&name);
        match Self::of_name(&name) {
            Self::Unknown => Self::of_name(bare),
            kind => kind,
        }
    }

    fn of_name(name: &str) -> Self {
        if is_text_name(name) {
            return Self::Text;
        }
        let Some((stem, extension)) = name.rsplit_once('.') else {
            return Self::Unknown;
        };
        if is_in(TEXT, extension) {
            Self::Text
        } else if !stem.is_empty() && is_in(DATA, extension) {
            Self::Data
        } else if is_in(PROSE, extension) {
            Self::Prose
        } else {
            Self::Unknown
        }
    }
}

/// Returns the extension of a path in lower case; empty if the name has none.
pub(in crate::diff) fn extension(path: &[u8]) -> String {
    let name = memchr::memrchr(b'/', path).map_or(path, |i| &path[i + 1..]);
    let extension = memchr::memrchr(b'.', name).map_or(&[][..], |i| &name[i + 1..]);
    String::from_utf8_lossy(extension).to_ascii_lowercase()
}

/// Returns true if a list of words contains a word.
fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|w| w == word)
}

/// Suffixes of templates and examples.
const SUFFIXES: &[&str] = &[
    ".in",
    ".tmpl",
    ".tpl",
    ".template",
    ".example",
    ".sample",
    ".dist",
    ".j2",
    ".erb",
    ".orig",
];

/// Returns true for a file name that a program searches for, with or without a suffix of its own.
fn is_text_name(name: &str) -> bool {
    const NAMES: &str = "\
        dockerfile containerfile makefile gnumakefile bsdmakefile kbuild kconfig justfile \
        gemfile rakefile vagrantfile podfile fastfile appfile brewfile guardfile capfile \
        procfile jenkinsfile pipfile sconstruct sconscript wscript build workspace tiltfile \
        earthfile cmakelists pkgbuild apkbuild snakefile caddyfile meson codeowners crontab \
        sudoers gradlew mvnw configure .htaccess .htpasswd .env .envrc .npmrc .yarnrc .pypirc \
        .netrc .pgpass .gitconfig .gitattributes .gitmodules .gitignore .dockerignore \
        .editorconfig .flaskenv .babelrc .eslintrc .prettierrc .bashrc .bash_profile \
        .bash_aliases .bash_logout .profile .zshrc .zprofile .zshenv .vimrc .condarc .my.cnf \
        .s3cfg .boto .dockercfg";
    let bare = name.strip_prefix('.').map_or(0, |_| 1);
    let base = name[bare..].find('.').map_or(name, |i| &name[..bare + i]);
    is_in(NAMES, name)
        || (is_in(NAMES, base) && !name.rsplit_once('.').is_some_and(|(_, e)| is_in(DATA, e)))
}

/// Extensions of languages and of configuration formats.
const TEXT: &str = "\
    py pyt pyw pyi pyx pxd bzl star js jsm mjs cjs jsx es6 ts mts cts tsx vue svelte astro coffee go \
    java jsp jspx jspf tag kt kts rb rake gemspec erb ru haml slim php pht phtml phar php3 php4 \
    php5 php7 php8 phps inc module rs c h cc cpp cxx c++ hpp hh hxx h++ ipp inl tcc cu cuh ino \
    m mm cs csx vb vbs fs fsx fsi cshtml vbhtml razor aspx ascx ashx asmx asp asa cfm cfc sh \
    bash zsh ksh csh tcsh fish bats ebuild ps1 psm1 psd1 bat cmd awk sed tcl exp swift scala \
    sc sbt pl pm t pod cgi fcgi lua dart ex exs eex heex leex erl hrl groovy gradle gvy r rmd \
    jl hs lhs ml mli clj cljs cljc edn lisp lsp cl el scm rkt nim zig d v sv svh vhd vhdl sol \
    vy cairo move asm s pas pp dpr ada adb ads f f77 f90 f95 f03 cob cbl cobol abap cr hx gd \
    as wat wgsl glsl hlsl vert frag metal cl pde applescript ahk au3 nsi iss reg wsf hta sql \
    psql pgsql ddl plsql graphql gql proto thrift capnp fbs avdl html htm xhtml shtml ejs hbs \
    handlebars mustache jinja jinja2 twig liquid njk pug jade ftl vm tmpl tpl blade css scss \
    sass less styl xml xsd xsl xslt dtd rng wsdl svg xaml jsf zul gsp rhtml yml yaml json \
    jsonc json5 jsonl ndjson webmanifest har ipynb toml tf tfvars hcl tofu nix dhall cue \
    jsonnet libsonnet rego bicep properties ini cfg conf cnf config env envrc rc desktop \
    service socket timer mount target mk mak mkd cmake ninja bp gn gni bazel csproj vbproj \
    fsproj vcxproj sln props targets nuspec pom plist entitlements strings pbxproj xcconfig \
    podspec dockerfile containerfile dockerignore nginx htaccess editorconfig gitattributes \
    spec control ovpn rdp kubeconfig pem crontab rules policy npmrc netrc pypirc";

/// Extensions of text that people read, and of tables.
const PROSE: &str =
    "md markdown mdown mdx txt text rst adoc asciidoc asc org tex textile log csv tsv";

/// Extensions of formats that are not text.
const DATA: &str = "\
    png apng jpg jpeg jpe jp2 jxl gif bmp dib ico icns cur ani tif tiff webp avif heic heif \
    psd psb ai eps xcf kra sketch fig tga dds ktx ktx2 pvr astc exr hdr raw cr2 nef dng pcx \
    pbm pgm ppm pnm wmf emf mp3 mp2 mp4 m4a m4v m4b mov avi mkv webm wav wave flac ogg oga ogv \
    opus aac aif aiff wma wmv flv swf fla mid midi amr caf au m2ts mpg mpeg 3gp vob sf2 blend \
    blend1 fbx 3ds max c4d glb stl ply usdz usdc uasset umap unity3d assetbundle pak pck wad bsp \
    mdl nib storyboardc car ttf ttc otf woff woff2 eot pfb pfm pcf fnt pdf ps djvu doc docx \
    docm dot dotx xls xlsx xlsm xlsb ppt pptx pptm odt ods odp odg epub mobi azw3 chm hlp vsd \
    vsdx pub one pages numbers rtfd dvi zip jar war ear aar apk aab ipa xpi crx vsix nupkg \
    snupkg whl egg gem tar tgz tbz tbz2 txz tzst gz bz2 xz lz lz4 lzma zst zstd br sz z 7z rar \
    cab arj cpio deb rpm msi msix appx dmg iso img vhdx vmdk qcow2 ova squashfs pack idx rev \
    bundle mpq xar pkg exe dll sys ocx com scr so dylib a o obj lib ko elf bin hex uf2 dfu rom \
    fw pyc pyo pyd class dex odex oat vdex wasm bc luac beam swiftmodule swiftdoc rlib rmeta \
    pdb ilk pch gch res resources mo gmo qm cubin spv metallib hi cmi cmo cmx cma nse db db3 \
    sqlite sqlite3 db-wal db-shm mdb accdb dbf ldb sst rdb ibd frm myd myi realm fdb ndf mdf \
    ldf bak dump npy npz pt pth pkl pickle joblib onnx safetensors gguf ggml h5 hdf5 hdf keras \
    tflite pb ckpt caffemodel mlmodel mar rds rda rdata mat sav dta sas7bdat parquet arrow \
    feather orc avro nc grib grib2 fits dcm nii mrc las laz shp shx sbn sbx mbtiles pmtiles \
    tfrecord tfrecords msgpack bson bjdata cbor ubj ubjson dat data pcap pcapng cap etl evtx jks keystore \
    bks p12 pfx p7b p7s der kdbx gpg sig cache traineddata wv vec model dic trie jfr hprof \
    prof pprof trace nettrace profraw profdata gcda gcno ds_store suo ncb sdf ipch aps";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_the_content_is() {
        for (path, kind) in [
            ("src/x.C", NameKind::Text),
            ("Makefile", NameKind::Text),
            ("deploy/Dockerfile.prod", NameKind::Text),
            ("Jenkinsfile.release", NameKind::Text),
            (".env", NameKind::Text),
            (".env.production", NameKind::Text),
            ("a/.htaccess", NameKind::Text),
            ("config.yml.example", NameKind::Text),
            ("page.html.erb", NameKind::Text),
            ("x.png", NameKind::Data),
            ("Makefile.gz", NameKind::Data),
            ("weights.safetensors", NameKind::Data),
            (".DS_Store", NameKind::Unknown),
            ("bin/deploy", NameKind::Unknown),
            (".tool", NameKind::Unknown),
            ("a.golden", NameKind::Unknown),
            ("README.md", NameKind::Prose),
            ("notes.txt", NameKind::Prose),
        ] {
            assert_eq!(NameKind::of(path.as_bytes()), kind, "{path}");
        }
    }

    #[test]
    fn no_extension_is_in_both_tables() {
        assert!(
            TEXT.split_ascii_whitespace()
                .all(|e| !is_in(DATA, e) && !is_in(PROSE, e))
        );
        assert!(PROSE.split_ascii_whitespace().all(|e| !is_in(DATA, e)));
    }
}
